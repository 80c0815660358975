"""The log as the source of the state: rebuilding it, comparing it, and shortening the log without
loss.

`differences` replays the log, over the newest snapshot, into a fresh database and names every row
that differs. A `snapshot` that replaces the log's old part is made in the same way, so the rest
still gives the state.

`apart` runs a reading that is too long for a transaction on a connection of its own.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from coordinator.files.pace import Pace
from coordinator.resources import packaged
from coordinator.store import events as ev
from coordinator.store import migrations
from coordinator.store.database import DISK_ERRORS, in_memory, open_reader, storage_refusal
from coordinator.store.ledger import View
from coordinator.store.rows import LogRow, Row
from coordinator.store.statements import STATEMENTS as Q

#: Events that are read at once.
AT_ONCE = 2000
#: Tables that are no state: the log and what is kept beside it, and what follows from the state.
#: Blobs are contents by name, and counters are compared apart because they may be ahead.
NO_STATE = {"meta", "counters", "events", "snapshots", "waypoints", "blobs", "answered", "awaited",
            "program_processes", "ready_tasks"}
#: The state: what a replay must give.
STATE_TABLES = [table for table in re.findall(
    r"^CREATE TABLE (\w+)", packaged("schema.sql").read_text("utf-8"), re.MULTILINE)
    if table not in NO_STATE]
#: Tables that got a column last when purposes became fields.
WITH_PURPOSE = ("agents", "file_locks", "waiters")


def state(db: apsw.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every state table, sorted."""
    return {
        table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
        for table in STATE_TABLES
    }


class SavedStateRow(Row, frozen=True):
    """The whole state after an event, packed."""

    seq: int
    state: bytes


def rebuild(source: apsw.Connection, up_to: int | None = None,
            rest: Callable[[], None] = lambda: None, *, by_waypoint: bool = False,
            ) -> tuple[apsw.Connection, int]:
    """A fresh in-memory database with the state after event `up_to` (default: all), and how many
    events were applied.

    Args:
        rest: called now and then, for others want the processor, too.
        by_waypoint: begin with the nearest waypoint. (Whoever checks the log begins with the log.)
    """
    fresh = in_memory()
    last = up_to if up_to is not None else 2**62
    start = _restore_nearest(source, fresh, last if by_waypoint else 0)
    applied = 0
    # A few at a time, because a long reading keeps the WAL from starting over.
    while rows := [LogRow(*row) for row in source.execute(Q["events_all"], (start, last, AT_ONCE))]:
        for event in rows:
            ev.ANY.decode(event.data).apply(fresh, event.at)
            start = event.seq
        applied += len(rows)
        rest()
    return fresh, applied


def _restore_nearest(source: apsw.Connection, fresh: apsw.Connection, most: int) -> int:
    """Fill a fresh database with the newest snapshot, or with a waypoint up to event `most` where
    there is one that can be read: after which event the state is so."""
    snapshots = [SavedStateRow(*row) for row in source.execute(Q["snapshot_latest"])]
    start = snapshots[0].seq if snapshots else 0
    for waypoint in [SavedStateRow(*row) for row in source.execute(Q["waypoint_state"], (most,))]:
        if waypoint.seq <= start:
            break
        try:
            with fresh:
                restore_into(fresh, waypoint.state)
            return waypoint.seq
        except (zlib.error, msgspec.MsgspecError, apsw.Error):
            pass  # the log says the same
    for snapshot in snapshots:
        restore_into(fresh, snapshot.state)
    return start


def differences(source: apsw.Connection, most: int = 20) -> tuple[int, list[str]]:
    """(events applied, what differs between the replayed and the stored state, in words)."""
    fresh, applied = rebuild(source)
    matches: list[str] = []
    have, made = state(source), state(fresh)
    for table in STATE_TABLES:
        stored, replayed = set(have[table]), set(made[table])
        for where, rows in (("database", stored - replayed), ("replay", replayed - stored)):
            matches += [f"{table}: only in the {where}: {row}" for row in sorted(rows, key=repr)]
    fresh.close()
    return applied, matches[:most]


def snapshot(source: apsw.Connection, upto: int, *, by_waypoint: bool = False) -> bytes:
    """The state after event `upto`, as a row of `snapshots` holds it; `by_waypoint` as above."""
    fresh, _ = rebuild(source, upto, by_waypoint=by_waypoint)
    body = zlib.compress(msgspec.json.encode(state(fresh), enc_hook=_bytes))
    fresh.close()
    return body


def _bytes(value: Any) -> Any:
    return base64.b64encode(value).decode()


def clear(db: apsw.Connection) -> None:
    """Empty the state tables."""
    for table in STATE_TABLES:
        db.execute(f"DELETE FROM {table}")


def restore_into(db: apsw.Connection, body: bytes) -> None:
    """Fill empty state tables with what a snapshot holds."""
    tables: dict[str, list[list[Any]]] = msgspec.json.decode(zlib.decompress(body))
    is_said = True
    for table, rows in tables.items():
        if rows:
            # A snapshot may be older than the schema: columns that came since are at the end.
            known_names = [str(name) for (name,) in db.execute(
                "SELECT name FROM pragma_table_info(?)", (table,))]
            names = ",".join(known_names[: len(rows[0])])
            marks = ",".join("?" * len(rows[0]))
            db.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
            if table in WITH_PURPOSE and len(rows[0]) < len(known_names):
                is_said = False
    if not is_said:
        db.execute(migrations.OF_ROWS)
    db.execute(Q["ready_clear"])
    db.execute(Q["ready_fill"])


T = TypeVar("T")
#: How much longer than it has read a long reading rests: it takes its time from everybody's.
RESTS = 1.0


def apart(view: View, reading: Callable[[View], T]) -> Callable[[], T]:
    """The reading at this view's instant, to be done in a thread: of what is committed when it
    begins.

    Raises:
        Refusal: STORAGE (when it is done).
    """
    path, now_ms = Path(view.db.filename), view.now_ms

    def read() -> T:
        db, pace = open_reader(path), Pace()
        try:
            db.execute("BEGIN")
            own = View(db, now_ms)
            own.rest = lambda: pace.rest(RESTS)
            return reading(own)
        except DISK_ERRORS as bad:
            raise storage_refusal(path, bad) from bad
        finally:
            db.close()

    return read
