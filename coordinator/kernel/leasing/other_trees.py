"""Telling agents that edit one file in two working trees. Nobody is stopped: two trees hold two
files, and the two are merged later.

An edit is told of what others lease in other trees, and of what other trees have changed and not
landed. Each pair of agents is told once of each region, as far as the log reaches back.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from coordinator.kernel.core import Service, listed
from coordinator.kernel.holders import notices
from coordinator.kernel.holders.families import owner
from coordinator.kernel.leasing.blockers import Blockers
from coordinator.kernel.leasing.located import Wanted, own_key
from coordinator.looking.working_trees import Change
from coordinator.rules.globs import overlaps
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rebuild import apart
from coordinator.store.rows import LogRow, TaskRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, short
from coordinator.words.refusals import Refusal
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
    is_leased: bool = False


class Seen(NamedTuple):
    """What was read before an edit: what other trees have of its files, and whom the agent was told
    of: (other, region)."""

    works: Sequence[_Work] = ()
    told: frozenset[tuple[str, str]] = frozenset()


def look(svc: Service, tx: Tx, agent: str, purpose: str, wanted: Sequence[Wanted],
         blockers: Blockers) -> Seen | None:
    """What other trees have of the files that are leased anew for an edit. None where there is no
    other tree, or nobody wants to know.

    Raises:
        Unready: git, the files and the log are read first.
    """
    if svc.tree.alone or svc.settings.worktrees.overlap != "tell" or not (
            purposes.is_unasked(purpose)):
        return None
    places: dict[str | None, list[str]] = {}
    for located, _ in wanted[:FILES_MAX]:
        asked = located.resource
        if asked.kind in ("file", "region") and own_key(asked) not in blockers.own:
            places.setdefault(located.worktree, []).append(path_of(asked.name, asked.kind))
    if not places:
        return None

    def read(view: View) -> Seen:
        works = [work for worktree, paths in places.items()
                 for change in svc.trees.find_beside(worktree, sorted(set(paths)))
                 for work in _attribute(svc, view, change)]
        return Seen(works, _read_told(view, agent) if works or blockers.apart else frozenset())

    def read_if_possible() -> Seen:
        with suppress(Refusal, OSError):
            return apart(tx, read)()
        return Seen()

    return tx.looked.after(f"beside {places}", read_if_possible)


def tell(svc: Service, tx: Tx, agent: str, granted: rq.Acquired, blockers: Blockers,
         seen: Seen) -> None:
    """Tell both sides what the new leases have in common with the work in other trees."""
    leased = [_Work([row.file_path], row.worktree, row.locked_by, from_iso(row.locked_at),
                    row.task_id, row.task_description, is_leased=True) for row in blockers.apart]
    holders = {(work.agent, work.worktree) for work in leased}
    told = set(seen.told)
    for work in [*leased, *(work for work in seen.works
                            if (work.agent, work.worktree) not in holders)]:
        if work.agent is not None and owner(tx, work.agent) == owner(tx, agent):
            continue
        for lease in granted.leases:
            other = work.agent or work.worktree or "a person"
            names = {_narrow(lease.resource, name) for name in work.names
                     if not lease.reentrant and _overlap(svc, lease.resource, name)}
            new = sorted(name for name in names if (other, name) not in told)
            if not new:
                continue
            told |= {(other, name) for name in new}
            mine = _Work([lease.resource], lease.worktree, agent, tx.now_ms, lease.task,
                         lease.description, is_leased=True)
            if work.agent is not None:
                _post(svc, tx, work.agent, new, mine)
            _post(svc, tx, agent, new, work if work.is_leased else work._replace(names=new))


def _post(svc: Service, tx: Tx, agent: str, names: list[str], work: _Work) -> None:
    notices.post(tx, agent, "overlap", _describe(svc, tx, work), resource=names[0],
                 other=work.agent or work.worktree or "a person", regions=names)


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


def _narrow(first: str, second: str) -> str:
    """The narrower of two names that overlap."""
    return first if "::" in first else second


def _overlap(svc: Service, first: str, second: str) -> bool:
    return overlaps(*(resource(name, kind_of(name), fold_case=svc.fold_case)
                      for name in (first, second)))


# ---------------------------------------------------------------- the log


def _attribute(svc: Service, view: View, change: Change) -> Iterator[_Work]:
    """A change of another tree, as the work of those who leased its regions there last."""
    last: dict[str, tuple[ev.LeaseGranted, str]] = {}
    names = change.regions or [change.path]
    for row in view.each(LogRow, "events_after", 0, None, None, change.path, "lease_granted",
                         EVENTS_MAX):
        event = ev.ANY.decode(row.data)
        if event.worktree == change.worktree and event.mode == "exclusive":
            last |= {name: (event, row.at) for name in names
                     if _overlap(svc, name, event.resource)}
    by_event: dict[int, list[str]] = {}
    for name in names:
        token = last[name][0].fencing_token if name in last else 0
        by_event.setdefault(token, []).append(name)
    for some in by_event.values():
        event, instant = last.get(some[0], (None, None))
        if event is None or instant is None:
            yield _Work(some, change.worktree, None, change.at_ms or view.now_ms)
        else:
            yield _Work(some, change.worktree, event.agent, from_iso(instant), event.task,
                        event.description)


def _read_told(view: View, agent: str) -> frozenset[tuple[str, str]]:
    """The others, and the regions, of which an agent was told: (other, region)."""
    events = [ev.ANY.decode(row.data) for row in view.each(
        LogRow, "events_after", 0, agent, None, None, "notice_posted", EVENTS_MAX)]
    return frozenset((event.facts["other"], name) for event in events
                     if event.about == "overlap" for name in event.facts["regions"])
