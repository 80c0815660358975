"""Writes of files that are shared optimistically: leased for the moment of the write alone.

An agent's hook asks when the write is proposed. What the agent read may have been replaced by then:
that write is lost, is counted, and leaves no lease, until it has happened too often in a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel import lost_writes
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import grant
from coordinator.kernel.lost_writes import LostWritesRow
from coordinator.kernel.strategies import find_strategy
from coordinator.rules.leases import as_resource
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located, file_scope


def lost(svc: Service, tx: Tx, agent: str, files: Sequence[Located], got: rq.Acquired,
         refusal: Refusal) -> Refusal:
    """A write of optimistic files came too late: counted, and what was leased for it is free again;
    but whoever has lost too often in a row keeps the lease until it has written."""
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
    lost_writes.stood(svc, tx, agent, [
        as_resource(lost.resource, "file", lost.scope)
        for lost in tx.each(LostWritesRow, "lost_by", agent) if lost.scope in files])


def _taken_for_writes(svc: Service, tx: Tx, agent: str) -> list[LeaseRow]:
    rows = tx.each(LeaseRow, "leases_of_holder", agent)
    return [row for row in rows if row.purpose.startswith(purposes.HOOK) and find_strategy(
        svc, as_resource(row.file_path, row.kind, row.scope)) == "optimistic"]
