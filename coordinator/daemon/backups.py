"""Copying the database: soon after the first writes, then at longer and longer intervals.

The module owns the copies and their rhythm, and makes them in a thread. It never changes the
database. A coordinator does not start with an empty database while a copy shows that there was one.
"""

from __future__ import annotations

import asyncio
import logging
import stat
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import apsw

from coordinator.daemon.ground import Ground
from coordinator.files import ownership
from coordinator.files.state import StateDir, database_seal
from coordinator.settings import Database
from coordinator.store.database import (
    DISK_ERRORS,
    backup,
    check_seal,
    integrity,
    open_reader,
    put_seal,
)
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words.clock import Clock
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.backup")
#: Seconds between two copies while there are new events. After these it is `backup_every_s`.
STEPS_S = (2.0, 10.0, 60.0, 600.0, 3600.0)
#: Copying takes at most this share of all time, and while it runs this share of the disk's time.
SHARE, DISK_SHARE = 0.02, 0.2
#: Events that a daemon itself records when it ends and begins.
OWN_NOTES = 2
#: A database up to this size (bytes) is copied once more when the daemon ends.
LAST_BYTES_MAX = 64 * 1024 * 1024


def whole_copy(state: StateDir) -> Path | None:
    """The copy with the latest event among this coordinator's own undamaged copies."""
    seal = database_seal(state.secret_key())
    for copy in sorted(_copies(state), key=lambda path: -(_last_event(path) or 0)):
        with suppress(apsw.Error, OSError, Refusal):
            ownership.check_entry(copy, stat.S_IFREG)
            check_seal(copy, seal)
            with closing(apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)) as db:
                if integrity(db) == "ok":
                    return copy
    return None


def put_new_seal(state: StateDir, old: str, new: str) -> None:
    """Put the new seal on the copies with the old one. The secret was renewed, and they still are
    this coordinator's own."""
    for copy in _copies(state):
        with suppress(apsw.Error, OSError, Refusal):
            ownership.check_entry(copy, stat.S_IFREG)
            check_seal(copy, old)
            with closing(apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
                db.execute("PRAGMA trusted_schema = OFF")
                put_seal(db, new)


def _copies(state: StateDir) -> list[Path]:
    """The copies, the newest first."""
    older = sorted(state.path.glob(state.backup.name + ".[0-9]*"))
    return [path for path in (state.backup, *older) if path.exists()]


def check_not_gone(state: StateDir) -> None:
    """Refuse to begin with an empty database where leases and a backlog existed.

    Raises:
        Refusal: STORAGE: a copy has later events than the database, which is missing, empty, older
            or without its log.
    """
    try:
        last = _last_event(state.database) if state.database.stat().st_size else 0
        how = "has lost what happened last" if last else "is empty"
    except FileNotFoundError:
        last, how = 0, "is gone"
    if last is None or last >= max((_last_event(path) or 0 for path in _copies(state)), default=0):
        return  # a damaged database is reported when it is opened
    copy = whole_copy(state)
    if copy is not None and last < (_last_event(copy) or 0):
        raise Refusal(
            Code.STORAGE, f"{state.database} {how}, but {copy.name} beside it has what was in it "
            "before. Nothing was started, or files that are leased would be given away.",
            next="`coord doctor --restore` brings back what the copy has; to begin with nothing, "
            f"remove {state.path}/{state.backup.name}* first.")


def _last_event(path: Path) -> int | None:
    """The number of a database's last event; 0 if it has none; None if it cannot be read."""
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
            db.execute("PRAGMA trusted_schema = OFF")  # its seal is not checked yet
            return int(db.execute(Q["event_last"]).get or 0)
    except (apsw.Error, ValueError, TypeError):
        return None


class Backups:
    """The copies of one daemon's database. Used in the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, state: StateDir, settings: Database,
                 ground: Ground, clock: Clock, last_seq: int) -> None:
        self._loop = loop
        self._state = state
        self._settings = settings
        self._ground = ground
        self._clock = clock
        self._made = 0
        self._spent_s = 0.0
        self._next_at = loop.time() + self._pause_s(0.0)
        self._running: asyncio.Future[int | None] | None = None
        self._ending = threading.Event()
        #: The last event that is in the newest copy.
        self._kept = self._in_newest()
        if 0 <= last_seq - self._kept <= OWN_NOTES:
            self._kept = last_seq  # only the notes of an end and a start are new

    def tick(self, last_seq: int) -> None:
        """Begin a copy if there are new events and it is time. Called once a second."""
        if last_seq == self._kept or self._running is not None:
            return
        if self._loop.time() >= self._next_at:
            self._running = self._loop.run_in_executor(None, self._copy, self._rest)
            self._running.add_done_callback(self._done)

    async def last(self, last_seq: int) -> None:
        """Make a last copy when the daemon ends, if there are new events and it is quickly done."""
        self._ending.set()
        if self._running is not None:
            with suppress(Exception):
                await self._running
        if last_seq != self._kept and self._state.database.stat().st_size <= LAST_BYTES_MAX:
            await self._loop.run_in_executor(None, self._copy, lambda spent_s: None)

    def _pause_s(self, spent_s: float) -> float:
        every_s = self._settings.backup_every_s
        step = STEPS_S[self._made] if self._made < len(STEPS_S) else every_s
        return max(min(step, every_s), spent_s / SHARE)

    def _done(self, done: asyncio.Future[int | None]) -> None:
        self._running = None
        spent = 0.0
        if done.exception() is None and (copied := done.result()) is not None:
            self._kept, spent = copied, self._spent_s
            self._made += 1
        self._next_at = self._loop.time() + self._pause_s(spent)

    def _copy(self, pause: Callable[[float], None]) -> int | None:
        """Copy in a thread. Returns the last event of the copy; None if none could be made."""
        began = time.monotonic()
        try:
            source = open_reader(self._state.database)
            try:
                if self._ground.lost() is not None:
                    return None
                backup(source, self._state.backup, self._settings.backups,
                       roll=self._is_time_to_roll(), pause=pause)
            finally:
                source.close()
        except InterruptedError:
            return None
        except (Refusal, OSError, *DISK_ERRORS) as bad:
            log.error("backup failed: %s", bad)
            return None
        self._spent_s = time.monotonic() - began
        return self._in_newest()

    def _rest(self, spent_s: float) -> None:
        """Rest in the copying thread after each piece. A copy that is unfinished when the daemon
        ends is given up."""
        if self._ending.wait(spent_s / DISK_SHARE):
            raise InterruptedError

    def _is_time_to_roll(self) -> bool:
        """Whether the newest copy becomes an older one. Older copies are `backup_every_s` apart,
        however often the newest is made."""
        older = self._state.backup.with_name(self._state.backup.name + ".1")
        try:
            age_s = self._clock.now_ms() / 1000 - older.lstat().st_mtime
        except OSError:
            return True
        return age_s > self._settings.backup_every_s

    def _in_newest(self) -> int:
        return _last_event(self._state.backup) or -1

