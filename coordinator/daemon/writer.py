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

#: Jobs in one transaction: bounds the time that everybody waits for the slowest.
BATCH_MAX = 512
#: How long the loop stays awake after an answer (seconds): about as long as falling asleep and
#: being woken takes. It costs that much of a core for each commit, and nothing at rest.
AWAKE_S = 0.0001
#: WAL pages (4 KiB), new since the last one, after which a checkpoint is due, beside the writer;
#: and from how many in all at any price.
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
        self._wal_pages = self._copied_pages = 0  # in the WAL; when it was copied last
        #: Raises a refusal when the database is no longer this daemon's (ground.py).
        self.stands: Callable[[bool], None] = lambda begun: None
        #: After a commit: what has to be over before these answers are given, if anything; it may
        #: add to them (namespaces.py).
        self.spread: Callable[[list[Any]], asyncio.Future[None] | None] = lambda answers: None
        #: Told how long each commit took (seconds).
        self.took: Callable[[float], None] = lambda seconds: None
        self._telling = False  # between a commit and its answers
        self._after: list[Callable[[], None]] = []
        #: Goes on with a job that has to know more: (job, what it goes by, what it needs, answer).
        self.unready: Callable[[Job, Looked, Unready, Answer], None] | None = None
        ledger.db.set_wal_hook(self._on_wal)

    def submit(self, job: Job, answer: Answer, looked: Looked | None = None) -> None:
        """Queue a job. `answer` gets its value or `Refusal` once that is on disk. With `looked`,
        more is looked at until it is enough; otherwise `answer` may get an `Unready`."""
        self._waiting.append((job, answer, looked))
        if not self._scheduled:
            self._scheduled = True
            self._first_at = time.perf_counter()
            self._loop.call_soon(self._maybe_flush)

    async def run(self, job: Job) -> Any:
        """`submit`, awaited. A refusal is returned, not raised."""
        future: asyncio.Future[Any] = self._loop.create_future()

        def done(answer: Any) -> None:
            if not future.done():
                future.set_result(answer)

        self.submit(job, done)
        return await future

    def _maybe_flush(self) -> None:
        waited = time.perf_counter() - self._first_at
        if len(self._waiting) < self._last_size and waited < self._commit_s / 2:
            self._loop.call_soon(self._maybe_flush)  # a turn of the loop: sockets are read
            return
        self.flush()

    def flush(self) -> None:
        """Commit what waits now and answer it."""
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
        """Call this a moment after what is being committed now was answered."""
        if self._telling:
            self._after.append(callback)
        else:
            self._loop.call_soon(callback)

    def _tell(self, batch: list[tuple[Job, Answer, Looked | None]], answers: list[Any],
              after: list[Callable[[], None]]) -> None:
        for (job, answer, looked), value in zip(batch, answers, strict=True):
            try:
                if looked is not None and isinstance(value, Unready) and self.unready is not None:
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
        """The instant of the batch; time that the machine slept is given back first."""
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
            self._copied_pages = 0  # it was started over
        # While somebody reads an older snapshot (a backup), it grows, whatever was copied.
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
            # Little was committed meanwhile. When all of it is copied, the next commit starts the
            # WAL over; otherwise steady writing would let it grow for ever.
            self._ledger.db.execute("PRAGMA wal_checkpoint(PASSIVE)")
