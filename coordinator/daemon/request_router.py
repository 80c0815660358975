"""Routing every request, from whichever server, to its use case. Each request gets one answer.

The engine carries out the steps of the use case. After each commit the router begins the work that
the commit leaves, such as serving waiters. The module knows no transport.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from coordinator.daemon.held_requests import HeldRequests
from coordinator.daemon.loop_engine import LoopEngine, Parts, Run
from coordinator.daemon.metrics import Counts
from coordinator.daemon.once_only import OnceOnly
from coordinator.daemon.program_presence import ProgramPresence
from coordinator.daemon.writer import Answer
from coordinator.kernel import answered, errands, tasks
from coordinator.kernel.leasing import sweep
from coordinator.kernel.operations import Operation, check_person
from coordinator.kernel.use_cases import UseCase
from coordinator.kernel.writing import carrying_out, journal
from coordinator.operations import listing
from coordinator.operations.listing import OPERATIONS, decode
from coordinator.store.writer_cache import Effects
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.requests")
#: Whether the asker has hung up.
Gone = Callable[[], bool]


class RequestRouter:
    """Serves the requests of one daemon. Used in the loop's thread only.

    Args:
        own: operation's name -> use case, for operations that the daemon serves itself.
    """

    def __init__(self, parts: Parts, own: dict[str, UseCase],
                 sure_agent_of: Callable[[int], str | None]) -> None:
        self._loop, self._clock = parts.loop, parts.clock
        self.service = service = parts.service
        self.writer = parts.writer
        self._sure_agent_of = sure_agent_of
        #: Name -> the operation, and its use case.
        self._served: dict[str, tuple[Operation, UseCase]] = {
            name: (operation, operation.use_case or own[name])
            for name, operation in OPERATIONS.items()}
        #: Waiter that is being served -> whether to serve it once more after that.
        self._serving: dict[str, bool] = {}
        self._rippling = False
        self._tending = False
        #: Whether the daemon ends, so that no request begins.
        self.closing = False
        self._on_events: list[Callable[[], None]] = []
        #: Counters since the start.
        self.counts = Counts()
        self.writer.took = self.counts.commit
        self.engine = LoopEngine(parts)
        self.engine.on_refusal = self.counts.refusal
        #: Run a reading against one committed snapshot; a `Refusal` is returned.
        self.look = self.engine.look
        self._once = OnceOnly(service, self.look, self.writer)
        self.held = HeldRequests(self._loop, service, self.engine)
        self.engine.hold = self.held.hold
        service.tend = self.tend_now
        self.presence = ProgramPresence()
        self.presence.begin(self.look, self.writer.submit)
        service.presence = self.presence
        parts.ledger.on_commit = self._committed

    # ------------------------------------------------------------ asking

    def ask(self, op: str, params: bytes | msgspec.Raw, token: str | None, answer: Answer,
            gone: Gone = lambda: False, key: str | None = None, caller: int = 0) -> None:
        """Serve one request. `answer` is called once with the reply or a `Refusal`.

        `gone()` tells whether the asker has hung up; it is checked when a wait ends. `key`: an
        idempotency key. A request that was carried out under it gets the answer of that time.
        `caller`: the asking process; 0 if unknown.
        """
        try:
            served = self._served.get(op)
            if served is None:
                raise listing.no_operation(op, self._served)
            operation, use_case = served
            request = decode(operation, params)
            if caller and token is None and request.for_people():
                check_person(operation, self._sure_agent_of(caller))
            if self.closing and op not in ("health", "status"):
                self.check_open()
            run = Run(self.engine, use_case(self.service, request), answer, operation, token, gone,
                      self._loop.time() + getattr(request, "wait_s", 0.0))
            run.caller = caller
            if operation.operator_only or operation.several:
                run.check()
            if key is not None and operation.writes:
                once = answered.once(self.service, key, op, request)
                if not operation.several:
                    run.once = once
                else:
                    run.later = self._once.begin(once, token, partial(self._tell, answer))
                    if run.later is None:
                        return
                    run.answer = run.later
            run.go_on(None)
        except Refusal as refusal:
            self._tell(answer, refusal)
        except Exception as bad:
            log.exception("%s failed", op)
            self._tell(answer, Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__})."))

    def _tell(self, answer: Answer, value: Any) -> None:
        """Give a request its only answer, and count refusals."""
        if isinstance(value, Refusal):
            self.counts.refusal(value)
        answer(value)

    def resume(self) -> None:
        """Keep the files of unfinished verdicts held, and continue verdicts and commits that a
        crash interrupted. A repeated request waits for them."""
        left = self.look(journal.unfinished)
        if not isinstance(left, list) or not left:
            return
        self.writer.submit(partial(carrying_out.hold, self.service), lambda value: None)
        for review in left:
            if review not in self.service.at_work:
                self.engine.run(carrying_out.resume(self.service, review),
                                partial(_log_resumed, review, self._once.take_up(review)))

    def now(self) -> str:
        """The present time, as ISO text."""
        return iso(self._clock.now_ms())

    def now_ms(self) -> int:
        """The present time (Unix ms)."""
        return self._clock.now_ms()

    def check_open(self) -> None:
        """Check that requests may begin.

        Raises:
            Refusal: SHUTTING_DOWN.
        """
        if self.closing:
            raise Refusal(Code.SHUTTING_DOWN, "The coordinator is shutting down.", begun=False)

    # ------------------------------------------------------------ after a commit

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after each commit with new events. Returns a function that ends this."""
        self._on_events.append(callback)
        return lambda: self._on_events.remove(callback)

    def metrics(self) -> str:
        """The text for Prometheus.

        Raises:
            Refusal: STORAGE.
        """
        health = self.service.health
        assert health is not None, "the daemon tells of itself"
        refusal = self.look(lambda view: self.counts.text(view, health(rq.Health())))
        if isinstance(refusal, Refusal):
            raise refusal
        return str(refusal)

    def check_alive(self) -> None:
        """Check that the daemon serves: it does not end, and its database can be read.

        Raises:
            Refusal: SHUTTING_DOWN, STORAGE.
        """
        self.check_open()
        refusal = self.look(lambda view: view.value("event_last"))
        if isinstance(refusal, Refusal):
            raise refusal

    def _committed(self, effects: Effects) -> None:
        self.counts.committed(effects)
        # Follow-ups run a moment later. A request of this very transaction is answered first and
        # begins to wait only then, so it would miss an immediate one.
        for before, now in effects.stays.items():
            self.held.stay(before, now)
            self.writer.follow(partial(self.held.has_stayed, before))
        for acquisition, reply in effects.granted:
            self.writer.follow(partial(self.held.tell, acquisition, reply))
        for acquisition in effects.turned_back:
            self.writer.follow(partial(self.held.turn_back, acquisition))
        for acquisition in effects.wake:
            self.writer.follow(partial(self._serve_waiter, acquisition))
        if effects.rippled >= tasks.RIPPLE_MAX and not self._rippling:
            self._rippling = True
            self.engine.run(errands.ripple(), self._rippled)
        if effects.offers:
            self.writer.follow(self.engine.work.change)
        if (effects.offers or effects.keys_written) and self.engine.values:
            self.writer.follow(self.engine.values.change)
        for callback in self._on_events:
            callback()

    def _serve_waiter(self, acquisition: str) -> None:
        """Serve a waiter, because something that it waits for may be free."""
        if acquisition in self._serving:
            self._serving[acquisition] = True
            return
        self._serving[acquisition] = False
        self.engine.run(errands.serve_waiter(self.service, acquisition),
                        lambda value: self._waiter_served(acquisition))

    def _waiter_served(self, acquisition: str) -> None:
        if self._serving.pop(acquisition, False):
            self._serve_waiter(acquisition)

    def _rippled(self, value: Any) -> None:
        self._rippling = False

    def tend(self) -> None:
        """Look whether anything is due, and only then write. Called once a second."""
        due = self.look(partial(sweep.anything_due, self.service))
        if due is True:
            self.tend_now()
        elif self.engine.work and self.look(
                lambda v: v.has("any_lapsed", v.now) or v.has("changes_due", v.now)
                or v.has("calls_due", v.now)):
            self.engine.work.change()

    def tend_now(self) -> bool:
        """Serve what is due, one round at a time. Returns whether a round is running."""
        if not self._tending and not self.closing:
            self._tending = True
            self.engine.run(sweep.tend(self.service), self._tended)
        return self._tending and not self.closing

    def _tended(self, value: Any) -> None:
        self._tending = False

    def sweep(self) -> None:
        """Tidy up. Called every five minutes."""
        self.engine.run(sweep.sweep(self.service, rq.Sweep()))

    def close(self) -> None:
        """Refuse new requests, and answer the waiting ones."""
        self.closing = True
        bye = Refusal(Code.SHUTTING_DOWN, "The coordinator is shutting down.")
        self.engine.close()
        self.held.close(bye)
        self.engine.close_waiting(bye)
        self.writer.flush()


def _log_resumed(review: str, answer: Answer, value: Any) -> None:
    answer(value)
    if isinstance(value, Refusal):
        log.warning("the verdict on %s that was cut off: %s", review, value.message)
    else:
        log.info("the verdict on %s that was cut off has come to its end", review)
