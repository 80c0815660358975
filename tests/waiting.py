"""Waiting for a condition with a deadline, which is the only way tests here wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
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
