"""Answers to unlock requests: yes, no, or one of two between.

The holder answers, or a person in its place: what it had changed is then flagged first. The holder
may keep a part (`narrowing`), or both write it (`agreements`). An approval releases and grants in
one transaction; whom it may pass in line is a rule (`coordinator.rules.negotiation`).
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator.kernel.core import Actor, Service, check_at_rest, listed
from coordinator.kernel.holders import agents, notices
from coordinator.kernel.leasing import (
    agreements,
    lapse,
    narrowing,
    partial_work,
    pending_unlocks,
    redirect,
    task_locks,
    waiting_line,
)
from coordinator.kernel.leasing.grant import end, lease_reply
from coordinator.kernel.leasing.located import place
from coordinator.kernel.leasing.other_names import with_other_names
from coordinator.kernel.tasks import task_of
from coordinator.rules import leases as rule
from coordinator.rules.negotiation import no_longer_than
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, UnlockRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import TASK, is_task
from coordinator.words.texts import quoted


def answer(
    svc: Service, tx: Tx, actor: Actor, req: rq.RequestAnswer
) -> rq.UnlockAnswered | Refusal:
    """See `requests.RequestAnswer`."""
    text = pending_unlocks.words(req.answer, "answer")
    row = pending_unlocks.find(tx, req.request, req.resource)
    pending_unlocks.check_open(row)
    override = req.force and req.agent != row.holder
    _check_may_answer(tx, actor, req, row, override)
    me = f"--agent {req.agent}{' --force' if override else ''}"
    if req.keep and req.verdict != "narrow":
        raise Refusal(Code.INVALID, f"Only `narrow` keeps a part. {row.request_id} stays open.",
                      next=f"`coord request narrow {row.request_id} {me} --keep PART`")
    tx.looked.require([place(row.resource, row.kind)])
    leases = pending_unlocks.held_of(tx, row)
    parts: list[narrowing.Kept] = []
    entry: agreements.Entry | None = None
    if req.verdict != "reject":
        leases = _list_given(svc, tx, row, leases, req.verdict)
        if req.verdict == "narrow":
            parts = narrowing.kept(svc, tx, row, leases, req.keep, req.cwd, me)
        if req.verdict == "coexist":
            entry = agreements.entry(svc, tx, row, leases, _waiter(tx, row), me)
        else:
            handed = _all_handed(tx, row, leases)
            if row.resource.startswith(TASK):
                task_locks.check_apart(tx, row, handed, me)
            if not override:
                _check_landed(svc, tx, row, handed, parts, me)
    other = redirect.offer(svc, tx, row.requested_by) if req.verdict == "reject" else None
    if not override:
        agents.acting(tx, actor, req.agent)
    answer = _Answer(req.agent, text, override)
    if req.verdict == "reject":
        return _reject(svc, tx, row, answer, other)
    if entry is not None:
        return _coexist(svc, tx, row, leases, entry, answer)
    return _approve(svc, tx, row, leases, parts, answer)


def _check_may_answer(tx: Tx, actor: Actor, req: rq.RequestAnswer, row: UnlockRow,
                      override: bool) -> None:
    """Whether it is the holder who answers, or a person in its place."""
    if req.force and not actor.operator:
        raise Refusal(Code.UNAUTHORIZED, "Only a person may override with force.",
                      next="Ask the person who runs coord.")
    if not override and not pending_unlocks.answers_for(tx, req.agent, row.holder):
        raise Refusal(
            Code.NOT_HOLDER,
            f"{row.request_id} asks {row.holder}, not {req.agent}; it stays open.",
            next=f"Wait for {row.holder}, or as a person add `--force`.", holder=row.holder,
        )


def _list_given(svc: Service, tx: Tx, row: UnlockRow, leases: list[LeaseRow],
                verdict: str) -> list[LeaseRow]:
    """The leases that an answer gives away, or shares; none of them is of work that lands now."""
    if not leases:
        raise Refusal(
            Code.STALE_TOKEN, f"The lease of {row.holder} on {row.resource} has ended; whoever "
            "is next in line gets it. Nothing was changed.",
            next="Nothing is left to do about it.",
        )
    if verdict == "approve":  # what was renamed is given up under all its names
        leases = with_other_names(svc, tx, leases)
    check_at_rest(svc, [lease.task_id for lease in leases])
    return leases


class _Answer(NamedTuple):
    """The answer to a request, and its words. `override`: a person answers, by force."""

    by: str
    said: str
    override: bool


def _waiter(tx: Tx, row: UnlockRow) -> WaiterRow:
    waiter = tx.first(WaiterRow, "waiter_get", row.request_id)
    assert waiter is not None  # what is asked for is queued
    return waiter


def _reject(svc: Service, tx: Tx, row: UnlockRow, answer: _Answer,
            other: redirect.Offer) -> rq.UnlockAnswered:
    by, text, override = answer
    waiter = tx.first(WaiterRow, "waiter_get", row.request_id)
    task = waiter.task_id if waiter is not None else None
    pending_unlocks.conclude(tx, row, "reject", by, text, override=override)
    notices.post(
        tx, row.requested_by, "answered",
        f"{by} says no to your request {row.request_id}: {row.resource} stays with {row.holder}"
        + (f" ({quoted(text, 500)})" if text else "")
        + ". You stay in line and will be told when it is yours; "
        + (f"meanwhile take task {other.task_id} {quoted(other.title)}: "
           f"`coord task claim {other.task_id} --agent {row.requested_by}`." if other is not None
           else "do other work meanwhile."),
        request=row.request_id, resource=row.resource,
        redirect=other.task_id if other is not None else None,
    )
    if task is not None:
        for part in svc.slices:
            part.put_off(svc, tx, task, f"{row.holder} keeps {row.resource}")
    if override:
        notices.post(
            tx, row.holder, "answered", f"{by} (override) answered {row.request_id} in your place: "
            f"you keep {row.resource}.", request=row.request_id,
        )
    return rq.UnlockAnswered(
        unlock=pending_unlocks.reply(tx, pending_unlocks.find(tx, row.request_id)),
        released=[],
        granted=False,
        message=f"{row.resource} stays with {row.holder}; {row.requested_by} is told, and waits.",
    )


def _approve(svc: Service, tx: Tx, row: UnlockRow, leases: list[LeaseRow],
             parts: list[narrowing.Kept], answer: _Answer) -> rq.UnlockAnswered:
    """The holder gives up what it holds of it, except these parts."""
    by, text, override = answer
    changed = [file for file in partial_work.changed_since(svc, tx, leases, shared=override)
               if narrowing.gives_up(parts, row, file.path, svc.fold_case)]
    waiter = _waiter(tx, row)
    waiting_line.look_before_approval(tx, waiter)
    tx.looked.fresh(tx.ended_since(row.kind, row.scope))
    flagged = lapse.flag_overridden(svc, tx, leases, changed, by) if override else None
    pending_unlocks.conclude(tx, row, "narrow" if parts else "approve", by, text, override=override)
    for lease in leases:
        end(tx, lease, by=by if override else None)
    kept = narrowing.hold(svc, tx, parts)
    asked = rule.as_resource(row.resource, row.kind, row.scope)
    bound = no_longer_than([(lease, lease.max_until) for lease in leases], asked, row.mode)
    handed = _handed(row, by, text, changed, override, flagged)
    if is_task(asked):
        task_locks.pass_claim(svc, tx, row)
    granted = waiting_line.serve_approved(svc, tx, waiter, handed, bound)
    names = listed([lease.file_path for lease in leases], 5)
    kept_names = listed([part.part.resource.name for part in parts], 5)
    keeps = f" {row.holder} keeps {kept_names}." * bool(parts)
    if override:
        notices.post(
            tx, row.holder, "overridden",
            f"Your lease on {names} was released by {by} (override), as {row.requested_by} asked "
            f"({row.request_id}).{keeps.replace(f'{row.holder} keeps', 'You keep')} Do not write "
            f"it without a new lease.{_say_kept(flagged, 'Your changes are')}",
            request=row.request_id, review=flagged.review if flagged else None,
        )
    now = (f"{row.requested_by} has {row.resource} now." if granted
           else _tell_of_wait(svc, tx, row, handed, flagged))
    return rq.UnlockAnswered(
        unlock=pending_unlocks.reply(tx, pending_unlocks.find(tx, row.request_id)),
        released=[lease_reply(lease) for lease in leases], granted=granted, kept=kept,
        message=f"Released {names}; {now}{keeps}"
        f"{_say_kept(flagged, f'What {row.holder} had changed is')}",
    )


def _say_kept(flagged: partial_work.Flagged | None, what: str) -> str:
    return flagged.told(what) if flagged is not None else ""


def _tell_of_wait(svc: Service, tx: Tx, row: UnlockRow, handed: str,
                  flagged: partial_work.Flagged | None) -> str:
    """Describe what becomes of an asker that is not granted it now, and tell it."""
    if not tx.has("waiter_get", row.request_id):  # its time was over, and it was told
        return f"{row.requested_by} does not stand in line any more."
    closed = flagged is not None and (svc.settings.review.quarantine or not flagged.whole)
    until = f"until {flagged.review} is decided" if flagged is not None and closed else ""
    notices.post(
        tx, row.requested_by, "answered", f"{handed} It is not free for you "
        + (until or "yet: others hold part of it or stand before you") + ". You stay in line "
        "and will be told when it is yours.", request=row.request_id, resource=row.resource,
    )
    return (f"{row.requested_by} stays in line for {row.resource}, "
            + (until or "for others hold part of it or stand before it") + ".")


def _coexist(svc: Service, tx: Tx, row: UnlockRow, leases: list[LeaseRow],
             entry: agreements.Entry, answer: _Answer) -> rq.UnlockAnswered:
    """The holder and the asker both hold it from now on."""
    by, text, override = answer
    waiter = _waiter(tx, row)
    waiting_line.look_before_approval(tx, waiter)
    name = entry.grant.name
    before = agreements.party(tx, name, row.holder)
    pending_unlocks.conclude(tx, row, "coexist", by, text, override=override)
    agreements.share(tx, leases, name)
    both = ("One edit of it runs at a time, whoever writes on old content is refused with the "
            "difference, and each of you is told what the other has written.")
    words = f": {quoted(text, 500)}" if text else ""
    waiting_line.serve_agreed(
        svc, tx, waiter, f"{by}{' (override)' if override else ''} shares {row.resource} with you "
        f"({name}){words}. {both}", entry.no_longer_than, entry.grant)
    for other in [*before, *([row.holder] if override else [])]:
        if other != row.requested_by:
            notices.post(
                tx, other, "shared", f"{row.requested_by} writes {row.resource} with you from now "
                f"on ({name}, as {by}{' (override)' if override else ''} agreed). {both}",
                request=row.request_id, resource=row.resource,
            )
    now = tx.each_of(LeaseRow, "lease_by_token", [lease.fencing_token for lease in leases])
    return rq.UnlockAnswered(
        unlock=pending_unlocks.reply(tx, pending_unlocks.find(tx, row.request_id)), released=[],
        granted=True, kept=[lease_reply(lease) for lease in now],
        message=f"{row.holder} and {row.requested_by} share {row.resource} from now on ({name}). "
        + both,
    )


def _handed(row: UnlockRow, by: str, text: str, changed: list[ev.FlaggedFile], override: bool,
            flagged: partial_work.Flagged | None) -> str:
    """What the asker is told of what it gets: the former holder, and whether that one had changed
    it."""
    if override:
        sentence = (f"{by} (override) took {row.resource} from {row.holder} for you "
                    f"({row.request_id})")
    else:
        sentence = f"{by} gave up {row.resource}, as you asked ({row.request_id})"
    sentence += f": {quoted(text, 500)}." if text else "."
    if changed:
        state = " in the middle of its work" if override else ""
        names = listed([file.path for file in changed])
        sentence += (f" {row.holder} had changed {names}{state}: what is there now is what "
                 f"you start from.{_say_kept(flagged, 'That is')}")
    return sentence


def _all_handed(tx: Tx, row: UnlockRow, leases: list[LeaseRow]) -> list[LeaseRow]:
    """What an approval gives away. For a claimed task this is everything that the task holds."""
    if not is_task(rule.as_resource(row.resource, row.kind, row.scope)):
        return leases
    also = tx.each(LeaseRow, "leases_of_task", task_of(row.scope))
    return [*leases, *(lease for lease in also if lease.locked_by == row.holder)]


def _check_landed(svc: Service, tx: Tx, row: UnlockRow, leases: list[LeaseRow],
                  parts: list[narrowing.Kept], me: str) -> None:
    """Work in a launch's worktree lands only with its lease: it cannot be given up half-way.

    Raises:
        Refusal: BAD_TRANSITION.
    """
    own = [lease for lease in leases if svc.is_launched_worktree(lease.worktree)]
    changed = [file.path for file in partial_work.changed_since(svc, tx, own)
               if narrowing.gives_up(parts, row, file.path, svc.fold_case)]
    if changed:
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{listed(changed)} was changed in a worktree of its own, and lands with the lease "
            f"when the task ends; without it that could not land. {row.request_id} stays open.",
            next=f"`coord request reject {row.request_id} {me} --answer WHY`, or finish the task.",
        )
