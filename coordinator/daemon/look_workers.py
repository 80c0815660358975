"""The coordinator's workers: processes that look at the disk, so that the loop never does.

There are three at most. One looks at single files. One looks at directories and at all else that
may take long, so no small look waits behind a large one. One looks at regions, which agents' edits
wait for. A worker starts when it is first needed, and ends after a rest. Bytes that have to be kept
go to the database in small transactions, between those of other requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from coordinator.looking import encoding
from coordinator.looking.facts import OF_REGIONS, AnyNeed, Below, Looked, Twins, Whole
from coordinator.looking.looker import Budget
from coordinator.store.ledger import Job, Tx
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.looks")
#: Questions that may wait for one worker.
WAITING_MAX = 500
#: How long a worker rests before it is ended (seconds).
REST_S = 60.0
#: How long a worker may exceed its budget before it is ended (seconds).
GRACE_S = 10.0
#: Bytes of a worker's answer that are read ahead.
READ_AHEAD = 1 << 20


class LookWorkers:
    """The workers of one daemon. Used in the loop's thread only."""

    def __init__(self, root: Path, database: Path, blobs: Path, kept_max: int, budget: Budget,
                 write: Callable[[Job], Awaitable[Any]]) -> None:
        self._budget = budget
        self._command = [
            sys.executable, "-P", "-m", "coordinator.daemon.look_worker", "--root", str(root),
            "--database", str(database), "--files", str(budget.files), "--bytes",
            str(budget.bytes), "--file-bytes", str(budget.file_bytes), "--seconds",
            str(budget.seconds), "--blobs", str(blobs), "--kept", str(kept_max),
        ]
        self._write = write
        self._lanes = {name: _Lane() for name in ("files", "directories", "regions")}
        #: Running looks. Kept contents that they rely on must not be removed meanwhile.
        self.open = 0

    async def look(self, needs: Sequence[AnyNeed], looked: Looked, seq: int) -> Refusal | None:
        """Look at all of these needs. Returns a refusal if the workers cannot look now."""
        name = _choose_lane(needs)
        lane = self._lanes[name]
        if lane.waiting >= WAITING_MAX:
            return Refusal(
                Code.LIMIT, f"{lane.waiting} looks at the disk wait already; nothing was done.",
                next="Try again in a moment.",
            )
        lane.waiting += 1
        self.open += 1
        try:
            async with lane.turn:
                command = [*self._command, "--soon"] if name == "regions" else self._command
                return await self._ask(lane, command, needs, looked, seq)
        finally:
            lane.waiting -= 1
            self.open -= 1

    async def close(self) -> None:
        """End the workers."""
        for lane in self._lanes.values():
            await lane.end()

    async def _ask(self, lane: _Lane, command: Sequence[str], needs: Iterable[AnyNeed],
                   looked: Looked, seq: int) -> Refusal | None:
        limit_s = self._budget.seconds + GRACE_S
        try:
            process = await lane.ready(command)
            assert process.stdin is not None
            process.stdin.write(encoding.frame(encoding.QUESTION, encoding.encode_needs(needs)))
            return await asyncio.wait_for(self._read_answer(process, looked, seq), limit_s)
        except TimeoutError:
            await lane.end()
            return Refusal(
                Code.LIMIT, f"Looking at the files took longer than {limit_s:g} s "
                "(look.seconds_max). Nothing was done.", next="Lease a smaller part of it.",
            )
        except (OSError, EOFError, asyncio.IncompleteReadError) as bad:
            log.warning("a look failed: %s", bad)
            await lane.end()
            return Refusal(
                Code.STORAGE, f"The disk could not be looked at ({bad or type(bad).__name__}); "
                "nothing was changed.",
            )
        finally:
            lane.rest()

    async def _read_answer(self, process: asyncio.subprocess.Process, looked: Looked,
                           seq: int) -> Refusal | None:
        """Keep the blobs and add the facts of one answer."""
        assert process.stdout is not None
        while True:
            length, what = encoding.HEAD.unpack(
                await process.stdout.readexactly(encoding.HEAD.size)
            )
            body = await process.stdout.readexactly(length)
            if what == encoding.FACTS:
                # A thread would not help: decoding keeps the lock of the interpreter.
                encoding.decode_facts(body, looked, seq)
                return None
            refused = await self._write(_make_keeping_job(encoding.decode_blobs(body)))
            if isinstance(refused, Refusal):
                await self._drop(process, what)
                return refused

    async def _drop(self, process: asyncio.subprocess.Process, what: bytes) -> None:
        """Read the rest of an answer that is of no use, because its bytes cannot be kept."""
        assert process.stdout is not None
        while what != encoding.FACTS:
            length, what = encoding.HEAD.unpack(
                await process.stdout.readexactly(encoding.HEAD.size)
            )
            await process.stdout.readexactly(length)


def _choose_lane(needs: Sequence[AnyNeed]) -> str:
    if any(isinstance(need, Below | Twins) for need in needs):
        return "directories"
    of_regions = any(isinstance(need, OF_REGIONS) or (
        isinstance(need, Whole) and "::" in need.text) for need in needs)
    return "regions" if of_regions else "files"


class _Lane:
    """One worker, and the looks that wait for it."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.waiting = 0
        self._process: asyncio.subprocess.Process | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def ready(self, command: Sequence[str]) -> asyncio.subprocess.Process:
        """The worker, which is started if it does not run."""
        if self._timer is not None:
            self._timer.cancel()
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL, limit=READ_AHEAD, start_new_session=True,
            )
        return self._process

    def rest(self) -> None:
        """Have the worker end after a rest, unless it is used again."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(REST_S, self._end_soon)

    def _end_soon(self) -> None:
        if not self.turn.locked():
            task = asyncio.get_running_loop().create_task(self.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def end(self) -> None:
        """End the worker now."""
        process, self._process = self._process, None
        if self._timer is not None:
            self._timer.cancel()
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _make_keeping_job(blobs: Sequence[encoding.Blob]) -> Job:
    """Make a job that keeps these bytes."""
    def job(tx: Tx) -> None:
        for blob in blobs:
            tx.keep_packed(blob.digest, blob.size, blob.packed, blob.mode)

    return job
