"""Operations served at once, in one thread, without a daemon: for benchmarks and tests.

The same decisions, looks and transactions as the daemon's, by another engine: nothing waits, so a
coroutine of the service runs to its end in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from coordinator.looking.facts import AnyNeed, Looked
from coordinator.looking.looker import Budget, Looker
from coordinator.operations.listing import Operation, allowed, serve_write
from coordinator.service import engine
from coordinator.service.backlog.tasks import RIPPLE_MAX
from coordinator.service.core import OPERATOR, Actor, Service
from coordinator.service.leasing import waiting_line
from coordinator.service.views import status
from coordinator.store.ledger import Job, Ledger, Tx, View
from coordinator.words.refusals import Refusal


class InProcess:
    """A coordinator's insides, run by whoever asks.

    Attributes:
        now_ms: the instant at which whatever is asked next happens.
        granted: waiters (acquisition ids) that were granted after a request of another, in order.
        on_commit: called after every commit that recorded something.
    """

    def __init__(self, service: Service, ledger: Ledger, now_ms: int) -> None:
        self.service = service
        self.now_ms = now_ms
        self.granted: list[str] = []
        self.on_commit: list[Callable[[Tx], None]] = []
        self._woken: dict[str, None] = {}
        self._rippling = False
        self._blobs: list[tuple[str, int, bytes, int]] = []
        review, look = service.settings.review, service.settings.look
        budget = Budget(2 * review.files_max, look.bytes_max, look.seconds_max,
                        review.file_bytes_max)
        self._looker = Looker(service.tree, service.ignore, budget, self._kept,
                              lambda *blob: self._blobs.append(blob), service.blobs,
                              lambda digest: self.view().blob(digest))
        self.ledger = ledger
        ledger.on_commit = self._committed

    # ------------------------------------------------------------ the engine

    async def write(self, job: Job) -> Any:
        """A job's value once it is on disk; a `Refusal` or `Unready` is a value."""
        def woken(tx: Tx) -> Any:
            value = job(tx)
            if tx.freed:
                waiting_line.wake(self.service, tx)
            return value

        return self.ledger.run_all([woken], self.now_ms)[0]

    async def read(self, reading: Callable[[View], Any]) -> Any:
        """What a reading gives; a `Refusal` is a value."""
        try:
            return reading(self.view())
        except Refusal as refusal:
            return refusal

    async def look(self, needs: Iterable[AnyNeed], looked: Looked) -> Refusal | None:
        """Look at all of these, and keep what has to be kept."""
        seq = self.ledger.seq
        left = self._looker.in_passing(list(needs), looked, seq)
        if left:
            self._looker.look(left, looked, seq)
            blobs, self._blobs[:] = list(self._blobs), []

            def keep(tx: Tx) -> None:
                for blob in blobs:
                    tx.keep_packed(*blob)

            refused = await self.write(keep)
            if isinstance(refused, Refusal):
                return refused  # what was found cannot be kept: then it is not known
        return None

    async def do(self, work: Callable[[], Any]) -> Any:
        """What `work` gives; a `Refusal` is a value."""
        try:
            return work()
        except Refusal as refusal:
            return refusal

    def close(self) -> None:
        """End the processes that looks have started."""
        self._looker.close()

    # ------------------------------------------------------------ asking

    def ask(self, operation: Operation, request: Any,
            actor: Callable[[View], Actor] = lambda view: OPERATOR) -> Any:
        """Serve a request, and what follows from it; a refusal is raised."""
        answer = self._ask(operation, request, actor)
        self.settle()
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def decide(self, job: Job, needs: Iterable[AnyNeed] = ()) -> Any:
        """A job, whatever of the disk it has to know, and what follows; a refusal is raised."""
        looked = Looked()
        self.run(self.look(needs, looked))
        answer = self.run(engine.decide(self, self.service, job, looked))
        self.settle()
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def view(self) -> View:
        """The committed state, now."""
        return View(self.ledger.db, self.now_ms)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine of the service to its end."""
        try:
            work.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("nothing here waits")

    def settle(self) -> None:
        """What commits have left to be done, until nothing is: waiters, dependents."""
        while self._woken or self._rippling:
            if self._rippling:
                self._rippling = False
                self.run(engine.ripple(self))
            woken, self._woken = self._woken, {}
            for name in woken:
                if self.run(engine.serve_waiter(self, self.service, name)):
                    self.granted.append(name)

    def _ask(self, operation: Operation, request: Any, actor: Callable[[View], Actor]) -> Any:
        if not operation.writes:
            return self.run(engine.read(self, lambda view: self._read(
                operation, request, actor(view), view)))
        if operation.course is not None:
            allowed(operation, actor(self.view()))
            return self.run(operation.course(self, self.service, request))
        def job(tx: Tx) -> Any:
            who = actor(tx)
            allowed(operation, who)
            return serve_write(self.service, tx, who, operation.handle, request)

        looked = Looked()
        if operation.needs is not None:
            self.run(self.look(operation.needs(request), looked))
        elif operation.needs_of is not None:
            self.run(self.look(operation.needs_of(self.service, self.view(), request), looked))
        return self.run(engine.decide(self, self.service, job, looked))

    def _read(self, operation: Operation, request: Any, who: Actor, view: View) -> Any:
        allowed(operation, who)
        if operation.name == "status":
            return status.status(self.service, view, who, request)
        assert operation.handle is not None, "the daemon's own operations are its own"
        return operation.handle(self.service, view, who, request)

    def _kept(self, digest: str) -> bool:
        return self.view().row("blob_has", digest) is not None

    def _committed(self, tx: Tx) -> None:
        self._woken.update(tx.wake)
        self._rippling = self._rippling or tx.rippled >= RIPPLE_MAX
        for told in self.on_commit:
            told(tx)
