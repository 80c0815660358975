"""A coordinator without a process: the real service over real SQLite and real files, with a clock
that stands still until a test moves it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, ClassVar

import apsw
import msgspec

from coordinator.archive.index import ArchiveIndex
from coordinator.daemon.desk import who
from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore
from coordinator.files.state import StateDir
from coordinator.looking.facts import AnyNeed, Looked
from coordinator.looking.looker import Budget, Looker
from coordinator.operations.listing import OPERATIONS, Operation, allowed, decode, serve_write
from coordinator.service import engine, line, overview, sweeping
from coordinator.service.core import OPERATOR, Service
from coordinator.service.tasks import RIPPLE_MAX
from coordinator.settings import Settings
from coordinator.store.database import open_writer
from coordinator.store.ledger import Job, Ledger, Tx, View
from coordinator.store.rebuild import differences, state
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words.clock import ManualClock
from coordinator.words.refusals import Refusal


class _Engine:
    """Runs decisions at once: no thread, no worker, no loop."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def write(self, job: Job) -> Any:
        world = self._world

        def woken(tx: Tx) -> Any:
            value = job(tx)
            if tx.freed:
                line.wake(world.service, tx)
            return value

        return world.ledger.run_all([woken], world.clock.now_ms())[0]

    async def read(self, reading: Callable[[View], Any]) -> Any:
        try:
            return reading(self._world.view())
        except Refusal as refusal:
            return refusal

    async def look(self, needs: Iterable[AnyNeed], looked: Looked) -> Refusal | None:
        world = self._world
        seq = world.ledger.seq
        left = world.looker.in_passing(list(needs), looked, seq)
        if left:
            world.looker.look(left, looked, seq)
            blobs, world.blobs[:] = list(world.blobs), []

            def keep(tx: Tx) -> None:
                for blob in blobs:
                    tx.keep_packed(*blob)

            await self.write(keep)
        return None

    async def do(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Refusal as refusal:
            return refusal


class World:
    """One repository and its coordinator's insides."""

    #: Called after every commit that recorded something.
    checks: ClassVar[list[Callable[[World], None]]] = []

    def __init__(self, root: Path, settings: Settings | None = None, git: bool = False) -> None:
        self.root = root
        if git:
            subprocess.run(["git", "init", "-q", str(root)], check=True)
        self.clock = ManualClock()
        self.settings = settings or Settings()
        self.state_dir = StateDir(root)
        self.state_dir.create()
        tree = Tree(root)
        archive = ArchiveIndex(self.state_dir.archive, root)
        archive.refresh()
        self.service = Service(self.settings, tree, Ignore(tree), archive, b"k" * 32)
        review, look = self.settings.review, self.settings.look
        self.blobs: list[tuple[str, int, bytes]] = []
        self.looker = Looker(
            tree, self.service.ignore,
            Budget(2 * review.files_max, look.bytes_max, look.seconds_max, review.file_bytes_max),
            self._kept, lambda *blob: self.blobs.append(blob),
        )
        self.engine = _Engine(self)
        #: Waiters that were granted after a request of somebody else, in order.
        self.granted: list[str] = []
        self.open()
        if self.checks:
            self.run(self.engine.write(lambda tx: None))

    def _kept(self, digest: str) -> bool:
        return bool(self.db.execute("SELECT 1 FROM blobs WHERE hash = ?", (digest,)).fetchall())

    def open(self) -> None:
        """(Re)open the database, as a daemon does at its start."""
        self.db = open_writer(self.state_dir.database, synchronous="NORMAL")
        self.ledger = Ledger(self.db, self.state_dir.database)
        self.ledger.on_commit = self._committed
        self.woken: dict[str, None] = {}
        self.rippling = False

    def restart(self) -> None:
        """As after a crash: everything in memory is gone."""
        self.db.close()
        self.open()
        self.run(self.engine.write(lambda tx: sweeping.begin(self.service, tx)))

    def close(self) -> None:
        self.db.close()
        self.service.archive.close()

    def ask(self, request: rq.Request[Any], token: str | None = None) -> Any:
        """Serve a request as the daemon would; a refusal is raised."""
        operation = OPERATIONS[request.op]
        again = decode(operation, msgspec.json.encode(request))
        answer = self._ask(operation, again, token)
        self.settle()
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def _ask(self, operation: Operation, request: Any, token: str | None) -> Any:
        if not operation.writes:
            def reading(view: View) -> Any:
                actor = who(view, token)
                allowed(operation, actor)
                if operation.name == "status":
                    return overview.status(self.service, view, actor, request)
                assert operation.handle is not None
                return operation.handle(self.service, view, actor, request)

            return self.run(engine.read(self.engine, self.service, reading))
        if operation.course is not None:
            allowed(operation, who(self.view(), token))
            return self.run(operation.course(self.engine, self.service, request))
        answer = None
        for handle in (operation.before, operation.handle):
            if handle is None:
                continue

            def job(tx: Tx, handle: Any = handle) -> Any:
                actor = OPERATOR if token is None else who(tx, token)
                allowed(operation, actor)
                return serve_write(self.service, tx, actor, handle, request)

            looked = Looked()
            if operation.needs is not None:
                needs = operation.needs(request)
            elif operation.needs_of is not None:
                needs = operation.needs_of(self.service, self.view(), request)
            else:
                needs = []
            left = self.looker.in_passing(needs, looked, self.ledger.seq)
            if left:
                self.run(self.engine.look(left, looked))
            answer = self.run(engine.decide(self.engine, self.service, job, looked))
        return answer

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine of the service, which here never has to wait."""
        try:
            work.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("nothing here waits")

    def decide(self, job: Job) -> Any:
        """A job of the daemon's own, whatever of the disk it has to know; a refusal is raised."""
        answer = self.run(engine.decide(self.engine, self.service, job))
        self.settle()
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def tend(self) -> None:
        """What the daemon does once a second."""
        self.run(sweeping.tend(self.engine, self.service))
        self.settle()

    def settle(self) -> None:
        """What commits have left to be done, until nothing is: waiters, dependents."""
        while self.woken or self.rippling:
            if self.rippling:
                self.rippling = False
                self.run(engine.ripple(self.engine, self.service))
            woken, self.woken = self.woken, {}
            for name in woken:
                if self.run(engine.serve_waiter(self.engine, self.service, name)):
                    self.granted.append(name)

    def _committed(self, tx: Tx) -> None:
        self.woken.update(tx.wake)
        self.rippling = self.rippling or tx.rippled >= RIPPLE_MAX
        for check in self.checks:
            check(self)

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
        self.ledger.run(lambda tx: sweeping.give_back(tx, jumped, last), self.clock.now_ms())

    def view(self) -> View:
        return View(self.db, self.clock.now_ms())

    def live(self) -> list[LeaseRow]:
        """Leases that are live now."""
        view = self.view()
        return [LeaseRow(*row) for row in view.rows("leases_live", view.now, 0, None, 10_000)]

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
        got = self.ask(rq.Acquire(agent=agent, resources=list(resources), **more))
        assert isinstance(got, rq.Acquired)
        return got

    def task(self, title: str, *resources: str, **more: Any) -> str:
        made = self.ask(rq.TaskAdd(title=title, resources=list(resources), **more))
        return str(made.task)


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
