"""Overlaps: what two working trees change both, and have not landed both."""

from __future__ import annotations

import posixpath
from functools import partial
from itertools import combinations

from coordinator.kernel.core import Actor, Service
from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read_apart
from coordinator.looking.working_trees import WorkingTree
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq

#: How many leases are read.
LEASES_MAX = 2_000


def list_overlaps(svc: Service, view: View, actor: Actor, req: rq.Overlaps) -> rq.OverlapList:
    """See `requests.Overlaps`."""
    if svc.tree.alone or (req.unasked and svc.settings.worktrees.overlap == "ignore"):
        return rq.OverlapList(items=[])
    trees, whole = svc.trees.list_trees(), partial(posixpath.join, svc.root)
    named = [name for path in req.paths if (name := svc.tree.relative(whole(path)))]
    changed = {tree.worktree: svc.trees.list_changed(tree, named) for tree in trees}
    leases = [row for row in view.each(LeaseRow, "leases_live", view.now, 0, None, LEASES_MAX)
              if row.kind != "key"]
    place = None if req.cwd is None else svc.tree.worktree_of(whole(req.cwd))
    result: list[rq.Overlap] = []
    for pair in combinations(trees, 2):
        if req.branch not in (None, *(tree.branch for tree in pair)) or (
                req.cwd is not None and place not in [tree.worktree for tree in pair]):
            continue
        paths = sorted(set.intersection(*(changed[tree.worktree] for tree in pair)))
        for both in svc.trees.compare(*pair, paths):
            if len(result) == req.limit:
                return rq.OverlapList(items=result, cut=True)
            result.append(rq.Overlap(
                path=both.path, regions=both.regions, clean=not both.clash, why=both.clash,
                sides=[_describe_side(tree, both.path, leases) for tree in pair]))
    return rq.OverlapList(items=result)


def _describe_side(tree: WorkingTree, path: str, leases: list[LeaseRow]) -> rq.OverlapSide:
    there = [row for row in leases if row.worktree == tree.worktree]
    on_it = [row for row in there if row.file_path.partition("::")[0] == path]
    return rq.OverlapSide(worktree=tree.worktree, branch=tree.branch,
                          agents=sorted({row.locked_by for row in on_it or there}))


class Overlap(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (Operation(rq.Overlaps, read_apart(list_overlaps)),)
