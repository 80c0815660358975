"""Requests that wait for a commit: for work that it offers, or for values that it changes.

Owns which they are: in memory, one daemon's. Each is told to look again after such a commit, or
that its time is over. Writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from coordinator.words.refusals import Refusal

#: How much later than its end a rest is looked at (seconds): it is over by then.
AFTER_REST_S = 0.005


class WaitingChange:
    """One of them. `go_on` gets whether to look again."""

    __slots__ = ("answer", "go_on", "gone", "timer")

    def __init__(self, go_on: Callable[[bool], None], answer: Callable[[Any], None],
                 gone: Callable[[], bool]) -> None:
        self.go_on, self.answer, self.gone = go_on, answer, gone
        self.timer: asyncio.TimerHandle | None = None


class WaitingChanges:
    """All that wait for one kind of change. Used from the loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[WaitingChange] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, waiting: WaitingChange, left_s: float, rest_s: float | None) -> None:
        """Wait so long (seconds) at most, or until a rest of its own is over: no commit tells of
        that."""
        rests = rest_s is not None and rest_s < left_s
        waiting.timer = self._loop.call_later(
            rest_s + AFTER_REST_S if rests and rest_s is not None else left_s,
            self._end, waiting, rests)
        self._waiting.append(waiting)

    def change(self) -> None:
        """What they wait for may be there now. Whoever has hung up is forgotten."""
        some, self._waiting = self._waiting, []
        for waiting in some:
            if waiting.timer is not None:
                waiting.timer.cancel()
            if not waiting.gone():
                waiting.go_on(True)

    def close(self, bye: Refusal) -> None:
        """Answer all of them."""
        some, self._waiting = self._waiting, []
        for waiting in some:
            if waiting.timer is not None:
                waiting.timer.cancel()
            waiting.answer(bye)

    def _end(self, waiting: WaitingChange, again: bool) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            if not waiting.gone():
                waiting.go_on(again)
