"""Waiting for a condition with a deadline, which is the only way tests here wait."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: What the start of a bare interpreter takes (seconds) on a machine for which deadlines were written.
START_S = 0.03
#: Deadlines grow no more than this.
SLOWNESS_MAX = 20.0


@functools.cache
def slowness() -> float:
    """How many times slower than that this machine is, with all that runs on it; at least 1. It is measured once, by whoever
    waits for long first."""
    began = time.monotonic()
    for _ in range(3):
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    return min(max((time.monotonic() - began) / 3 / START_S, 1.0), SLOWNESS_MAX)


def patience(seconds: float) -> float:
    """So long (seconds) what takes less than `seconds` elsewhere may take here."""
    return seconds * slowness()


def until(condition: Callable[[], Any], seconds: float = 15.0) -> Any:
    """The first true value of `condition`; looked at every few milliseconds."""
    began = time.monotonic()
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        assert waited < seconds or waited < patience(seconds), "waited in vain"
        pause.wait(0.01)


def gone(pid: int) -> bool:
    """Whether a process has ended; nobody may have asked yet how."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
