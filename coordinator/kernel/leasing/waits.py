"""Who waits for whom: by leases, by the queue, and by sub-agents. Only reads.

An agent waits for the holders of what its waiters want. Where only the queue blocks it, it waits
for those that the earlier waiters wait for. It also waits for its queued sub-agents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from coordinator.kernel import unserved
from coordinator.kernel.core import Service, ms
from coordinator.kernel.leasing.blockers import Blockers, waiter_reach
from coordinator.kernel.leasing.overlapping import each_lease_near, one_by_one
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, NearWaiter, Wanting
from coordinator.words.resource_names import Resource, is_window

#: Leases in the way of one resource, or waiters before it, that are followed.
BLOCKERS_MAX = 50
#: Leases of one agent that are looked at for whether anybody waits for them at all.
HELD_MAX = 50


class Wait(msgspec.Struct, frozen=True, gc=False):
    """One agent waits for another."""

    on: str
    lease: LeaseRow | None = None
    """The blocking lease; None if it waits for its sub-agent."""
    wanted: str = ""
    """The resource that it asked for."""
    waiter: str | None = None
    """Its place in the queue; None if it is the request that is being served."""
    priority: int = 0
    gives_way_to: str | None = None
    """It was told to give way for this agent's sake."""


def asked(
    svc: Service, view: View, agent: str, blockers: Blockers, located: Sequence[Resource],
    priority: int, before: str | None,
) -> list[Wait]:
    """The agents that `agent` waits for by the request that is being served. `before`: its place in
    the queue for the same, if it has one."""
    mark = next((row.gives_way_to for row in wants_of(view, before)), None) \
        if before is not None else None
    ways = [(lease, _wanted_for(located, lease)) for lease in blockers.leases
            if not _ends_by_itself(lease)]
    if not ways:
        ways = _before(svc, view, agent, blockers.waiters)
    return [Wait(lease.locked_by, lease, name, None, priority, mark) for lease, name in ways]


def waits_of(svc: Service, view: View, agent: str, without: str | None) -> list[Wait]:
    """The agents that an agent waits for, by its places in the queue and through its sub-agents."""
    waits: list[Wait] = []
    for row in view.each(Wanting, "wants_of_agent", agent):
        if row.acquisition_id == without or row.until <= view.now:
            continue
        asked = rule.as_resource(row.name, row.kind, row.scope)
        ways = [(lease, row.name) for lease in _in_the_way(view, row, asked)]
        if not ways:
            ways = _before(svc, view, agent, _ahead(svc, view, row, asked), row.name)
        waits += [Wait(lease.locked_by, lease, name, row.acquisition_id, row.priority,
                       row.gives_way_to) for lease, name in ways]
    return waits + [Wait(str(name)) for name in view.values("children_in_line", agent)]


def wants_of(view: View, acquisition: str) -> list[Wanting]:
    """What one waiter wants."""
    return view.each(Wanting, "wants_of", acquisition)


def _in_the_way(view: View, row: Wanting, asked: Resource) -> list[LeaseRow]:
    """Leases that keep a waiter from this, also of the same file under another name."""
    leases = each_lease_near(view, asked)
    found_leases = list(islice(
        (lease for lease in leases if lease.expires_at > view.now and not _ends_by_itself(lease)
         and rule.conflicts(asked, row.mode, row.agent, lease, within=waiter_reach(row))),
        BLOCKERS_MAX))
    if not found_leases and row.met not in ("", asked.scope):
        found_leases = [
            lease for lease in view.each(LeaseRow, "leases_at_scope", row.met)
            if lease.locked_by != row.agent and lease.expires_at > view.now
            and "exclusive" in (lease.mode, row.mode)
        ]
    return found_leases


def _ends_by_itself(lease: LeaseRow) -> bool:
    """Whether the lease is an edit in progress. It ends by itself, whatever its agent waits for,
    and nobody could give it back."""
    return is_window(lease.kind, lease.file_path)


def _ahead(svc: Service, view: View, row: Wanting, asked: Resource) -> list[NearWaiter]:
    """Earlier waiters of others at a resource that nobody holds."""
    step = ms(svc.settings.leases.age_step_s)
    mine = (rule.standing(row.priority, row.asked_at, view.now_ms, step), row.acquisition_id)
    near_waiters: list[NearWaiter] = []
    for other in islice(one_by_one(view, NearWaiter, "waiters_near", asked), BLOCKERS_MAX):
        theirs = rule.standing(other.priority, other.asked_at, view.now_ms, step)
        if (
            other.agent != row.agent and other.until > view.now
            and "exclusive" in (other.mode, row.mode) and (theirs, other.acquisition_id) < mine
            and overlaps(asked, rule.as_resource(other.name, other.kind, other.scope))
            and not unserved.rests(view, "waiter", other.acquisition_id)
        ):
            near_waiters.append(other)
    return near_waiters


def _before(
    svc: Service, view: View, agent: str, line: Iterable[NearWaiter], wanted: str = ""
) -> list[tuple[LeaseRow, str]]:
    """The leases that earlier waiters wait for, and what the agent wants itself. A waiter that
    waits for the very agent behind it is passed."""
    result: list[tuple[LeaseRow, str]] = []
    met: set[str] = set()
    todo = [(agent, near_waiter, wanted or near_waiter.name) for near_waiter in line]
    while todo and len(result) < BLOCKERS_MAX:
        behind, waiter, name = todo.pop()
        if waiter.acquisition_id in met:
            continue
        met.add(waiter.acquisition_id)
        leases: list[LeaseRow] = []
        further: list[tuple[str, NearWaiter, str]] = []
        for row in wants_of(view, waiter.acquisition_id):
            asked = rule.as_resource(row.name, row.kind, row.scope)
            held = _in_the_way(view, row, asked)
            leases += held
            if not held:
                further += [(row.agent, near_waiter, name) for near_waiter
                            in _ahead(svc, view, row, asked)]
        if all(lease.locked_by != behind for lease in leases):
            result += [(lease, name) for lease in leases if lease.locked_by != agent]
            todo += further
    return result


def waited_for(tx: Tx, agent: str) -> bool:
    """Whether anybody waits for what this agent, or its session, holds. Usually nobody does, and
    the search is skipped."""
    parent: str | None = agent
    met: set[str] = set()
    while parent is not None and parent not in met:
        met.add(parent)
        held = tx.each(LeaseRow, "leases_of_holder", parent)
        if len(held) > HELD_MAX:
            return True
        for lease in held:
            leased = rule.as_resource(lease.file_path, lease.kind, lease.scope)
            if any(near.agent != parent
                   for near in one_by_one(tx, NearWaiter, "waiters_near", leased)):
                return True
            if tx.has("waiters_met", lease.scope):
                return True
        row = tx.agent(parent)
        parent = row.parent if row is not None else None
    return False


def _wanted_for(located: Sequence[Resource], lease: LeaseRow) -> str:
    """Which of the resources that were asked for this lease is in the way of."""
    held = rule.as_resource(lease.file_path, lease.kind, lease.scope)
    return next((resource.name for resource in located if overlaps(resource, held)),
                located[0].name)
