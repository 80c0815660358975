"""Overlaps: what two working trees change both, and have not landed both."""

from __future__ import annotations

import posixpath
from functools import partial
from itertools import islice

from coordinator.kernel.core import Actor, Service, split_page
from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read_apart
from coordinator.looking.working_trees import Both, WorkingTree
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq

#: How many leases are read, and how many overlaps are told before a commit, a merge or a landing.
LEASES_MAX, UNASKED_MAX = 2_000, 5


def list_overlaps(svc: Service, view: View, actor: Actor, req: rq.Overlaps) -> rq.OverlapList:
    """See `requests.Overlaps`."""
    whole = partial(posixpath.join, svc.root)
    paths = [name for path in req.paths if (name := svc.tree.relative(whole(path)))]
    if _is_silent(svc, req) or bool(paths) < bool(req.paths):
        return rq.OverlapList(items=[])
    place = svc.tree.worktree_of(whole(req.cwd or ""))
    limit = min(req.limit, UNASKED_MAX) if req.unasked else req.limit

    def is_asked(*pair: WorkingTree) -> bool:
        return req.branch in (None, *(tree.branch for tree in pair)) and (
            req.cwd is None or place in [tree.worktree for tree in pair])

    some = islice(svc.trees.find_both(paths, is_asked), limit + 1)
    overlaps, cut = split_page(list(some), limit)
    leases = _list_leases(view)
    items = [_describe(both, leases) for both in overlaps]
    return rq.OverlapList(cut=cut, items=[
        item for item in items if not (req.unasked and _is_own(item, actor.agent))])


def _list_leases(view: View) -> list[LeaseRow]:
    return [row for row in view.each(LeaseRow, "leases_live", view.now, 0, None, LEASES_MAX)
            if row.kind != "key"]


def _describe(both: Both, leases: list[LeaseRow]) -> rq.Overlap:
    return rq.Overlap(
        path=both.path, regions=both.regions, clean=not both.clash, why=both.clash,
        sides=[_describe_side(tree, both.path, leases) for tree in both.trees])


def _is_own(overlap: rq.Overlap, agent: str | None) -> bool:
    """Whether all that is known to be at work on it is this agent itself."""
    return {name for side in overlap.sides for name in side.agents} == {agent}


def _is_silent(svc: Service, req: rq.Overlaps) -> bool:
    return not svc.tree.worktrees() or (
        req.unasked and svc.settings.worktrees.overlap == "ignore")


def _describe_side(tree: WorkingTree, path: str, leases: list[LeaseRow]) -> rq.OverlapSide:
    there = [row for row in leases if row.worktree == tree.worktree]
    on_it = [row for row in there if row.file_path.partition("::")[0] == path]
    return rq.OverlapSide(worktree=tree.worktree, branch=tree.branch,
                          agents=sorted({row.locked_by for row in on_it or there}))


class Overlap(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (Operation(rq.Overlaps, read_apart(list_overlaps)),)
