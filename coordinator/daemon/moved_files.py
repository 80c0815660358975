"""Finding leased files that a command has moved, or that were moved while no coordinator ran.

The watcher reports a rename a moment late. Until then the lease would be on a name without a file,
and the next command could write at the new name. Nothing reports a rename while no coordinator
runs. The module only looks at the disk.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from coordinator.daemon import file_stamps
from coordinator.daemon.file_stamps import Folder, Look, Stamp
from coordinator.files.identity import identity
from coordinator.files.ignore import manifest
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import partial_work
from coordinator.kernel.leasing.earlier_content import born_ms
from coordinator.store.rows import LeaseRow
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Resource

#: A working tree with more files is not searched. There only the watcher reports renames.
FILES_MAX = 50_000
#: Touched files that are listed, the latest first.
TOUCHED_MAX = 1_000
#: Files below a directory by which the moved directory is recognised.
WITNESSES_MAX = 8


def moved(svc: Service, looks: Iterable[Look], folders: Iterable[Folder]) -> dict[str, str]:
    """The new names, in the main working tree, of held paths that a command has moved. A file is
    recognised by its inode, times and size, and a directory by its files, so an empty directory is
    not found. Call it in a thread."""
    wanted: dict[int, list[tuple[Stamp, str, str]]] = {}
    for held, inside, stamp in _gone(looks, folders):
        wanted.setdefault(stamp[2], []).append((stamp, held, inside))
    if not wanted:
        return {}
    result: dict[str, str] = {}
    for name, status in _files(svc):
        for stamp, held, inside in wanted.get(status.st_ino, ()):
            if file_stamps.stamp_in(status) != stamp:
                continue
            if not inside:
                result.setdefault(held, name)
            elif name.endswith(f"/{inside}"):
                result.setdefault(held, name.removesuffix(f"/{inside}"))
    return result


def moved_since(svc: Service, leases: Iterable[LeaseRow]) -> dict[str, str]:
    """The new names, in the main working tree, of leased files that are missing at their names. A
    file is recognised by its inode and birth time. A directory is not found, nor is a file on a
    disk that tells no birth times. Call it in a thread."""
    root = svc.tree.root
    wanted: dict[int, list[tuple[str, str]]] = {}
    for lease in leases:
        parts, path = (lease.inode or "").split(":"), partial_work.path_of(lease)
        if lease.worktree is None and len(parts) == 3 and _identity(root / path) != lease.inode:
            wanted.setdefault(int(parts[1]), []).append((lease.inode or "", path))
    if not wanted:
        return {}
    result: dict[str, str] = {}
    for name, status in _files(svc):
        for inode, path in wanted.get(status.st_ino, ()):
            if _identity(root / name) == inode:
                result.setdefault(path, name)
    return result


def touched_since(svc: Service, since_ms: int) -> dict[str, bool]:
    """The files of the main working tree that were written or made since an instant (ms), each with
    whether it was made since. Lists the latest `TOUCHED_MAX`. Call it in a thread."""
    root = svc.tree.root
    touched = sorted(((status.st_ctime_ns, name, status.st_mtime_ns // 1_000_000 >= since_ms)
                      for name, status in _files(svc) if stat.S_ISREG(status.st_mode)
                      and status.st_ctime_ns // 1_000_000 >= since_ms), reverse=True)
    matches = {name: (is_written, (born_ms(_identity(root / name)) or 0) >= since_ms)
               for _, name, is_written in touched[:TOUCHED_MAX]}
    return {name: is_new for name, (is_written, is_new) in matches.items() if is_written or is_new}


def gone(svc: Service, leases: Iterable[LeaseRow]) -> list[str]:
    """Leased files of the main working tree that are gone. Call it in a thread."""
    held = {partial_work.path_of(lease) for lease in leases if lease.kind in ("file", "region")
            and lease.worktree is None and lease.content_hash is not None}
    return [path for path in sorted(held) if not os.path.lexists(svc.tree.root / path)]


def _files(svc: Service) -> Iterator[tuple[str, os.stat_result]]:
    """All files in the main working tree; none if there are more than `FILES_MAX`."""
    root = svc.tree.root
    try:
        there = manifest(root, Resource(".", "dir", ""), svc.ignore, FILES_MAX)
    except Refusal:
        return
    for name in there:
        with contextlib.suppress(OSError):
            yield name, os.lstat(root / name)


def _identity(path: Path) -> str | None:
    try:
        return identity(str(path), os.lstat(path))
    except OSError:
        return None


def _gone(looks: Iterable[Look], folders: Iterable[Folder]) -> Iterator[tuple[str, str, Stamp]]:
    """(what is gone, a file's place in it, that file's stamp before)"""
    for look in looks:
        if (look.held.worktree is None and look.held.kind == "file" and look.stamp is not None
                and file_stamps.stamp(look.held.path) is None):
            yield look.held.name, "", look.stamp
    for folder in folders:
        name = folder.held.name.rstrip("/")
        if (folder.held.worktree is not None or folder.held.kind != "directory"
                or file_stamps.stamp(folder.held.path) is not None):
            continue
        before = [(path, look.stamp) for path,
                  look in folder.looks.items() if look.stamp is not None]
        for path, stamp in before[:WITNESSES_MAX]:
            yield name, path.removeprefix(f"{name}/"), stamp
