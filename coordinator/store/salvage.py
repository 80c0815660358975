"""Reading what can still be read of a damaged database, and making a new one from it.

The log is read event by event, so an unreadable page costs only its own events. They are applied,
as the daemon applies them, to a known state: a backup, a snapshot in the damaged file, or nothing
where the log goes back to its beginning. Only events without a gap between them are taken, because
a state with a gap never existed.

The module works on copies, and the damaged file stays as it is. It does not decide where files lie.
"""

from __future__ import annotations

import hashlib
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import msgspec

from coordinator.files.blobs import BlobFolder
from coordinator.files.content import EXECUTABLE
from coordinator.store import events as ev
from coordinator.store import rebuild
from coordinator.store.ledger import BLOBS, R, View
from coordinator.store.rows import BlobRow, LogRow, Row
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words.clock import from_iso

#: Numbers of each counter that are skipped: more than can have been given since what is known.
STEP = 1_000_000
#: All counters, and the statement that gives the highest number of each that is still to be seen.
COUNTERS = {name.removeprefix("highest_"): statement for name, statement in Q.items()
            if name.startswith("highest_")}
#: How far beyond a hole is looked for more of the log, to tell what is lost: two to this power.
FAR = 40
_HEADER = 100
#: What reading a damaged file may raise.
_UNREADABLE = (apsw.Error, ValueError, zlib.error, msgspec.MsgspecError, UnicodeDecodeError)


@dataclass(slots=True)
class Rescue:
    """What came back, and what did not."""

    base: str
    """The base of the rescue: the name of a backup, `snapshot` or `nothing`."""
    base_seq: int
    last_seq: int = 0
    """The last event that came back."""
    last_at: str = ""
    events: int = 0
    """Events that came back after the base."""
    lost_from: int | None = None
    """The first event that is known to be lost; None if the log was read to its end."""
    lost_to: int | None = None
    """The last event that is known of."""
    blobs_lost: int = 0
    """Contents that reviews rely on and that are gone."""
    counters: dict[str, int] = field(default_factory=dict)


class _Number(Row, frozen=True):
    """The value of a statement with one column."""

    number: Any


class Wreck:
    """A copy of a damaged database, opened as well as it can be.

    Args:
        folder: an empty folder for the copies.
        damaged: the file; its log (`-wal`) is copied, too.
        pattern: a whole database of the same origin, if there is one: where the damaged file has
            lost the pages that say where all else is, this one's are used.
    """

    def __init__(self, folder: Path, damaged: Path, pattern: Path | None) -> None:
        self._db: apsw.Connection | None = None
        self._copy = folder / "wreck.sqlite3"
        self._blobs = BlobFolder(damaged.parent / BLOBS)
        for suffix in ("", "-wal"):
            source = damaged.with_name(damaged.name + suffix)
            if source.exists():
                shutil.copyfile(source, self._copy.with_name(self._copy.name + suffix))
        if not self._copy.exists():
            return
        if not self._open() and pattern is not None:
            self._give_schema(pattern)
            self._open()

    def close(self) -> None:
        """Let go of the copies."""
        if self._db is not None:
            self._db.close()

    def events(self, after: int) -> Iterator[LogRow]:
        """The events after `after`, in order, up to the first that cannot be read or is not there.
        Each is what the log's row says; it is read as an event and agrees with itself."""
        seq = after + 1
        while (row := self._event(seq)) is not None:
            yield row
            seq += 1

    def beyond(self, seq: int) -> int | None:
        """A readable event after `seq`, the last one as far as can be told; None if there is none.
        """
        best = None
        asked: list[tuple[str, tuple[int, ...]]] = [(Q["event_newest"], ())]
        asked += [(Q["event_from"], (seq + (1 << n),)) for n in range(FAR)]
        for sql, params in asked:
            number = self._number(sql, *params)
            if number is not None and number > max(seq,
                                                   best or 0) and self._event(number) is not None:
                best = number
        return best

    def snapshot(self) -> tuple[int, bytes] | None:
        """The newest snapshot, if it can be read whole."""
        row = self._row(rebuild.SavedStateRow, Q["snapshot_latest"])
        try:
            if row is not None:
                msgspec.json.decode(zlib.decompress(row.state))
                return int(row.seq), bytes(row.state)
        except (*_UNREADABLE, TypeError):
            pass
        return None

    def counter(self, name: str) -> int:
        """The damaged file's value of a counter; 0 if it cannot be read."""
        return self._number(Q["counter_get"], name) or 0

    def blob(self, digest: str) -> BlobRow | None:
        """The row of this content, if its bytes are what its name says; of one that is kept as a
        file beside the database, if that is there."""
        row = self._row(BlobRow, Q["blob_get"], digest)
        try:
            if row is None:
                return None
            if not row.data:
                right = self._blobs.place(digest).stat().st_size == row.size
            else:
                data = zlib.decompress(row.data)
                named = digest.removesuffix(EXECUTABLE).rpartition(":")[2]
                right = len(data) == row.size and hashlib.sha256(data).hexdigest() == named
        except (*_UNREADABLE, TypeError, OSError):
            return None
        return row if right and isinstance(row.mode, int | None) else None

    def _event(self, seq: int) -> LogRow | None:
        row = self._row(LogRow, Q["event_get"], seq)
        try:
            if row is None or row.seq != seq or not isinstance(row.at, str):
                return None
            from_iso(row.at)
            event = ev.ANY.decode(row.data)
            kind = type(event)
            same = (ev.KIND_OF[kind], *ev.SUBJECT_OF[kind](event)) == (
                row.kind, row.agent, row.task, row.resource)
        except (*_UNREADABLE, TypeError):
            return None
        return row if same else None

    def _number(self, sql: str, *params: Any) -> int | None:
        row = self._row(_Number, sql, *params)
        return row.number if row is not None and isinstance(row.number, int) else None

    def _row(self, shape: type[R], sql: str, *params: Any) -> R | None:
        if self._db is None:
            return None
        try:
            row = self._db.execute(sql, params).fetchone()
            return None if row is None else shape(*row)
        except _UNREADABLE:
            return None

    def _open(self) -> bool:
        """Whether it can be read at all."""
        try:
            db = apsw.Connection(str(self._copy), flags=apsw.SQLITE_OPEN_READWRITE)
            self._db = db
            for line in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON"):
                db.execute(f"PRAGMA {line}")
            db.execute(Q["event_from"], (0,)).fetchone()
            return True
        except apsw.SQLError:
            return False  # it has no such table
        except apsw.Error as bad:
            return isinstance(bad, apsw.CorruptError) and self._has_tables()

    def _has_tables(self) -> bool:
        return self._number(Q["has_log"]) is not None

    def _give_schema(self, pattern: Path) -> None:
        """Put the pages of the pattern that say where all else is in the place of its own."""
        if self._db is not None:
            self._db.close()
            self._db = None
        logged = self._copy.with_name(self._copy.name + "-wal").exists()
        pages = _schema_pages(pattern)
        with pattern.open("rb") as source, self._copy.open("r+b") as target:
            head = source.read(_HEADER)
            size = int.from_bytes(head[16:18], "big")
            size = 65_536 if size == 1 else size
            for number in pages:
                source.seek((number - 1) * size)
                page = bytearray(source.read(size))
                if number == 1:
                    page[18:20] = b"\2\2" if logged else b"\1\1"
                    # A count of pages of another state of the file is passed over by SQLite.
                    page[92:96] = (int.from_bytes(page[24:28], "big") + 1).to_bytes(4, "big")
                target.seek((number - 1) * size)
                target.write(page)


def _schema_pages(pattern: Path) -> list[int]:
    db = apsw.Connection(str(pattern), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return sorted(int(str(number)) for (number,) in db.execute(Q["schema_pages"]))
    except apsw.SQLError:
        return [1]  # an SQLite that cannot tell
    finally:
        db.close()


def rescue(
    db: apsw.Connection, wreck: Wreck, base: str, floor: dict[str, int], instant: str
) -> Rescue:
    """Fill `db` with what came back, in one transaction, and set its counters above everything that
    may have been given.

    Args:
        db: a copy of the newest good backup, or a fresh database (`base` is `nothing` then).
        floor: counter -> a number that is known, from elsewhere, to have been given.
        instant: the instant, as ISO text.
    """
    with db:
        done = Rescue(base, _last_seq(db))
        done.last_seq = done.base_seq
        snapshot = wreck.snapshot()
        if snapshot is not None and snapshot[0] > done.base_seq:
            # A log that was compacted since: what is older than the snapshot is in it.
            reached = sum(1 for _ in wreck.events(done.base_seq)) + done.base_seq
            if reached < snapshot[0]:
                _begin_with(db, *snapshot, instant)
                done = Rescue("snapshot", snapshot[0], last_seq=snapshot[0])
        for row in wreck.events(done.last_seq):
            if not _applied(db, row):
                break
            done.events += 1
            done.last_seq, done.last_at = row.seq, row.at
        done.lost_to = wreck.beyond(done.last_seq)
        done.lost_from = done.last_seq + 1 if done.lost_to is not None else None
        done.blobs_lost = _bring_blobs(db, wreck)
        db.execute(Q["ready_clear"])
        db.execute(Q["ready_fill"])
        _raise_counters(db, wreck, floor, done, instant)
    return done


def _last_seq(db: apsw.Connection) -> int:
    return int(str(db.execute(Q["event_last"]).get))


def _begin_with(db: apsw.Connection, seq: int, body: bytes, instant: str) -> None:
    rebuild.clear(db)
    rebuild.restore_into(db, body)
    db.execute(Q["snapshots_delete_before"], (seq,))
    db.execute(Q["snapshot_put"], (seq, instant, body))


def _applied(db: apsw.Connection, row: LogRow) -> bool:
    try:
        with db:
            ev.ANY.decode(row.data).apply(db, row.at)
            db.execute(Q["event_append"], msgspec.structs.astuple(row))
        return True
    except (*_UNREADABLE, TypeError, KeyError):
        return False


def _bring_blobs(db: apsw.Connection, wreck: Wreck) -> int:
    """Contents that the state refers to and does not have; how many of those that a review relies
    on are gone for good."""
    gone = 0
    for digest, needed in list[Any](db.execute(Q["blobs_missing"])):
        row = wreck.blob(str(digest))
        if row is None:
            gone += int(needed)
        else:
            db.execute(Q["blob_put"], msgspec.structs.astuple(row))
    return gone


def _raise_counters(
    db: apsw.Connection, wreck: Wreck, floor: dict[str, int], done: Rescue, instant: str
) -> None:
    counters = View(db, 0).counts("counters_all")
    for name, statement in COUNTERS.items():
        shown = int(db.execute(statement).get)
        seen = max(counters.get(name, 0), wreck.counter(name), floor.get(name, 0), shown)
        done.counters[name] = seen + STEP
        db.execute(Q["counter_put"], (name, seen + STEP))
    event = ev.CountersRaised(above=done.counters)
    seq = max(done.last_seq, done.lost_to or 0) + 1
    db.execute(Q["event_append"], (
        seq, instant, ev.KIND_OF[ev.CountersRaised], None, None, None,
        msgspec.json.encode(event).decode(),
    ))

