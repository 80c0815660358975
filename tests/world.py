"""A coordinator without a process: the real service over real SQLite and real files, with a clock
that stands still until a test moves it."""

from __future__ import annotations

import logging
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import apsw
import msgspec

from benchmarks.in_process import InProcess
from coordinator.archive.index import ArchiveIndex
from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore
from coordinator.files.state import StateDir
from coordinator.kernel import compaction
from coordinator.kernel.core import OPERATOR, Actor, Service
from coordinator.kernel.leasing import sweep
from coordinator.kernel.operations import who
from coordinator.kernel.use_cases import Step, Steps
from coordinator.kernel.writing import carrying_out, journal
from coordinator.looking.facts import Unready
from coordinator.operations.listing import OPERATIONS, SLICES, decode
from coordinator.settings import Settings
from coordinator.store import rebuild
from coordinator.store.database import open_writer
from coordinator.store.ledger import Job, Ledger, Tx, View
from coordinator.store.rebuild import differences, state
from coordinator.store.rows import LeaseRow
from coordinator.store.writer_cache import Effects
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.checker import (
    Shadow,
    assert_circles_told,
    assert_none_overlooked,
    assert_settled,
    assert_sound,
    assert_well_answered,
    assert_well_said,
)

log = logging.getLogger("coord.store")


@cache
def _new_database() -> bytes:
    """A database as the daemon makes it: to write it down is faster than to make it anew."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new"
        open_writer(path, synchronous="OFF", warm=False).close()
        return path.read_bytes()


class ManualClock:
    """A clock that moves only when it is told to."""

    def __init__(self, start_ms: int = 1_780_000_000_000) -> None:
        self.at_ms = start_ms
        self._slept_ms = 0

    def now_ms(self) -> int:
        return self.at_ms

    def jumped_ms(self) -> int:
        slept, self._slept_ms = self._slept_ms, 0
        return slept

    def advance(self, ms: int) -> None:
        """Time passes for everybody."""
        self.at_ms += ms

    def sleep_machine(self, ms: int) -> None:
        """The wall clock moves by `ms` while the machine is suspended."""
        self.at_ms += ms
        self._slept_ms += ms


class World:
    """One repository and its coordinator's insides."""

    #: Whether the whole state is held against the invariants after every commit.
    checked = True
    #: Those that nobody has closed yet.
    open_worlds: ClassVar[set[World]] = set()

    def __init__(self, root: Path, settings: Settings | None = None, git: bool = False,
                 fold_case: bool | None = None) -> None:
        self.root = root
        if git:
            subprocess.run(["git", "init", "-q", str(root)], check=True)
        self.clock = ManualClock()
        self.settings = settings or Settings()
        self.state_dir = StateDir(root)
        self.state_dir.create()
        tree = Tree(root, fold_case=fold_case)
        archive = ArchiveIndex(self.state_dir.archive, root)
        archive.refresh()
        self.service = Service(self.settings, tree, Ignore(tree), archive, b"k" * 32, slices=SLICES)
        self.shadow = Shadow()
        self.checked_token = 0
        self.unsound: AssertionError | None = None
        self.bugs = Bugs()
        log.addHandler(self.bugs)
        self.open()
        World.open_worlds.add(self)

    def open(self) -> None:
        """(Re)open the database, as a daemon does at its start."""
        if not self.state_dir.database.exists():
            self.state_dir.database.write_bytes(_new_database())
        self.db = open_writer(self.state_dir.database, synchronous="NORMAL", warm=False)
        self.ledger = Watched(self.db, self.state_dir.database)
        self.engine = InProcess(self.service, self.ledger, self.clock.now_ms())
        self.engine.on_commit.append(self.check)

    def raise_unsound(self) -> None:
        """Raise what a check after a commit has found, and look whether anybody waits in vain."""
        if self.unsound is not None:
            raise self.unsound
        assert not self.bugs.met, self.bugs.met
        if self.checked:
            assert_settled(self)

    def check(self, effects: Effects) -> None:
        """Hold the whole state against the invariants; after every commit."""
        if not self.checked:
            return
        try:
            assert_sound(self)
            assert_none_overlooked(self.ledger.last)
        except AssertionError as bad:  # raised at the end: the ledger only logs what tellers raise
            self.unsound = self.unsound or bad

    @property
    def granted(self) -> list[str]:
        """Waiters that were granted after a request of somebody else, in order."""
        return self.engine.granted

    def restart(self) -> list[Any]:
        """As after a crash: everything in memory is gone. What `resume` answers."""
        self.engine.close()
        self.db.close()
        self.service.at_work.clear()
        self.open()
        self.commit(sweep.begin)
        return self.resume()

    def close(self) -> None:
        World.open_worlds.discard(self)
        log.removeHandler(self.bugs)
        self.engine.close()
        self.db.close()
        self.service.archive.close()
        self.service.regions.close()
        if self.service.impact is not None:
            self.service.impact.close()

    def ask(self, request: rq.Request[Any], token: str | None = None) -> Any:
        """Serve a request as the daemon would; a refusal is raised."""
        granted = len(self.granted)
        try:
            answer = self._ask(request, token)
        except Refusal as refusal:
            assert_well_said(refusal)
            if self.checked and len(self.granted) == granted:
                assert_circles_told(self, request, refusal)
            raise
        assert_well_answered(self, request, answer)
        return answer

    def _ask(self, request: rq.Request[Any], token: str | None) -> Any:
        operation = OPERATIONS[request.op]
        again = decode(operation, msgspec.json.encode(request))
        self.engine.now_ms = self.clock.now_ms()
        try:
            if operation.name == "compact":
                return self._compact(again)
            return self.engine.ask(operation, again, lambda view: who(view, token))
        finally:
            self.raise_unsound()

    def run(self, steps: Steps, actor: Actor = OPERATOR) -> Any:
        """Carry out a use case, in which nothing waits here; a refusal is a value."""
        self.engine.now_ms = self.clock.now_ms()
        return self.engine.run(steps, lambda view: actor)

    def commit(self, job: Job) -> Any:
        """A job's value; a `Refusal` or `Unready` is a value."""
        self.engine.now_ms = self.clock.now_ms()
        return self.engine.write(job)

    def decide(self, job: Job) -> Any:
        """A job of the daemon's own, whatever of the disk it has to know; a refusal is raised."""
        self.engine.now_ms = self.clock.now_ms()
        return self.engine.decide(job)

    def tend(self) -> None:
        """What the daemon does once a second."""
        self.run(sweep.tend(self.service))
        self.settle()

    def settle(self) -> None:
        """What commits have left to be done, until nothing is."""
        self.engine.now_ms = self.clock.now_ms()
        self.engine.settle()
        self.raise_unsound()

    def drive(self, steps: Steps, actor: Actor = OPERATOR) -> Any:
        """Carry out a use case and what follows; a refusal is raised."""
        answer = self.run(steps, actor)
        self.settle()
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def part(self, step: Step, actor: Actor = OPERATOR) -> Any:
        """Carry out one step, and what follows."""
        self.engine.now_ms = self.clock.now_ms()
        value = self.engine.carry_out(step, lambda view: actor)
        self.settle()
        return value

    def resume(self) -> list[Any]:
        """Go on with verdicts that were cut off, as a daemon does at its start; the answers."""
        self.decide(lambda tx: carrying_out.hold(self.service, tx))
        out = []
        for review in journal.unfinished(self.view()):
            try:
                out.append(self.drive(carrying_out.resume(self.service, review)))
            except Refusal as refusal:
                out.append(refusal)
        return out

    def _compact(self, request: rq.Compact) -> rq.Compacted:
        """The daemon's steps, one after the other."""
        now_ms = self.clock.now_ms()
        upto = compaction.cut(self.service, self.view(), request)
        covered = compaction.covered(self.view())
        if upto > covered:
            body = rebuild.snapshot(self.db, upto)
            self.ledger.run(lambda tx: compaction.put_snapshot(tx, upto, body), now_ms)
        upto, events = max(upto, covered), 0
        while some := self.ledger.run(lambda tx: compaction.remove_events(tx, upto, 3), now_ms):
            events += some
        useless = self.view().values("blobs_unreferenced")
        blobs = self.ledger.run(lambda tx: compaction.remove_blobs(tx, useless, set()), now_ms)
        self.ledger.run(lambda tx: compaction.note_removed(tx, events, blobs), now_ms)
        return rq.Compacted(events_removed=events, blobs_removed=blobs)

    def refused(self, request: rq.Request[Any], token: str | None = None) -> Refusal:
        """The refusal that the request must meet."""
        try:
            answer = self.ask(request, token)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{request} was served: {answer}")

    def sleep_machine(self, ms: int) -> None:
        """The laptop is shut for `ms`; the daemon notices at its next batch."""
        last = self.clock.now_ms()
        self.clock.sleep_machine(ms)
        jumped = self.clock.jumped_ms()
        self.ledger.run(lambda tx: sweep.give_back(tx, jumped, last), self.clock.now_ms())

    def view(self) -> View:
        return View(self.db, self.clock.now_ms())

    def live(self) -> list[LeaseRow]:
        """Leases that are live now."""
        view = self.view()
        return view.each(LeaseRow, "leases_live", view.now, 0, None, 10_000)

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """The whole state."""
        return state(self.db)

    def replay_differs(self) -> list[str]:
        return differences(self.db)[1]

    def write(self, path: str, text: str) -> None:
        """A write that asks nobody."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def acquire(self, agent: str, *resources: str, **more: Any) -> rq.Acquired:
        more.setdefault("reentrant", True)
        got = self.ask(rq.Acquire(agent=agent, resources=list(resources), **more))
        assert isinstance(got, rq.Acquired)
        return got

    def task(self, title: str, *resources: str, **more: Any) -> str:
        made = self.ask(rq.TaskAdd(title=title, resources=list(resources), **more))
        return str(made.task)


class Watched(Ledger):
    """A ledger that counts who breaks its rule: decisions come before the first record. Who does is
    run again, and so is whoever shared its transaction: all that is seen of it is the time."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.late = 0
        self.last: Tx | None = None

    def run_all(self, jobs: Sequence[Job], now_ms: int) -> list[Any]:
        return super().run_all([self._watched(job) for job in jobs], now_ms)

    def _watched(self, job: Job) -> Job:
        def run(tx: Tx) -> Any:
            self.last, before = tx, tx.recorded
            try:
                return job(tx)
            except (Refusal, Unready):
                if tx.recorded != before:
                    self.late += 1
                raise

        return run


class Bugs(logging.Handler):
    """What a job failed with that was no refusal and no disk's. Where nobody waits for its answer (a
    sweep, a waiter that is served) such a thing is only logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.met: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        bad = record.exc_info[1] if record.exc_info else None
        if bad is not None and not isinstance(bad, apsw.Error):
            self.met.append(f"{record.getMessage()}: {type(bad).__name__}: {bad}")


class Sabotage:
    """Makes the n-th statement of the next transaction fail, as a broken disk would."""

    def __init__(self, db: apsw.Connection, nth: int) -> None:
        self.db = db
        self.left = nth

    def __enter__(self) -> Sabotage:
        def trace(cursor: Any, statement: str, bindings: Any) -> bool:
            if statement.startswith(("INSERT", "UPDATE", "DELETE")):
                self.left -= 1
                if self.left == 0:
                    raise apsw.FullError("injected: disk full")
            return True

        self.db.exec_trace = trace
        return self

    def __exit__(self, *_: object) -> None:
        self.db.exec_trace = None
