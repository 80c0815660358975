"""Group commit in the event loop: jobs that wait together share one transaction and one fsync.

The writer runs in the loop's own thread, because a hand-over to another thread costs more than the
commit (benchmarks/README.md). Before a commit it lingers for at most half the time of an average
commit, while fewer jobs wait than the last commit had. Meanwhile the loop reads further requests,
which join. After its answers it stays awake for a moment, so that a client that asks again at once
meets a running loop. Every answer follows its commit (invariant 4).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import apsw

from coordinator.kernel.leasing import sweep
from coordinator.looking.facts import Looked, Unready
from coordinator.store.ledger import Job, Ledger
from coordinator.words.clock import Clock
from coordinator.words.refusals import Refusal

log = logging.getLogger("coord.writer")
Answer = Callable[[Any], None]

#: Jobs in one transaction. It bounds the time that every job waits for the others.
BATCH_MAX = 512
#: How long the loop stays awake after an answer (seconds). To fall asleep and be woken takes about
#: as long. It costs that much of a core for each commit, and nothing at rest.
AWAKE_S = 0.0001
#: New WAL pages (4 KiB) after which a thread makes a checkpoint, and pages in all beyond which the
#: writer makes it itself.
CHECKPOINT_PAGES = 900
CHECKPOINT_PAGES_MAX = 12_000


class Writer:
    """The single writer of the daemon."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        ledger: Ledger,
        clock: Clock,
        checkpoint: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._ledger = ledger
        self._clock = clock
        self._checkpoint = checkpoint
        self._waiting: list[tuple[Job, Answer, Looked | None]] = []
        self._scheduled = False
        self._awake = False
        self._awake_until = 0.0
        self._first_at = 0.0
        self._commit_s = 0.0  # moving average of a commit's cost
        self._last_size = 0
        self._last_ms = clock.now_ms()
        self._checkpointing = False
        self._wal_pages = self._copied_pages = 0  # in the WAL now, and at its last checkpoint
        #: Raises a refusal when the database is no longer this daemon's. See ground.py.
        self.stands: Callable[[bool], None] = lambda begun: None
        #: Called after a commit. Returns what must end before these answers are given, if anything.
        #: It may add to the answers. See namespaces.py.
        self.spread: Callable[[list[Any]], asyncio.Future[None] | None] = lambda answers: None
        #: Called with the time that each commit took (seconds).
        self.took: Callable[[float], None] = lambda seconds: None
        self._telling = False  # between a commit and its answers
        self._after: list[Callable[[], None]] = []
        #: Continues a job that needs more looks: (job, what was looked at, its needs, answer).
        self.unready: Callable[[Job, Looked, Unready, Answer], None] | None = None
        ledger.db.set_wal_hook(self._on_wal)

    def submit(self, job: Job, answer: Answer, looked: Looked | None = None) -> None:
        """Queue a job. `answer` gets its value or `Refusal` once that is on disk. With `looked` the
        job gets all looks that it needs; without, `answer` may get an `Unready`."""
        self._waiting.append((job, answer, looked))
        if not self._scheduled:
            self._scheduled = True
            self._first_at = time.perf_counter()
            self._loop.call_soon(self._maybe_flush)

    async def run(self, job: Job) -> Any:
        """Queue a job, and await its value. A refusal is returned, not raised."""
        future: asyncio.Future[Any] = self._loop.create_future()

        def done(answer: Any) -> None:
            if not future.done():
                future.set_result(answer)

        self.submit(job, done)
        return await future

    def _maybe_flush(self) -> None:
        waited = time.perf_counter() - self._first_at
        if len(self._waiting) < self._last_size and waited < self._commit_s / 2:
            self._loop.call_soon(self._maybe_flush)  # meanwhile the loop reads the sockets
            return
        self.flush()

    def flush(self) -> None:
        """Commit the waiting jobs and answer them."""
        batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
        self._scheduled = False
        if self._waiting:
            self._scheduled = True
            self._first_at = time.perf_counter()
            self._loop.call_soon(self._maybe_flush)
        if not batch:
            return
        started = time.perf_counter()
        self._telling = True
        try:
            self.stands(False)
            answers = self._ledger.run_all([job for job, _, _ in batch], self._now())
            self.stands(True)
        except Refusal as gone:
            answers = [gone] * len(batch)
        finally:
            self._telling = False
        after, self._after = self._after, []
        spent = time.perf_counter() - started
        self.took(spent)
        self._commit_s += (spent - self._commit_s) / 8
        self._last_size = len(batch)
        spreading = self.spread(answers)
        if spreading is None:
            self._tell(batch, answers, after)
        else:
            spreading.add_done_callback(lambda done: self._tell(batch, answers, after))
        self._maybe_checkpoint()
        self._awake_until = time.perf_counter() + AWAKE_S
        if not self._awake:
            self._awake = True
            self._loop.call_soon(self._stay_awake)

    def follow(self, callback: Callable[[], None]) -> None:
        """Call this a moment after the jobs of the present commit are answered."""
        if self._telling:
            self._after.append(callback)
        else:
            self._loop.call_soon(callback)

    def _tell(self, batch: list[tuple[Job, Answer, Looked | None]], answers: list[Any],
              after: list[Callable[[], None]]) -> None:
        for (job, answer, looked), value in zip(batch, answers, strict=True):
            try:
                if isinstance(value, Unready) and looked is not None and self.unready is not None:
                    self.unready(job, looked, value, answer)
                else:
                    answer(value)
            except Exception:  # one broken connection must not silence the others
                log.exception("an answer could not be given")
        for callback in after:
            self._loop.call_soon(callback)

    def _stay_awake(self) -> None:
        if time.perf_counter() < self._awake_until:
            self._loop.call_soon(self._stay_awake)
        else:
            self._awake = False

    def _now(self) -> int:
        """The time of the batch. Leases first get back the time that the machine slept."""
        jumped = self._clock.jumped_ms()
        now_ms = self._clock.now_ms()
        if jumped:
            last_ms = self._last_ms
            self._ledger.run_all([lambda tx: sweep.give_back(tx, jumped, last_ms)], now_ms)
        self._last_ms = now_ms
        return now_ms

    def _on_wal(self, db: apsw.Connection, name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _maybe_checkpoint(self) -> None:
        if self._wal_pages < self._copied_pages:
            self._copied_pages = 0  # SQLite has started the WAL over
        # While a backup reads an older snapshot, the WAL grows in spite of checkpoints.
        if self._wal_pages - self._copied_pages <= CHECKPOINT_PAGES:
            return
        if self._wal_pages > CHECKPOINT_PAGES_MAX:
            self._copied_pages = self._wal_pages
            self._ledger.db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        elif not self._checkpointing:
            self._copied_pages = self._wal_pages
            self._checkpointing = True
            done = self._loop.run_in_executor(None, self._checkpoint)
            done.add_done_callback(self._checkpointed)

    def _checkpointed(self, done: asyncio.Future[None]) -> None:
        self._checkpointing = False
        if done.exception() is None:
            # Copy the little that was committed meanwhile. Only when all is copied, the next commit
            # starts the WAL over; otherwise steady writing would let it grow for ever.
            self._ledger.db.execute("PRAGMA wal_checkpoint(PASSIVE)")
