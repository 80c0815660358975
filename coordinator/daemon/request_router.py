"""Where every request goes, from whichever server: its name, its token, one answer.

Reads are served at once from a committed snapshot; writes go to the writer. What a request has to
know of the disk is looked at before: in passing if it is little, else by a worker, and only this
request waits for it. Requests that wait (`wait_s`) are kept here until granted, or until their time
is over. What a commit leaves to be done (waiters to be served) is done after it, each by itself.
Knows no transport.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import apsw
import msgspec

from coordinator.daemon.held_requests import HeldRequests
from coordinator.daemon.look_workers import LookWorkers
from coordinator.daemon.loop_engine import LoopEngine
from coordinator.daemon.metrics import Counts
from coordinator.daemon.once_only import OnceOnly
from coordinator.daemon.serving import serve, snapshot, who
from coordinator.daemon.verdict_runner import VerdictRunner
from coordinator.daemon.waiting_readings import WaitingReadings
from coordinator.daemon.waiting_requests import WaitingRequest
from coordinator.daemon.writer import Answer, Writer
from coordinator.looking.facts import AnyNeed, Looked, Unready
from coordinator.looking.looker import Looker
from coordinator.operations import malformed
from coordinator.operations.listing import (
    OPERATIONS,
    NeedsOf,
    Operation,
    allowed,
    check_person,
    decode,
)
from coordinator.service import answered, engine, unserved
from coordinator.service.answered import Once
from coordinator.service.backlog import tasks
from coordinator.service.core import Service, check_wait
from coordinator.service.leasing import lapse, sweep
from coordinator.service.verifying import verifications
from coordinator.service.views import status
from coordinator.store.apart import apart
from coordinator.store.database import DISK_ERRORS, storage_refusal
from coordinator.store.ledger import Ledger, Tx, View
from coordinator.words import requests as rq
from coordinator.words.clock import Clock, from_iso, iso
from coordinator.words.refusals import HELD, Code, Refusal

log = logging.getLogger("coord.requests")
#: Reads that take this long are served in a thread of their own: they walk the log or all tasks,
#: or compare large files.
SLOW_READS = frozenset({"moment", "replay", "report", "review_hunks", "task_export", "timeline",
                        "work"})
#: For so long (seconds) a list of reviews waits for what is about to be flagged.
CLOSED_S = 2.0
#: Requests that wait for something to be done, by whoever asks.
FOR_WORK = frozenset({"task_claim", "change_next", "step_next"})
#: Whether whoever asked has hung up.
Gone = Callable[[], bool]
#: Serves one kind of operation: (operation, request, token, answer, gone).
Way = Callable[[Operation, Any, str | None, Answer, Gone], None]
#: Serves what takes the daemon itself long: (request, answer, token, gone).
Own = Callable[[Any, Answer, str | None, Gone], None]


class RequestRouter:
    """One per daemon; used from the loop's thread only."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        service: Service,
        writer: Writer,
        ledger: Ledger,
        reader: apsw.Connection,
        open_reader: Callable[[], apsw.Connection],
        clock: Clock,
        own: dict[str, Callable[[Any], Any]],
        looker: Looker,
        workers: LookWorkers,
        sure_agent_of: Callable[[int], str | None],
        slow: dict[str, Own] | None = None,
    ) -> None:
        self._loop = loop
        self.service = service
        self.writer = writer
        self._reader = reader
        self._open_reader = open_reader
        self._clock = clock
        self._own = own
        self._sure_agent_of = sure_agent_of
        self._slow = slow or {}
        #: How each operation is served.
        self._ways = {name: (one, self._way(one)) for name, one in OPERATIONS.items()}
        #: Waiters that are being served, and whether to look at them once more after that.
        self._serving: dict[str, bool] = {}
        self._rippling = False
        self._tending = False
        #: Requests that wait for something to do.
        self._claims: list[WaitingRequest] = []
        self._readings = WaitingReadings(loop, lambda one: self.look(
            partial(self._answer, one.operation, one.request, one.token)))
        #: It begins nothing any more.
        self.closing = False
        self._on_events: list[Callable[[], None]] = []
        #: What was counted since the start.
        self.counts = Counts()
        writer.took = self.counts.commit
        self._once = OnceOnly(service, self.look, writer)
        self.engine = LoopEngine(loop, service, writer, ledger, looker, workers, self.look)
        self.held = HeldRequests(loop, service, self.engine)
        self.verdicts = VerdictRunner(loop, service, writer, self.engine, open_reader, clock)
        ledger.on_commit = self._committed

    # ------------------------------------------------------------ asking

    def ask(self, op: str, params: bytes | msgspec.Raw, token: str | None, answer: Answer,
            gone: Callable[[], bool] = lambda: False, key: str | None = None,
            caller: int = 0) -> None:
        """Serve one request; `answer` is called once with the reply or a `Refusal`.

        `gone()` tells whether whoever asked has hung up (looked at when a wait ends). `key`: an
        idempotency key; a request that was carried out under it is answered as it was then.
        `caller`: the process that asks; 0: not known.
        """
        answer = partial(self._tell, answer)
        try:
            if op not in self._ways:
                raise malformed.no_operation(op, self._ways)
            operation, way = self._ways[op]
            request = decode(operation, params)
            if caller and token is None and request.for_people():
                check_person(operation, self._sure_agent_of(caller))
            if self.closing and op not in ("health", "status"):
                self.check_open()
            if key is not None and operation.writes:
                once = answered.once(self.service, key, op, request)
                if operation.handle is not None:
                    self._decide(operation, request, token, answer, gone, once)
                    return
                later = self._once.begin(once, token, answer)
                if later is None:
                    return
                answer = later
            way(operation, request, token, answer, gone)
        except Refusal as refusal:
            answer(refusal)
        except Exception as bad:
            log.exception("%s failed", op)
            answer(Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__})."))

    def _tell(self, answer: Answer, value: Any) -> None:
        """The one answer to a request; refusals are counted."""
        if isinstance(value, Refusal):
            self.counts.refusal(value)
        answer(value)

    def _way(self, operation: Operation) -> Way:
        if operation.name in self._slow:
            return self._run_own
        if operation.until is not None:
            return self._read_when
        if operation.name == "reviews":
            return self._read_closed
        if not operation.writes:
            return self._read_aside if operation.name in SLOW_READS else self._read
        if operation.course is not None:
            return self._run_course
        return self._run_verdict if operation.verdict is not None else self._decide

    def _read_closed(self, operation: Operation, request: Any, token: str | None, answer: Answer,
                     gone: Gone) -> None:
        """Read once what has lapsed by now is closed, and flagged; or after a while."""
        until = self._loop.time() + CLOSED_S

        def again() -> None:
            if self.closing or self._loop.time() > until or self.look(
                    lambda view: bool(lapse.due(view))) is not True:
                self._read(operation, request, token, answer, gone)
                return
            self.tend_now()
            self._loop.call_later(0.02, again)

        again()

    def _decide(self, operation: Operation, request: Any, token: str | None, answer: Answer,
                gone: Gone | None, once: Once | None = None) -> None:
        """Look at what the request needs, then let it be decided; again, if that was not all. With
        `gone` it waits for what it cannot have at once, as long as it says."""
        if operation.waits and request.wait_s > 0 and gone is not None:
            answer = self._patient(operation, request, token, answer, request.wait_s, gone, once)
        looked = Looked()
        job = partial(serve, self.service, operation, request, token, looked, once)
        if operation.needs is not None:
            needs = operation.needs(request)
        elif operation.needs_of is not None:
            needs = self._needs_of(operation.needs_of, request)
        else:
            self.writer.submit(job, answer, looked)
            return
        self.engine.decide_by(looked, job, needs, answer)

    def _needs_of(self, needs_of: NeedsOf, request: Any) -> list[AnyNeed]:
        """What a request needs that has to ask the database what that is."""
        said = self.look(lambda view: needs_of(self.service, view, request))
        return said if isinstance(said, list) else []

    def _run_own(self, operation: Operation, request: Any, token: str | None, answer: Answer,
                 gone: Gone) -> None:
        """Serve what takes the daemon itself long, if this actor may ask for it."""
        self.check_allowed(operation, token)
        self._slow[operation.name](request, answer, token, gone)

    def _run_course(self, operation: Operation, request: Any, token: str | None, answer: Answer,
                    gone: Gone) -> None:
        """Serve what takes several transactions, if this actor may ask for it."""
        course = operation.course
        assert course is not None
        said = self.look(lambda view: allowed(operation, who(view, token)))
        if isinstance(said, Refusal):
            answer(said)
        else:
            self.engine.task(course(self.engine, self.service, request), answer)

    def _run_verdict(self, operation: Operation, request: Any, token: str | None,
                     answer: Answer, gone: Gone) -> None:
        """Serve what writes files of the repository, if this actor may ask for it."""
        verdict = operation.verdict
        assert verdict is not None
        self.check_allowed(operation, token)
        self.verdicts.drive(verdict(self.service, request), lambda tx: who(tx, token), answer)

    def resume(self) -> None:
        """Go on with verdicts and commits that a crash has cut off."""
        self.verdicts.resume(self._once.take_up)

    def now(self) -> str:
        """The instant, as ISO text."""
        return iso(self._clock.now_ms())

    def now_ms(self) -> int:
        """The instant (ms since 1970, UTC)."""
        return self._clock.now_ms()

    def check_open(self) -> None:
        """Whether anything may be asked.

        Raises:
            Refusal: SHUTTING_DOWN.
        """
        if self.closing:
            raise Refusal(Code.SHUTTING_DOWN, "The coordinator is shutting down.", begun=False)

    def check_allowed(self, operation: Operation, token: str | None) -> None:
        """Whether this may be asked at all, before anything is done about it.

        Raises:
            Refusal: UNAUTHORIZED.
        """
        refusal = self.look(lambda view: allowed(operation, who(view, token)))
        if isinstance(refusal, Refusal):
            raise refusal

    def _read(self, operation: Operation, request: Any, token: str | None, answer: Answer,
              gone: Gone) -> None:
        if operation.name == "tasks" and request.filter:
            self._read_aside(operation, request, token, answer, gone)  # it looks at every task
            return
        reading = partial(self._answer, operation, request, token)
        try:
            value = self.look(reading)
        except Unready:
            self.engine.task(engine.read(self.engine, reading), answer)
        else:
            answer(value)

    def _answer(self, operation: Operation, request: Any, token: str | None, view: View) -> Any:
        actor = who(view, token)
        allowed(operation, actor)
        if operation.name == "status":
            health = self._own["health"](rq.Health())
            health.warnings += verifications.warnings(self.service, view)
            return status.status(self.service, view, actor, request,
                                   msgspec.to_builtins(health))
        if operation.handle is None:
            own = self._own[operation.name](request)
            if isinstance(own, rq.HealthReply):
                own.aside = unserved.listing(view)
                own.warnings += verifications.warnings(self.service, view)
            return own
        return operation.handle(self.service, view, actor, request)

    def look(self, reading: Callable[[View], Any]) -> Any:
        """Run a reading against one committed snapshot; a `Refusal` is returned."""
        try:
            return snapshot(self._reader, self._clock.now_ms(), reading)
        except Refusal as refusal:
            return refusal
        except DISK_ERRORS as bad:
            return storage_refusal(self.service.tree.root / ".coord", bad)

    def _read_when(self, operation: Operation, request: Any, token: str | None, answer: Answer,
                   gone: Gone) -> None:
        """Read, and wait for what is read, as long as the request says."""
        check_wait(self.service, request.wait_s)
        deadline = self._loop.time() + request.wait_s
        self._readings.ask(WaitingRequest(operation, request, token, answer, deadline, gone))

    def _read_aside(self, operation: Operation, request: Any, token: str | None,
                    answer: Answer, gone: Gone) -> None:
        reading = apart(View(self._reader, self._clock.now_ms()),
                        partial(self._answer, operation, request, token))

        def work() -> Any:
            try:
                return reading()
            except Refusal as refusal:
                return refusal
            except Exception as bad:
                log.exception("%s failed", operation.name)
                return Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__}).")

        self._loop.run_in_executor(None, work).add_done_callback(
            lambda done: answer(done.result())
        )

    # ------------------------------------------------------------ waiting

    def _patient(self, operation: Operation, request: Any, token: str | None, answer: Answer,
                 wait_s: float, gone: Callable[[], bool], once: Once | None) -> Answer:
        deadline = self._loop.time() + wait_s
        if operation.name in FOR_WORK:
            waiting = WaitingRequest(operation, request, token, answer, deadline, gone, once)
            return lambda value: self._claim_answered(waiting, value)

        def first(value: Any) -> None:
            acquisition = value.facts.get("acquisition_id") if isinstance(value, Refusal) else None
            if acquisition is None or value.code not in HELD:
                answer(value)
                return
            self.held.hold(acquisition, deadline - self._loop.time(), answer, stay=request.retry,
                           gone=gone, alone=not request.reentrant, passing=request.passing)

        return first

    def _claim_answered(self, waiting: WaitingRequest, value: Any) -> None:
        patient = isinstance(value, Refusal) and value.code in (
            Code.NOTHING_TO_DO, *HELD, Code.TASK_NOT_READY, Code.REVIEW_OPEN
        )
        left = waiting.deadline - self._loop.time()
        if not patient or left <= 0 or self.closing:
            waiting.answer(value)
            return
        waiting.refusal = value
        # (It is noted once that it waits, as soon as others hold what it could have.)
        noted = value.facts.get("counts", {}).get("ready")
        waiting.request = msgspec.structs.replace(waiting.request, wait_s=0.0 if noted else left)
        self._claims.append(waiting)
        rest = value.facts.get("rests_until")  # its own: no commit tells of its end
        rest_s = (from_iso(rest) - self.now_ms()) / 1000 if rest is not None else left
        if rest_s < left:
            waiting.timer = self._loop.call_later(rest_s + 0.005, self._claim_rested, waiting)
        else:
            waiting.timer = self._loop.call_later(left, self._claim_over, waiting)

    def _claim_rested(self, waiting: WaitingRequest) -> None:
        if waiting in self._claims:
            self._claims.remove(waiting)
            self._retry_claim(waiting)

    def _claim_over(self, waiting: WaitingRequest) -> None:
        if waiting in self._claims:
            self._claims.remove(waiting)
            waiting.answer(waiting.refusal)

    def retry_claims(self) -> None:
        """Something may be ready now: those who wait for a task look again."""
        claims, self._claims = self._claims, []
        for waiting in claims:
            if waiting.timer is not None:
                waiting.timer.cancel()
            self._retry_claim(waiting)

    def _retry_claim(self, waiting: WaitingRequest) -> None:
        if not waiting.gone():
            self._decide(waiting.operation, waiting.request, waiting.token,
                         partial(self._claim_answered, waiting), None, waiting.once)

    # ------------------------------------------------------------ after a commit

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after each commit with new events; returns how to stop."""
        self._on_events.append(callback)
        return lambda: self._on_events.remove(callback)

    def metrics(self) -> str:
        """What Prometheus is told.

        Raises:
            Refusal: STORAGE.
        """
        said = self.look(lambda view: self.counts.text(view, self._own["health"](rq.Health())))
        if isinstance(said, Refusal):
            raise said
        return str(said)

    def check_alive(self) -> None:
        """Whether it serves: it is not about to end, and its database can be read.

        Raises:
            Refusal: SHUTTING_DOWN, STORAGE.
        """
        self.check_open()
        said = self.look(lambda view: view.row("event_last"))
        if isinstance(said, Refusal):
            raise said

    def _committed(self, tx: Tx) -> None:
        self.counts.committed(tx)
        # A moment later: what was asked in this very transaction is answered first, and only then
        # waits to be told. (Told at once, it would not be waiting yet, and never hear of it.)
        for before, now in tx.stays.items():
            self.held.stay(before, now)
            self.writer.follow(partial(self.held.has_stayed, before))
        for acquisition, reply in tx.granted:
            self.writer.follow(partial(self.held.tell, acquisition, reply))
        for acquisition in tx.turned_back:
            self.writer.follow(partial(self.held.turn_back, acquisition))
        for acquisition in tx.wake:
            self.writer.follow(partial(self._serve_waiter, acquisition))
        if tx.rippled >= tasks.RIPPLE_MAX and not self._rippling:
            self._rippling = True
            self.engine.task(engine.ripple(self.engine), self._rippled)
        if tx.offers:
            self.writer.follow(self.retry_claims)
        if (tx.offers or tx.keys_written) and self._readings:
            self.writer.follow(self._readings.changed)
        for callback in self._on_events:
            callback()

    def _serve_waiter(self, acquisition: str) -> None:
        """Something is free near what this one waits for: it is served, by itself."""
        if acquisition in self._serving:
            self._serving[acquisition] = True
            return
        self._serving[acquisition] = False
        self.engine.task(engine.serve_waiter(self.engine, self.service, acquisition),
                  lambda value: self._served(acquisition))

    def _served(self, acquisition: str) -> None:
        if self._serving.pop(acquisition, False):
            self._serve_waiter(acquisition)

    def _rippled(self, value: Any) -> None:
        self._rippling = False

    def tend(self) -> None:
        """Once a second: look whether anything is due, and only then write."""
        due = self.look(sweep.anything_due)
        if due is True:
            self.tend_now()
        elif self._claims and self.look(
                lambda v: v.row("any_lapsed", v.now) or v.row("changes_due", v.now)
                or v.row("calls_due", v.now)):
            self.retry_claims()

    def tend_now(self) -> None:
        """Serve what is due; one such round at a time."""
        if self._tending or self.closing:
            return
        self._tending = True
        self.engine.task(sweep.tend(self.engine, self.service), self._tended)

    def _tended(self, value: Any) -> None:
        self._tending = False

    def sweep(self) -> None:
        """The five-minute tidying."""
        self.engine.task(sweep.sweep(self.engine, self.service, rq.Sweep()))

    def close(self) -> None:
        """Refuse what comes, answer what waits."""
        self.closing = True
        self.verdicts.close()
        bye = Refusal(Code.SHUTTING_DOWN, "The coordinator is shutting down.")
        self.engine.close()
        self.held.close(bye)
        claims, self._claims = self._claims, []
        for waiting in claims:
            waiting.answer(bye)
        self._readings.close(bye)
        self.writer.flush()
