"""Everything at a glance, read in one snapshot: what the dashboard and `--json` show."""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.kernel import event_sentences, tasks, unserved
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing import lease_lists, unlock_requests, waiting_line
from coordinator.kernel.leasing.grant import lease_reply
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow, LogRow, TaskRow
from coordinator.words import requests as rq

#: How many are shown at most.
LEASES_MAX, EVENTS_MAX = 5000, 200


def status(svc: Service, view: View, actor: Actor, req: rq.Status) -> rq.StatusReply:
    """See `requests.Status`."""
    rows = view.each(
        LeaseRow, "leases_live", view.now, 0, None, min(req.leases, LEASES_MAX))
    claimed = [tasks.reply(view, task) for task in view.each(TaskRow, "tasks_claimed")]
    shown = view.each(LogRow, "events_of_interest", max(0, min(req.events, EVENTS_MAX)))
    reply = rq.StatusReply(
        at=view.now, root=str(svc.tree.root), agents=agents.listing(view),
        leases=[lease_reply(row) for row in rows], waiters=waiting_line.listing(svc, view),
        tasks={}, claimed=claimed, reviews=[],
        events=[event_sentences.make_event_reply(row) for row in shown], health=_health(svc, view),
        requests=unlock_requests.listing(svc, view, actor, rq.Requests()).items,
        aside=unserved.listing(view), verified=None, messages=0,
        leases_held=lease_lists.count(view),
    )
    for part in svc.slices:
        part.add_to_status(svc, view, actor, reply)
    return reply


def health(svc: Service, view: View, actor: Actor, req: rq.Health) -> rq.HealthReply:
    """See `requests.Health`."""
    assert svc.health is not None, "there is a daemon that is asked"
    reply = svc.health(req)
    reply.aside = unserved.listing(view)
    reply.warnings += _warn(svc, view)
    return reply


def _health(svc: Service, view: View) -> dict[str, Any]:
    if svc.health is None:
        return {}
    health = svc.health(rq.Health())
    health.warnings += _warn(svc, view)
    shown: dict[str, Any] = msgspec.to_builtins(health)
    return shown


def _warn(svc: Service, view: View) -> list[str]:
    return [warning for part in svc.slices for warning in part.warn(svc, view)]
