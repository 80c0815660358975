"""What is tended each second, and the five-minute tidying. Tidies; never decides who holds what.

Each thing that is due (one holder's lapsed leases, a silent agent, a waiter, what was set aside) is
served in a transaction of its own: one that cannot be served does not keep the sweep from the rest.
"""

from __future__ import annotations

from typing import Any

from coordinator.looking.facts import Unready
from coordinator.service import answered, messages, signals, steps, unserved
from coordinator.service.backlog import tasks
from coordinator.service.core import Service
from coordinator.service.engine import (
    Engine,
    close_lapsed,
    decide,
    ripple,
    serve_waiter,
)
from coordinator.service.leasing import grant, lapse, waiting_line
from coordinator.service.state import changes
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import AsideRow, LeaseRow, TaskRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso
from coordinator.words.refusals import Refusal

#: Groups of lapsed leases that one reading names; a sweep reads until there are none.
GROUPS_AT_ONCE = 200


async def sweep(engine: Engine, svc: Service, req: rq.Sweep) -> rq.Swept | Refusal:
    """See `requests.Sweep`."""
    ending, stale = await _over(engine, svc)
    await ripple(engine)
    await _retry_aside(engine, svc)
    await decide(engine, svc, lambda tx: _tidy(svc, tx))
    granted = [name for name in _list(await engine.read(lambda v: waiting_line.everybody(svc, v)))
               if await serve_waiter(engine, svc, name)]
    if ending.lapsed or ending.reviews or stale:
        facts = {"lapsed": len(ending.lapsed), "reviews": len(ending.reviews),
                 "stale": len(stale)}
        await engine.write(lambda tx: tx.record(ev.Noted(what="sweep", facts=facts)))
    return rq.Swept(
        lapsed=[grant.lease_reply(row) for row in ending.lapsed], stale=stale,
        reviews=ending.reviews, tasks=ending.tasks, granted=granted,
    )


async def _over(engine: Engine, svc: Service) -> tuple[lapse.Ending, list[str]]:
    """Close what agents hold that fell silent, and all else that has lapsed; and these agents."""
    ending = lapse.Ending()
    stale: list[str] = []
    for name in _list(await engine.read(lapse.silent)):
        ending.add(await _fell_silent(engine, svc, name))
        stale.append(name)
    ending.add(await _close_all(engine, svc))
    return ending, stale


def anything_due(view: View) -> bool:
    """Whether `tend` would find work: a few look-ups, once a second."""
    if view.row("waiters_due", view.now) is not None:
        return True
    if view.rows("tasks_backed_off", view.now, 1) or view.rows("aside_due", view.now, 1):
        return True
    if view.rows("ripples_some", 1) or view.rows("changes_late", view.now) or (
            view.rows("steps_late", view.now)):
        return True
    return bool(lapse.due(view) or lapse.silent(view))


async def tend(engine: Engine, svc: Service) -> None:
    """Between sweeps: close what has lapsed, serve whoever waits for it, end backoffs."""
    await _over(engine, svc)
    await ripple(engine)
    await _retry_aside(engine, svc)
    await decide(engine, svc, tasks.offer_rested)
    await decide(engine, svc, lambda tx: changes.late(svc, tx) + steps.late(svc, tx))
    for name in _list(await engine.read(lambda v: waiting_line.everybody(svc, v))):
        await serve_waiter(engine, svc, name)


def begin(tx: Tx) -> None:
    """After a start: no request is held open for anybody who stood in line."""
    for name, agent in tx.rows("waiters_held"):
        tx.record(ev.WaiterChanged(acquisition_id=str(name), agent=str(agent), held=False))


async def _close_all(engine: Engine, svc: Service) -> lapse.Ending:
    """Close all that has lapsed by now."""
    ending = lapse.Ending()
    before: list[object] = []
    while True:
        due = _list(await engine.read(lambda v: lapse.due(v, GROUPS_AT_ONCE)))
        if not due or due == before:
            return ending
        before = due
        for one in due:
            closed = await close_lapsed(engine, svc, one)
            if isinstance(closed, lapse.Ending):
                ending.add(closed)


async def _fell_silent(engine: Engine, svc: Service, name: str) -> lapse.Ending:
    value = await decide(engine, svc, lambda tx: lapse.fall_silent(svc, tx, name))
    if isinstance(value, Refusal):
        why = value.message
        value = await engine.write(lambda tx: lapse.fall_silent(svc, tx, name, unseen=why))
    return lapse.Ending() if isinstance(value, Refusal | Unready) else value


async def _retry_aside(engine: Engine, svc: Service) -> None:
    """What was set aside and has rested is tried again."""
    for row in _list(await engine.read(unserved.due)):
        if row.what == "waiter":
            await serve_waiter(engine, svc, row.subject)
        else:
            def up(tx: Tx, row: AsideRow = row) -> None:
                unserved.take_up(tx, row.what, row.subject)

            await engine.write(up)


def _tidy(svc: Service, tx: Tx) -> None:
    """Offer what rested, and what is parked on something that nobody holds any more; forget
    hints that have faded, and what was said long ago."""
    tasks.offer_rested(tx)
    signals.fade(tx)
    changes.forget(tx)
    steps.forget(tx)
    messages.forget(svc, tx)
    answered.forget(tx)
    tx.offer_parked_on_nothing()


def _list(value: Any) -> list[Any]:
    """What a reading gave; nothing where the disk refused it."""
    return value if isinstance(value, list) else []


def give_back(tx: Tx, jumped_ms: int, last_ms: int) -> None:
    """The machine slept (or its clock was set) for `jumped_ms`: leases and claims that were live at
    `last_ms`, just before, get that time back."""
    if jumped_ms == 0:
        return
    before = iso(last_ms)
    tokens = []
    for row in tx.each(LeaseRow, "leases_live", before, 0, None, 2**31):
        tokens.append(
            (row.fencing_token, iso(from_iso(row.expires_at) + jumped_ms),
             iso(from_iso(row.max_until) + jumped_ms))
        )
    claims = []
    for task in tx.each(TaskRow, "tasks_claimed"):
        if task.claim_until and task.claim_max and task.claim_until > before:
            claims.append(
                (task.task_id, iso(from_iso(task.claim_until) + jumped_ms),
                 iso(from_iso(task.claim_max) + jumped_ms))
            )
    waiters = [
        (one.acquisition_id, iso(from_iso(one.until) + jumped_ms))
        for one in tx.each(WaiterRow, "waiters_all") if one.until > before
    ]
    tx.record(ev.LeasesShifted(delta_ms=jumped_ms, tokens=tokens, claims=claims, waiters=waiters))
    for name, seen_at, silence_ms in tx.rows("agents_silent"):
        if from_iso(seen_at) + silence_ms > last_ms:
            tx.record(ev.AgentSeen(agent=name))
