"""The engine of the daemon: it carries out the steps of use cases, and decides nothing.

Decisions run in the loop, looks at the disk in worker processes, other work in threads. The loop
serves other requests meanwhile. The engine also keeps the daemon's own tasks, and ends them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import apsw
import msgspec

from coordinator.daemon.look_workers import LookWorkers
from coordinator.daemon.once_only import Later, decide_once, note_later
from coordinator.daemon.waiting_changes import WaitingRequest, WaitingRequests
from coordinator.daemon.writer import Answer, Writer
from coordinator.files.pace import Pace
from coordinator.kernel import errands, use_cases
from coordinator.kernel.answered import Once
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.operations import Operation, allowed, who
from coordinator.kernel.use_cases import (
    Await,
    Commit,
    FindAsker,
    Look,
    OffLoop,
    OnDisk,
    Pause,
    Read,
    Steps,
    WaitForChange,
    WaitForGrant,
    Write,
)
from coordinator.looking.facts import AnyNeed, Looked, Unready
from coordinator.looking.looker import Looker
from coordinator.store.database import DISK_ERRORS, storage_refusal
from coordinator.store.ledger import Job, Ledger, Tx, View
from coordinator.store.rebuild import apart
from coordinator.words.clock import Clock, from_iso
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.engine")
#: How many threads work beside the loop at once. Many of them wait for the watcher or for git,
#: which need threads, too.
THREADS = 64
#: Use cases that read and write files of the repository at the same time. Others wait.
WORKERS = 2
#: The value of a step whose result comes later.
_LATER = object()


@dataclass(frozen=True)
class Parts:
    """What the engine works with. `reader`: the loop's own connection for reading."""

    loop: asyncio.AbstractEventLoop
    service: Service
    writer: Writer
    ledger: Ledger
    reader: apsw.Connection
    open_reader: Callable[[], apsw.Connection]
    clock: Clock
    looker: Looker
    workers: LookWorkers


class Run(msgspec.Struct, eq=False):
    """A use case that is running: who asks, whom to answer, and the step that it is at.

    Attributes:
        answer: gets the answer or a `Refusal`, once.
        operation: None if the daemon itself asks.
        token: of the agent that asks; None for a person.
        gone: tells whether the asker has hung up.
        deadline: until when the request waits (the loop's time).
        once: the key of a request of one transaction, if it has a key.
        later: the place to answer a longer request, if it has a key.
        caller: the asking process; 0 if unknown.
        checked: whether the asker was identified.
        step, looked: the `Write` that is carried out, and the facts that it goes by.
    """

    engine: LoopEngine
    steps: Steps
    answer: Answer
    operation: Operation | None = None
    token: str | None = None
    gone: Callable[[], bool] = msgspec.field(default=lambda: False)
    deadline: float = 0.0
    once: Once | None = None
    later: Later | None = None
    caller: int = 0
    checked: bool = False
    step: Any = None
    looked: Any = None

    def go_on(self, value: Any) -> None:
        """Carry out steps until one has its result later. `value`: the result of the last step."""
        try:
            while value is not _LATER:
                step = self.steps.send(value)
                value = _CARRY_OUT[type(step)](self.engine, step, self)
            return
        except StopIteration as end:
            value = end.value
        except Refusal as refusal:
            value = refusal
        except Exception as bad:
            value = _report_bug(bad)
        if isinstance(value, Refusal):
            self.refuse(value)
        else:
            self.answer(value)

    def refuse(self, refusal: Refusal) -> None:
        """Answer with a refusal, and count it if a request is refused."""
        if self.operation is not None and self.later is None:
            self.engine.on_refusal(refusal)
        self.answer(refusal)

    def identify(self, view: View) -> Actor:
        """The actor that the request speaks for.

        Raises:
            Refusal: UNAUTHORIZED: the token is nobody's, or the operation is not for agents.
        """
        actor = who(view, self.token)
        if self.operation is not None and self.operation.operator_only:
            allowed(self.operation, actor)
        self.checked = True
        return actor

    def check(self) -> None:
        """Check who asks, before anything begins outside of a transaction.

        Raises:
            Refusal: UNAUTHORIZED.
        """
        if not self.checked and self.operation is not None:
            refusal = self.engine.look(self.identify)
            if isinstance(refusal, Refusal):
                raise refusal

    def decide(self, tx: Tx) -> Any:
        """The job of the transaction of a `Write`. If the request has an idempotency key, it keeps
        the answer."""
        # Who may ask was checked before: the router asks `check` where an operation is for people.
        actor, step = who(tx, self.token), self.step
        self.checked, tx.looked = True, self.looked
        if self.once is not None:
            return decide_once(self.engine.service, tx, actor, step, self.once)
        if self.later is not None:
            return note_later(tx, self.later, step, step.decide(tx, actor))
        return step.decide(tx, actor)


class LoopEngine:
    """The engine of one daemon. Used in the loop's thread only.

    Attributes:
        work: requests that wait for work.
        values: requests that wait until what they read changes.
        hold: keeps a request open for a place in the queue.
        on_refusal: called with each refusal that answers a request.
    """

    def __init__(self, parts: Parts) -> None:
        self._loop, self.service, self._clock = parts.loop, parts.service, parts.clock
        self._writer, self._ledger = parts.writer, parts.ledger
        self._looker, self._workers = parts.looker, parts.workers
        self._reader, self._open_reader = parts.reader, parts.open_reader
        self._tasks: set[asyncio.Task[Any]] = set()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="do")
        self._on_disk = ThreadPoolExecutor(WORKERS, thread_name_prefix="verdict")
        # Not `threading.local`: a forked process closes its values, and may then wait for a lock
        # that nobody there releases. The daemon would wait for that process.
        self._readers: dict[int, apsw.Connection] = {}
        self.halted = False
        self.work, self.values = WaitingRequests(parts.loop), WaitingRequests(parts.loop)
        self.hold: Callable[..., None] | None = None
        self.on_refusal: Callable[[Refusal], None] = lambda refusal: None
        parts.writer.unready = self._decide_again

    # ------------------------------------------------------------ use cases

    def run(self, steps: Steps, answer: Answer = lambda value: None) -> None:
        """Carry out a use case of the daemon itself, and call `answer` once with its answer or a
        `Refusal`."""
        Run(self, steps, answer).go_on(None)

    def submit(self, job: Job, needs: Sequence[AnyNeed], answer: Answer) -> None:
        """Run a job once these needs are looked at, and those that it turns out to have."""
        def decide() -> Steps:
            return (yield Write(lambda tx, actor: job(tx), needs=needs))

        self.run(decide(), answer)

    def look(self, reading: Callable[[View], Any]) -> Any:
        """Run a reading against one committed snapshot; a `Refusal` is returned."""
        try:
            return self._read_snapshot(reading)
        except Refusal as refusal:
            return refusal
        except DISK_ERRORS as bad:
            return storage_refusal(self.service.tree.root / ".coord", bad)

    def _read_snapshot(self, reading: Callable[[View], Any]) -> Any:
        started = time.perf_counter()
        self._reader.execute("BEGIN")
        try:
            return reading(View(self._reader, self._clock.now_ms()))
        finally:
            self._reader.execute("COMMIT")
            spent = time.perf_counter() - started
            if spent > 0.5:
                log.info("a read took %.2f s", spent)

    # ------------------------------------------------------------ steps

    def _write(self, step: Write, run: Run) -> object:
        looked = step.looked or Looked()
        run.step, run.looked = step, looked
        if step.needs:
            seq = self._ledger.seq
            left = self._looker.in_passing(step.needs, looked, seq)
            if left:
                self._look_beside(left, looked, seq, partial(self._write_by, run))
                return _LATER
        self._writer.submit(run.decide, run.go_on, looked)
        return _LATER

    def _write_by(self, run: Run, looked: Looked | Refusal) -> None:
        if isinstance(looked, Refusal):
            run.go_on(looked)
        else:
            self._writer.submit(run.decide, run.go_on, looked)

    def _commit(self, step: Commit, run: Run) -> object:
        self._writer.submit(step.job, run.go_on)
        return _LATER

    def _decide_again(self, job: Job, looked: Looked, unready: Unready, answer: Answer) -> None:
        self.run(errands.decide_again(self.service, job, looked, unready), answer)

    def _read(self, step: Read, run: Run) -> object:
        def reading(view: View) -> Any:
            return step.reading(view, run.identify(view))

        if step.apart:
            work = apart(View(self._reader, self._clock.now_ms()), reading)
            return self._in_thread(None, work, run)
        try:
            return self.look(reading)
        except Unready as unready:
            self.run(use_cases.read_again(reading, unready), run.go_on)
            return _LATER

    def _look_at(self, step: Look, run: Run) -> object:
        looked, seq = step.looked or Looked(), self._ledger.seq
        left = self._looker.in_passing(list(step.needs), looked, seq)
        if not left:
            return looked
        self._look_beside(left, looked, seq, run.go_on)
        return _LATER

    def _look_beside(self, needs: Sequence[AnyNeed], looked: Looked, seq: int,
                     answer: Answer) -> None:
        """Have a worker look at these. `answer` gets the facts, or a refusal."""
        async def look() -> Any:
            return await self._workers.look(needs, looked, seq) or looked

        self.task(look(), answer)

    def _off_loop(self, step: OffLoop, run: Run) -> object:
        run.check()
        return self._in_thread(self._threads, step.work, run)

    def _beside(self, step: OnDisk, run: Run) -> object:
        run.check()
        if self.halted:
            return Refusal(Code.SHUTTING_DOWN, "The coordinator is shutting down.")
        return self._in_thread(self._on_disk, lambda: step.work(
            _Worker(self, View(self._own_reader(), self._clock.now_ms()))), run)

    def _await(self, step: Await, run: Run) -> object:
        run.check()
        self.task(step.begin(run), run.go_on)
        return _LATER

    def _find_asker(self, step: FindAsker, run: Run) -> object:
        return self.service.presence.mark(run.caller)

    def _pause(self, step: Pause, run: Run) -> object:
        run.check()
        self._loop.call_later(step.seconds, run.go_on, None)
        return _LATER

    def _wait_for_grant(self, step: WaitForGrant, run: Run) -> object:
        assert self.hold is not None, "the router sets it before the first request"
        self.hold(step.acquisition, run.deadline - self._loop.time(), run.go_on,
                  stay=step.stays, gone=run.gone, alone=step.alone, passing=step.passing)
        return _LATER

    def _wait_for_change(self, step: WaitForChange, run: Run) -> object:
        left_s = run.deadline - self._loop.time()
        if left_s <= 0 or self.halted:
            return False
        rest_s = None if step.rests_until is None else (
            from_iso(step.rests_until) - self._clock.now_ms()) / 1000
        waiting = self.work if step.of == "work" else self.values
        waiting.add(WaitingRequest(run.go_on, run.refuse, run.gone), left_s, rest_s)
        return _LATER

    def _in_thread(self, threads: ThreadPoolExecutor | None, work: Callable[[], Any],
                   run: Run) -> object:
        def done(future: asyncio.Future[Any]) -> None:
            run.go_on(future.result() if not future.cancelled() else Refusal(
                Code.SHUTTING_DOWN, "The coordinator is shutting down."))

        self._loop.run_in_executor(threads, self._guarded, work).add_done_callback(done)
        return _LATER

    def _guarded(self, work: Callable[[], Any]) -> Any:
        """Run `work` in this thread, and return its result or a `Refusal`."""
        try:
            return work()
        except Refusal as refusal:
            return refusal
        except DISK_ERRORS as bad:
            return storage_refusal(self.service.tree.root / ".coord", bad)
        except Exception as bad:
            return _report_bug(bad)

    def _own_reader(self) -> apsw.Connection:
        """This thread's own connection. A new one for each step would read the schema each time."""
        thread = threading.get_ident()
        if thread not in self._readers:
            self._readers[thread] = self._open_reader()
        return self._readers[thread]

    # ------------------------------------------------------------ tasks of the daemon

    async def write(self, job: Job) -> Any:
        """Run a job and return its value once it is on disk, or a `Refusal` or `Unready`."""
        return await self._writer.run(job)

    async def decide(self, job: Job) -> Any:
        """Run a job, with the looks that it needs, and return its value once it is on disk, or a
        `Refusal`."""
        done: asyncio.Future[Any] = self._loop.create_future()
        self.submit(job, (), lambda value: None if done.done() else done.set_result(value))
        return await done

    async def read(self, reading: Callable[[View], Any]) -> Any:
        """The result of a reading of the committed state, or a `Refusal`."""
        return self.look(reading)

    async def do(self, work: Callable[[], Any]) -> Any:
        """The result of `work`, which runs in a thread of its own, or a `Refusal`."""
        try:
            return await self._loop.run_in_executor(self._threads, work)
        except Refusal as refusal:
            return refusal

    def task(self, work: Coroutine[Any, Any, Any], answer: Answer = lambda value: None) -> None:
        """Run a task beside other work. `answer` gets its result, or the refusal that it raises."""
        def over(done: asyncio.Task[Any]) -> None:
            self._tasks.discard(done)
            if done.cancelled():
                answer(Refusal(Code.SHUTTING_DOWN, "The coordinator is shutting down."))
                return
            bad = done.exception()
            if bad is None:
                answer(done.result())
            else:
                answer(bad if isinstance(bad, Refusal) else _report_bug(bad))

        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(over)

    def close(self) -> None:
        """End tasks and threads. A file that is being written now is finished before."""
        self.halted = True
        for task in list(self._tasks):
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._on_disk.shutdown(wait=False)

    def close_waiting(self, bye: Refusal) -> None:
        """Answer all requests that wait for work or for a change."""
        self.work.close(bye)
        self.values.close(bye)


_CARRY_OUT: dict[type, Callable[[LoopEngine, Any, Run], object]] = {
    Write: LoopEngine._write, Commit: LoopEngine._commit, Read: LoopEngine._read,
    Look: LoopEngine._look_at, OffLoop: LoopEngine._off_loop, OnDisk: LoopEngine._beside,
    Await: LoopEngine._await, FindAsker: LoopEngine._find_asker, Pause: LoopEngine._pause,
    WaitForGrant: LoopEngine._wait_for_grant, WaitForChange: LoopEngine._wait_for_change,
}


class _Worker:
    """What an `OnDisk` step works with: a view, its pace, and a way to record something."""

    def __init__(self, engine: LoopEngine, view: View) -> None:
        self._engine = engine
        self.view = view
        self.piece = Pace().piece

    def report(self, job: Job) -> None:
        """Have a job recorded soon, without waiting for it."""
        own = self._engine
        with suppress(RuntimeError):  # the loop has ended: the journal stays as it is
            own._loop.call_soon_threadsafe(own._writer.submit, job, lambda value: None)

    def halted(self) -> bool:
        """Whether the coordinator is about to stop."""
        return self._engine.halted


def _report_bug(bad: BaseException) -> Refusal:
    log.error("a use case failed", exc_info=bad)
    return Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__}).")
