"""Pausing between the pieces of long disk work, so that others can use the disk and the processors.

A program that waits for the disk waits for everything that is being made durable. Few requests of
others meet a small piece, and each of them meets one at most. Short work is not slowed down. The
module is never used in the loop's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: How much work (seconds) needs no rest; after `FORGET_S` without work, so much again.
FREE_S, FORGET_S = 0.1, 1.0
#: A rest is so many times as long as the piece before it, up to a maximum (seconds).
RESTS, REST_MAX_S = 3.0, 0.2


class Pace:
    """The pace of one thread's work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic,
                 sleep: Callable[[float], None] = time.sleep) -> None:
        self._clock, self._sleep = clock, sleep
        self._worked = 0.0
        self._ended = clock()

    @contextmanager
    def piece(self) -> Iterator[None]:
        """A piece of the work is done in it; the rest, if there is one, follows."""
        began = self._clock()
        if began - self._ended > FORGET_S:
            self._worked = 0.0
        try:
            yield
        finally:
            self._rest(self._clock() - began, RESTS)

    def begin(self) -> None:
        """Work begins now: until now nothing was done, which is a rest."""
        now = self._clock()
        if now - self._ended > FORGET_S:
            self._worked = 0.0
        self._worked = max(0.0, self._worked - (now - self._ended))
        self._ended = now

    def rest(self, times: float) -> None:
        """Rest so many times as long as the piece of work since the last rest."""
        took = self._clock() - self._ended
        if took > FORGET_S:  # no one piece takes so long; the thread waited
            self._worked = took = 0.0
        self._rest(took, times)

    def _rest(self, took: float, times: float) -> None:
        self._worked += took
        if self._worked > FREE_S:
            self._sleep(min(times * took, REST_MAX_S))
        self._ended = self._clock()
