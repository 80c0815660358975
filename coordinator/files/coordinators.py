"""This user's coordinators: one small file for each root that had one, in the user's own folder.

The module owns these notes. They serve to find daemons (`coord ps`, `coord down --all`), which are
then asked themselves, because a note proves nothing. And they outlive `.coord`: a coordinator that
begins afresh continues above the fencing tokens of the earlier one.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from coordinator.files import ownership
from coordinator.words.refusals import Refusal

#: How long the note of a missing root is kept (seconds): the root may come back at once, out of a
#: clone or a backup, while an agent still believes in its lease there.
KEPT_S = 86_400.0


class Note(msgspec.Struct, kw_only=True):
    """The facts about one root's coordinator."""

    root: str
    socket: str
    since: str
    """When it started (UTC)."""
    pid: int | None = None
    """Its process, while it runs."""
    fencing: int = 0
    """No fencing token above this was given, when this was written."""
    exact: bool = False
    """Nor was any after: it was written when the daemon ended."""


def folder() -> Path:
    """The folder of the notes."""
    return ownership.state_folder() / "coordinators"


def put(note: Note) -> None:
    """Write a note, in place of the one that this root has.

    Raises:
        OSError; Refusal: FOREIGN: there is no place that is this user's alone.
    """
    ownership.make_folder(folder())
    path = _path(note.root)
    fresh = path.with_suffix(f".{os.getpid()}.new")
    ownership.write(fresh, msgspec.json.encode(note))
    fresh.replace(path)


def find(root: Path) -> Note | None:
    """The note of a root, if there is one that can be read."""
    return _read(_path(str(root)))


def every() -> list[Note]:
    """All notes, by root."""
    try:
        ownership.check_folder(folder())
        names = sorted(folder().glob("*.json"))
    except (OSError, Refusal):
        return []
    notes = [note for note in map(_read, names) if note is not None]
    return sorted(notes, key=lambda note: note.root)


def ended(note: Note) -> None:
    """Note that its daemon does not run any longer; the other facts stay."""
    if note.pid is not None:
        note.pid = None
        with suppress(OSError, Refusal):
            put(note)


def tidy(now_s: float) -> list[Note]:
    """Remove the notes of roots that have been gone for long; the others, by root."""
    kept = []
    for note in every():
        path = _path(note.root)
        with suppress(OSError):
            if not Path(note.root).is_dir() and now_s - path.lstat().st_mtime > KEPT_S:
                path.unlink(missing_ok=True)
                continue
        kept.append(note)
    return kept


def _path(root: str) -> Path:
    return folder() / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.json"


def _read(path: Path) -> Note | None:
    try:
        return msgspec.json.decode(ownership.read(path) or b"", type=Note)
    except (OSError, Refusal, msgspec.DecodeError):
        return None
