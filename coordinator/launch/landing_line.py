"""The queue of works that have to land in one launch, in the order in which they came.

Each has its turn when the earlier ones have landed or were refused. The queue is visible meanwhile,
so that later work can be verified together with earlier work.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

W = TypeVar("W")


class LandingLine(Generic[W]):
    """One launch's. Used from all its threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._line: list[W] = []

    @contextmanager
    def turn(self, work: W) -> Iterator[None]:
        """Queue the work; the body runs when its turn comes."""
        with self._changed:
            self._line.append(work)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._line[0] is work)
            yield
        finally:
            with self._changed:
                self._line.remove(work)
                self._changed.notify_all()

    def behind(self, work: W) -> list[W]:
        """Return the works behind it in the queue now."""
        with self._changed:
            return [item for item in self._line if item is not work]
