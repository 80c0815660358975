"""What the working trees of a repository change and have not landed. It is read from git and the
files, and never kept.

A tree's changes count from the newest commit that the main working tree has, too: what has landed
is nobody's overlap. Everything here runs git and reads files, so it is for a thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from coordinator.files.beneath import Root
from coordinator.files.canonical import Tree
from coordinator.files.content import Content
from coordinator.files.git import TIMEOUT_S, Git, GitError
from coordinator.looking.file_regions import FileRegions
from coordinator.merging.act import merge_texts
from coordinator.merging.git_merge import GitFailed

#: How many linked trees are compared, and how many changed files of one tree count.
TREES_MAX, FILES_MAX = 40, 5_000
#: An agent's edit waits so long for the look at the other trees (seconds). The rest goes untold.
EDIT_S = 3.0
_ABSENT = Content("absent", 0, None, "absent")
#: git notes nothing of what it has read: it would lock the index, and another git would fail.
_NO_LOCK = ("--literal-pathspecs", "-c", "diff.autoRefreshIndex=false")


class _Head(NamedTuple):
    commit: str
    branch: str | None


@dataclass(frozen=True, slots=True)
class WorkingTree:
    """A working tree. `worktree`: None for the main one; `base`: its changes count from here."""

    worktree: str | None
    git: Git
    head: str
    branch: str | None
    base: str


@dataclass(frozen=True, slots=True)
class Change:
    """A file that a tree changes and has not landed. `regions`: None for all of it; `at_ms`: when
    it was written last; None: it is deleted."""

    path: str
    worktree: str | None
    regions: list[str] | None
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Both:
    """A file that two trees change. `regions`: that both change; None: the whole file. `clash`:
    what a merge of the two conflicts in; empty: it is clean."""

    trees: tuple[WorkingTree, WorkingTree]
    path: str
    regions: list[str] | None
    clash: str


class WorkingTrees:
    """The working trees of one repository. Safe to use from several threads.

    Args:
        bytes_max: gives how large a file is that is divided, at most (bytes).
    """

    def __init__(self, tree: Tree, regions: FileRegions, bytes_max: Callable[[], int]) -> None:
        self._tree, self._regions, self._bytes_max = tree, regions, bytes_max

    def find_both(self, paths: Sequence[str],
                  is_asked: Callable[[WorkingTree, WorkingTree], bool]) -> Iterator[Both]:
        """What two trees change differently in one region, or so that a merge conflicts. `paths`:
        only of these files, if any are named."""
        heads = self._read_heads(TIMEOUT_S)
        trees = [tree for place in self._list_places()
                 if (tree := self._open(place, heads, TIMEOUT_S)) is not None]
        changed = {tree.worktree: _list_changed(tree, paths) for tree in trees}
        for first, second in combinations(trees, 2):
            if is_asked(first, second):
                for path in sorted(changed[first.worktree] & changed[second.worktree]):
                    yield from self._compare(first, second, path)

    def find_beside(self, worktree: str | None, paths: Sequence[str]) -> list[Change]:
        """What the trees beside this one change of these files. git looks where these differ."""
        until, result = time.monotonic() + EDIT_S, list[Change]()
        heads: dict[str, _Head] = {}
        here = {path: self._read(worktree, path).name for path in paths}
        for place in self._list_places():
            differing = [path for path, name in here.items() if place != worktree
                         and self._read(place, path).name != name
                         and not self._is_one(place, worktree, path)]
            if differing and time.monotonic() < until:
                heads = heads or self._read_heads(EDIT_S)
                tree = self._open(place, heads, EDIT_S)
                result += [] if tree is None else [
                    self._describe(tree, path) for path in _list_changed(tree, differing)]
        return sorted(result, key=lambda change: change.path)

    def _compare(self, first: WorkingTree, second: WorkingTree, path: str) -> Iterator[Both]:
        ours, theirs = (self._read(tree.worktree, path) for tree in (first, second))
        if ours.name == theirs.name:
            return
        base = _find_base(first.git.place, first.head, second.head)
        before = _read_committed(first.git, base, path)
        regions: list[str] | None = None
        if ours.data is None or theirs.data is None or len(before) > self._bytes_max():
            clash = "one side deletes it" if None in (ours.name, theirs.name) else "it is large"
        else:
            regions = self._list_both(path, before, ours.data, theirs.data)
            clash = _try_merge(path, before, ours.data, theirs.data)
        if regions != [] or clash:
            yield Both((first, second), path, regions or None, clash)

    def _list_both(self, path: str, before: bytes, ours: bytes,
                   theirs: bytes) -> list[str] | None:
        """The regions that the sides change differently; None where one changes more than single
        regions."""
        mine, its = (self._regions.changed(path, before, side)[0] for side in (ours, theirs))
        if mine is None or its is None:
            return None
        return [f"{path}::{name}" for name in mine if name in its
                and self._regions.part(path, ours, name) != self._regions.part(path, theirs, name)]

    def _describe(self, tree: WorkingTree, path: str) -> Change:
        now, before = self._read(tree.worktree, path), _read_committed(tree.git, tree.base, path)
        regions = None if now.data is None or len(before) > self._bytes_max() else (
            self._regions.changed(path, before, now.data)[0])
        names = [f"{path}::{name}" for name in regions or ()] or None
        with suppress(OSError):
            at_ms = Path(tree.git.place, path).lstat().st_mtime_ns // 1_000_000
            return Change(path, tree.worktree, names, at_ms)
        return Change(path, tree.worktree, names, None)

    # ------------------------------------------------------------ git and the files

    def _list_places(self) -> list[str | None]:
        return [None, *sorted(self._tree.worktrees())[:TREES_MAX]]

    def _read_heads(self, timeout_s: float) -> dict[str, _Head]:
        """What each working tree has checked out, by its path."""
        result: dict[str, _Head] = {}
        text = Git(self._tree.root, timeout_s=timeout_s).maybe("worktree", "list", "--porcelain")
        for block in (text or "").split("\n\n"):
            fields = dict(line.partition(" ")[::2] for line in block.splitlines())
            if fields.get("HEAD", "").strip("0"):
                result[os.path.realpath(fields["worktree"])] = _Head(
                    fields["HEAD"], fields.get("branch", "").removeprefix("refs/heads/") or None)
        return result

    def _open(self, place: str | None, heads: Mapping[str, _Head],
              timeout_s: float) -> WorkingTree | None:
        """A working tree, whose place may be below git's top; None if nothing is committed."""
        own, main = (next((heads[str(folder)] for folder in (top, *top.parents)
                           if str(folder) in heads), None)
                     for top in (Path(place or self._tree.root), self._tree.root))
        if own is None:
            return None
        git = Git(Path(place or self._tree.root), timeout_s=timeout_s)
        base = main and _find_base(git.place, own.commit, main.commit)
        return WorkingTree(place, git, own.commit, own.branch, base or own.commit)

    def _read(self, worktree: str | None, path: str) -> Content:
        """A file's content as it is now; its bytes, too, unless it is large."""
        with suppress(OSError), Root(worktree or self._tree.root) as root:
            return root.snapshot(path, self._bytes_max())
        return _ABSENT

    def _is_one(self, place: str | None, other: str | None, path: str) -> bool:
        """Whether a link makes the path one file in both trees."""
        with suppress(OSError):
            return Path(place or self._tree.root, path).samefile(
                Path(other or self._tree.root, path))
        return False


def _list_changed(tree: WorkingTree, paths: Sequence[str]) -> set[str]:
    """The files (of these, if any are named) that a tree changes or that git does not know."""
    listed: list[str] = []
    with suppress(GitError):
        listed += tree.git.names(*_NO_LOCK, "diff", "--name-only", "-z", "--no-renames",
                                 "--relative", tree.base, "--", *paths)
        rest = [path for path in paths if path not in listed]
        if rest or not paths:
            listed += tree.git.names(*_NO_LOCK, "ls-files", "-z", "--others",
                                     "--exclude-standard", "--", *rest)
    return set(listed[:FILES_MAX])


@lru_cache(maxsize=1024)
def _find_base(place: Path, first: str, second: str) -> str | None:
    """The common commit of two: it never changes, so git is asked once."""
    return Git(place).base(first, second)


def _read_committed(git: Git, commit: str | None, path: str) -> bytes:
    with suppress(GitError):
        return git.blob(f"{commit}:./{path}") if commit else b""
    return b""


def _try_merge(path: str, before: bytes, ours: bytes, theirs: bytes) -> str:
    """What a merge of the two conflicts in; empty if it is clean."""
    try:
        merged = merge_texts(before, ours, theirs, path)
    except (GitFailed, OSError) as bad:
        return str(bad)
    if merged.by != "conflict":
        return ""
    return ", ".join(clash.name for clash in merged.conflicts) or "the lines of both"
