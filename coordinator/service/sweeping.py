"""The five-minute tidying, and what is tended in between. Tidies; never decides who holds what."""

from __future__ import annotations

from coordinator.service import granting, lapse, line, tasks
from coordinator.service.core import Actor, Service
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, TaskRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso


def sweep(svc: Service, tx: Tx, actor: Actor, req: rq.Sweep) -> rq.Swept:
    """See `requests.Sweep`."""
    silent = lapse.close_silent(svc, tx)
    lapsed, reviews, ended = list(silent.lapsed), list(silent.reviews), list(silent.tasks)
    while True:
        due = lapse.close_due(svc, tx)
        lapsed += due.lapsed
        reviews += due.reviews
        ended += due.tasks
        if not due.lapsed and not due.tasks:
            break
    tasks.offer_rested(tx)
    granted = line.settle(svc, tx)
    granted += line.look_again(svc, tx)
    if lapsed or reviews or silent.stale:
        tx.record(
            ev.Noted(
                what="sweep",
                facts={"lapsed": len(lapsed), "reviews": len(reviews), "stale": len(silent.stale)},
            )
        )
    return rq.Swept(
        lapsed=[granting.lease_reply(row) for row in lapsed], stale=silent.stale, reviews=reviews,
        tasks=ended, granted=granted,
    )


def anything_due(view: View) -> bool:
    """Whether `tend` would find work: a look-up or three, once a second."""
    if view.row("waiters_due", view.now) is not None:
        return True
    if view.rows("tasks_backed_off", view.now, 1):
        return True
    return view.row("waiters_any") is not None and view.row("any_lapsed", view.now) is not None


def tend(svc: Service, tx: Tx) -> None:
    """Between sweeps: serve whoever waits for what lapsed, retry the line, end backoffs."""
    if tx.present().waiters:
        lapse.close_due(svc, tx)
    tasks.offer_rested(tx)
    line.settle(svc, tx)
    line.look_again(svc, tx)


def give_back(tx: Tx, jumped_ms: int, last_ms: int) -> None:
    """The machine slept (or its clock was set) for `jumped_ms`: leases and claims that were live at
    `last_ms`, just before, get that time back."""
    if jumped_ms == 0:
        return
    before = iso(last_ms)
    tokens = []
    for raw in tx.rows("leases_live", before, 0, None, 2**31):
        row = LeaseRow(*raw)
        tokens.append(
            (row.fencing_token, iso(from_iso(row.expires_at) + jumped_ms),
             iso(from_iso(row.max_until) + jumped_ms))
        )
    claims = []
    for raw in tx.rows("tasks_claimed"):
        task = TaskRow(*raw)
        if task.claim_until and task.claim_max and task.claim_until > before:
            claims.append(
                (task.task_id, iso(from_iso(task.claim_until) + jumped_ms),
                 iso(from_iso(task.claim_max) + jumped_ms))
            )
    tx.record(ev.LeasesShifted(delta_ms=jumped_ms, tokens=tokens, claims=claims))
    for name, seen_at, silence_ms in tx.rows("agents_silent"):
        if from_iso(seen_at) + silence_ms > last_ms:
            tx.record(ev.AgentSeen(agent=name))
