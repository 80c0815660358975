"""Who waits to land and who is landing, as the launches tell it. A launch orders its own queue;
here it is noted, so that everybody sees it. A task leaves the queue when its claim ends.
"""

from __future__ import annotations

from coordinator.kernel import branches
from coordinator.kernel.core import Actor, Service
from coordinator.slices.landing.events import LandingBegun, LandingQueued
from coordinator.slices.landing.landing import claimed_task
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LandingRow
from coordinator.words import requests as rq

#: Places in the queue that are told at once.
LISTED_MAX = 1000


def queue(svc: Service, tx: Tx, actor: Actor, req: rq.LandQueue) -> rq.Landing:
    """See `requests.LandQueue`."""
    task = claimed_task(tx, req.agent, req.task)
    facts = {"agent": req.agent, "task": task.task_id, "target": branches.short(req.target)}
    tx.record(LandingBegun(**facts) if req.turn else LandingQueued(**facts))
    row = tx.first(LandingRow, "landing_get", task.task_id)
    assert row is not None  # it was recorded a moment ago
    return _reply(row)


def listing(svc: Service, view: View, actor: Actor, req: rq.Landings) -> rq.LandingList:
    """See `requests.Landings`."""
    limit = min(req.limit, LISTED_MAX)
    rows = view.each(LandingRow, "landings_list", limit + 1, req.skip)
    return rq.LandingList(items=[_reply(row) for row in rows[:limit]],
                          next=req.skip + limit if len(rows) > limit else None)


def _reply(row: LandingRow) -> rq.Landing:
    return rq.Landing(
        task=row.task_id, title=row.title, agent=row.agent, target=row.target,
        state="waiting" if row.began_at is None else "landing", queued_at=row.queued_at,
        began_at=row.began_at,
    )
