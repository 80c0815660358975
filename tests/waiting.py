"""Waiting for a condition with a deadline, which is the only way tests here wait."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def until(condition: Callable[[], Any], seconds: float = 15.0) -> Any:
    """The first true value of `condition`; looked at every few milliseconds."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "waited in vain"
        pause.wait(0.01)


def gone(pid: int) -> bool:
    """Whether a process has ended; nobody may have asked yet how."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
