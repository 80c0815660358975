"""Opening SQLite: creation, version, integrity, durability, the warm WAL, and backups.

The coordinator's one database is opened for writing by exactly one process (the daemon holds a
lock file besides). Readers get their own read-only connection. A database that is damaged or of a
newer version is never touched: opening it is refused with words on what to do.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from coordinator.resources import packaged
from coordinator.store.statements import STATEMENTS
from coordinator.words.refusals import Code, Refusal

SCHEMA_VERSION = 6
#: From version N to N+1; forward only. A test compares each migrated version with a fresh one.
MIGRATIONS: dict[int, str] = {
    1: """
ALTER TABLE agents ADD COLUMN session TEXT;
ALTER TABLE agents ADD COLUMN hooked_at TEXT;
ALTER TABLE file_locks ADD COLUMN warned INTEGER NOT NULL DEFAULT 0 CHECK (warned IN (0, 1));
CREATE TABLE agent_reads (
    agent TEXT NOT NULL,
    path  TEXT NOT NULL,
    hash  TEXT,
    at    TEXT NOT NULL,
    PRIMARY KEY (agent, path)
) STRICT, WITHOUT ROWID;
""",
    2: """
CREATE TABLE unlock_requests (
    request_id   TEXT PRIMARY KEY,
    n            INTEGER NOT NULL UNIQUE,
    requested_by TEXT NOT NULL,
    holder       TEXT NOT NULL,
    resource     TEXT NOT NULL,
    kind         TEXT NOT NULL,
    scope        TEXT NOT NULL,
    mode         TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    reason       TEXT NOT NULL CHECK (reason <> ''),
    requested_at TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'withdrawn')),
    responded_at TEXT,
    responded_by TEXT,
    override     INTEGER NOT NULL DEFAULT 0 CHECK (override IN (0, 1)),
    answer       TEXT,
    CHECK ((status = 'pending') = (responded_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX unlock_requests_by_status ON unlock_requests (status, n);
CREATE UNIQUE INDEX one_question ON unlock_requests (requested_by, scope, resource)
WHERE status = 'pending';
""",
    3: """
ALTER TABLE file_locks RENAME TO older_locks;
CREATE TABLE file_locks (
    fencing_token    INTEGER PRIMARY KEY,
    file_path        TEXT NOT NULL,
    locked_by        TEXT NOT NULL,
    locked_at        TEXT NOT NULL,
    task_description TEXT NOT NULL,
    expires_at       TEXT NOT NULL,
    kind             TEXT NOT NULL CHECK (kind = 'file' OR kind = 'dir' OR kind = 'glob'
                                          OR kind = 'region' OR kind = 'key'),
    mode             TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    scope            TEXT NOT NULL,
    slot             TEXT NOT NULL,
    inode            TEXT,
    worktree         TEXT,
    content_hash     TEXT,
    acquisition_id   TEXT NOT NULL,
    task_id          TEXT,
    ttl_ms           INTEGER NOT NULL CHECK (ttl_ms > 0),
    max_until        TEXT NOT NULL,
    warned           INTEGER NOT NULL DEFAULT 0 CHECK (warned IN (0, 1))
) STRICT;
INSERT INTO file_locks SELECT * FROM older_locks;
DROP TABLE older_locks;
CREATE UNIQUE INDEX one_writer ON file_locks (scope, slot);
CREATE INDEX locks_by_expiry ON file_locks (expires_at);
CREATE INDEX locks_by_holder ON file_locks (locked_by);
CREATE INDEX locks_by_inode  ON file_locks (inode) WHERE inode IS NOT NULL;
CREATE INDEX locks_by_task   ON file_locks (task_id) WHERE task_id IS NOT NULL;
""",
    4: """
CREATE TABLE ripples (
    task_id TEXT PRIMARY KEY,
    after_n INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE set_aside (
    what     TEXT NOT NULL CHECK (what IN ('waiter', 'task', 'lapse')),
    subject  TEXT NOT NULL,
    reason   TEXT NOT NULL,
    since    TEXT NOT NULL,
    tries    INTEGER NOT NULL,
    retry_at TEXT NOT NULL,
    PRIMARY KEY (what, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX set_aside_due ON set_aside (retry_at);
ALTER TABLE waiters ADD COLUMN met TEXT NOT NULL DEFAULT '';
CREATE INDEX waiters_by_met ON waiters (met);
ALTER TABLE reviews RENAME TO older_reviews;
CREATE TABLE reviews (
    review_id   TEXT PRIMARY KEY,
    n           INTEGER NOT NULL UNIQUE,
    state       TEXT NOT NULL CHECK (state IN ('open', 'kept', 'reverted', 'reassigned')),
    reason      TEXT NOT NULL CHECK (reason IN ('expired', 'silent', 'left', 'failed', 'unleased',
                                                'moved', 'overridden')),
    agent       TEXT,
    task_id     TEXT,
    summary     TEXT NOT NULL,
    log_tail    TEXT NOT NULL,
    leased_at   TEXT,
    opened_at   TEXT NOT NULL,
    decided_at  TEXT,
    decided_by  TEXT,
    note        TEXT,
    events_from INTEGER NOT NULL,
    task_before TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO reviews SELECT * FROM older_reviews;
DROP TABLE older_reviews;
CREATE INDEX reviews_by_state ON reviews (state, n);
""",
    5: """
ALTER TABLE blobs ADD COLUMN mode INTEGER;
ALTER TABLE review_files RENAME TO older_review_files;
CREATE TABLE review_files (
    review_id     TEXT NOT NULL,
    path          TEXT NOT NULL,
    scope         TEXT NOT NULL,
    worktree      TEXT,
    change        TEXT NOT NULL CHECK (change IN ('modified', 'created', 'deleted')),
    kept          INTEGER NOT NULL CHECK (kept IN (0, 1)),
    baseline_hash TEXT,
    flagged_hash  TEXT,
    verdict_hash  TEXT,
    written_hash  TEXT,
    verdict_mode  INTEGER,
    inode         TEXT,
    PRIMARY KEY (review_id, path)
) STRICT, WITHOUT ROWID;
INSERT INTO review_files SELECT *, NULL, NULL FROM older_review_files;
DROP TABLE older_review_files;
CREATE INDEX review_scopes ON review_files (scope);
CREATE TABLE verdicts (
    review_id TEXT PRIMARY KEY,
    what      TEXT NOT NULL CHECK (what IN ('revert', 'undo')),
    by        TEXT NOT NULL,
    note      TEXT NOT NULL,
    begun_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE verdict_steps (
    review_id     TEXT NOT NULL,
    n             INTEGER NOT NULL,
    path          TEXT NOT NULL,
    scope         TEXT NOT NULL,
    worktree      TEXT,
    old_hash      TEXT,
    old_mode      INTEGER NOT NULL,
    new_hash      TEXT,
    new_mode      INTEGER NOT NULL,
    aside         TEXT NOT NULL,
    in_place      INTEGER NOT NULL CHECK (in_place IN (0, 1)),
    done          INTEGER NOT NULL CHECK (done IN (0, 1)),
    PRIMARY KEY (review_id, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE review_saved (
    review_id TEXT NOT NULL,
    path      TEXT NOT NULL,
    hash      TEXT NOT NULL,
    PRIMARY KEY (review_id, path, hash)
) STRICT, WITHOUT ROWID;
""",
}
#: The WAL is grown to this once, then overwritten in place: a commit that need not extend the file
#: costs about one fdatasync instead of two (benchmarks/README.md).
WAL_WARM_BYTES = 4 * 1024 * 1024

#: A connection is used by one thread at a time: SQLite need not lock it at each value that is bound
#: or read (77 times in a grant and its release).
_ONE_THREAD = apsw.SQLITE_OPEN_NOMUTEX
#: Prepared statements that a connection keeps. apsw looks for one from the first to the last, so
#: more is slower; fewer, and those of a commit are lost between two large batches.
STATEMENTS_KEPT = 180
#: Small pieces of memory (1,200 bytes) that each connection has at hand: enough for those.
_PIECES = 400

#: What SQLite raises when the disk (not the statement) is at fault.
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
    if isinstance(bad, apsw.FullError):
        said, step = "the disk is full", "Make room; the daemon goes on by itself."
    elif isinstance(bad, apsw.CorruptError | apsw.NotADBError):
        said = "the database is damaged"
        step = "`coord down`, then `coord doctor --restore` puts the newest good backup in place."
    elif isinstance(bad, apsw.ReadOnlyError | apsw.PermissionsError | apsw.CantOpenError):
        said, step = "the database may not be written", f"Give write access to {path.parent}."
    elif isinstance(bad, apsw.BusyError):
        said, step = "another program holds the database", "Close it and repeat."
    else:
        said, step = f"the disk answered: {bad}", "`coord doctor` checks the database."
    return Refusal(Code.STORAGE, f"Nothing was changed: {said} ({path}).", next=step)


def open_writer(path: Path, *, synchronous: str = "FULL") -> apsw.Connection:
    """The daemon's connection; creates the database when there is none.

    Raises:
        Refusal: STORAGE (damaged, no permission, full), VERSION_SKEW (a newer schema).
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = apsw.Connection(
            str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | _ONE_THREAD,
            statementcachesize=STATEMENTS_KEPT,
        )
        _configure(db, synchronous)
        version = db.execute("PRAGMA user_version").get
        if version == 0 and not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get:
            with db:
                db.execute(packaged("schema.sql").read_text("utf-8"))
                db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        elif version > SCHEMA_VERSION or version == 0:
            db.close()
            raise Refusal(
                Code.VERSION_SKEW,
                f"{path} has schema version {version}; this coord knows up to {SCHEMA_VERSION}. "
                "It was left untouched.",
            )
        else:
            migrate(db, version)
        if db.execute("PRAGMA quick_check(1)").get != "ok":
            db.close()
            raise apsw.CorruptError("quick_check failed")
        _warm(db, path)
        path.chmod(0o600)
        return db
    except DISK_ERRORS as bad:
        raise storage_refusal(path, bad) from bad
    except OSError as bad:
        raise Refusal(
            Code.STORAGE, f"{path.parent} cannot be used: {bad.strerror}.",
            next=f"Give write access to {path.parent}.",
        ) from bad


def migrate(db: apsw.Connection, version: int) -> None:
    """Bring an older database forward, one version a transaction."""
    for step in range(version, SCHEMA_VERSION):
        with db:
            db.execute(MIGRATIONS[step])
            db.execute(f"PRAGMA user_version = {step + 1}")


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


def integrity(db: apsw.Connection) -> str:
    """`"ok"`, or the first things that SQLite finds wrong."""
    return "; ".join(str(row[0]) for row in db.execute("PRAGMA integrity_check(10)"))


def backup(source: apsw.Connection, target: Path, keep: int) -> Path:
    """Copy the database with SQLite's backup API to `target`; older copies become `.1`, `.2`, …

    The copy is complete or absent: it is written beside and renamed. `keep` counts all copies.
    """
    fresh = target.with_name(target.name + ".new")
    fresh.unlink(missing_ok=True)
    copy = apsw.Connection(str(fresh))
    with copy.backup("main", source, "main") as job:
        while not job.done:
            job.step(2000)
    copy.execute("PRAGMA journal_mode = DELETE")
    copy.close()
    with fresh.open("rb") as file:
        os.fsync(file.fileno())
    for age in range(keep - 1, 0, -1):
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
