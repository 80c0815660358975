"""Everything at a glance, read in one snapshot: what the dashboard and `--json` show.

The context archive over the operations: search, one section, and reading its folders anew.
"""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.archive.index import UnknownSection
from coordinator.kernel import event_sentences, tasks, unserved
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing import lease_lists, unlock_requests, waiting_line
from coordinator.kernel.leasing.grant import lease_reply
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow, LogRow, TaskRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

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


#: How many characters of a query and of a reference are read, and how many hits are shown.
QUERY_MAX, REF_MAX, HITS_MAX = 2000, 500, 100


def search(svc: Service, view: View, actor: Actor, req: rq.ArchiveSearch) -> rq.HitList:
    """See `requests.ArchiveSearch`."""
    hits = svc.archive.search(req.query[:QUERY_MAX], min(req.limit, HITS_MAX))
    return rq.HitList(
        items=[
            rq.Hit(number=h.number, title=h.title, source=h.source, snippet=h.snippet)
            for h in hits
        ]
    )


def show(svc: Service, view: View, actor: Actor, req: rq.ArchiveShow) -> rq.ArchiveSection:
    """See `requests.ArchiveShow`."""
    try:
        section = svc.archive.show(req.ref[:REF_MAX])
    except UnknownSection as unknown:
        raise Refusal(
            Code.INVALID, f"{unknown}.", next="`coord archive search WORDS` finds sections.",
            candidates=list(unknown.candidates),
        ) from None
    return rq.ArchiveSection(
        number=section.number, title=section.title, source=section.source, body=section.body,
        paths=list(section.paths),
    )


def index(svc: Service, view: View, actor: Actor, req: rq.ArchiveIndexNow) -> rq.Indexed:
    """See `requests.ArchiveIndexNow`."""
    done = svc.archive.refresh()
    return rq.Indexed(
        added=len(done.added), changed=len(done.changed), removed=len(done.removed),
        warnings=[str(remark) for remark in done.warnings],
    )
