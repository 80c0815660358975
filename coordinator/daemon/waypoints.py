"""Making waypoints in the log beside other work: the whole state after so many events.

A question about a part of the log begins at a waypoint, so it costs what that part costs, however
long the log is. If the state is large, waypoints are further apart, so that all of them together
stay a small part of the database.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from coordinator.daemon.log_summary import read_waypoint, summarize_log
from coordinator.daemon.writer import Writer
from coordinator.slices.story.lanes import WaypointRow
from coordinator.store.database import open_reader
from coordinator.store.ledger import Tx, View
from coordinator.words.refusals import Refusal

log = logging.getLogger("coord.waypoints")
#: Events between two waypoints at least, and bytes of waypoints for each event at most.
APART, BYTES_AN_EVENT = 2500, 100


def find_due(view: View) -> int | None:
    """The event after which the next waypoint belongs; None if the log is not that long yet."""
    newest = view.first(WaypointRow, "waypoint_begun", sys.maxsize)
    last = int(view.value("event_last") or 0)
    covered = int(view.value("snapshot_seq") or 0)
    due = (max(newest.seq, covered) + max(APART, newest.size // BYTES_AN_EVENT)
           if newest is not None else covered + APART)
    return due if due <= last else None


def put_waypoint(tx: Tx, seq: int, state: bytes, begun: bytes) -> None:
    """Keep a waypoint, unless compaction has removed the log up to there meanwhile."""
    if seq > int(tx.value("snapshot_seq") or 0):
        tx.write_beside("waypoint_put", seq, state, begun)


class Waypoints:
    """The waypoints of one daemon. Used in the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: Writer, database: Path) -> None:
        self._loop = loop
        self._writer = writer
        self._database = database
        self._making: asyncio.Task[None] | None = None

    def tend(self) -> None:
        """Make the waypoints that are due, one after the other."""
        if self._making is None or self._making.done():
            self._making = self._loop.create_task(self._make())

    def close(self) -> None:
        """Stop making waypoints."""
        if self._making is not None:
            self._making.cancel()

    async def _make(self) -> None:
        try:
            while (seq := await self._loop.run_in_executor(None, self._find_due)) is not None:
                body = await summarize_log("waypoint", self._database, seq)
                await self._keep(seq, *read_waypoint(body))
        except Exception:
            # Without the waypoint a question reads more of the log. The next call tries again.
            log.exception("no waypoint was made")

    async def _keep(self, seq: int, state: bytes, begun: bytes) -> None:
        answer = await self._writer.run(lambda tx: put_waypoint(tx, seq, state, begun))
        if isinstance(answer, Refusal):
            raise answer

    def _find_due(self) -> int | None:
        db = open_reader(self._database)
        try:
            return find_due(View(db, 0))
        finally:
            db.close()
