"""Opening SQLite: creation, version, integrity, durability, the warm WAL, and backups.

The coordinator's one database is opened for writing by exactly one process (the daemon holds a
lock file besides). Readers get their own read-only connection. A database that is damaged or of a
newer version is never touched: opening it is refused with words on what to do.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from coordinator.resources import packaged
from coordinator.store.migrations import MIGRATIONS, SCHEMA_VERSION
from coordinator.store.statements import STATEMENTS
from coordinator.words.refusals import Code, Refusal

#: The name under which the database records its owner (see files/state.py).
SEAL = "seal"
#: A database up to this size (bytes) that cannot give free pages back to the disk is rewritten when
#: it is opened. That takes some seconds for this size.
REWRITTEN_BYTES_MAX = 1 << 30
#: The WAL is grown to this once, then overwritten in place: a commit that need not extend the file
#: costs about one fdatasync instead of two (benchmarks/README.md).
WAL_WARM_BYTES = 4 * 1024 * 1024
#: One that has grown larger is cut to this when it starts over.
WAL_KEPT_BYTES = 4 * WAL_WARM_BYTES

#: A connection is used by one thread at a time: SQLite need not lock it at each value that is bound
#: or read (77 times in a grant and its release).
_ONE_THREAD = apsw.SQLITE_OPEN_NOMUTEX
#: Prepared statements that a connection keeps. apsw looks for one from the first to the last, so
#: more is slower; fewer, and those of a commit are lost between two large batches.
STATEMENTS_KEPT = 180
#: Small pieces of memory (1,200 bytes) that each connection has at hand: enough for those.
_PIECES = 400

MAKE_ROOM = "Make room (bytes and inodes: `df`, `df -i`), then repeat."
_sync = getattr(os, "fdatasync", os.fsync)  # not everywhere
#: SQLite's errors when the disk, and not the statement, is at fault.
DISK_ERRORS = (
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.BusyError,
    apsw.CorruptError,
    apsw.NotADBError,
)


def make_room() -> None:
    """Let SQLite give each connection room for its prepared statements, instead of forty pieces
    and then the heap. A setting of the whole library: for a process that is the daemon, and that
    has opened no connection yet."""
    apsw.shutdown()
    apsw.config(apsw.SQLITE_CONFIG_LOOKASIDE, 1200, _PIECES)
    apsw.initialize()


def storage_refusal(path: Path, bad: Exception) -> Refusal:
    """The STORAGE refusal for a disk error that SQLite raised, in words."""
    barred = isinstance(bad, apsw.ReadOnlyError | apsw.PermissionsError | apsw.CantOpenError)
    why = _refused_by_disk(path.parent) if barred or isinstance(bad, apsw.IOError) else None
    if isinstance(bad, apsw.FullError):
        text, step = "the disk is full", "Make room; the daemon goes on by itself."
    elif isinstance(bad, apsw.CorruptError | apsw.NotADBError):
        text = "the database is damaged"
        step = "`coord down`, then `coord doctor --restore` brings back what can be had."
    elif why is not None and why.errno in (errno.ENOSPC, errno.EDQUOT):
        text, step = f"the disk is full ({why.strerror})", MAKE_ROOM
    elif barred:
        text, step = "the database may not be written", f"Give write access to {path.parent}."
        if why is not None:
            text += f" ({why.strerror})"
    elif isinstance(bad, apsw.BusyError):
        text, step = "another program holds the database", "Close it and repeat."
    else:
        text, step = f"the disk answered: {bad}", "`coord doctor` checks the database."
    return Refusal(Code.STORAGE, f"Nothing was changed: {text} ({path}).", next=step)


def _refused_by_disk(folder: Path) -> OSError | None:
    """Why nothing can be written to a folder, of which SQLite says only that it could not."""
    probe = folder / f".probe-{os.getpid()}"
    try:
        probe.write_bytes(b"?" * 65_536)
    except OSError as no:
        return no
    finally:
        with suppress(OSError):
            probe.unlink()
    return None


def open_writer(
    path: Path, *, synchronous: str = "FULL", seal: str | None = None, warm: bool = True
) -> apsw.Connection:
    """The daemon's connection; creates the database when there is none.

    Args:
        seal: what the database must say of itself, or is made to say when it is created: one that
            says anything else is not ours, and nothing of it is run.

    Raises:
        Refusal: STORAGE (damaged, no permission, full), VERSION_SKEW (a newer schema), FOREIGN.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and seal is not None:
            check_seal(path, seal)
        db = apsw.Connection(
            str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | _ONE_THREAD,
            statementcachesize=STATEMENTS_KEPT,
        )
        version = db.execute("PRAGMA user_version").get
        fresh = version == 0 and not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get
        if fresh:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # possible before the first page only
        _configure(db, synchronous)
        if fresh:
            with db:
                db.execute(packaged("schema.sql").read_text("utf-8"))
                if seal is not None:
                    put_seal(db, seal)
        elif version > SCHEMA_VERSION or version == 0:
            db.close()
            raise Refusal(
                Code.VERSION_SKEW,
                f"{path} has schema version {version}; this coord knows up to {SCHEMA_VERSION}. "
                "It was left untouched.",
            )
        elif version < SCHEMA_VERSION:
            migrate(db, version)
        text = str(db.execute("PRAGMA quick_check(1)").get)
        if text != "ok":
            db.close()
            raise as_read(text)
        _let_shrink(db, path)
        if warm:
            _warm(db, path)
        path.chmod(0o600)
        return db
    except DISK_ERRORS as bad:
        raise storage_refusal(path, bad) from bad
    except OSError as bad:
        full = bad.errno in (errno.ENOSPC, errno.EDQUOT)
        raise Refusal(
            Code.STORAGE, f"{path.parent} cannot be used: {bad.strerror}.",
            next=MAKE_ROOM if full else f"Give write access to {path.parent}.",
        ) from bad


def file_bytes(db: apsw.Connection) -> int:
    """How long the database's file is, once all that is committed is in it."""
    pages, size = db.execute("PRAGMA page_count").get, db.execute("PRAGMA page_size").get
    return int(str(pages)) * int(str(size))


def free_pages(db: apsw.Connection) -> int:
    """Pages of the file that hold nothing."""
    return int(str(db.execute("PRAGMA freelist_count").get))


def give_back_pages(db: apsw.Connection, pages: int) -> int:
    """Make the file shorter by up to so many free pages (inside a transaction); by how many."""
    before = free_pages(db)
    db.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
    return before - free_pages(db)


def _bears(path: Path, seal: str, *, flags: int = apsw.SQLITE_OPEN_READONLY) -> bool:
    """Whether a database says that it is this one's, or has nothing in it yet."""
    db = apsw.Connection(str(path), flags=flags)
    try:
        db.set_busy_timeout(2000)
        db.execute("PRAGMA trusted_schema = OFF")
        if not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get:
            return True
        meta = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'meta'"
        return bool(db.execute(meta).get) and db.execute(
            STATEMENTS["meta_get"], (SEAL,)).get == seal
    finally:
        db.close()


def check_seal(path: Path, seal: str) -> None:
    """Check that a database was made for this state directory.

    Raises:
        apsw.Error: it cannot be read.
        Refusal: FOREIGN.
    """
    try:
        ours = _bears(path, seal)
    # its creator was killed in the middle, so a writer has to roll it back
    except apsw.ReadOnlyError:
        journal = path.with_name(f"{path.name}-journal")
        with tempfile.TemporaryDirectory(prefix="coord-seal-") as folder:
            copy = Path(folder) / path.name
            shutil.copyfile(path, copy)
            if journal.exists():
                shutil.copyfile(journal, copy.with_name(journal.name))
            ours = _bears(copy, seal, flags=apsw.SQLITE_OPEN_READWRITE)
    if ours:
        return
    raise Refusal(
        Code.FOREIGN, f"{path} was not made by the coordinator of this folder (it came with the "
        "files, or from elsewhere). It was left as it is, and nothing of it is used.",
        next=f"`coord init --adopt` if it is your own; else move {path} away.",
    )


def put_seal(db: apsw.Connection, seal: str) -> None:
    """Let a database say that it belongs to a state directory."""
    db.execute(STATEMENTS["meta_put"], (SEAL, seal))


def as_read(text: str) -> Exception:
    """The error behind what a check of the pages has found: a disk that does not read is not a
    database that is damaged."""
    codes = [int(code) & 0xFF for code in re.findall(r"error code=(\d+)", text)]
    if apsw.SQLITE_IOERR in codes:
        return apsw.IOError(f"disk I/O error ({text.splitlines()[-1]})")
    return apsw.CorruptError(text)


def _let_shrink(db: apsw.Connection, path: Path) -> None:
    """Let free pages be given back to the disk; databases of older versions cannot do that."""
    if db.execute("PRAGMA auto_vacuum").get == 2 or path.stat().st_size > REWRITTEN_BYTES_MAX:
        return
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    with suppress(apsw.FullError):  # no room to rewrite it, so it stays as it is
        db.execute("VACUUM")


def migrate(db: apsw.Connection, version: int) -> None:
    """Bring an older database forward, in one transaction."""
    with db:
        for step in range(version, SCHEMA_VERSION):
            db.execute(MIGRATIONS.get(step, ""))
        _make_missing(db)
        # Waypoints of an older version are made anew.
        db.execute(STATEMENTS["waypoints_delete_before"], (2**62,))
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


class SchemaPart(NamedTuple):
    """A table or an index, and the statement that makes it."""

    name: str
    sql: str


def _list_parts(db: apsw.Connection) -> list[SchemaPart]:
    return [SchemaPart(*row) for row in db.execute(
        "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")]


def _make_missing(db: apsw.Connection) -> None:
    """Make the tables and indexes of `schema.sql` that this database has not."""
    present = {part.name for part in _list_parts(db)}
    for part in _list_parts(in_memory()):
        if part.name not in present:
            db.execute(part.sql)


def open_reader(path: Path) -> apsw.Connection:
    """A read-only connection; it sees whole committed transactions only.

    Raises:
        Refusal: STORAGE.
    """
    try:
        db = apsw.Connection(
            str(path), flags=apsw.SQLITE_OPEN_READONLY | _ONE_THREAD,
            statementcachesize=STATEMENTS_KEPT,
        )
        db.set_busy_timeout(2000)
        return db
    except DISK_ERRORS as bad:
        raise storage_refusal(path, bad) from bad


def in_memory() -> apsw.Connection:
    """A fresh, empty database with today's schema, for rebuilding from the log."""
    db = apsw.Connection(":memory:")
    db.execute(packaged("schema.sql").read_text("utf-8"))
    return db


def close_writer(db: apsw.Connection) -> None:
    """Close the daemon's connection; the warm WAL stays for the next one."""
    db.execute("PRAGMA journal_size_limit = -1")
    db.close()


def integrity(db: apsw.Connection) -> str:
    """`"ok"`, or the first things that SQLite finds wrong."""
    return "; ".join(str(wrong) for (wrong,) in db.execute("PRAGMA integrity_check(10)"))


def backup(
    source: apsw.Connection, target: Path, keep: int, *, roll: bool = True,
    pause: Callable[[float], None] = lambda spent_s: None,
) -> Path:
    """Copy the database with SQLite's backup API to `target`; older copies become `.1`, `.2`, …

    The copy is complete or absent: it is written beside and renamed. `keep` counts all copies;
    without `roll` the newest is replaced and the older ones stay as they are. `pause` is called
    after each megabyte with the seconds that it took: the disk is others', too.
    """
    fresh = target.with_name(target.name + ".new")
    fresh.unlink(missing_ok=True)
    copy = apsw.Connection(str(fresh))
    # One snapshot from the first page to the last: the copying would begin anew at each write.
    source.execute("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    try:
        with copy.backup("main", source, "main") as job, fresh.open("rb") as file:
            while not job.done:
                began = time.perf_counter()
                job.step(256)
                _sync(file.fileno())
                pause(time.perf_counter() - began)
    finally:
        source.execute("COMMIT")
    copy.execute("PRAGMA journal_mode = DELETE")
    copy.close()
    with fresh.open("rb") as file:
        os.fsync(file.fileno())
    for age in range(keep - 1, 0, -1) if roll else ():
        older = target.with_name(f"{target.name}.{age - 1}") if age > 1 else target
        if older.exists():
            older.replace(target.with_name(f"{target.name}.{age}"))
    fresh.chmod(0o600)
    fresh.replace(target)
    return target


def _configure(db: apsw.Connection, synchronous: str) -> None:
    # One plan to a statement. Otherwise SQLite (built with STAT4, as apsw's is) may parse a
    # statement again whenever its parameters change: a third of a grant's time.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.set_busy_timeout(2000)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute("PRAGMA wal_autocheckpoint = 0")  # beside the writer, see `checkpoint`
    db.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute("PRAGMA cache_size = -16000")


def _warm(db: apsw.Connection, path: Path) -> None:
    """Grow the WAL once while nobody waits, then start it from its beginning."""
    db.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, _int_pointer(1))
    wal = path.with_name(path.name + "-wal")
    if not wal.exists() or wal.stat().st_size < WAL_WARM_BYTES:
        (level,) = db.execute("PRAGMA synchronous").fetchone() or (2,)
        db.execute("PRAGMA synchronous = OFF")
        for _ in range(WAL_WARM_BYTES // 4096):
            db.execute(STATEMENTS["meta_put"], ("wal_warmed", os.urandom(2).hex()))
        db.execute(f"PRAGMA synchronous = {level}")
    db.execute("PRAGMA wal_checkpoint(RESTART)")


_HELD: list[object] = []


def _int_pointer(value: int) -> int:
    """The address of a C int, which is what this file control wants; it is read at once."""
    import ctypes

    cell = ctypes.c_int(value)
    _HELD[:] = [cell]
    return ctypes.addressof(cell)


def checkpoint(path: Path) -> None:
    """Copy committed pages into the database on a connection of its own, beside the writer."""
    db = apsw.Connection(str(path))
    try:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("PRAGMA wal_checkpoint(PASSIVE)")
    finally:
        db.close()
