"""The list of the open requests that wait until a commit offers work or changes a value.

Each daemon keeps its list in memory, and this module writes nothing. After such a commit each
request looks again. A request whose time is over gets its last answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from coordinator.words.refusals import Refusal

#: An agent that has reached a limit rests for some time. Its request looks again so much later
#: (seconds) than the rest ends, so that the rest is over by then.
AFTER_REST_S = 0.005


class WaitingRequest:
    """One request that waits. `go_on` gets True to let the request look again, and False to end its
    wait. `gone` tells whether the asker has hung up."""

    __slots__ = ("answer", "go_on", "gone", "timer")

    def __init__(self, go_on: Callable[[bool], None], answer: Callable[[Any], None],
                 gone: Callable[[], bool]) -> None:
        self.go_on, self.answer, self.gone = go_on, answer, gone
        self.timer: asyncio.TimerHandle | None = None


class WaitingRequests:
    """All requests that wait for one kind of change. Only the loop's thread may use them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._requests: list[WaitingRequest] = []

    def __bool__(self) -> bool:
        return bool(self._requests)

    def add(self, waiting: WaitingRequest, left_s: float, rest_s: float | None) -> None:
        """Let a request wait for `left_s` seconds, or until its agent's rest ends in `rest_s`."""
        rest_ends_first = rest_s is not None and rest_s < left_s
        waiting.timer = self._loop.call_later(
            rest_s + AFTER_REST_S if rest_ends_first and rest_s is not None else left_s,
            self._end_wait, waiting, rest_ends_first)
        self._requests.append(waiting)

    def change(self) -> None:
        """Let each request look again. A request whose asker has hung up is dropped."""
        former, self._requests = self._requests, []
        for waiting in former:
            if waiting.timer is not None:
                waiting.timer.cancel()
            if not waiting.gone():
                waiting.go_on(True)

    def close(self, refusal: Refusal) -> None:
        """Answer every request with this refusal."""
        former, self._requests = self._requests, []
        for waiting in former:
            if waiting.timer is not None:
                waiting.timer.cancel()
            waiting.answer(refusal)

    def _end_wait(self, waiting: WaitingRequest, looks_again: bool) -> None:
        if waiting in self._requests:
            self._requests.remove(waiting)
            if not waiting.gone():
                waiting.go_on(looks_again)
