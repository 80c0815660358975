"""The files in repositories that this user trusts: one small note for each file and root.

The author of a repository can put a profile or settings there that run commands or weaken
protection. They count only after a person has seen exactly these bytes and agreed. A note is in
the user's own folder, outside of every repository, under the hash of what was seen. So a later
change is not trusted. The idea is direnv's `allow`.

The module owns these notes. It asks nobody and does not read the files that it is asked about.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from coordinator.files import ownership
from coordinator.words.refusals import Refusal


class Note(msgspec.Struct, kw_only=True):
    """One thing that was trusted."""

    root: str
    what: str
    """Its path below the root."""
    sha256: str
    """Of the shown bytes (hex)."""
    since: str
    """When (UTC)."""


def folder() -> Path:
    """The folder of the notes."""
    return ownership.state_folder() / "trusted"


def note_path(root: Path, what: str) -> Path:
    """The note of this thing in the repository at `root`, whether it exists or not."""
    key = os.fsencode(os.path.realpath(root)) + b"\0" + os.fsencode(what)
    return folder() / f"{hashlib.sha256(key).hexdigest()[:32]}.json"


def is_trusted(root: Path, what: str, data: bytes) -> bool:
    """Whether a person has agreed to exactly these bytes. No if that cannot be told."""
    note = _read(note_path(root, what))
    return (note is not None and note.root == os.path.realpath(root) and note.what == what
            and note.sha256 == hashlib.sha256(data).hexdigest())


def trust(root: Path, what: str, data: bytes, since: str) -> None:
    """A person has seen these bytes and said yes.

    Raises:
        OSError; Refusal: FOREIGN: there is no place that is this user's alone.
    """
    ownership.make_folder(folder())
    path = note_path(root, what)
    fresh = path.with_suffix(f".{os.getpid()}.new")
    note = Note(root=os.path.realpath(root), what=what, since=since,
                sha256=hashlib.sha256(data).hexdigest())
    ownership.write(fresh, msgspec.json.encode(note))
    fresh.replace(path)


def withdraw(root: Path) -> list[Note]:
    """Stop trusting anything of this repository. Returns what was trusted.

    Raises:
        OSError.
    """
    notes = []
    for note in of_root(root):
        note_path(root, note.what).unlink(missing_ok=True)
        notes.append(note)
    return notes


def of_root(root: Path) -> list[Note]:
    """The trusted things of this repository, by name."""
    here = os.path.realpath(root)
    names: list[Path] = []
    with suppress(OSError, Refusal):
        ownership.check_folder(folder())
        names = sorted(folder().glob("*.json"))
    notes = [note for note in map(_read, names) if note is not None and note.root == here]
    return sorted(notes, key=lambda note: note.what)


def _read(path: Path) -> Note | None:
    try:
        ownership.check_folder(path.parent)
        return msgspec.json.decode(ownership.read(path) or b"", type=Note)
    except (OSError, Refusal, msgspec.DecodeError):
        return None
