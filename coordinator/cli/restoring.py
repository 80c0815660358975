"""`coord doctor --restore` makes a database anew, and `coord init --adopt` takes over foreign
state.

Both commands change files that a coordinator depends on, so both hold its lock while they work. A
new database is complete before it replaces the damaged one. The damaged one is kept.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec

from coordinator.cli.app import print_json, say
from coordinator.client.starting import unwritable
from coordinator.daemon.backups import put_new_seal, whole_copy
from coordinator.daemon.lock import take_lock
from coordinator.files import coordinators
from coordinator.files.state import StateDir, database_seal
from coordinator.files.tracked_state import check_untracked
from coordinator.store import salvage
from coordinator.store.database import (
    DISK_ERRORS,
    check_seal,
    open_writer,
    put_seal,
    storage_refusal,
)
from coordinator.words.clock import now_iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import counted

_PARTS = ("", "-wal", "-shm")


def restore(state: StateDir, as_json: bool) -> int:
    """Put a database in place that has all that can be had; say what came back and what did not.

    Raises:
        Refusal: BAD_TRANSITION: the coordinator runs; STORAGE: nothing can be had, or no room.
    """
    state.check()
    state.secret_key()
    try:
        with take_lock(state), tempfile.TemporaryDirectory(
            prefix="salvage-", dir=state.path
        ) as folder:
            done, damaged = _restore(state, Path(folder))
    except OSError as bad:
        raise unwritable(state, bad) from None
    except DISK_ERRORS as bad:
        raise storage_refusal(state.database, bad) from None
    if as_json:
        print_json({**msgspec.to_builtins(done), "damaged": damaged or None})
    else:
        _tell(state, done, damaged)
    return 0


def _restore(state: StateDir, folder: Path) -> tuple[salvage.Rescue, str]:
    """Restore the database. Returns what came back, and the new name of the earlier file; empty if
    there was none."""
    now = now_iso()
    copy = whole_copy(state)
    fresh = folder / "fresh.sqlite3"
    wreck = salvage.Wreck(folder, state.database, copy or _empty(folder))
    if copy is not None:
        shutil.copyfile(copy, fresh)
    with closing(wreck), closing(open_writer(fresh)) as db:
        note = coordinators.find(state.root)
        floor = {"fencing": note.fencing if note is not None else 0}
        done = salvage.rescue(db, wreck, copy.name if copy else "nothing", floor, now)
        if copy is None and not done.last_seq:
            raise Refusal(
                Code.STORAGE, f"There is no good backup in {state.path}, and nothing can be read "
                f"of {state.database.name} either; nothing was changed.",
                next=f"Move {state.database} away to start with an empty one.",
            )
        before, after = database_seal(state.secret_key()), database_seal(state.next_secret())
        put_seal(db, after)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode = DELETE")
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    kept = f"damaged-{stamp}" if state.database.exists() else ""
    for part in _PARTS:
        damaged = state.database.with_name(state.database.name + part)
        if damaged.exists():
            damaged.rename(damaged.with_name(f"damaged-{stamp}{part}"))
    fresh.rename(state.database)
    state.renew_secret()
    put_new_seal(state, before, after)
    return done, kept


def _empty(folder: Path) -> Path:
    """Make a database as a new coordinator has it. Without a backup, it shows where things are in
    the damaged one."""
    pattern = folder / "pattern.sqlite3"
    open_writer(pattern).close()
    return pattern


def _tell(state: StateDir, done: salvage.Rescue, damaged: str) -> None:
    base = {"nothing": "an empty state", "snapshot": "the snapshot in the damaged file"}.get(
        done.base, f"{done.base} (up to event {done.base_seq})")
    before = (f"the damaged one is kept as {state.path / damaged}" if damaged
              else "there was none any more")
    say(f"A new database is in place. It begins with {base}; {before}.")
    if done.events:
        source = "damaged file" if damaged else "log that was left of it"
        say(f"Events {done.last_seq - done.events + 1} to {done.last_seq} were read from the "
            f"{source} and came back (the last is of {done.last_at}).")
    elif not damaged:
        say("What happened after that is lost.")
    else:
        say("No later event could be read from the damaged file.")
    if done.lost_from is not None:
        say(f"Lost: event {done.lost_from} cannot be read, so what happened from then on is gone "
            f"(the damaged file shows events up to {done.lost_to}).")
    elif damaged:
        say("The damaged file shows no event after that; if there were any, they are lost.")
    if done.blobs_lost:
        say(f"Lost: the bytes of {counted(done.blobs_lost, 'file')} that reviews would show.")
    say(f"Fencing tokens go on from {done.counters['fencing'] + 1}: {salvage.STEP:,} above the "
        "highest that is known to have been given. Lease tokens given before are not valid any "
        "more: holders ask for their leases again.")


def adopt(state: StateDir) -> None:
    """Take over a state directory that lacks this user's seal: a person says that it is theirs.

    Raises:
        Refusal: FOREIGN: links, other users' files, or tracked by git; BAD_TRANSITION; STORAGE.
    """
    if not state.path.is_dir():
        raise Refusal(Code.INVALID, f"There is no {state.path} to be taken over.",
                      next="`coord init` makes one.")
    state.check()
    check_untracked(state.root)
    with suppress(Refusal, apsw.Error):
        seal = database_seal(state.secret_key())
        if state.database.exists():
            check_seal(state.database, seal)
        return  # it is theirs already
    try:
        with take_lock(state):
            _seal_anew(state)
    except OSError as bad:
        raise unwritable(state, bad) from None
    except DISK_ERRORS as bad:
        raise storage_refusal(state.database, bad) from None


def _seal_anew(state: StateDir) -> None:
    seal = database_seal(state.next_secret())
    for path in (state.database, *state.path.glob(state.backup.name + "*")):
        if path.exists():
            db: Any = open_writer(path) if path == state.database else apsw.Connection(str(path))
            with closing(db), suppress(apsw.SQLError):  # a backup of nothing
                put_seal(db, seal)
    state.renew_secret()
