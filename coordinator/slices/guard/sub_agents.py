"""Leases that go from a session to its sub-agents and back.

A sub-agent is a holder of its own. What its parent has exactly is handed down to it for its writes,
once nothing else is in the way and no edit of the parent's is in the middle of it; and goes back
when the sub-agent commits or ends. What contains a file stays its parent's, for whom it writes.

Writes of files that are shared optimistically: leased for the moment of the write alone.

An agent's hook asks when the write is proposed. What the agent read may have been replaced by then:
that write is lost, is counted, and leaves no lease, until it has happened too often in a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel import lost_writes
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import grant
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.kernel.lost_writes import LostWritesRow
from coordinator.kernel.strategies import find_strategy
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import AgentRow, LeaseRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located, file_scope

#: What goes from a session to its sub-agent and back: leases on single files and their regions.
PLAIN = frozenset({"file", "region"})


def parent_of(tx: Tx, agent: str) -> str | None:
    """The parent of a sub-agent; None if it is none."""
    row = tx.agent(agent)
    return row.parent if row is not None else None


def to_hand_down(tx: Tx, agent: str, located: Sequence[Located]) -> tuple[str, list[LeaseRow]]:
    """Who writes these files when a sub-agent wants to. It is the sub-agent, with its parent's
    leases on them and on their regions, which are named; or it is the parent, if the parent holds
    what contains them. The leases go over with the grant (`leases.acquire_located`), so a refusal
    leaves them where they are."""
    parent = parent_of(tx, agent)
    if parent is None:
        return agent, []
    exact: dict[int, LeaseRow] = {}
    for located_resource in located:
        for lease in leases_near(tx, located_resource.resource):
            if (lease.locked_by == parent and lease.kind in PLAIN and lease.expires_at > tx.now
                    and overlaps(as_resource(lease.file_path, lease.kind, lease.scope),
                                 located_resource.resource)):
                exact[lease.fencing_token] = lease
    held = {lease.scope for lease in exact.values()}
    for lease in tx.each(LeaseRow, "leases_of_holder", parent):
        if lease.kind in ("dir", "glob") and lease.expires_at > tx.now and any(
            overlaps(as_resource(lease.file_path, lease.kind, lease.scope), other_located.resource)
            for other_located in located if other_located.resource.scope not in held
        ):
            return parent, []
    return agent, list(exact.values())


def hand_up(tx: Tx, agent: str) -> None:
    """A sub-agent's leases on files become its parent's. To write them again, they are handed down.
    """
    above = _parent(tx, agent)
    if above is not None:
        for lease in tx.each(LeaseRow, "leases_of_holder", agent):
            if lease.kind in PLAIN and lease.expires_at > tx.now:
                grant.lend(tx, lease, above.agent)


def hand_back(tx: Tx, agent: str) -> None:
    """A sub-agent ends: leases that it has of its parent, and those that belong to its parent's
    task, go back to the parent."""
    above = _parent(tx, agent)
    if above is None:
        return
    for lease in tx.each(LeaseRow, "leases_of_holder", agent):
        if (lease.expires_at > tx.now and lease.kind in PLAIN
                and (lease.task_id is not None or lease.lent_by == above.agent)):
            grant.hand_over(tx, lease, above.agent)


def _parent(tx: Tx, agent: str) -> AgentRow | None:
    """The parent of a sub-agent, if it is still there."""
    name = parent_of(tx, agent)
    row = tx.agent(name) if name is not None else None
    return row if row is not None and row.state != "gone" else None


def lost(svc: Service, tx: Tx, agent: str, files: Sequence[Located], got: rq.Acquired,
         refusal: Refusal) -> Refusal:
    """A write of optimistic files came too late. It is counted, and its leases are free again. An
    agent that has lost too often in a row keeps the lease until it has written."""
    mine = [file for file in files if find_strategy(svc, file.resource) == "optimistic"]
    if not mine:
        return refusal
    most = 0
    for located in mine:
        asked = located.resource
        tx.record(ev.WriteLost(agent=agent, resource=asked.name, scope=asked.scope,
                               wasted_ms=lost_writes.wasted(tx, agent, located)))
        most = max(most, lost_writes.in_a_row(tx, agent, asked))
    if most < svc.settings.strategies.losses_max:
        fresh = {lease.fencing_token for lease in got.leases if not lease.reentrant}
        for row in _taken_for_writes(svc, tx, agent):
            if row.fencing_token in fresh:
                grant.end(tx, row)
        return refusal
    return Refusal(
        refusal.code, f"{refusal.message} You have lost {most} times in a row, so the lease is "
        "yours now: nobody can write before you.", next=refusal.next, **refusal.facts, lost=most,
    )


def over(svc: Service, tx: Tx, agent: str) -> None:
    """The agent's write is over: what was leased for the moment of it alone is free again."""
    if not svc.settings.strategies.by_glob:
        return
    rows = _taken_for_writes(svc, tx, agent)
    for row in rows:
        grant.end(tx, row)
    asked = [as_resource(row.file_path, row.kind, row.scope) for row in rows]
    files = {file_scope(resource.scope) for resource in asked}
    lost_writes.note_written(svc, tx, agent, [
        as_resource(lost.resource, "file", lost.scope)
        for lost in tx.each(LostWritesRow, "lost_by", agent) if lost.scope in files])


def _taken_for_writes(svc: Service, tx: Tx, agent: str) -> list[LeaseRow]:
    rows = tx.each(LeaseRow, "leases_of_holder", agent)
    return [row for row in rows if row.purpose.startswith(purposes.HOOK) and find_strategy(
        svc, as_resource(row.file_path, row.kind, row.scope)) == "optimistic"]
