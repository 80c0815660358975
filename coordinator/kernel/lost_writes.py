"""Counting optimistic writes that came too late, so that no agent loses for ever.

Under the optimistic strategy the first writer wins. An agent that has lost `losses_max` times in a
row gets a lease instead, in its turn. Then nobody can write before it, so there is no livelock.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel.core import Actor, Service, ms
from coordinator.kernel.leasing import grant, waiting_line
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, ReadRow, Row, WaiterRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, Resource, copy_name

#: Codes of refusals by which work is lost.
LOST = frozenset({Code.VERSION_CHANGED, Code.REGION_CHANGED})


def note(svc: Service, tx: Tx, agent: str, located: Sequence[Located], refusal: Refusal) -> Refusal:
    """Count an agent's lost write. After too many in a row the agent is queued for a lease. Returns
    the refusal with its consequences."""
    counted = [other_located for other_located in located if other_located.resource.name
               == refusal.facts.get("resource")]
    most = 0
    for located_resource in counted or list(located)[:1]:
        asked = located_resource.resource
        tx.record(ev.WriteLost(agent=agent, resource=asked.name, scope=asked.scope,
                               wasted_ms=wasted(tx, agent, located_resource)))
        most = max(most, in_a_row(tx, agent, asked))
    if most < svc.settings.strategies.losses_max:
        return refusal
    waiting = _stand_in_line(svc, tx, agent, located)
    return Refusal(
        refusal.code, f"{refusal.message} You have lost {most} times in a row, so you stand in "
        "line for a lease now and will be told when it is yours: nobody can write before you then.",
        next=refusal.next, **{**refusal.facts, "acquisition_id": waiting, "lost": most},
    )


def note_written(svc: Service, tx: Tx, agent: str, written: Sequence[Resource]) -> None:
    """Record that an agent has written these resources. Its earlier losses no longer count. The
    lease that it got because of them, or its place in the queue for that lease, is given up."""
    scopes = {asked.scope for asked in written}
    for asked in written:
        if in_a_row(tx, agent, asked):
            tx.record(ev.WriteStood(agent=agent, resource=asked.name, scope=asked.scope))
    for waiter in tx.each(WaiterRow, "waiters_of_agent", agent) if tx.present().waiters else ():
        if waiter.purpose == purposes.LOSSES and scopes.issuperset(
                tx.values("waiter_scopes_of", waiter.acquisition_id)):
            waiting_line.step_out(tx, waiter, "it has written it")
    for row in tx.each(LeaseRow, "leases_of_holder", agent):
        if row.purpose == purposes.LOSSES and row.scope in scopes:
            grant.end(tx, row)


class LostWritesRow(Row, frozen=True):
    """A row of `lost_writes`."""

    agent: str
    scope: str
    resource: str
    in_a_row: int
    total: int
    wasted_ms: int
    last_at: str


def in_a_row(view: View, agent: str, asked: Resource) -> int:
    """How often it has lost since it last wrote this."""
    return int(view.value("lost_in_a_row", agent, asked.scope) or 0)


def listing(svc: Service, view: View, actor: Actor, req: rq.LostWrites) -> rq.LostWriteList:
    """See `requests.LostWrites`."""
    return rq.LostWriteList(items=[
        rq.LostWrite(agent=row.agent, resource=row.resource, in_a_row=row.in_a_row,
                     total=row.total, wasted_s=row.wasted_ms / 1000, last_at=row.last_at)
        for row in view.each(LostWritesRow, "lost_writes", req.agent)
    ])


def wasted(tx: Tx, agent: str, located: Located) -> int:
    """How long ago the agent has read the file (ms), if its hooks reported that."""
    if located.resource.kind != "file":
        return 0
    row = tx.first(ReadRow, "read_get", agent, copy_name(located.resource.name, located.worktree))
    return max(0, tx.now_ms - from_iso(row.at)) if row is not None else 0


def _stand_in_line(svc: Service, tx: Tx, agent: str, located: Sequence[Located]) -> str:
    before = waiting_line.same_again(tx, agent, located)
    if before is not None:
        return before.acquisition_id
    name = f"W-{tx.number('waiter')}"
    limits = svc.settings.leases
    tx.record(
        ev.WaiterQueued(
            acquisition_id=name, agent=agent, mode="exclusive", priority=0, asked_at=tx.now,
            until=tx.later(ms(limits.line_s)), held=False, ttl_ms=ms(limits.ttl_s), task=None,
            description="it has lost its writes too often", purpose=purposes.LOSSES,
            resources=[(r.resource.name, r.resource.kind, r.resource.scope) for r in located],
            worktrees={r.resource.name: r.worktree for r in located if r.worktree},
        )
    )
    tx.effects.wake[name] = None  # nothing may be in its way
    return name
