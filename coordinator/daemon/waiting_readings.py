"""Readings that wait for what they read: a key's next version, a change's end.

Read, and if that is not it, again after each commit that may have changed it, until the time is
over; then whoever asks is told how it is. Writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from coordinator.daemon.waiting_requests import WaitingRequest
from coordinator.words.refusals import Refusal


class WaitingReadings:
    """One per daemon; used from the loop's thread only.

    Args:
        read: what a request reads now; a `Refusal` is a value.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop,
                 read: Callable[[WaitingRequest], Any]) -> None:
        self._loop, self._read = loop, read
        self._waiting: list[WaitingRequest] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def ask(self, waiting: WaitingRequest) -> None:
        """Answer it now, or when what it waits for is there, or its time is over."""
        until = waiting.operation.until
        assert until is not None, "it waits for something"
        value = self._read(waiting)
        left = waiting.deadline - self._loop.time()
        if isinstance(value, Refusal) or until(value) or left <= 0:
            waiting.answer(value)
            return
        waiting.timer = self._loop.call_later(left, self._look_again, [waiting])
        self._waiting.append(waiting)

    def changed(self) -> None:
        """What they wait for may be there now."""
        self._look_again(list(self._waiting))

    def close(self, bye: Refusal) -> None:
        """Answer all of them."""
        some, self._waiting = self._waiting, []
        for waiting in some:
            if waiting.timer is not None:
                waiting.timer.cancel()
            waiting.answer(bye)

    def _look_again(self, some: list[WaitingRequest]) -> None:
        self._waiting = [one for one in self._waiting if one not in some]
        for waiting in some:
            if waiting.timer is not None:
                waiting.timer.cancel()
            if not waiting.gone():
                self.ask(waiting)
