"""What the daemon is held against without a server: bare SQLite, and the disk's own floor.

`SqlitePairs` sends the statements that a grant and a release send in the daemon, with rows of the
same size, each request in one durable transaction of its own, from one thread: what a program does
that opens the database itself. No names are resolved, no token is checked, nothing is encoded.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from benchmarks.measuring.samples import Slice
from coordinator.store import events as ev
from coordinator.store.database import open_writer
from coordinator.store.statements import STATEMENTS as Q
from coordinator.store.statements import many
from coordinator.store.writer_cache import COUNTER_BLOCKS

_NOW, _LATER = "2026-01-01T00:00:00.000Z", "2026-01-01T00:30:00.000Z"
BLOCK = 4096
#: What the daemon writes of a grant and of a release.
GRANTED = msgspec.json.encode(ev.LeaseGranted(
    fencing_token=10_000, resource="src/pkg/m10.py", agent="c10", expires_at=_LATER,
    lease_kind="file", mode="exclusive", scope="p/src/pkg/m10.py/", acquisition_id="A-10000",
    ttl_ms=1_800_000, max_until=_LATER,
)).decode()
RELEASED = msgspec.json.encode(ev.LeaseReleased(
    fencing_token=10_000, resource="src/pkg/m10.py", scope="p/src/pkg/m10.py/", agent="c10",
    lease_kind="file",
)).decode()


class SqlitePairs:
    """A database with coord's schema, synchronous=FULL, its WAL warmed as the daemon's is."""

    def __init__(self, folder: Path) -> None:
        self._db = open_writer(folder / "alone.sqlite3", synchronous="FULL")
        self._db.execute("PRAGMA wal_autocheckpoint = 1000")  # SQLite's own default
        self._n = 0
        self._seq = 0

    def slice(self, seconds: float) -> Slice:
        """Pairs until `seconds` are over; a request's time is its transaction's."""
        mine = Slice(0, seconds, [])
        started = time.perf_counter()
        while (before := time.perf_counter()) - started < seconds:
            token = self._acquire()
            between = time.perf_counter()
            self._release(token)
            after = time.perf_counter()
            mine.took += (between - before, after - between)
            mine.done += 1
        mine.seconds = time.perf_counter() - started
        return mine

    def _acquire(self) -> int:
        run = self._db.execute
        self._n += 1
        scope = f"p/src/pkg/m{self._n % 64}.py/"
        run("BEGIN IMMEDIATE")
        run(many("rivals", 3), ("p/", "p/src/", "p/src/pkg/", scope, scope[:-1] + "0")).fetchall()
        run(Q["presence"]).fetchone()
        run(
            Q["lease_insert"],
            (self._n, scope[2:-1], "c1", _NOW, "", _LATER, "file", "exclusive", scope, "", None,
             None, None, f"A-{self._n}", None, 1_800_000, _LATER, None, None, None, None, "asked"),
        )
        self._event("lease_granted", scope, GRANTED)
        if self._n % COUNTER_BLOCKS["fencing"] == 1:
            run(Q["counter_put"], ("fencing", self._n + COUNTER_BLOCKS["fencing"] - 1))
        run("COMMIT")
        return self._n

    def _release(self, token: int) -> None:
        run = self._db.execute
        scope = f"p/src/pkg/m{token % 64}.py/"
        run("BEGIN IMMEDIATE")
        run(Q["leases_at_scope"], (scope,)).fetchall()
        run(Q["lease_delete"], (token,))
        run(Q["presence"]).fetchone()
        self._event("lease_released", scope, RELEASED)
        run("COMMIT")

    def _event(self, kind: str, scope: str, data: str) -> None:
        self._seq += 1
        row = (self._seq, _NOW, kind, "c1", None, scope[2:-1], data)
        self._db.execute(Q["event_append"], row)

    def close(self) -> None:
        """Close the database."""
        self._db.close()


class Floor:
    """One block on disk, overwritten in place: the least that anything durable costs."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder / "floor", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(self._fd, os.urandom(256 * BLOCK))
        os.fsync(self._fd)
        self._n = 0

    def slice(self, seconds: float) -> Slice:
        """Writes of 4 KiB, each followed by fdatasync."""
        mine = Slice(0, seconds, [])
        sync = getattr(os, "fdatasync", os.fsync)
        data = os.urandom(BLOCK)
        started = time.perf_counter()
        while (before := time.perf_counter()) - started < seconds:
            self._n = (self._n + 1) % 256
            os.pwrite(self._fd, data, self._n * BLOCK)
            sync(self._fd)
            mine.took.append(time.perf_counter() - before)
            mine.done += 1
        mine.seconds = time.perf_counter() - started
        return mine

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
