"""The daemon's compaction: makes the snapshot beside everything else, then takes small steps.

The state of a long log takes seconds of computing, so another process makes it. What is removed,
and the space that is given back to the disk, goes in steps of about a millisecond, with pauses.
Only the order of the steps is decided here (kernel/compaction.py says what each one does).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from coordinator.daemon.log_summary import summarize_log
from coordinator.daemon.writer import Writer
from coordinator.kernel import compaction
from coordinator.kernel.core import Service
from coordinator.store.database import (
    checkpoint,
    file_bytes,
    free_pages,
    give_back_pages,
    open_reader,
)
from coordinator.store.ledger import Ledger, Tx, View
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words import requests as rq
from coordinator.words.clock import Clock
from coordinator.words.refusals import Refusal

log = logging.getLogger("coord.compaction")
#: A step takes about so long (seconds), and steps take no more than this share of the time.
STEP_S, SHARE = 0.001, 0.1
#: The first size of a step, and its bounds, in events or pages.
FIRST, LEAST, MOST = 100, 10, 5000
#: Free pages (4 KiB) that stay in the file: it would only grow again by them.
FREE_KEPT = 256


class StepSize:
    """How much is done in a step, so that it takes about `STEP_S`."""

    def __init__(self) -> None:
        self.size = FIRST

    def took(self, spent_s: float) -> None:
        """The last step has taken so long."""
        factor = min(2.0, STEP_S / max(spent_s, 1e-6))
        self.size = max(LEAST, min(MOST, int(self.size * factor)))


class Compaction:
    """One daemon's. Used from the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, service: Service, writer: Writer,
                 ledger: Ledger, clock: Clock) -> None:
        self._loop = loop
        self._service = service
        self._writer = writer
        self._ledger = ledger
        self._clock = clock
        self._turn = asyncio.Lock()

    async def compact(self, req: rq.Compact) -> rq.Compacted:
        """See `requests.Compact`. A cancelled compaction keeps what it has done, and the next one
        continues.

        Raises:
            Refusal: what kept it from going on.
        """
        async with self._turn:
            return await self._run(req)

    async def _run(self, req: rq.Compact) -> rq.Compacted:
        before = file_bytes(self._ledger.db)
        upto, covered = await self._loop.run_in_executor(None, self._look, req)
        if upto > covered:
            body = await summarize_log("snapshot", self._ledger.path, upto)
            await self._do(lambda tx: compaction.put_snapshot(tx, upto, body))
        upto = max(upto, covered)
        events = await self._in_steps(lambda tx, n: compaction.remove_events(tx, upto, n))
        blobs = await self._remove_blobs()
        await self._in_steps(self._give_back)
        await self._do(lambda tx: compaction.note_removed(tx, events, blobs))
        after = file_bytes(self._ledger.db)
        await self._loop.run_in_executor(None, checkpoint, self._ledger.path)
        return rq.Compacted(events_removed=events, blobs_removed=blobs,
                            bytes_freed=max(before - after, 0))

    def _look(self, req: rq.Compact) -> tuple[int, int]:
        """In a thread: the last event that may go, and the last that has a snapshot."""
        db = open_reader(self._ledger.path)
        try:
            view = View(db, self._clock.now_ms())
            return compaction.cut(self._service, view, req), compaction.covered(view)
        finally:
            db.close()

    async def _remove_blobs(self) -> int:
        """The ledger's new contents are noted meanwhile, because one of them may be among those
        found unused."""
        self._ledger.kept = kept = set[str]()
        try:
            matches = await self._loop.run_in_executor(None, self._useless)
            steps, removed = StepSize(), 0
            while matches:
                some, matches = matches[: steps.size], matches[steps.size :]
                step = partial(compaction.remove_blobs, digests=some, kept=kept)
                removed += await self._step(steps, step)
            return removed
        finally:
            self._ledger.kept = None

    def _useless(self) -> list[str]:
        db = open_reader(self._ledger.path)
        try:
            return [str(digest) for (digest,) in db.execute(Q["blobs_unreferenced"])]
        finally:
            db.close()

    def _give_back(self, tx: Tx, pages: int) -> int:
        spare = free_pages(tx.db) - FREE_KEPT
        return give_back_pages(tx.db, min(pages, spare)) if spare > 0 else 0

    async def _in_steps(self, step: Callable[[Tx, int], int]) -> int:
        """Take steps until one finds nothing to do; the sum of what they did."""
        steps, done = StepSize(), 0
        while did := await self._step(steps, lambda tx: step(tx, steps.size)):
            done += did
        return done

    async def _step(self, steps: StepSize, step: Callable[[Tx], int]) -> int:
        spent = 0.0

        def job(tx: Tx) -> int:
            nonlocal spent
            began = time.perf_counter()
            did = step(tx)
            spent = time.perf_counter() - began
            return did

        did: int = await self._do(job)
        steps.took(spent)
        await asyncio.sleep(spent / SHARE)
        return did

    async def _do(self, job: Callable[[Tx], Any]) -> Any:
        """A transaction's answer.

        Raises:
            Refusal.
        """
        answer = await self._writer.run(job)
        if isinstance(answer, Refusal):
            raise answer
        return answer
