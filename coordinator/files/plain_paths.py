"""What a path's letters tell by themselves, without a look at the disk, and the shortest look there
is: nearly every name that is typed is told by these alone (`canonical.py` takes the rest).
"""

# Paths are plain strings here: this runs before every write of an agent, and Path is slow.

from __future__ import annotations

import os
from functools import lru_cache

import msgspec

from coordinator.files.roots import STATE_DIR
from coordinator.words import resource_names
from coordinator.words.resource_names import Resource


class Plain(msgspec.Struct, frozen=True, gc=False):
    """A path by its letters alone; what is there was not looked at."""

    path: str
    """Absolute."""
    as_file: Resource
    above: str
    """The directory that it lies in, without a final slash."""
    worktree: str | None
    """The linked worktree that it lies in."""
    start: int
    """Where in the path its name within the repository begins."""


@lru_cache(maxsize=4096)
def plainly(text: str, start: str, bases: tuple[str, ...], main: str) -> Plain | None:
    """What the letters of a path tell; None if they do not tell what it means. `main`: which of
    the `bases` is the main worktree's."""
    path = text if text.startswith("/") else start + text
    if "./" in path or "//" in path or path.endswith(("/", "/.", "/..")):
        return None
    for base in bases:
        if path.startswith(base):
            break
    else:
        return None
    name = path[len(base) :]
    if not name.isascii() or path + "/" in bases:  # a worktree itself is no entry of another
        return None
    if owner_of(name):
        return None
    worktree = None if base == main else base.rstrip("/")
    return Plain(path, resource_names.resource(name, "file"), path[: path.rfind("/")], worktree,
                 len(base))


@lru_cache(maxsize=4096)
def plainly_typed(text: str, main: str, bases: tuple[str, ...]) -> Plain | None:
    """The same of what was typed, from the root: None, too, if that is no path.

    Raises:
        Refusal: as `resource_names.parse`.
    """
    kind, part, _ = resource_names.parse(text)
    return plainly(part, main, bases, main) if kind in ("file", "dir") else None


def owner_of(name: str) -> str | None:
    """Whose own data a file of this name in a repository is, if it is git's or coord's."""
    if ".git" not in name and not name.startswith(STATE_DIR):
        return None
    parts = name.split("/")
    return "git" if ".git" in parts else "coord" if parts[0] == STATE_DIR else None


def look_at(path: str) -> os.stat_result | None:
    """What is there, links not followed; None for nothing. Short, for an exception that passes
    through a long function costs more than the look."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


#: Whether this kernel and libc can tell that nothing is there without an error to be raised.
_TELLS_ABSENCE = os.access in os.supports_follow_symlinks and os.access(
    "/", os.F_OK, follow_symlinks=False
)


def look_in_root(path: str) -> os.stat_result | None:
    """`look_at` for what lies in the root itself, which coord works in, so that it may look there.

    Often nothing is there, and then an exception would cost as much as the look.
    """
    if _TELLS_ABSENCE and not os.access(path, os.F_OK, follow_symlinks=False):
        return None
    return look_at(path)
