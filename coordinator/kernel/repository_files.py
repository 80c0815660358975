"""Files of the repository as the service speaks of them: a content has a name, or is not there.

The one place where the service reads files of the repository; a verdict's writing is in
`slices.review.verdicts`. All goes through `files.beneath`: no link leads out of the working tree.

`look` is for outside of a transaction, in a worker: it reads, and keeps what is large. `keep` is
for the transaction that follows: it costs no look at the disk.
"""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Literal

from coordinator.files.beneath import Root
from coordinator.files.blobs import FILE_FROM
from coordinator.files.content import (
    CHUNK_BYTES,
    EXECUTABLE,
    Content,
    Stamp,
    digest,
    is_link,
    link_digest,
)
from coordinator.files.git import EXECUTABLE as EXECUTABLE_MODE
from coordinator.files.git import FILES, LINK, Git, GitError
from coordinator.files.ignore import manifest
from coordinator.kernel.core import Service
from coordinator.store.ledger import Tx, View
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource

#: The name of what is there and may not be read.
UNREADABLE = "unreadable"
#: The name of what is behind a link that took a directory's place.
BEHIND = "behind a link"
#: Errors that say that a large content could not be kept, and not that it could not be read.
_NO_ROOM = frozenset({errno.EDQUOT, errno.ENOSPC, errno.EFBIG, errno.EROFS, errno.EACCES})


@dataclass(frozen=True, slots=True)
class Bytes:
    """The content of a path.

    Attributes:
        hash: the content's name (None: no file or link there).
        data: its bytes, or a link's target (None: absent, too large, or it may not be read).
        mode: its permission bits; 0: not known.
        size: in bytes.
        stored: it is kept in `.coord/blobs` already.
        stamp: which file it was, and in which state.
        links: how many names the file has.
    """

    hash: str | None
    data: bytes | None
    mode: int = 0
    size: int = 0
    stored: bool = False
    stamp: Stamp | None = None
    links: int = 1

    @property
    def kept(self) -> bool:
        """Whether `keep` will have kept all of it: nothing is there, or its bytes are at hand."""
        return self.hash is None or self.data is not None or self.stored


NOTHING = Bytes(None, None)


def place(svc: Service, worktree: str | None, path: str) -> Path:
    """The place of a path in the worktree of a lease, to be shown or given to other programs. coord
    itself reads it by `look`."""
    root = Path(worktree) if worktree else svc.tree.root
    return root / (path if path.isascii() else os.fsdecode(file_names.to_bytes(path)))


def root_of(svc: Service, worktree: str | None) -> Root:
    """The working tree, opened; close it.

    Raises:
        OSError: it is gone.
    """
    return Root(worktree or svc.tree.root)


def look(svc: Service, worktree: str | None, path: str, *, keep: bool = False,
         root: Root | None = None, strict: bool = False) -> Bytes:
    """The present content of a path, relative to its working tree. A file that may not be read is
    `unreadable`.

    `keep`: a content too large for the database is kept in `.coord/blobs` at once, as far as the
    budget allows; `keep` below records it. `root`: the working tree, if it is open already.
    `strict`: a file behind a link is `BEHIND` and not absent.
    """
    if root is None:
        try:
            with root_of(svc, worktree) as opened:
                return look(svc, worktree, path, keep=keep, root=opened, strict=strict)
        except OSError:
            return NOTHING
    most = svc.settings.review.file_bytes_max
    try:
        content = _snapshot(svc, root, path, most, keep, strict)
    except OSError as no:
        return Bytes(BEHIND if strict and no.errno == errno.ELOOP else UNREADABLE, None)
    if content.name is None:
        return NOTHING
    stored = content.taken
    if keep and content.data is not None and content.size > FILE_FROM:
        stored = stow(svc, content.name, content.data).stored  # else the database has to
    return Bytes(content.name, content.data, content.mode, content.size, stored, content.stamp,
                 content.links)


def _snapshot(svc: Service, root: Root, path: str, most: int, keep: bool,
              strict: bool) -> Content:
    if keep:
        try:
            return root.snapshot(path, most, taker=svc.blobs.take, strict=strict)
        except OSError as no:
            if no.errno not in _NO_ROOM:
                raise
    return root.snapshot(path, most, strict=strict)


def list_below(svc: Service, worktree: str | None, resource: Resource) -> list[str] | None:
    """The files that a leased directory or glob means now, without ignored ones. None if there are
    too many to list. It walks the tree, so it is for a worker."""
    try:
        return manifest(worktree or svc.root, resource, svc.ignore, svc.settings.review.files_max)
    except Refusal:
        return None


def check_place(svc: Service, worktree: str | None, path: str) -> None:
    """Check that the directory of a new file is there.

    Raises:
        Refusal: INVALID.
    """
    if not (Path(worktree or svc.root) / path).parent.is_dir():
        raise Refusal(
            Code.INVALID, f"{file_names.shown(path)} cannot be written: its directory is not "
            "there. Nothing was written.",
            next=f"Make {file_names.shown(posixpath.dirname(path))} before.", resource=path,
        )


def stow(svc: Service, name: str, data: bytes) -> Bytes:
    """A content that was made, as if it had been looked at: what is large is kept at once."""
    stored = False
    if len(data) > FILE_FROM:
        with suppress(OSError):
            svc.blobs.put(data)
            stored = True
    return Bytes(name, data, 0, len(data), stored)


def pour(svc: Service, stream: IO[bytes]) -> Bytes:
    """A content that a program prints, as that of a plain file; what is large is kept at once."""
    most = svc.settings.review.file_bytes_max
    data = stream.read(most + 1)
    if len(data) <= most:
        return stow(svc, digest(data), data)
    named, size = hashlib.sha256(), 0

    def chunks() -> Iterator[bytes]:
        nonlocal size
        for chunk in chain([data], iter(partial(stream.read, CHUNK_BYTES), b"")):
            named.update(chunk)
            size += len(chunk)
            yield chunk

    left, stored = chunks(), True
    try:
        svc.blobs.pour(left)
    except OSError:
        stored = False
        for _ in left:
            pass  # its name is wanted all the same
    return Bytes(f"sha256:{named.hexdigest()}", None, 0, size, stored)


def from_git(svc: Service, git: Git, entries: Mapping[str, tuple[str, str]]) -> dict[str, Bytes]:
    """Git's contents as they would be in the working tree, by path. `entries`: path (from git's own
    root) -> (mode, id). An entry that is neither a file nor a link is left out.

    Raises:
        GitError: git cannot read them.
    """
    files = [(name, path) for path, (mode, name) in entries.items() if mode in FILES]
    result = git.contents(files, partial(pour, svc))
    for path, (mode, name) in entries.items():
        if mode == LINK:
            target = git.blob(name)
            result[path] = Bytes(link_digest(target), target, 0o777, len(target))
        elif mode == EXECUTABLE_MODE and (content := result[path]).hash is not None:
            result[path] = replace(content, hash=f"{content.hash}{EXECUTABLE}")
    return result


def committed(svc: Service, paths: Sequence[str]) -> dict[str, Bytes]:
    """The contents of these in git's last commit, by path; empty if git can tell nothing. It asks
    git, so it is for a worker."""
    git = Git(svc.tree.root)
    try:
        above = git.text("rev-parse", "--show-prefix")  # the root may be below git's own
        entries = {above + path: entry for path, entry in git.entries("HEAD", paths).items()}
        matches = from_git(svc, git, entries)
    except GitError:
        return {}
    return {path.removeprefix(above): content for path, content in matches.items()}


def in_git(svc: Service, paths: Sequence[str], *, below: bool = False) -> set[str]:
    """Which of these git has, or what it has `below` them, as of its last commit; none where it can
    tell nothing. For a worker: it asks git."""
    git = Git(svc.tree.root)
    try:
        return set(git.entries("HEAD", paths, below=below))
    except GitError:
        return set()


def keep(tx: Tx, content: Bytes) -> None:
    """Keep, in this transaction, what was looked at: its bytes, or a note of where they are."""
    if content.hash is None:
        return
    if content.stored:
        tx.keep_stored(content.hash, content.size, content.mode or None)
    elif content.data is not None:
        tx.keep(content.hash, content.data, content.mode or None)


def kind(svc: Service, worktree: str | None,
         path: str) -> Literal["file", "directory", "absent"] | None:
    """The kind of what is there; None for links and other things without bytes of their own."""
    try:
        with root_of(svc, worktree) as root:
            status = root.stat(path) if path else Path(root.path).stat()
    except OSError:
        return "absent"
    return _kind(status.st_mode) if status is not None else "absent"


def _kind(mode: int) -> Literal["file", "directory"] | None:
    return "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else None


def tidy(svc: Service, view: View) -> int:
    """Remove large contents that no row of the database names. Returns how many bytes. It walks the
    folder, so it is for a worker."""
    named = {str(name).removesuffix(EXECUTABLE).rpartition(":")[2]
             for name in view.values("blobs_stored")}
    return svc.blobs.tidy(named.__contains__, view.now_ms / 1000)


def can_merge(name: str | None) -> bool:
    """Whether a content of this name has lines that could be merged with others."""
    return name is not None and not is_link(name) and name != UNREADABLE
