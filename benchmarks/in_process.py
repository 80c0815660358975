"""Operations served at once, in one thread, without a daemon: for benchmarks and tests.

The same decisions, looks and transactions as the daemon's, by another driver: nothing waits, so a
use case runs to its end in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from coordinator.kernel import errands, use_cases
from coordinator.kernel.core import OPERATOR, Actor, Service
from coordinator.kernel.leasing import waiting_line
from coordinator.kernel.operations import Operation, allowed
from coordinator.kernel.tasks import RIPPLE_MAX
from coordinator.kernel.use_cases import (
    Commit,
    FindAsker,
    Look,
    OffLoop,
    OnDisk,
    Pause,
    Read,
    Steps,
    WaitForGrant,
    Write,
)
from coordinator.looking.facts import AnyNeed, Looked, Unready
from coordinator.looking.looker import Budget, Looker
from coordinator.store.ledger import Job, Ledger, Tx, View
from coordinator.store.writer_cache import Effects
from coordinator.words.refusals import Refusal

#: For whom a use case is carried out.
AsWhom = Callable[[View], Actor]


def be_a_person(view: View) -> Actor:
    """The operator asks."""
    return OPERATOR


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
        self.on_commit: list[Callable[[Effects], None]] = []
        self._woken: dict[str, None] = {}
        self._rippling = False
        self._blobs: list[tuple[str, int, bytes, int]] = []
        review, look = service.settings.review, service.settings.look
        budget = Budget(2 * review.files_max, look.bytes_max, look.seconds_max,
                        review.file_bytes_max)
        self._looker = Looker(service.tree, service.ignore, budget, self._is_kept,
                              lambda *blob: self._blobs.append(blob), service.blobs,
                              lambda digest: self.view().blob(digest))
        self.ledger = ledger
        ledger.on_commit = self._committed
        ledger.wake = partial(waiting_line.wake, service)

    # ------------------------------------------------------------ steps

    def run(self, steps: Steps, actor: AsWhom = be_a_person) -> Any:
        """Carry out a use case to its end; a refusal is a value."""
        value = None
        while True:
            try:
                step = steps.send(value)
            except StopIteration as end:
                return end.value
            except Refusal as refusal:
                return refusal
            value = self.carry_out(step, actor)

    def carry_out(self, step: use_cases.Step, actor: AsWhom) -> Any:
        """What comes of one step."""
        if isinstance(step, Write):
            return self._write(step, actor)
        if isinstance(step, Commit):
            return self.write(step.job)
        if isinstance(step, Read):
            return self._read(lambda view: step.reading(view, actor(view)))
        if isinstance(step, Look):
            looked = step.looked or Looked()
            return self.look(step.needs, looked) or looked
        if isinstance(step, OffLoop | OnDisk):
            try:
                return step.work() if isinstance(step, OffLoop) else step.work(Worker(self))
            except Refusal as refusal:
                return refusal
        if isinstance(step, Pause | WaitForGrant):
            return None  # nothing waits here
        if isinstance(step, FindAsker):
            return ""
        return False

    def _write(self, step: Write, actor: AsWhom) -> Any:
        looked = step.looked or Looked()
        if step.needs and (refused := self.look(step.needs, looked)) is not None:
            return refused

        def job(tx: Tx) -> Any:
            tx.looked = looked
            return step.decide(tx, actor(tx))

        value = self.write(job)
        if isinstance(value, Unready):
            return self.run(errands.decide_again(self.service, job, looked, value))
        return value

    def _read(self, reading: Callable[[View], Any]) -> Any:
        try:
            return reading(self.view())
        except Unready as unready:
            return self.run(use_cases.read_again(reading, unready))
        except Refusal as refusal:
            return refusal

    def write(self, job: Job) -> Any:
        """A job's value once it is on disk; a `Refusal` or `Unready` is a value."""
        return self.ledger.run_all([job], self.now_ms)[0]

    def look(self, needs: Iterable[AnyNeed], looked: Looked) -> Refusal | None:
        """Look at all of these, and keep what has to be kept."""
        seq = self.ledger.seq
        left = self._looker.in_passing(list(needs), looked, seq)
        if left:
            self._looker.look(left, looked, seq)
            blobs, self._blobs[:] = list(self._blobs), []

            def keep(tx: Tx) -> None:
                for blob in blobs:
                    tx.keep_packed(*blob)

            refused = self.write(keep)
            if isinstance(refused, Refusal):
                return refused  # what was found cannot be kept: then it is not known
        return None

    def close(self) -> None:
        """End the processes that looks have started."""
        self._looker.close()

    # ------------------------------------------------------------ asking

    def ask(self, operation: Operation, request: Any, actor: AsWhom = be_a_person) -> Any:
        """Serve a request, and what follows from it; a refusal is raised."""
        def check(view: View) -> Actor:
            asking = actor(view)
            allowed(operation, asking)
            return asking

        assert operation.use_case is not None, "the daemon's own operations are its own"
        check(self.view())
        return self._settled(self.run(operation.use_case(self.service, request), check))

    def decide(self, job: Job, needs: Iterable[AnyNeed] = ()) -> Any:
        """A job, whatever of the disk it has to know, and what follows; a refusal is raised."""
        value = self.carry_out(Write(lambda tx, actor: job(tx), needs=list(needs)), be_a_person)
        return self._settled(value)

    def _settled(self, answer: Any) -> Any:
        self.settle()
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def view(self) -> View:
        """The committed state, now."""
        return View(self.ledger.db, self.now_ms)

    def settle(self) -> None:
        """What commits have left to be done, until nothing is: waiters, dependents."""
        while self._woken or self._rippling:
            if self._rippling:
                self._rippling = False
                self.run(errands.ripple())
            woken, self._woken = self._woken, {}
            for name in woken:
                if self.run(errands.serve_waiter(self.service, name)):
                    self.granted.append(name)

    def _is_kept(self, digest: str) -> bool:
        return self.view().has("blob_has", digest)

    def _committed(self, effects: Effects) -> None:
        self._woken.update(effects.wake)
        self._rippling = self._rippling or effects.rippled >= RIPPLE_MAX
        for told in self.on_commit:
            told(effects)


class Worker:
    """What a step gets that reads and writes files of the repository."""

    def __init__(self, driver: InProcess) -> None:
        self._driver = driver
        self.view = driver.view()

    def report(self, job: Job) -> None:
        """Have this written down."""
        self._driver.write(job)

    def halted(self) -> bool:
        """It never stops."""
        return False

    def piece(self) -> AbstractContextManager[object]:
        """It never rests."""
        return nullcontext()
