"""How much work something is, counted in lines of Python that are run: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], Any], most: int = 10_000_000) -> int:
    """Lines that `work` runs in this thread; an AssertionError after `most` of them."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        if event == "line":
            count += 1
            assert count <= most, f"more than {most:,} lines were run"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
