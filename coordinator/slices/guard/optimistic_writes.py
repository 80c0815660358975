"""Writes under the optimistic strategy.

A file is leased for the moment of a write alone. If it has changed since the agent read it, the
write is lost: it is counted, and it leaves no lease. An agent that lost too often in a row keeps
the lease.
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


def count_lost_write(svc: Service, tx: Tx, agent: str, files: Sequence[Located],
                     acquired: rq.Acquired, refusal: Refusal) -> Refusal:
    """Count a refused write of optimistic files, and end the leases that it took. An agent that has
    lost too often in a row keeps the leases until it has written. Returns what it is told."""
    optimistic = [file for file in files if find_strategy(svc, file.resource) == "optimistic"]
    if not optimistic:
        return refusal
    losses = 0
    for file in optimistic:
        asked = file.resource
        tx.record(ev.WriteLost(agent=agent, resource=asked.name, scope=asked.scope,
                               wasted_ms=lost_writes.wasted(tx, agent, file)))
        losses = max(losses, lost_writes.in_a_row(tx, agent, asked))
    if losses < svc.settings.strategies.losses_max:
        new = {lease.fencing_token for lease in acquired.leases if not lease.reentrant}
        for row in _list_write_leases(svc, tx, agent):
            if row.fencing_token in new:
                grant.end(tx, row)
        return refusal
    return Refusal(
        refusal.code, f"{refusal.message} You have lost {losses} times in a row, so the lease is "
        "yours now: nobody can write before you.", next=refusal.next, **refusal.facts, lost=losses,
    )


def end_write_leases(svc: Service, tx: Tx, agent: str) -> None:
    """End the leases that the agent took for the moment of its write, which is over."""
    if not svc.settings.strategies.by_glob:
        return
    rows = _list_write_leases(svc, tx, agent)
    for row in rows:
        grant.end(tx, row)
    written = [as_resource(row.file_path, row.kind, row.scope) for row in rows]
    files = {file_scope(resource.scope) for resource in written}
    lost_writes.note_written(svc, tx, agent, [
        as_resource(lost.resource, "file", lost.scope)
        for lost in tx.each(LostWritesRow, "lost_by", agent) if lost.scope in files])


def _list_write_leases(svc: Service, tx: Tx, agent: str) -> list[LeaseRow]:
    rows = tx.each(LeaseRow, "leases_of_holder", agent)
    return [row for row in rows if row.purpose.startswith(purposes.HOOK) and find_strategy(
        svc, as_resource(row.file_path, row.kind, row.scope)) == "optimistic"]
