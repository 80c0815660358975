"""Telling agents that edit one file in two working trees. Nobody is stopped: two trees hold two
files, and the two are merged later.

An edit is told of what others lease in other trees, and of what other trees have changed and not
landed. Each pair of agents is told once of each region, as far as the log reaches back.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence, Set
from itertools import groupby
from typing import NamedTuple

from coordinator.kernel.core import Service, listed, owner
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing.blockers import Blockers
from coordinator.kernel.leasing.located import Wanted, own_key
from coordinator.looking.working_trees import Change
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rebuild import apart
from coordinator.store.rows import LeaseRow, LogRow, TaskRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, short
from coordinator.words.resource_names import kind_of, path_of, resource
from coordinator.words.texts import quoted

#: Files of one call that are looked at in other trees, and events of each that are read.
FILES_MAX, EVENTS_MAX = 40, 10_000


class _Work(NamedTuple):
    """What somebody does to a file in another tree. `agent`: None for a person, or unknown."""

    names: Sequence[str]
    worktree: str | None
    agent: str | None
    since: int
    task: str | None = None
    description: str = ""
    is_leased: bool = True

    @property
    def other(self) -> str:
        """Whose it is, as it is remembered who was told of whom."""
        return self.agent or self.worktree or "a person"


class Seen(NamedTuple):
    """What was read before an edit: what other trees have of its files, and of whom the agent was
    told: (other, region)."""

    works: Sequence[_Work] = ()
    told: Set[tuple[str, str]] = frozenset()


def look(svc: Service, tx: Tx, agent: str, purpose: str, wanted: Sequence[Wanted],
         blockers: Blockers, lent: Sequence[LeaseRow]) -> Seen | None:
    """What other trees have of the files that are leased anew for an edit, and not `lent` for it.
    None where there is no other tree, or nobody wants to know.

    Raises:
        Unready: git, the files and the log are read first.
    """
    if svc.tree.alone or svc.settings.worktrees.overlap != "tell" or not (
            purposes.is_unasked(purpose)):
        return None
    files = _list_new(wanted, blockers, lent)

    def read(view: View) -> Seen:
        works = [work for worktree, some in groupby(files, lambda file: file[0])
                 for change in svc.trees.find_beside(worktree or None, [path for _, path in some])
                 for work in _attribute(svc, view, change)]
        return Seen(works, _read_told(view, agent) if works or blockers.apart else frozenset())

    return tx.looked.after(f"beside {files}", apart(tx, read)) if files else None


def _list_new(wanted: Sequence[Wanted], blockers: Blockers,
              lent: Sequence[LeaseRow]) -> list[tuple[str, str]]:
    """The files that are leased anew: working tree (empty: the main one), and path."""
    had = {*blockers.own, *(own_key(as_resource(row.file_path, row.kind, row.scope))
                            for row in lent)}
    return sorted({(located.worktree or "", path_of(located.resource.name, located.resource.kind))
                   for located, _ in wanted[:FILES_MAX] if own_key(located.resource) not in had})


def tell(svc: Service, tx: Tx, agent: str, granted: rq.Acquired, blockers: Blockers,
         seen: Seen) -> None:
    """Tell both sides what the new leases have in common with the work in other trees."""
    leased = [_Work([row.file_path], row.worktree, row.locked_by, from_iso(row.locked_at),
                    row.task_id, row.task_description) for row in blockers.apart]
    holders = {(work.agent, work.worktree) for work in leased}
    works = [*leased, *(work for work in seen.works if (work.agent, work.worktree) not in holders)]
    told = set(seen.told)
    for work in works:
        if work.agent is None or owner(tx, work.agent) != owner(tx, agent):
            for lease in granted.leases:
                told |= _tell_pair(svc, tx, work, lease, told)


def _tell_pair(svc: Service, tx: Tx, work: _Work, lease: rq.Lease,
               told: Set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Tell two agents what they have in common, but what was told already; returns what is new."""
    names = sorted({lease.resource if "::" in lease.resource else name for name in work.names
                    if not lease.reentrant and _overlap(svc, lease.resource, name)})
    new = [name for name in names if (work.other, name) not in told]
    if not new:
        return set()
    mine = _Work([lease.resource], lease.worktree, lease.locked_by, tx.now_ms, lease.task,
                 lease.description)
    _post(svc, tx, work.agent, new, mine)
    _post(svc, tx, lease.locked_by, new, work if work.is_leased else work._replace(names=new))
    return {(work.other, name) for name in new}


def _post(svc: Service, tx: Tx, agent: str | None, names: list[str], work: _Work) -> None:
    if agent is not None:
        notices.post(tx, agent, "overlap", _describe(svc, tx, work), resource=names[0],
                     other=work.other, regions=names)


def _describe(svc: Service, tx: Tx, work: _Work) -> str:
    place = "the main working tree" if work.worktree is None else (
        f"the working tree {posixpath.relpath(work.worktree, svc.root)}")
    task = tx.first(TaskRow, "task_get", work.task) if work.task else None
    text = work.description if task is None else f"{task.task_id}: {task.title}"
    purpose = f" ({quoted(text)})" if text else ""
    verb, landed = ("edits", "") if work.is_leased else ("changed", "; not landed yet")
    return (f"{work.agent or 'Somebody'} {verb} {listed(work.names)} in {place}, too, since "
            f"{short(work.since)}{purpose}{landed}. Nobody is stopped; the two are merged when "
            "they land.")


def _overlap(svc: Service, first: str, second: str) -> bool:
    return overlaps(*(resource(name, kind_of(name), fold_case=svc.fold_case)
                      for name in (first, second)))


# ---------------------------------------------------------------- the log


def _attribute(svc: Service, view: View, change: Change) -> Iterator[_Work]:
    """A change of another tree, as the work of those who leased its regions there last."""
    grants = [(from_iso(row.at), event) for row in view.each(
        LogRow, "events_after", 0, None, None, change.path, "lease_granted", EVENTS_MAX)
        if (event := ev.ANY.decode(row.data)).worktree == change.worktree]
    by_work: dict[_Work, list[str]] = {}
    for name in change.regions or [change.path]:
        work = next((_Work((), change.worktree, event.agent, at_ms, event.task, event.description)
                     for at_ms, event in reversed(grants) if event.mode == "exclusive"
                     and _overlap(svc, name, event.resource)),
                    _Work((), change.worktree, None, change.at_ms or view.now_ms))
        by_work.setdefault(work, []).append(name)
    for work, names in by_work.items():
        yield work._replace(names=names, is_leased=False)


def _read_told(view: View, agent: str) -> frozenset[tuple[str, str]]:
    events = [ev.ANY.decode(row.data) for row in view.each(
        LogRow, "events_after", 0, agent, None, None, "notice_posted", EVENTS_MAX)]
    return frozenset((event.facts["other"], name) for event in events
                     if event.about == "overlap" for name in event.facts.get("regions", ()))
