"""The engine of the daemon: decisions run in its loop, looks in its workers, the rest in threads.

Implements `service.engine.Engine`. Owns the tasks that go on beside everybody's requests, so that
they end with the daemon; decides nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from coordinator.daemon.look_workers import LookWorkers
from coordinator.daemon.writer import Answer, Writer
from coordinator.looking.facts import AnyNeed, Looked, Unready
from coordinator.looking.looker import Looker
from coordinator.service.core import Service
from coordinator.service.engine import go_on, going_by
from coordinator.service.leasing import waiting_line
from coordinator.store.ledger import Job, Ledger, Tx, View
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.engine")
#: What is done beside the loop at once. Much of it waits (for the watcher, for git), and what that
#: waits for needs a thread, too: so they are many.
THREADS = 64


class LoopEngine:
    """One per daemon; used from the loop's thread only.

    Args:
        reading: runs a reading against one committed snapshot; a `Refusal` is a value.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, service: Service, writer: Writer, ledger: Ledger,
        looker: Looker, workers: LookWorkers, reading: Callable[[Callable[[View], Any]], Any],
    ) -> None:
        self._loop = loop
        self._service = service
        self._writer = writer
        self._ledger = ledger
        self._looker = looker
        self._workers = workers
        self._reading = reading
        self._tasks: set[asyncio.Task[Any]] = set()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="do")
        writer.unready = self._go_on

    async def write(self, job: Job) -> Any:
        """A job's value once it is on disk; a `Refusal` or `Unready` is a value."""
        return await self._writer.run(partial(_and_wake, self._service, job))

    async def read(self, reading: Callable[[View], Any]) -> Any:
        """What a reading of the committed state gives; a `Refusal` is a value."""
        return self._reading(reading)

    async def look(self, needs: Iterable[AnyNeed], looked: Looked) -> Refusal | None:
        """Look at all of these: at once what is small, the rest in a worker."""
        seq = self._ledger.seq
        left = self._looker.in_passing(list(needs), looked, seq)
        return await self._workers.look(left, looked, seq) if left else None

    async def do(self, work: Callable[[], Any]) -> Any:
        """What `work` gives, in a thread of its own; a `Refusal` is a value."""
        try:
            return await self._loop.run_in_executor(self._threads, work)
        except Refusal as refusal:
            return refusal

    def look_at(self, needs: Sequence[AnyNeed], answer: Answer) -> None:
        """`answer` gets a `Looked` with all of these, or a `Refusal`. At once what is small."""
        looked = Looked()
        left = self._looker.in_passing(needs, looked, self._ledger.seq)
        if not left:
            answer(looked)
            return

        async def rest() -> Any:
            return await self._workers.look(left, looked, self._ledger.seq) or looked

        self.task(rest(), answer)

    def decide(self, job: Job, needs: list[AnyNeed], answer: Answer,
               looked: Looked | None = None) -> None:
        """Run a job once these needs, and those that it finds it has, are looked at; `answer` gets
        its value or `Refusal`. At once where all of them are small. `looked`: what is known."""
        looked = looked or Looked()
        self.decide_by(looked, going_by(looked, job), needs, answer)

    def decide_by(self, looked: Looked, ready: Job, needs: list[AnyNeed], answer: Answer) -> None:
        """The same for a job that goes by `looked` already, which is empty yet."""
        left = self._looker.in_passing(needs, looked, self._ledger.seq) if needs else ()
        if left:
            self._go_on(ready, looked, Unready(left), answer)
        else:
            self._writer.submit(ready, answer, looked)

    def _go_on(self, ready: Job, looked: Looked, unready: Unready, answer: Answer) -> None:
        self.task(go_on(self, self._service, ready, looked, unready), answer)

    def task(self, work: Coroutine[Any, Any, Any], answer: Answer = lambda value: None) -> None:
        """Let this run beside everything else; `answer` gets what it gives, or the refusal that it
        raises."""
        def over(done: asyncio.Task[Any]) -> None:
            self._tasks.discard(done)
            if done.cancelled():
                answer(Refusal(Code.SHUTTING_DOWN, "The coordinator is shutting down."))
                return
            bad = done.exception()
            if isinstance(bad, Refusal):
                answer(bad)
            elif bad is not None:
                log.error("a task failed", exc_info=bad)
                answer(Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__})."))
            else:
                answer(done.result())

        made = self._loop.create_task(work)
        self._tasks.add(made)
        made.add_done_callback(over)

    def close(self) -> None:
        """End what goes on; whoever waits for it is told."""
        for task in list(self._tasks):
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _and_wake(service: Service, job: Job, tx: Tx) -> Any:
    """A job of the daemon's own, and then: whom to serve, if it freed something."""
    value = job(tx)
    if tx.freed:
        waiting_line.wake(service, tx)
    return value
