"""Finding what two working trees change both. It is read from git and the files, and never kept.

The reading runs in a thread on a connection of its own, because it runs git and reads files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from coordinator.files.git import Git, GitError
from coordinator.kernel import repository_files
from coordinator.kernel.core import Actor, Service
from coordinator.merging.act import merge_texts
from coordinator.merging.git_merge import GitFailed
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq

#: How many trees are compared, and how many changed files of one tree count.
TREES_MAX, FILES_MAX = 40, 5_000
#: How many leases are read.
LEASES_MAX = 2_000


@dataclass(slots=True)
class _Tree:
    """A working tree. `worktree`: None for the main one."""

    worktree: str | None
    git: Git
    head: str
    branch: str | None
    changed: set[str] = field(default_factory=set)


def overlaps(svc: Service, view: View, actor: Actor, req: rq.Overlaps) -> rq.OverlapList:
    """See `requests.Overlaps`."""
    trees = _list_trees(svc)
    leases = [row for row in view.each(LeaseRow, "leases_live", view.now, 0, None, LEASES_MAX)
              if row.kind != "key"]
    result: list[rq.Overlap] = []
    for first, second in combinations(trees, 2):
        if req.branch not in (None, first.branch, second.branch):
            continue
        for path, regions, clash in _compare(svc, first, second):
            if len(result) == req.limit:
                return rq.OverlapList(items=result, cut=True)
            result.append(rq.Overlap(
                path=path, regions=regions, clean=not clash, why=clash,
                sides=[_describe_side(tree, path, leases) for tree in (first, second)]))
    return rq.OverlapList(items=result)


def _list_trees(svc: Service) -> list[_Tree]:
    """The working trees, each with the files that it changes and the main one has not."""
    result: list[_Tree] = []
    for worktree in (None, *sorted(svc.tree.worktrees())[:TREES_MAX]):
        git = Git(Path(worktree or svc.root))
        head = git.commit("HEAD")
        if head is None:
            continue
        branch = git.branch()
        result.append(_Tree(worktree, git, head, branch and branch.removeprefix("refs/heads/")))
    main = result[0].head if result and result[0].worktree is None else None
    for tree in result:
        base = tree.head if main is None else tree.git.base(tree.head, main) or tree.head
        tree.changed = _list_changed(tree.git, base)
    return result


def _list_changed(git: Git, base: str) -> set[str]:
    """The files of a working tree that differ from a commit, and those that git does not know."""
    try:
        listed = (git.names("diff", "--name-only", "-z", "--no-renames", "--relative", base)
                  + git.names("ls-files", "-z", "--others", "--exclude-standard"))
    except GitError:
        return set()
    return set(listed[:FILES_MAX])


def _compare(svc: Service, first: _Tree,
             second: _Tree) -> Iterator[tuple[str, list[str] | None, str]]:
    """The files that both change, the regions that both change, and what a merge conflicts in."""
    base = first.git.base(first.head, second.head)
    most = svc.settings.review.file_bytes_max
    for path in sorted(first.changed & second.changed):
        ours, theirs = (repository_files.look(svc, tree.worktree, path).data
                        for tree in (first, second))
        if ours == theirs:
            continue
        before = _read_committed(first.git, base, path)
        if ours is None or theirs is None or max(len(before), len(ours), len(theirs)) > most:
            yield path, None, "one side deletes it" if None in (ours, theirs) else "it is large"
            continue
        regions = _list_both(svc, path, before, ours, theirs)
        clash = _try_merge(path, before, ours, theirs)
        if regions != [] or clash:
            yield path, regions or None, clash


def _read_committed(git: Git, commit: str | None, path: str) -> bytes:
    try:
        return git.blob(f"{commit}:./{path}") if commit else b""
    except GitError:
        return b""


def _list_both(svc: Service, path: str, before: bytes, ours: bytes,
               theirs: bytes) -> list[str] | None:
    """The regions that the sides change differently; None where one changes more than single
    regions."""
    mine, its = (svc.regions.changed(path, before, side)[0] for side in (ours, theirs))
    if mine is None or its is None:
        return None
    return [f"{path}::{name}" for name in mine if name in its
            and svc.regions.part(path, ours, name) != svc.regions.part(path, theirs, name)]


def _try_merge(path: str, before: bytes, ours: bytes, theirs: bytes) -> str:
    """What a merge of the two conflicts in; empty if it is clean."""
    try:
        merged = merge_texts(before, ours, theirs, path)
    except (GitFailed, OSError) as bad:
        return str(bad)
    if merged.by != "conflict":
        return ""
    return ", ".join(clash.name for clash in merged.conflicts) or "the lines of both"


def _describe_side(tree: _Tree, path: str, leases: list[LeaseRow]) -> rq.OverlapSide:
    there = [row for row in leases if row.worktree == tree.worktree]
    on_it = [row for row in there if row.file_path.partition("::")[0] == path]
    place = tree.worktree and os.path.normpath(tree.worktree)
    return rq.OverlapSide(worktree=place, branch=tree.branch,
                          agents=sorted({row.locked_by for row in on_it or there}))
