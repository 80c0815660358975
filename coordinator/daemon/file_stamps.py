"""The files that others hold, as they were before a command, and the differences after it.

The module observes stamps, which are time, size and inode, and reads contents where they are
needed. Below a leased directory it stamps up to `BELOW_MAX` files for one command. The baseline of
the lease tells what these contained, so only files that the holder has changed since are read
beforehand. `rules.versions` decides whether a difference is a violation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.files.content import DIRECTORY, snapshot
from coordinator.files.ignore import manifest
from coordinator.kernel import repository_files
from coordinator.kernel.core import Service
from coordinator.rules.leases import as_resource
from coordinator.slices.guard.shell_commands import PROTECTED_MAX, UNKNOWN, Held
from coordinator.store.ledger import View
from coordinator.store.rows import ContentRow, LeaseRow
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Refusal

#: Files below leased directories that one command is compared with; a directory with more than is
#: left of them is passed over.
BELOW_MAX = 2_000
#: How many of these files are read before the command because their holder has changed them, and up
#: to which size (bytes). Of others only the fact of a change is known afterwards.
READ_MAX, READ_BYTES = 64, 1 << 20
#: Leases that are looked at in the loop.
QUICK_MAX = 64
#: The kernel's clock for files runs behind by a little (ms).
CLOCK_MS = 1_000

Stamp = tuple[int, int, int]


@dataclass(slots=True)
class Look:
    """One name before a command. `hash`: None if nothing was there, `UNKNOWN` if it was not read.
    """

    held: Held
    stamp: Stamp | None
    hash: str | None
    #: Whether it was below a leased directory.
    below: bool = False
    #: Whether it is about what a leased directory is, and not about what is in it.
    top: bool = False


@dataclass(slots=True)
class Folder:
    """A leased directory before a command: its lease, the names of all that was in it, and what
    stood at its own name."""

    held: Held
    looks: dict[str, Look] = field(default_factory=dict)
    top: Look | None = None


def held(svc: Service, leases: Sequence[LeaseRow]) -> list[Held]:
    """The places of these leases on disk and what is there: the files below a glob one by one, and
    the glob itself."""
    result: dict[str, Held] = {}
    for row in leases:
        for path in _paths(svc, row):
            result.setdefault(path.path if path.kind != "glob" else path.name, path)
        if len(result) >= PROTECTED_MAX:
            break
    return list(result.values())


def is_quick(leases: Sequence[LeaseRow]) -> bool:
    """Whether `held` is a few looks, and need not leave the loop."""
    return len(leases) <= QUICK_MAX and all(row.kind != "glob" for row in leases)


def _paths(svc: Service, row: LeaseRow) -> list[Held]:
    name = row.file_path.rpartition("::")[0] if row.kind == "region" else row.file_path
    if row.kind == "glob":
        root = row.worktree or svc.root
        asked = as_resource(row.file_path, row.kind, row.scope)
        try:
            matches = manifest(root, asked, svc.ignore, PROTECTED_MAX)
        except Refusal:
            return []
        whole = Held(str(root), row.file_path, row.locked_by, "glob", row.fencing_token,
                     row.locked_at, row.scope, row.worktree)
        return [*(whole._replace(path=str(repository_files.place(svc, row.worktree, text)),
                                 name=text, kind="file") for text in matches), whole]
    place = repository_files.place(svc, row.worktree, name.rstrip("/"))
    kind = repository_files.kind(svc, row.worktree, name.rstrip("/"))
    if kind == "absent" and row.kind == "dir":
        kind = "directory"  # nothing is in it
    return [Held(str(place), name, row.locked_by, kind or "file", row.fencing_token, row.locked_at,
                 row.scope, row.worktree, row.kind == "region")]


def look(held: Held, most: int) -> Look:
    """At one file; `most`: bytes that are kept of it."""
    return Look(held, stamp(held.path), read(held.path, most))


def folders(svc: Service, view: View, protect: Sequence[Held]) -> list[Folder]:
    """At the directories and globs among these, with all that is below."""
    result: list[Folder] = []
    left, unread = BELOW_MAX, READ_MAX
    for held in protect:
        if held.kind not in ("directory", "glob"):
            continue
        matches = _files(svc, held, left)
        if matches is None:
            continue
        left -= len(matches)
        hashes = {row.path: str(row.hash)
                 for row in view.each(ContentRow, "baselines_of", held.token)}
        folder = Folder(held)
        if held.kind == "directory":
            folder.top = Look(held, None, read(held.path, 0), top=True)
            folder.top.stamp = stamp_of(folder.top)
        for name in matches:
            holding = _below(svc, held, name)
            try:
                status = os.lstat(holding.path)
            except OSError:
                continue
            was: str | None = UNKNOWN
            if status.st_ctime_ns // 1_000_000 < from_iso(held.since) - CLOCK_MS:
                was = hashes.get(name, UNKNOWN)
            elif unread and status.st_size <= READ_BYTES:
                unread -= 1
                was = read(holding.path, 0)
            folder.looks[name] = Look(holding, stamp_in(status), was, below=True)
        result.append(folder)
    return result


def again(svc: Service, folder: Folder) -> Iterator[Look]:
    """What was below it, and what is there now and was not."""
    for name in _files(svc, folder.held, 2 * BELOW_MAX) or ():
        if name not in folder.looks:
            folder.looks[name] = Look(_below(svc, folder.held, name), None, None, below=True)
    if folder.top is not None:
        yield folder.top
    yield from folder.looks.values()


def made_a_directory(look: Look) -> Folder | None:
    """A leased name that is now a directory and was none before; everything in it is new."""
    there = Path(look.held.path)
    if look.top or look.hash == DIRECTORY or not there.is_dir() or there.is_symlink():
        return None
    return Folder(look.held._replace(kind="directory"))


def stamp(path: str) -> Stamp | None:
    """A value that differs between two states of a file; None if it is not there."""
    try:
        return stamp_in(os.lstat(path))
    except OSError:
        return None


def changed_at(path: str) -> int | None:
    """When the kernel last noted a change of the path (Unix ms), which no program can set; None if
    nothing is there."""
    try:
        return os.lstat(path).st_ctime_ns // 1_000_000
    except OSError:
        return None


def stamp_of(look: Look) -> Stamp | None:
    """The stamp of what was looked at as it is now: of a leased directory what it is alone."""
    if not look.top:
        return stamp(look.held.path)
    try:
        return os.lstat(look.held.path).st_mode >> 12, 0, 0
    except OSError:
        return None


def read(path: str, most: int) -> str | None:
    """The name of its content for a file or link, otherwise of its kind; None if it is not there.
    """
    try:
        content = snapshot(path, most)
    except OSError:
        return repository_files.UNREADABLE
    return None if content.kind == "absent" else content.hash


def _files(svc: Service, held: Held, most: int) -> list[str] | None:
    """Names of the files below, relative to their working tree; None if there are too many."""
    root = repository_files.place(svc, held.worktree, "")
    try:
        kind = "glob" if held.kind == "glob" else "dir"
        return manifest(root, as_resource(held.name, kind, held.scope), svc.ignore, most)
    except Refusal:
        return None


def _below(svc: Service, held: Held, name: str) -> Held:
    return held._replace(
        name=name, path=str(repository_files.place(svc, held.worktree, name)), kind="file"
    )


def stamp_in(status: os.stat_result) -> Stamp:
    """The stamp that this look has found."""
    return status.st_mtime_ns, status.st_size, status.st_ino
