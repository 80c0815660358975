"""Functions that tell from a path's text alone which file it means, and two quick disk looks.

They settle nearly every typed name; `canonical.py` settles the others.
"""

# Paths are plain strings here: these run before each write of an agent, and Path is slow.

from __future__ import annotations

import os
from functools import lru_cache

import msgspec

from coordinator.files.roots import STATE_DIR
from coordinator.words import resource_names
from coordinator.words.resource_names import Resource


class Plain(msgspec.Struct, frozen=True, gc=False):
    """The facts in the text of a path, without a look at the disk."""

    path: str
    """Absolute."""
    as_file: Resource
    above: str
    """The directory of the path, without a final slash."""
    worktree: str | None
    """The linked worktree of the path; None in the main worktree."""
    start: int
    """The index in `path` at which the name within the repository begins."""


@lru_cache(maxsize=4096)
def parse_path(text: str, folder: str, bases: tuple[str, ...], main: str) -> Plain | None:
    """Read the text of a path; None if the text alone does not tell which file it means. `bases`
    are the roots of all worktrees, and `main` is the one of the main worktree."""
    path = text if text.startswith("/") else folder + text
    if "./" in path or "//" in path or path.endswith(("/", "/.", "/..")):
        return None
    for base in bases:
        if path.startswith(base):
            break
    else:
        return None
    name = path[len(base) :]
    if not name.isascii() or path + "/" in bases:  # no file: a worktree's root
        return None
    if owner_of(name):
        return None
    worktree = None if base == main else base.rstrip("/")
    return Plain(path, resource_names.resource(name, "file"), path[: path.rfind("/")], worktree,
                 len(base))


@lru_cache(maxsize=4096)
def parse_typed_path(text: str, main: str, bases: tuple[str, ...]) -> Plain | None:
    """Read a typed name from the root as `parse_path` does; None if the name is no path.

    Raises:
        Refusal: `resource_names.parse` refuses the name.
    """
    kind, path, _ = resource_names.parse(text)
    return parse_path(path, main, bases, main) if kind in ("file", "dir") else None


def owner_of(name: str) -> str | None:
    """Return `git` or `coord` if a file of this name is its own data, otherwise None."""
    if ".git" not in name and not name.startswith(STATE_DIR):
        return None
    parts = name.split("/")
    return "git" if ".git" in parts else "coord" if parts[0] == STATE_DIR else None


def look_at(path: str) -> os.stat_result | None:
    """Return the status of a path without following a link; None if nothing is there. The function
    is short, because an exception in a long function costs more than the look."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


#: Whether `os.access` can tell here, without an exception, that a path is empty.
_TELLS_ABSENCE = os.access in os.supports_follow_symlinks and os.access(
    "/", os.F_OK, follow_symlinks=False
)


def look_in_root(path: str) -> os.stat_result | None:
    """Do what `look_at` does, for an entry of the root itself.

    Coord may search the root, so `os.access` fails there only if nothing is at the path. That is
    often so, and an exception would then cost as much as the look.
    """
    if _TELLS_ABSENCE and not os.access(path, os.F_OK, follow_symlinks=False):
        return None
    return look_at(path)
