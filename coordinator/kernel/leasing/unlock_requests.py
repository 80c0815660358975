"""Negotiation: a blocked agent asks the holder to let go.

Asking gives a place in line (or keeps the one that there is), so that whatever becomes of the
question the asker is served when the lease ends. The answers are `unlock_answers`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from sys import intern

from coordinator.kernel import answered, tasks
from coordinator.kernel.core import Actor, Service, family, listed, ms, split_page
from coordinator.kernel.holders import agents, notices
from coordinator.kernel.leasing import (
    deadlocks,
    pending_unlocks,
    renamed_regions,
    since_asked,
    task_locks,
    waiting_line,
)
from coordinator.kernel.leasing.blockers import Asking, find_blockers
from coordinator.kernel.leasing.grant import Terms
from coordinator.kernel.leasing.located import locate, locate_name, place
from coordinator.kernel.leasing.typed_names import held_by_link, lease_typed
from coordinator.looking.facts import AnyNeed, Whole
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, UnlockRow, WaiterRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.file_names import shown
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, Resource

#: Questions of one agent that may wait for their answers.
PENDING_MAX = 20


def needs(req: rq.RequestFile) -> list[AnyNeed]:
    """What to look at before a question is filed."""
    return [Whole(req.resource, req.cwd)]


def _asked(svc: Service, tx: Tx, req: rq.RequestFile) -> list[Located]:
    """What is asked for. If another agent holds the very name that was typed, that is meant,
    wherever the name leads now."""
    located = locate(svc, tx, [req.resource], req.cwd)
    mine = family(tx, req.agent)
    by_name = next((row for row in held_by_link(
        svc, tx, req.resource, located[0].resource, req.cwd) if row.locked_by not in mine), None)
    if by_name is None:
        return located
    return [locate_name(tx, by_name.file_path, by_name.kind, by_name.scope, by_name.worktree)]


def file(svc: Service, tx: Tx, actor: Actor, req: rq.RequestFile) -> rq.Unlock | Refusal:
    """See `requests.RequestFile`."""
    reason = pending_unlocks.words(req.reason, "reason")
    if not reason:
        raise Refusal(
            Code.INVALID, "Say why you need it: the holder decides by your reason. Nobody was "
            "asked.", next="Repeat it with `--reason WHY`.",
        )
    located = _asked(svc, tx, req)
    task_locks.check_known(tx, located)
    asked = located[0].resource
    tx.looked.require([place(asked.name, asked.kind)])
    agents.may_act(tx, actor, req.agent)
    before, already = _find_place(tx, req, located)
    if already is not None:
        agents.acting(tx, actor, req.agent)
        return _asked_already(tx, already, req)
    asking = Asking(asked_at=tx.now) if before is None else Asking(
        before.priority, before.asked_at, before.acquisition_id)
    blockers = find_blockers(svc, tx, req.agent, [(located[0], req.mode)], asking)
    contents = since_asked.contents(tx, located, asking.acquisition)
    agents.acting(tx, actor, req.agent)
    renamed = _called_otherwise(svc, blockers.leases, asked, req)
    if renamed is not None:
        return renamed
    theirs = _of_one_holder(blockers.leases, asked.name, req)
    if isinstance(theirs, Refusal):
        return theirs
    full = _check_room(tx, req.agent)
    if full is not None:
        return full
    task_locks.make_real(tx, theirs)
    n = tx.number("unlock")
    request = f"{pending_unlocks.PREFIX}{n}"
    waits = before if before is not None and before.held else None  # a request is held open for it
    if before is not None:
        waiting_line.step_out(tx, before, f"asks the holder ({request})")
    terms = _carry_over(svc, tx, req, before, reason)
    later = tx.later(ms(svc.settings.leases.line_s))
    tx.record(ev.WaiterQueued(
        acquisition_id=request, agent=req.agent, mode=req.mode, priority=asking.priority,
        asked_at=asking.asked_at or tx.now,
        until=later if waits is None else max(later, waits.until), held=waits is not None,
        ttl_ms=terms.ttl_ms, task=terms.task, description=terms.description,
        resources=[(asked.name, asked.kind, asked.scope)], met=blockers.held_at,
        worktrees={asked.name: located[0].worktree} if located[0].worktree else {},
        contents=contents, purpose=terms.purpose,
    ))
    holder = theirs[0].locked_by
    tx.record(ev.UnlockAsked(
        request=request, n=n, agent=req.agent, holder=holder, resource=asked.name,
        resource_kind=asked.kind, scope=asked.scope, mode=req.mode, reason=reason,
    ))
    row = pending_unlocks.find(tx, request)
    pending_unlocks.tell_holder(tx, row, theirs)
    deadlocks.look_for_deadlock(svc, tx, req.agent)
    unlock = pending_unlocks.reply(tx, row)
    if waits is not None:
        tx.effects.stays[waits.acquisition_id] = request
        answered.move(tx, waits.acquisition_id, request)
    return unlock


def _check_room(tx: Tx, agent: str) -> Refusal | None:
    """LIMIT, if the agent may ask no more for now."""
    count = tx.value("unlock_count", agent)
    if count < PENDING_MAX:
        return None
    return Refusal(
        Code.LIMIT, f"{agent} has {count} questions open; {PENDING_MAX} are the most. "
        "Nobody was asked.", next="Wait for answers, or take one back: "
        f"`coord request withdraw REQUEST --agent {agent}`.",
    )


def _carry_over(svc: Service, tx: Tx, req: rq.RequestFile, before: WaiterRow | None,
                reason: str) -> Terms:
    """By which terms it is granted: those that it has asked by before, if it has."""
    if before is not None:
        return Terms(before.ttl_ms, before.task_id, before.description, intern(before.purpose))
    return Terms(ms(svc.settings.leases.ttl_s), tasks.find_only_claim(tx, req.agent), reason[:200],
                 purposes.ASKED)


def _find_place(tx: Tx, req: rq.RequestFile, located: Sequence[Located]
                ) -> tuple[WaiterRow | None, UnlockRow | None]:
    """The agent's place in the queue for it, if it has one, and its open request there."""
    before = waiting_line.same_again(tx, req.agent, located)
    already = pending_unlocks.pending(tx, before.acquisition_id) if before is not None else None
    if before is not None and before.held and before.mode != req.mode and already is None:
        before = waiting_line.same_again(tx, req.agent, located, req.mode)
    return before, already


def _asked_already(tx: Tx, row: UnlockRow, req: rq.RequestFile) -> rq.Unlock | Refusal:
    if req.holder in (None, row.holder):
        # the same question, so the holder is not disturbed twice
        return pending_unlocks.reply(tx, row)
    return Refusal(
        Code.LIMIT, f"{row.request_id} asks {row.holder} for {row.resource} already; one holder "
        f"is asked at a time. {req.holder} was not asked.",
        next=f"Wait for the answer, or `coord request withdraw {row.request_id} "
        f"--agent {req.agent}`.",
    )


def _of_one_holder(
    leases: list[LeaseRow], resource: str, req: rq.RequestFile
) -> list[LeaseRow] | Refusal:
    """The leases in the way of the one holder that is asked."""
    holders = sorted({lease.locked_by for lease in leases})
    if not holders or req.holder not in (None, *holders):
        who = "Nobody else holds any part"
        if req.holder and holders:
            who = f"{req.holder} holds nothing"
        held = f"; {listed(holders)} does" if holders else ""
        typed = quote(req.resource)
        return Refusal(
            Code.UNKNOWN_LEASE, f"{who} of {resource}{held}. Nobody was asked.", resource=resource,
            next=f"`coord request file {typed} --reason WHY --holder {holders[0]} "
            f"--agent {req.agent}`" if holders else f"`coord lock {typed} --agent {req.agent}`",
        )
    if req.holder is None and len(holders) > 1:
        return Refusal(
            Code.INVALID, f"Several hold parts of {resource}: {listed(holders, 5)}. A request asks "
            "one holder. Nobody was asked.",
            next="Name it with `--holder`, or ask for the part that you need.", holders=holders,
        )
    holder = req.holder or holders[0]
    return [lease for lease in leases if lease.locked_by == holder]


def _called_otherwise(svc: Service, leases: list[LeaseRow], asked: Resource, req: rq.RequestFile
                      ) -> Refusal | None:
    """The refusal for a region that a holder has renamed. It has to be asked for by its present
    name."""
    lease = next((lease for lease in leases if renamed_regions.is_renamed(lease, asked)), None)
    return None if lease is None else Refusal(
        Code.LOCKED, f"{shown(asked.name)} may be what {lease.locked_by} has leased as "
        f"{shown(lease.file_path)}, which is not called so any more. Nobody was asked.",
        next=f"`coord request file {lease_typed(svc, lease, req.cwd)} --reason WHY --agent "
        f"{req.agent}` asks {lease.locked_by} for that.",
        conflicts=[{"resource": lease.file_path, "holder": lease.locked_by}], resource=asked.name)


def withdraw(svc: Service, tx: Tx, actor: Actor, req: rq.RequestWithdraw) -> rq.Unlock:
    """See `requests.RequestWithdraw`. An asker that got a no is still queued, and may leave the
    queue."""
    row = pending_unlocks.find(tx, req.request, req.resource)
    waiter = tx.first(WaiterRow, "waiter_get", row.request_id)
    if waiter is None:
        pending_unlocks.check_open(row)
    if not pending_unlocks.answers_for(tx, req.agent, row.requested_by):
        raise Refusal(
            Code.NOT_HOLDER, f"{row.request_id} is {row.requested_by}'s, not {req.agent}'s; it "
            "stays open.", next=f"`coord request withdraw {row.request_id} --agent "
            f"{row.requested_by}`",
        )
    agents.acting(tx, actor, req.agent)
    if row.status == "pending":
        pending_unlocks.conclude(tx, row, "withdraw", req.agent)
        notices.post(
            tx, row.holder, "answered", f"{row.requested_by} does not ask for {row.resource} any "
            f"more: {row.request_id} needs no answer.", request=row.request_id,
        )
    if waiter is not None:
        waiting_line.step_out(tx, waiter, "withdrawn")
    return pending_unlocks.reply(tx, pending_unlocks.find(tx, row.request_id))


def listing(svc: Service, view: View, actor: Actor, req: rq.Requests) -> rq.UnlockList:
    """See `requests.Requests`."""
    limit = min(req.limit, 1000)
    rows, more = split_page(view.each(
        UnlockRow, "unlocks_list", req.after, req.state, req.agent, limit + 1, req.resource), limit)
    return rq.UnlockList(
        items=[pending_unlocks.reply(view, row) for row in rows],
        next=rows[-1].n if more else None,
    )
