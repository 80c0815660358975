"""`coord init --separate`: a coordinator of its own for a folder inside another coordinator's.

The outer coordinator is stopped meanwhile and its lock is held. So it cannot grant anything in that
folder between the check of its grants there and the separation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import apsw

from coordinator.cli.coordinators import stop
from coordinator.client.locating import sayable
from coordinator.client.starting import unwritable
from coordinator.daemon.lock import take_lock
from coordinator.files import ownership
from coordinator.files.roots import checkout, find_root, is_prepared, prepared_above
from coordinator.files.state import StateDir
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store.database import DISK_ERRORS, open_reader, storage_refusal
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow, PlaceRow, WaiterRow
from coordinator.words import resource_names
from coordinator.words.clock import SystemClock
from coordinator.words.refusals import Code, Refusal

_TRIES = 5
_LEASES_MAX = 1_000_000


def separate(start: Path) -> tuple[Path, Path]:
    """Give the git repository around `start` (outside of any: `start` itself) a coordinator of its
    own. Returns its root, and that of the coordinator around.

    Raises:
        Refusal: INVALID: nothing is around it; LOCKED: something in it is held there; STORAGE.
    """
    here = Path(os.path.realpath(start))
    found_checkout = checkout(str(here))
    around = find_root(here)
    if found_checkout is not None and found_checkout.linked:
        raise Refusal(
            Code.INVALID,
            f"{found_checkout.top} is a linked worktree: it shares the coordinator of its "
            "main worktree. Nothing was done.", next="Repeat it in the main worktree.",
        )
    root = here
    if found_checkout is not None and Path(found_checkout.top) != around:
        root = Path(found_checkout.top)
    if root == around:
        return root, _already(root)
    state, upper = StateDir(sayable(root)), StateDir(around)
    try:
        name = str(root.relative_to(around))
        _check_free(upper, name)  # refuse before any coordinator is stopped
        with _standing_still(upper) if is_prepared(str(around)) else nullcontext():
            _check_free(upper, name)
            state.create(separate=around)
            _note(upper, name)
    except OSError as bad:
        raise unwritable(state, bad) from None
    except DISK_ERRORS as bad:
        raise storage_refusal(upper.database, bad) from None
    return root, around


def _already(root: Path) -> Path:
    """Record on both sides that a root with its own `.coord` is apart. Return the folder above."""
    above = prepared_above(root)
    if above is None or not is_prepared(str(root)):
        raise Refusal(
            Code.INVALID, f"{root} does not lie in the ground of another coordinator, so there is "
            "nothing to be separated from.", next="`coord init` prepares it.",
        )
    ownership.write(StateDir(root).separate, os.fsencode(above))
    _note(StateDir(above), str(root.relative_to(above)))
    return above


@contextmanager
def _standing_still(state: StateDir) -> Iterator[None]:
    """Keep any coordinator from running or starting there."""
    for left in reversed(range(_TRIES)):
        stop(state)
        try:
            with take_lock(state):
                yield
                return
        except Refusal as refusal:  # it was started again at once
            if refusal.code is not Code.BAD_TRANSITION or not left:
                raise


def _check_free(upper: StateDir, name: str) -> None:
    """Check that no agent holds, or waits for, anything in the folder or a lease that covers it."""
    if not upper.database.exists():
        return
    wanted = resource_names.resource(name, "dir")
    db = open_reader(upper.database)
    try:
        view = View(db, SystemClock().now_ms())
        held = [(row.file_path, row.locked_by, row.expires_at)
                for row in view.each(LeaseRow, "leases_live", view.now, 0, None, _LEASES_MAX)
                if overlaps(wanted, as_resource(row.file_path, row.kind, row.scope))]
        held += [(row.name, waiter.agent, "")
                 for waiter in view.each(WaiterRow, "waiters_all")
                 for row in view.each(PlaceRow, "waiter_places_of", waiter.acquisition_id)
                 if overlaps(wanted, as_resource(row.name, row.kind, row.scope))]
    except apsw.SQLError:  # its tables do not exist yet, or their maker was killed
        return
    finally:
        db.close()
    if held:
        resource, holder, until = held[0]
        raise Refusal(
            Code.LOCKED, f"{holder} {'holds' if until else 'waits for'} {resource} in the "
            f"coordinator of {upper.root}, which would not cover {name} any more. Nothing was "
            "done.",
            next=f"`coord unlock {resource} --agent {holder} --force` there, or wait; then repeat.",
            conflicts=[{"resource": r, "holder": h, "until": u or None, "waiting": not u}
                       for r, h, u in held],
        )


def _note(upper: StateDir, name: str) -> None:
    """For the words of the one around; it sees the folder's `.coord` by itself."""
    if not upper.path.is_dir():
        return
    noted = (ownership.read(upper.apart) or b"").split(b"\n")
    lines = sorted({line for line in (*noted, os.fsencode(name)) if line})
    ownership.write(upper.apart, b"\n".join(lines) + b"\n")
