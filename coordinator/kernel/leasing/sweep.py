"""The tidying of each second and of every five minutes. It never decides who holds what.

Each item that is due, such as one holder's expired leases, a silent agent, a waiter, or parked
work, is served in a transaction of its own. So an item that cannot be served does not keep the
sweep from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from coordinator.kernel import answered, tasks, unserved
from coordinator.kernel.blocked_steps import STEPS
from coordinator.kernel.core import Service
from coordinator.kernel.errands import close_lapsed, ripple, serve_waiter
from coordinator.kernel.holders import programs
from coordinator.kernel.leasing import grant, lapse, waiting_line
from coordinator.kernel.use_cases import Commit, Read, Step, Steps, decide
from coordinator.looking.facts import Unready
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import AgentRow, AsideRow, LeaseRow, TaskRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso
from coordinator.words.refusals import Refusal

#: Groups of expired leases that one reading names. A sweep reads until there are none.
GROUPS_AT_ONCE = 200


def sweep(svc: Service, req: rq.Sweep) -> Steps:
    """See `requests.Sweep`."""
    ending, stale = yield from _end_silent_and_lapsed(svc)
    yield from ripple()
    yield from _retry_aside(svc)
    yield decide(lambda tx: _tidy(svc, tx))
    granted = yield from _serve_waiters(svc)
    if ending.lapsed or ending.reviews or stale:
        facts = {"lapsed": len(ending.lapsed), "reviews": len(ending.reviews),
                 "stale": len(stale)}
        yield Commit(lambda tx: tx.record(ev.Noted(what="sweep", facts=facts)))
    return rq.Swept(
        lapsed=[grant.lease_reply(row) for row in ending.lapsed], stale=stale,
        reviews=ending.reviews, tasks=ending.tasks, granted=granted,
    )


def _read(reading: Callable[[View], list[Any]]) -> Generator[Step, Any, list[Any]]:
    """The result of a reading; empty if the disk refused it."""
    value = yield Read(lambda view, actor: reading(view))
    return value if isinstance(value, list) else []


def _serve_waiters(svc: Service) -> Generator[Step, Any, list[str]]:
    """Serve all that wait; gives those that were granted (acquisition ids)."""
    granted = []
    for name in (yield from _read(lambda view: waiting_line.everybody(svc, view))):
        if (yield from serve_waiter(svc, name)):
            granted.append(name)
    return granted


def _end_silent_and_lapsed(
    svc: Service,
) -> Generator[Step, Any, tuple[lapse.Ending, list[str]]]:
    """Close what silent agents hold, and everything else that has expired. Returns both."""
    ending = lapse.Ending()
    stale: list[str] = []
    for name in (yield from _read(lapse.silent)):
        ending.add((yield from _fell_silent(svc, name)))
        stale.append(name)
    for name in (yield from _read(lambda view: programs.find_silent(svc, view))):
        if (yield from programs.fall_silent(svc, name)):
            stale.append(name)
    ending.add((yield from _close_all(svc)))
    return ending, stale


def anything_due(svc: Service, view: View) -> bool:
    """Whether `tend` would find work: a few look-ups, once a second."""
    if view.has("waiters_due", view.now):
        return True
    if view.has("tasks_backed_off", view.now, 1) or view.has("aside_due", view.now, 1):
        return True
    if view.has("ripples_some", 1) or view.has("steps_late", view.now) or any(
            part.is_due(view) for part in svc.slices):
        return True
    return bool(lapse.due(view) or lapse.silent(view) or programs.find_silent(svc, view))


def tend(svc: Service) -> Steps:
    """Work between sweeps: close what has expired, serve its waiters, end backoffs."""
    yield from _end_silent_and_lapsed(svc)
    yield from ripple()
    yield from _retry_aside(svc)
    yield decide(tasks.offer_rested)
    yield decide(lambda tx: _tend_slices(svc, tx))
    yield from _serve_waiters(svc)


def begin(tx: Tx) -> None:
    """Work after a start: no request of a waiter is open any longer."""
    for row in tx.each(WaiterRow, "waiters_all"):
        if row.held:
            tx.record(ev.WaiterChanged(
                acquisition_id=row.acquisition_id, agent=row.agent, held=False))


def _close_all(svc: Service) -> Generator[Step, Any, lapse.Ending]:
    """Close everything that has expired."""
    ending = lapse.Ending()
    before: list[object] = []
    while True:
        due = yield from _read(lambda view: lapse.due(view, GROUPS_AT_ONCE))
        if not due or due == before:
            return ending
        before = due
        for group in due:
            closed = yield from close_lapsed(svc, group)
            if isinstance(closed, lapse.Ending):
                ending.add(closed)


def _fell_silent(svc: Service, name: str) -> Generator[Step, Any, lapse.Ending]:
    value = yield decide(lambda tx: lapse.fall_silent(svc, tx, name))
    if isinstance(value, Refusal):
        why = value.message
        value = yield Commit(lambda tx: lapse.fall_silent(svc, tx, name, unseen=why))
    return lapse.Ending() if isinstance(value, Refusal | Unready) else value


def _retry_aside(svc: Service) -> Steps:
    """Try what was set aside and has rested."""
    for row in (yield from _read(unserved.due)):
        if row.what == "waiter":
            yield from serve_waiter(svc, row.subject)
        else:
            def up(tx: Tx, row: AsideRow = row) -> None:
                unserved.take_up(tx, row.what, row.subject)

            yield Commit(up)


def _tend_slices(svc: Service, tx: Tx) -> None:
    STEPS.end_late(svc, tx)
    for part in svc.slices:
        part.tend(svc, tx)


def _tidy(svc: Service, tx: Tx) -> None:
    """Offer what rested, and what is parked on something that is free now. Forget what is over."""
    tasks.offer_rested(tx)
    STEPS.forget_old(tx)
    for part in svc.slices:
        part.tidy(svc, tx)
    answered.forget(tx)
    programs.forget(tx)
    tx.offer_parked_on_nothing()


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
        (waiter.acquisition_id, iso(from_iso(waiter.until) + jumped_ms))
        for waiter in tx.each(WaiterRow, "waiters_all") if waiter.until > before
    ]
    tx.record(ev.LeasesShifted(delta_ms=jumped_ms, tokens=tokens, claims=claims, waiters=waiters))
    for agent in tx.each(AgentRow, "agents_silent"):
        if from_iso(agent.seen_at) + (agent.silence_ms or 0) > last_ms:
            tx.record(ev.AgentSeen(agent=agent.agent))
