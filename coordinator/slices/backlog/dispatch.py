"""Choosing the next task: the best ready one that this agent could start now, in a few index
look-ups.

Priority decides, then age. A candidate that meets something held is *parked* on its holder's
resource and is not looked at again until that is free, when an event's `apply` offers it again. So
the cost grows neither with what is held nor with the backlog. Tasks that are parked on the agent's
own leases are candidates nevertheless. A task that cannot be leased at all is set aside with its
reason.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from coordinator.kernel import strategies, tasks, unserved
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import lapse, task_locks
from coordinator.kernel.leasing.blockers import Asking, Blockers, find_blockers
from coordinator.kernel.leasing.grant import check_looked
from coordinator.kernel.leasing.links import noted_links
from coordinator.kernel.leasing.located import Wanted, locate_name, once_wanted, place
from coordinator.looking.facts import AnyNeed, Unready
from coordinator.regions.languages import language_of
from coordinator.rules import leases as rule
from coordinator.rules import pools as pool_rule
from coordinator.slices.backlog import limit_reached
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, NeedRow, Row, TaskRow
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located, path_of, resource

#: Own leases whose parked tasks are looked at too.
OWN_MAX = 32
#: Candidates whose files are looked at together, before it is known which of them it will be: so
#: many at first, and at most, where one look after the other finds only blocked ones.
AHEAD, AHEAD_MAX = 8, 256
#: Tasks that one decision leaves to others, at most, for the agent itself reads what they need.
LEFT_MAX = 64
#: Before each task that is parked on something: a rank and a number.
FIRST = (-(1 << 62), 0)
#: Ready tasks among which hints choose: the next ones by priority and age. With this bound the
#: choice costs the same however many there are.
WINDOW = 32


def wanted_by(svc: Service, tx: Tx, agent: str, task_id: str,
              worktree: str | None = None) -> list[Wanted]:
    """The task's resources as they are on disk now, in this linked worktree or the main one, with
    the mode each is needed in; not those that are leased at their write only, or never. Of a pool
    it is the value that the agent would be given.

    Raises:
        Refusal: one lies outside of the repository by now.
        Unready: they were not looked at.
    """
    needed = tx.each(NeedRow, "task_resources_of", task_id)
    pools = pool_rule.list_needs((need.name, need.mode) for need in needed)
    values = {pool_rule.name_need(pool).name: value for part in (svc.slices if pools else ())
              for pool, value in part.choose_needs(svc, tx, agent, task_id, pools).items()}
    tx.looked.require(_places(tx, task_id, worktree))
    return strategies.claimed(svc, once_wanted(noted_links(tx, [
        (values.get(need.name) or _divided(svc, locate_name(
            tx, need.name, need.kind, need.scope, worktree, "followed")), need.mode)
        for need in needed])))


def _divided(svc: Service, located: Located) -> Located:
    """A file of a kind without regions is leased as a whole, whatever a task calls its parts,
    because nobody could tell whose part was changed."""
    if located.resource.kind != "region":
        return located
    path = path_of(located.resource.name, "region")
    if language_of(path) is not None or "." not in path.rpartition("/")[2].strip("."):
        return located  # (without an ending, its first line tells)
    return msgspec.structs.replace(
        located, resource=resource(path, "file", fold_case=svc.fold_case))


def _places(view: View, task_id: str, worktree: str | None = None) -> list[AnyNeed]:
    return [place(need.name, need.kind, worktree, "followed")  # (a link: itself, and its target)
            for need in view.each(NeedRow, "task_resources_of", task_id)]


def needs(view: View, task_id: str | None) -> list[AnyNeed]:
    """The places of one task's files, or of the next candidates' files, in the main working tree.
    """
    names = [task_id] if task_id is not None else [
        ready.task_id for ready in view.each(ReadyRow, "ready_next", AHEAD)]
    return [need for name in names for need in _places(view, name)]


class ReadyRow(Row, frozen=True):
    """A ready task, and its place: the smallest `rank` first, then the smallest `n`."""

    task_id: str
    rank: int
    n: int

    @property
    def place(self) -> tuple[int, int]:
        """Its place among the ready ones."""
        return self.rank, self.n


def best_ready(svc: Service, tx: Tx, but: Collection[str] = ()) -> ReadyRow | None:
    """The best task that is offered, `but` these. By priority, then by what slices say for them
    (`rank_ready`), then by age; that chooses among the next `WINDOW`."""
    ranks: dict[str, float] = {}
    for part in svc.slices:
        for task, rank in part.rank_ready(svc, tx, WINDOW).items():
            ranks[task] = ranks.get(task, 0.0) + rank
    if not ranks and not but:
        return tx.first(ReadyRow, "ready_best")
    offered = (ready for ready in tx.each(ReadyRow, "ready_offered", WINDOW + len(but))
               if ready.task_id not in but)
    return min(offered, default=None, key=lambda ready: (
        ready.rank, -ranks.get(ready.task_id, 0.0), ready.n))


def _list_parked(tx: Tx, agent: str) -> dict[str, ReadyRow | None]:
    """The first task that is parked on each of the agent's own leases, by scope."""
    held = tx.each(LeaseRow, "leases_of_holder", agent)[:OWN_MAX]
    return {scope: tx.first(ReadyRow, "parked_after", scope, *FIRST, agent)
            for scope in {lease.scope for lease in held}}


def _best_of(tx: Tx, agent: str, best: ReadyRow | None, own: dict[str, ReadyRow | None],
             seen: Collection[str]) -> ReadyRow | None:
    """The best of what is offered and of what is parked on the agent's own leases (`own`, by scope:
    the next one of each)."""
    for scope, parked in own.items():
        while parked is not None and parked.task_id in seen:
            parked = own[scope] = tx.first(ReadyRow, "parked_after", scope, *parked.place, agent)
        if parked is not None and (best is None or parked.place < best.place):
            best = parked
    return best


def _find_barrier(blockers: Blockers, in_its_way: LeaseRow | None,
                  wanted: Collection[Wanted]) -> str | None:
    """The scope that a task is parked on; None if only the agent itself blocks it."""
    if blockers.blocked or blockers.closed:
        return pool_rule.find_barrier(blockers.first_scope,
                                      [located.resource for located, _ in wanted])
    bars = in_its_way is not None and any(
        rule.conflicts(located.resource, mode, "", in_its_way) for located, mode in wanted)
    return in_its_way.scope if in_its_way is not None and bars else None


def choose(
    svc: Service, tx: Tx, agent: str, *, beside: bool = False, worktree: str | None = None
) -> tuple[TaskRow, list[Wanted], Blockers] | None:
    """The best task that `agent` could start now, with what it wants; None if there is none.

    `beside`: the agent is in the middle of something, so nothing that touches its leases is
    offered, because its own reads would become stale. `worktree`: the linked worktree that it works
    in.

    Raises:
        Unready: files have to be looked at, or lapsed leases to be closed before.
    """
    if limit_reached.rest_of(tx, agent) is not None:
        return None
    tasks.offer_rested(tx)
    others = limit_reached.left_to_others(tx, agent)
    left = others | set(tx.values("ready_read_beside", agent))
    most = len(left) + LEFT_MAX
    seen: set[str] = set(left)
    own = {} if beside else _list_parked(tx, agent)
    while len(left) < most:
        best = _best_of(tx, agent, best_ready(svc, tx, left), own, seen)
        if best is None:
            break
        task_id = best.task_id
        try:
            wanted = wanted_by(svc, tx, agent, task_id, worktree)
            blockers = find_blockers(svc, tx, agent, task_locks.with_itself(tx, task_id, wanted),
                                     Asking(task=task_id))
            in_its_way = _own_in_the_way(tx, task_id, blockers, beside)
            if not blockers.blocked and not blockers.closed and in_its_way is None:
                if not beside:
                    check_looked(svc, tx, wanted, blockers)
                return tasks.find(tx, task_id), wanted, blockers
        except Unready as unready:
            ahead = _ahead(tx, task_id, max(AHEAD, min(AHEAD * len(seen), AHEAD_MAX)), worktree)
            raise Unready([*unready.needs, *ahead], unready.lapsed, unready.work) from None
        except Refusal as refusal:
            unserved.put(tx, "task", task_id, refusal.message, task=task_id)
            continue
        seen.add(task_id)
        scope = _find_barrier(blockers, in_its_way, wanted)
        if scope is not None:
            tx.park(task_id, scope)
        else:  # others read beside it, and may begin on this
            left = left | {task_id}
    due = [] if beside else lapse.due(tx)
    if due:
        raise Unready(lapsed=due)
    return None


def _own_in_the_way(view: View, task_id: str, blockers: Blockers, beside: bool) -> LeaseRow | None:
    """A lease of the agent's own that keeps it from beginning this task."""
    if beside and blockers.mine:
        return blockers.mine[0]
    return held_for_another(view, task_id, blockers)


def held_for_another(view: View, task_id: str, blockers: Blockers) -> LeaseRow | None:
    """A lease that the agent has for another of its tasks. It ends with that task, and this one
    would continue without it."""
    return next((row for row in (*blockers.own.values(), *blockers.elsewhere)
                 if row.task_id not in (None, task_id) and row.expires_at > view.now), None)


def _ahead(tx: Tx, chosen: str, count: int, worktree: str | None) -> list[AnyNeed]:
    """The places of the next candidates' resources. They are looked at with those of the first
    candidate, which may turn out to be blocked. `count` grows with the blocked ones, so that a
    thousand of them do not take more looks than a decision has."""
    return [
        need for ready in tx.each(ReadyRow, "ready_next", count) if ready.task_id != chosen
        for need in _places(tx, ready.task_id, worktree) if not tx.looked.has(need)
    ]
