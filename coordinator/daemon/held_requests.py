"""Requests that are held open for a place in the queue, until the grant or the end of their time.

The daemon keeps them in memory. Several requests of one agent for the same resources share a place,
which is kept until the last of them has ended. The module decides no grant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from coordinator.daemon.loop_engine import LoopEngine
from coordinator.daemon.writer import Answer
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import grant, waiting_line
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: Places that are remembered as turned back, and for how long (seconds).
TURNED_MAX, TURNED_S = 1_000, 1.0


class Held:
    """One request that is held open."""

    __slots__ = ("acquisition", "alone", "answer", "gone", "over", "passing", "stay")

    def __init__(self, acquisition: str, answer: Answer, stay: bool, gone: Callable[[], bool],
                 alone: bool, passing: bool) -> None:
        self.acquisition = acquisition
        self.answer = answer
        self.stay = stay
        self.gone = gone
        self.over = False
        #: Whether a grant to another request of its agent does not count for it.
        self.alone = alone
        #: Whether the asker ends with the answer. Then its place stays only while its agent lives.
        self.passing = passing


class HeldRequests:
    """All held requests of a daemon. Used in the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, service: Service, run: LoopEngine) -> None:
        self._loop, self._service, self._run = loop, service, run
        #: Held requests by their place in the queue (acquisition id), the newest last.
        self._at: dict[str, list[Held]] = {}
        #: Places that stay without an open request: the name when a request was about to be held
        #: open there -> the present name.
        self._stays: dict[str, str] = {}
        #: Place -> when it was turned back. A request that is about to be held open there may not
        #: know, if its decision needed a look.
        self._turned: dict[str, float] = {}

    def hold(self, acquisition: str, wait_s: float, answer: Answer, *, stay: bool = True,
             gone: Callable[[], bool] = lambda: False, alone: bool = False,
             passing: bool = False) -> None:
        """Keep a request open for a queued acquisition. `answer` gets the grant, or the refusal
        when its time (`wait_s`, seconds) is over; then it stays in the queue or leaves it. `gone()`
        tells whether the asker has hung up. `alone`: a grant to another request of its agent does
        not count."""
        now = self._stays.get(acquisition)
        held = Held(now or acquisition, answer, stay or now is not None, gone, alone, passing)
        self._at.setdefault(held.acquisition, []).append(held)
        self._loop.call_later(wait_s, self._give_up, held)
        turned = self._turned.pop(held.acquisition, None)
        if gone() or (turned is not None and self._loop.time() - turned < TURNED_S):
            self._give_up(held)

    def stay(self, acquisition: str, now: str) -> None:
        """Keep a place without an open request, which is called `now` from now on, when the
        requests that wait there have ended."""
        self._stays[acquisition] = now
        waiting = self._at.pop(acquisition, [])
        for held in waiting:
            held.acquisition, held.stay = now, True
        if waiting:
            self._at[now] = waiting

    def has_stayed(self, acquisition: str) -> None:
        """Forget the former name of a place: requests of the same moment are held open by now."""
        self._stays.pop(acquisition, None)

    def hung_up(self) -> None:
        """End the held requests of connections that have ended, so that nothing is granted to an
        asker that is gone."""
        for waiting in list(self._at.values()):
            for held in [holding for holding in waiting if holding.gone()]:
                self._give_up(held)

    def turn_back(self, acquisition: str) -> None:
        """End all requests at this place, because what they wait for cannot come."""
        waiting = list(self._at.get(acquisition, ()))
        for held in waiting:
            self._give_up(held)
        if not waiting:
            self._turned[acquisition] = self._loop.time()
            if len(self._turned) > TURNED_MAX:
                del self._turned[next(iter(self._turned))]

    def tell(self, acquisition: str, value: Any) -> None:
        """Answer all requests at this place. `value`: the grant, or the refusal."""
        waiting = self._at.pop(acquisition, [])
        # The list is emptied from its end, so an asker that is still there is answered first.
        waiting.sort(key=lambda holding: not (holding.over or holding.gone()))
        while waiting:
            held = waiting.pop()
            held.answer(_for_another(value) if held.alone and _is_had(value) else value)
            if isinstance(value, rq.Acquired):  # the others have what the newest was granted
                value = grant.had_already(value)

    def close(self, value: Refusal) -> None:
        """Refuse all held requests, after the places were given up that nobody wanted to keep."""
        leaving = [acquisition for acquisition, waiting in self._at.items()
                   if not any(holding.stay for holding in waiting)]

        def job(tx: Tx) -> None:
            for acquisition in leaving:
                waiting_line.leave(tx, acquisition, "the coordinator ended")

        def ended(result: Any) -> None:
            for acquisition in list(self._at):
                self.tell(acquisition, value)

        if leaving:
            self._run.submit(job, [], ended)
        else:
            ended(None)

    def _stop_holding(self, tx: Tx, held: Held, waiting: Sequence[Held]) -> Refusal | None:
        """The answer of a request that ends; None if it is granted."""
        now = tx.effects.stays.get(held.acquisition)
        here = now or held.acquisition
        if any(granted == here for granted, _ in tx.effects.granted):
            return None  # granted at this very moment; `tell` is about to answer it
        last = here not in tx.effects.joined and all(holding.over for holding in waiting)
        stays = held.stay and (not held.passing or waiting_line.is_heard(tx, here))
        return waiting_line.stop_holding(
            self._service, tx, here, stays or now is not None, last,
            listens=any(not holding.gone() for holding in waiting))

    def _give_up(self, held: Held) -> None:
        """End a request without a grant, unless the grant comes before this job runs. The place is
        kept for other requests that wait there, or are about to."""
        waiting = self._at.get(held.acquisition, [])
        if held.over or held not in waiting:
            return
        held.over = True

        def ended(value: Any) -> None:
            if value is None or held not in waiting:
                return
            waiting.remove(held)
            for holding in waiting:  # the answer says that the place stays
                holding.stay = holding.stay or held.stay
            if not waiting and self._at.get(held.acquisition) is waiting:
                del self._at[held.acquisition]
            held.answer(value)

        self._run.submit(lambda tx: self._stop_holding(tx, held, waiting), [], ended)


def _is_had(value: Any) -> bool:
    return isinstance(value, rq.Acquired) and any(lease.reentrant for lease in value.leases)


def _for_another(granted: rq.Acquired) -> Refusal:
    """LOCKED for a request whose agent was granted this for another one."""
    first = granted.leases[0]
    return Refusal(
        Code.LOCKED, f"{first.resource} was granted to {first.locked_by} for another request of "
        "that name, which waited, too. Nothing was leased for this one.",
        next="Ask again when it is released; or be an agent of your own.",
        holder=first.locked_by, resource=first.resource, held_by_itself=True)
