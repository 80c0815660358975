"""The loop of who does work one piece after another: ask for the next, wait for it, until told to
stop. Owns when to ask and when to end; never what the work is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from coordinator.client.client import Client
from coordinator.client.wire_format import RECONNECT_S
from coordinator.words.refusals import Code, Refusal

T = TypeVar("T")

#: How long one question for the next piece waits (seconds): then it looks whether to stop.
ASK_S = 20.0


def through_restarts(ask: Callable[[], T]) -> T:
    """The answer to what may be asked again: where the coordinator ends meanwhile, the next one's.

    Raises:
        Refusal: SHUTTING_DOWN: there was no other within `RECONNECT_S`; and what `ask` raises.
    """
    deadline = time.monotonic() + RECONNECT_S
    while True:
        began = time.monotonic()
        try:
            return ask()
        except Refusal as refusal:
            if refusal.code is not Code.SHUTTING_DOWN:
                raise
            now = time.monotonic()
            if now - began > 1.0:  # it has waited with a coordinator that ran
                deadline = now + RECONNECT_S
            if now > deadline:
                raise
            time.sleep(0.1)


class WorkLoop:
    """Of one worker. `stop` from another thread, or a signal handler: end after the piece that it
    is at."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stop = threading.Event()

    def stop(self) -> None:
        """End after this piece; where it waits for one, within `ASK_S`, or at once with the
        client's `hang_up` after it."""
        self._stop.set()

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stop.is_set()

    def pieces(self, ask: Callable[[int], T], *, while_any: bool = False) -> Iterator[T]:
        """Each piece as `ask` gives it, until `stop`. `ask` gets the mark for its call, so that a
        `hang_up` ends it, and goes on with the next coordinator where one ends.

        Args:
            while_any: end when there is none.

        Raises:
            Refusal: SHUTTING_DOWN, DAEMON_DOWN: the coordinator ended, and no other could be
                reached; and what `ask` raises.
        """
        while True:
            mark = self._client.hang_ups  # before the look: who stops and hangs up is heard
            if self._stop.is_set():
                return
            try:
                given = through_restarts(partial(ask, mark))
            except Refusal as refusal:
                ends = self._stop.is_set() and refusal.code is Code.DAEMON_DOWN  # it was hung up on
                if refusal.code is not Code.NOTHING_TO_DO and not ends:
                    raise
                if while_any:
                    return
                continue
            yield given
