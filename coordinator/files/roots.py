"""Which directory is the repository: its root, its git directory, its linked worktrees.

Read from the files that git leaves (`.git`, `gitdir`, `commondir`); git itself is never run, so
all this works where it is not installed, and costs microseconds. Nothing is ever written.
"""

# Paths are plain strings here: this runs before every write of an agent, and Path is slow.
# ruff: noqa: PTH112, PTH118, PTH120, PTH123

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

#: The directory, in the root, in which coord keeps its state.
STATE_DIR = ".coord"


class Checkout(NamedTuple):
    """Where git's data of one working tree lies."""

    top: str
    """The directory that holds `.git`."""
    common: str
    """The git directory that all worktrees of the repository share."""
    linked: bool
    """Whether it is a linked worktree (not the main one, nor a submodule)."""


def find_root(start: Path) -> Path:
    """The root of the repository that `start` (a directory, or a file in one) lies in.

    The nearest directory upwards that has a `.coord`, but not beyond the git top level; else that
    top level; else `start` itself. A linked worktree stands for its place in the main worktree. A
    submodule is a repository of its own, and so is a worktree of a bare repository.
    """
    here = os.path.realpath(start)
    if not os.path.isdir(here):
        here = os.path.dirname(here)
    found = checkout(here)
    if found is not None and found.linked:
        main = main_worktree(found.common)
        if main is not None:
            here = os.path.normpath(os.path.join(main, os.path.relpath(here, found.top)))
            found = Checkout(main, found.common, False)
    top = found.top if found is not None else None
    at = here
    while True:
        if os.path.isdir(os.path.join(at, STATE_DIR)):
            return Path(at)
        if at == top:
            return Path(at)
        above = os.path.dirname(at)
        if above == at:
            return Path(here)
        at = above


def checkout(directory: str) -> Checkout | None:
    """The git working tree that a directory lies in; None outside of any."""
    at = directory
    while True:
        dot_git = os.path.join(at, ".git")
        if os.path.isdir(dot_git):
            return Checkout(at, os.path.realpath(dot_git), False)
        pointed = _read_line(dot_git)
        if pointed.startswith("gitdir:"):
            git_dir = os.path.realpath(os.path.join(at, pointed[len("gitdir:") :].strip()))
            shared = _read_line(os.path.join(git_dir, "commondir"))
            if shared:
                return Checkout(at, os.path.realpath(os.path.join(git_dir, shared)), True)
            return Checkout(at, git_dir, False)
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above


def main_worktree(common: str) -> str | None:
    """The main worktree of a shared git directory; None if there is none (a bare repository)."""
    above, name = os.path.split(common)
    return above if name == ".git" else None


def linked_worktrees(common: str) -> tuple[list[str], bool]:
    """The roots of the linked worktrees, and whether the list is complete.

    It is not complete while `git worktree add` is at work: an entry exists, its path is not yet
    written. Worktrees whose directory was deleted are listed until git prunes them.
    """
    roots, complete = [], True
    base = os.path.join(common, "worktrees")
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return [], True
    for name in names:
        pointed = _read_line(os.path.join(base, name, "gitdir"))
        if pointed:
            roots.append(os.path.realpath(os.path.dirname(os.path.join(base, name, pointed))))
        else:
            complete = False
    return roots, complete


def folds_case(directory: str) -> bool:
    """Whether the disk takes `A` and `a` for one name, told from an entry that exists already."""
    try:
        names = set(os.listdir(directory))
    except OSError:
        return False
    for name in names:
        if (other := name.swapcase()) != name:
            return other not in names and _same_inode(
                os.path.join(directory, name), os.path.join(directory, other)
            )
    above, name = os.path.split(directory)
    other = name.swapcase()
    return other != name and _same_inode(directory, os.path.join(above, other))


def _same_inode(one: str, two: str) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(two))
    except OSError:
        return False


def _read_line(path: str) -> str:
    """The first line of a small file; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.readline(8192)).strip("\r\n")
    except OSError:
        return ""
