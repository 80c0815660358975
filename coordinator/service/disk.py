"""Bytes on disk as the service speaks of them: None for what is not there, a hash for what is.

The one place where the service reads or writes files of the repository; it writes only for a
human's verdict.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coordinator.files.content import digest, snapshot, write_atomic
from coordinator.files.identity import identity
from coordinator.service.core import Service
from coordinator.words.naming import Located
from coordinator.words.refusals import Code, Refusal

_LINK = "link:"


@dataclass(frozen=True, slots=True)
class Bytes:
    """What is at a path: its hash (None: no file there) and its bytes (None: absent or too large,
    or it may not be read)."""

    hash: str | None
    data: bytes | None


def place(svc: Service, worktree: str | None, path: str) -> Path:
    """Where a repo-relative path lies, in the worktree that a lease was taken in."""
    return (Path(worktree) if worktree else svc.tree.root) / path


def read(svc: Service, path: str | Path) -> Bytes:
    """What is there now; a file that may not be read has the hash `unreadable`."""
    try:
        content = snapshot(path, svc.settings.review.file_bytes_max)
    except OSError:
        return Bytes("unreadable", None)
    if content.kind in ("file", "symlink", "large"):
        return Bytes(content.hash, content.data)
    return Bytes(None, None)


def write(path: Path, digest_wanted: str | None, data: bytes | None) -> str | None:
    """Make `path` be these bytes (or a symlink, or absent); the hash of what is there then.

    Raises:
        Refusal: STORAGE.
    """
    try:
        if data is None:
            path.unlink(missing_ok=True)
            return None
        if digest_wanted is not None and digest_wanted.startswith(_LINK):
            path.unlink(missing_ok=True)
            path.symlink_to(os.fsdecode(data))
            return digest_wanted
        write_atomic(path, data)
    except OSError as bad:
        raise Refusal(
            Code.STORAGE, f"{path} could not be written: {bad.strerror}. The review stays as it "
            "was; what was written before is found again by the next try.",
        ) from None
    return digest(data)


def worktree_of(svc: Service, located: Located) -> str | None:
    """The linked worktree that a path was named in; None for the main one."""
    return None if located.path is None else worktree_at(svc, located.path)


def worktree_at(svc: Service, path: str) -> str | None:
    """The linked worktree that a real path lies in; None for the main one."""
    if svc.tree.alone:
        return None
    inside = (path + "/").startswith
    # One may lie inside another: the longest is meant.
    return max((w for w in svc.tree.worktrees() if inside(w.rstrip("/") + "/")), key=len,
               default=None)


def kind_at(path: Path) -> Literal["file", "directory", "absent"] | None:
    """What is there; None for links and other things that hold no bytes of their own."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return "absent"
    return "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else None


def inode_at(svc: Service, path: str) -> str | None:
    """Which file has this repo-relative path now (`identity`); None if there is none."""
    where = str(svc.tree.root / path)
    try:
        return identity(where, os.lstat(where))
    except OSError:
        return None
