"""Negotiation: a blocked agent asks the holder to let go; the holder, or a person, answers.

The answer is yes, no, or one of two between: the holder keeps a part (`narrowing`), or both write
it (`agreements`). Asking gives a place in line (or keeps the one that there is), so that whatever
becomes of the question the asker is served when the lease ends. An approval releases and grants in
one transaction; whom it may pass in line is a rule (`coordinator.rules.negotiation`).
"""

from __future__ import annotations

from shlex import quote

from coordinator.looking.facts import AnyNeed, Whole
from coordinator.rules import leases as rule
from coordinator.rules.negotiation import no_longer_than
from coordinator.service import answered, landing, signals
from coordinator.service.core import Actor, Service, listed, ms
from coordinator.service.holders import agents, notices
from coordinator.service.leasing import (
    agreements,
    circles,
    narrowing,
    partial_work,
    pending_unlocks,
    redirect,
    renamed_regions,
    since_asked,
    task_locks,
    waiting_line,
)
from coordinator.service.leasing.conflicts import locate, place, weigh
from coordinator.service.leasing.grant import end, lease_reply
from coordinator.service.leasing.other_names import with_other_names
from coordinator.service.leasing.task_claims import task_of
from coordinator.service.leasing.typed_names import held_by_name, lease_typed
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, UnlockRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, short
from coordinator.words.file_names import shown
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import TASK, is_task
from coordinator.words.texts import quoted

#: Characters of a reason or an answer: another agent's model has to read it.
WORDS_CHARS_MAX = 500
#: Questions of one agent that may wait for their answers.
PENDING_MAX = 20


def needs(req: rq.RequestFile) -> list[AnyNeed]:
    """What to look at before a question is filed."""
    return [Whole(req.resource, req.cwd)]


def file(svc: Service, tx: Tx, actor: Actor, req: rq.RequestFile) -> rq.Unlock | Refusal:
    """See `requests.RequestFile`."""
    reason = _words(req.reason, "reason")
    if not reason:
        raise Refusal(
            Code.INVALID, "Say why you need it: the holder decides by your reason. Nobody was "
            "asked.", next="Repeat it with `--reason WHY`.",
        )
    located = locate(svc, tx, [req.resource], req.cwd)
    task_locks.check_known(tx, located)
    asked = located[0].resource
    tx.looked.require([place(asked.name, asked.kind)])
    agents.may_act(tx, actor, req.agent)
    before = waiting_line.same_again(tx, req.agent, located)
    already = pending_unlocks.pending(tx, before.acquisition_id) if before is not None else None
    if before is not None and before.held and before.mode != req.mode and already is None:
        before = waiting_line.same_again(tx, req.agent, located, req.mode)
    if already is not None:
        agents.acting(tx, actor, req.agent)
        return _asked_already(tx, already, req)
    asked_at = before.asked_at if before is not None else tx.now
    obstacles = weigh(
        svc, tx, req.agent, [(located[0], req.mode)], asked_at=asked_at,
        priority=before.priority if before is not None else 0,
        acquisition=before.acquisition_id if before is not None else None,
    )
    contents = since_asked.contents(
        tx, located, before.acquisition_id if before is not None else None)
    agents.acting(tx, actor, req.agent)
    if not obstacles.leases and (by_name := held_by_name(svc, tx, req.resource, asked, req.cwd)):
        return _leads_elsewhere(by_name[0], asked.name, req)
    renamed = next(
        (one for one in obstacles.leases if renamed_regions.is_renamed(one, asked)), None)
    if renamed is not None:
        return _called_otherwise(svc, renamed, asked.name, req)
    theirs = _of_one_holder(obstacles.leases, asked.name, req)
    if isinstance(theirs, Refusal):
        return theirs
    count = tx.row("unlock_count", req.agent)
    if count is not None and count[0] >= PENDING_MAX:
        return Refusal(
            Code.LIMIT, f"{req.agent} has {count[0]} questions open; {PENDING_MAX} are the most. "
            "Nobody was asked.", next="Wait for answers, or take one back: "
            f"`coord request withdraw REQUEST --agent {req.agent}`.",
        )
    task_locks.make_real(tx, theirs)
    n = tx.number("unlock")
    request = f"{pending_unlocks.PREFIX}{n}"
    waits = before if before is not None and before.held else None  # a request is held open for it
    if before is not None:
        waiting_line.step_out(tx, before, f"asks the holder ({request})")
    limits = svc.settings.leases
    tx.record(
        ev.WaiterQueued(
            acquisition_id=request, agent=req.agent, mode=req.mode,
            priority=before.priority if before is not None else 0, asked_at=asked_at,
            until=max(tx.later(ms(limits.line_s)), waits.until if waits is not None else ""),
            held=waits is not None,
            ttl_ms=before.ttl_ms if before is not None else ms(limits.ttl_s),
            task=before.task_id if before is not None else _only_task(tx, req.agent),
            description=before.description if before is not None else reason[:200],
            resources=[(asked.name, asked.kind, asked.scope)], met=obstacles.held_at,
            worktrees={asked.name: located[0].worktree} if located[0].worktree else {},
            contents=contents,
        )
    )
    holder = theirs[0].locked_by
    tx.record(
        ev.UnlockAsked(
            request=request, n=n, agent=req.agent, holder=holder, resource=asked.name,
            resource_kind=asked.kind, scope=asked.scope, mode=req.mode, reason=reason,
        )
    )
    row = pending_unlocks.find(tx, request)
    pending_unlocks.tell_holder(tx, row, theirs)
    circles.look(svc, tx, req.agent)
    told = pending_unlocks.reply(tx, row)
    if waits is not None:
        tx.stays[waits.acquisition_id] = request
        answered.move(tx, waits.acquisition_id, request)
    return told


def _asked_already(tx: Tx, row: UnlockRow, req: rq.RequestFile) -> rq.Unlock | Refusal:
    if req.holder in (None, row.holder):
        return pending_unlocks.reply(tx, row)  # the same question: nobody is disturbed twice
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


def _called_otherwise(svc: Service, lease: LeaseRow, name: str, req: rq.RequestFile) -> Refusal:
    """What is asked for may be what a holder has renamed: that is asked for by its name."""
    return Refusal(
        Code.LOCKED, f"{shown(name)} may be what {lease.locked_by} has leased as "
        f"{shown(lease.file_path)}, which is not called so any more. Nobody was asked.",
        next=f"`coord request file {lease_typed(svc, lease, req.cwd)} --reason WHY --agent "
        f"{req.agent}` asks {lease.locked_by} for that.",
        conflicts=[{"resource": lease.file_path, "holder": lease.locked_by}], resource=name)


def _leads_elsewhere(lease: LeaseRow, name: str, req: rq.RequestFile) -> Refusal:
    return Refusal(
        Code.UNKNOWN_LEASE, f"{lease.file_path} leads to {name} by now, which nobody else "
        f"holds; {lease.locked_by} holds it under its own name. Nobody was asked.",
        next=f"`coord tell {lease.locked_by} TEXT --agent {req.agent}` reaches {lease.locked_by}.",
        resource=lease.file_path, holders=[lease.locked_by],
    )


def _only_task(tx: Tx, agent: str) -> str | None:
    """The one task that the agent works on: the lease belongs to it, and ends with it."""
    claimed = tx.rows("tasks_of_holder", agent)
    return str(claimed[0][0]) if len(claimed) == 1 else None


def answer(
    svc: Service, tx: Tx, actor: Actor, req: rq.RequestAnswer
) -> rq.UnlockAnswered | Refusal:
    """See `requests.RequestAnswer`."""
    said = _words(req.answer, "answer")
    row = pending_unlocks.find(tx, req.request, req.resource)
    _check_open(row)
    if req.force and not actor.operator:
        raise Refusal(Code.UNAUTHORIZED, "Only a person may override with force.",
                      next="Ask the person who runs coord.")
    override = req.force and req.agent != row.holder
    if not override and not _answers_for(tx, req.agent, row.holder):
        raise Refusal(
            Code.NOT_HOLDER,
            f"{row.request_id} asks {row.holder}, not {req.agent}; it stays open.",
            next=f"Wait for {row.holder}, or as a person add `--force`.", holder=row.holder,
        )
    me = f"--agent {req.agent}{' --force' if override else ''}"
    if req.keep and req.verdict != "narrow":
        raise Refusal(Code.INVALID, f"Only `narrow` keeps a part. {row.request_id} stays open.",
                      next=f"`coord request narrow {row.request_id} {me} --keep PART`")
    tx.looked.require([place(row.resource, row.kind)])
    leases = pending_unlocks.held_of(tx, row)
    parts: list[narrowing.Kept] = []
    entry: agreements.Entry | None = None
    if req.verdict != "reject":
        if not leases:
            raise Refusal(
                Code.STALE_TOKEN, f"The lease of {row.holder} on {row.resource} has ended; whoever "
                "is next in line gets it. Nothing was changed.",
                next="Nothing is left to do about it.",
            )
        if req.verdict == "approve":  # what was renamed is given up under all its names
            leases = with_other_names(svc, tx, leases)
        landing.check_at_rest(svc, [lease.task_id for lease in leases])
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
    if req.verdict == "reject":
        return _reject(svc, tx, row, req.agent, said, override, other)
    if entry is not None:
        return _coexist(svc, tx, row, leases, entry, req.agent, said, override)
    return _approve(svc, tx, row, leases, parts, req.agent, said, override)


def _waiter(tx: Tx, row: UnlockRow) -> WaiterRow:
    raw = tx.row("waiter_get", row.request_id)
    assert raw is not None  # what is asked for stands in line
    return WaiterRow(*raw)


def _reject(svc: Service, tx: Tx, row: UnlockRow, by: str, said: str, override: bool,
            other: redirect.Offer) -> rq.UnlockAnswered:
    waiter = tx.row("waiter_get", row.request_id)
    task = WaiterRow(*waiter).task_id if waiter is not None else None
    pending_unlocks.conclude(tx, row, "reject", by, said, override=override)
    notices.post(
        tx, row.requested_by, "answered",
        f"{by} says no to your request {row.request_id}: {row.resource} stays with {row.holder}"
        + (f" ({quoted(said, 500)})" if said else "")
        + ". You stay in line and will be told when it is yours; "
        + (f"meanwhile take task {other.task_id} {quoted(other.title)}: "
           f"`coord task claim {other.task_id} --agent {row.requested_by}`." if other is not None
           else "do other work meanwhile."),
        request=row.request_id, resource=row.resource,
        redirect=other.task_id if other is not None else None,
    )
    if task is not None:
        signals.put_off(svc, tx, task, f"{row.holder} keeps {row.resource}")
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


def _approve(
    svc: Service, tx: Tx, row: UnlockRow, leases: list[LeaseRow], parts: list[narrowing.Kept],
    by: str, said: str, override: bool,
) -> rq.UnlockAnswered:
    """The holder gives up what it holds of it, but for these parts."""
    changed = [file.path for file in partial_work.changed_since(svc, tx, leases)
               if narrowing.gives_up(parts, row, file.path, svc.fold_case)]
    waiter = _waiter(tx, row)
    waiting_line.look_before_approval(tx, waiter)
    tx.looked.fresh(tx.ended_since(row.kind, row.scope))
    pending_unlocks.conclude(tx, row, "narrow" if parts else "approve", by, said,
                             override=override)
    for lease in leases:
        end(tx, lease, by=by if override else None)
    kept = narrowing.hold(svc, tx, parts)
    asked = rule.as_resource(row.resource, row.kind, row.scope)
    bound = no_longer_than([(lease, lease.max_until) for lease in leases], asked, row.mode)
    handed = _handed(row, by, said, changed, override)
    if is_task(asked):
        task_locks.pass_claim(svc, tx, row)
    granted = waiting_line.serve_approved(svc, tx, waiter, handed, bound)
    names = listed([lease.file_path for lease in leases], 5)
    keeps = f" {row.holder} keeps {listed([one.part.resource.name for one in parts], 5)}." * bool(
        parts)
    if override:
        notices.post(
            tx, row.holder, "overridden",
            f"Your lease on {names} was released by {by} (override), as {row.requested_by} asked "
            f"({row.request_id}).{keeps.replace(f'{row.holder} keeps', 'You keep')} Do not write "
            "it without a new lease.", request=row.request_id,
        )
    if granted:
        message = f"Released {names}; {row.requested_by} has {row.resource} now."
    elif tx.row("waiter_get", row.request_id) is None:  # its time was over, and it was told
        message = f"Released {names}; {row.requested_by} does not stand in line any more."
    else:
        message = (f"Released {names}; {row.requested_by} stays in line for {row.resource}, for "
                   "others hold part of it or stand before it.")
        notices.post(
            tx, row.requested_by, "answered", f"{handed} It is not free for you yet: others hold "
            "part of it or stand before you. You stay in line and will be told when it is yours.",
            request=row.request_id, resource=row.resource,
        )
    return rq.UnlockAnswered(
        unlock=pending_unlocks.reply(tx, pending_unlocks.find(tx, row.request_id)),
        released=[lease_reply(lease) for lease in leases], granted=granted,
        message=message + keeps, kept=kept,
    )


def _coexist(
    svc: Service, tx: Tx, row: UnlockRow, leases: list[LeaseRow], entry: agreements.Entry, by: str,
    said: str, override: bool,
) -> rq.UnlockAnswered:
    """The holder and whoever asked hold it both from now on."""
    waiter = _waiter(tx, row)
    waiting_line.look_before_approval(tx, waiter)
    name = entry.grant.name
    before = agreements.party(tx, name, row.holder)
    pending_unlocks.conclude(tx, row, "coexist", by, said, override=override)
    agreements.share(tx, leases, name)
    both = ("One edit of it runs at a time, whoever writes on old content is refused with the "
            "difference, and each of you is told what the other has written.")
    words = f": {quoted(said, 500)}" if said else ""
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
    now = [LeaseRow(*raw) for lease in leases
           if (raw := tx.row("lease_by_token", lease.fencing_token)) is not None]
    return rq.UnlockAnswered(
        unlock=pending_unlocks.reply(tx, pending_unlocks.find(tx, row.request_id)), released=[],
        granted=True, kept=[lease_reply(lease) for lease in now],
        message=f"{row.holder} and {row.requested_by} share {row.resource} from now on ({name}). "
        + both,
    )


def _handed(row: UnlockRow, by: str, said: str, changed: list[str], override: bool) -> str:
    """What the asker is told of what it gets: whose it was, and whether that left it as it was."""
    if override:
        told = f"{by} (override) took {row.resource} from {row.holder} for you ({row.request_id})"
    else:
        told = f"{by} gave up {row.resource}, as you asked ({row.request_id})"
    told += f": {quoted(said, 500)}." if said else "."
    if changed:
        state = " in the middle of its work" if override else ""
        told += (f" {row.holder} had changed {listed(changed)}{state}: what is there now is what "
                 "you start from.")
    return told


def withdraw(svc: Service, tx: Tx, actor: Actor, req: rq.RequestWithdraw) -> rq.Unlock:
    """See `requests.RequestWithdraw`. Who was told no stands in line still, and may leave it."""
    row = pending_unlocks.find(tx, req.request, req.resource)
    raw = tx.row("waiter_get", row.request_id)
    if raw is None:
        _check_open(row)
    if not _answers_for(tx, req.agent, row.requested_by):
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
    if raw is not None:
        waiting_line.step_out(tx, WaiterRow(*raw), "withdrawn")
    return pending_unlocks.reply(tx, pending_unlocks.find(tx, row.request_id))


def listing(svc: Service, view: View, actor: Actor, req: rq.Requests) -> rq.UnlockList:
    """See `requests.Requests`."""
    limit = min(req.limit, 1000)
    found = view.rows("unlocks_list", req.after, req.state, req.agent, limit + 1, req.resource)
    rows = [UnlockRow(*raw) for raw in found[:limit]]
    return rq.UnlockList(
        items=[pending_unlocks.reply(view, row) for row in rows],
        next=rows[-1].n if len(found) > limit else None,
    )


def _check_open(row: UnlockRow) -> None:
    """Raises:
    Refusal: REQUEST_CLOSED.
    """
    if row.status == "pending":
        return
    when = short(from_iso(row.responded_at)) if row.responded_at else ""
    why = f" ({quoted(row.answer, 500)})" if row.answer else ""
    what = "answered with coexist" if row.status == "coexisting" else row.status
    raise Refusal(
        Code.REQUEST_CLOSED,
        f"{row.request_id} was {what} by {row.responded_by} at {when}{why}; it stays so.",
        request=row.request_id, status=row.status,
    )


def _answers_for(tx: Tx, agent: str, name: str) -> bool:
    """Whether `agent` speaks for `name`: it is that one, or a session whose sub-agent that is."""
    if agent == name:
        return True
    row = tx.agent(name)
    return row is not None and row.parent == agent


def _all_handed(tx: Tx, row: UnlockRow, leases: list[LeaseRow]) -> list[LeaseRow]:
    """What an approval gives away: of a task that is claimed, all that it holds."""
    if not is_task(rule.as_resource(row.resource, row.kind, row.scope)):
        return leases
    also = (LeaseRow(*raw) for raw in tx.rows("leases_of_task", task_of(row.scope)))
    return [*leases, *(one for one in also if one.locked_by == row.holder)]


def _check_landed(svc: Service, tx: Tx, row: UnlockRow, leases: list[LeaseRow],
                  parts: list[narrowing.Kept], me: str) -> None:
    """Work in a launch's worktree lands only with its lease: it cannot be given up half-way.

    Raises:
        Refusal: BAD_TRANSITION.
    """
    own = [one for one in leases if svc.is_launched_worktree(one.worktree)]
    changed = [file.path for file in partial_work.changed_since(svc, tx, own)
               if narrowing.gives_up(parts, row, file.path, svc.fold_case)]
    if changed:
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{listed(changed)} was changed in a worktree of its own, and lands with the lease "
            f"when the task ends; without it that could not land. {row.request_id} stays open.",
            next=f"`coord request reject {row.request_id} {me} --answer WHY`, or finish the task.",
        )


def _words(text: str, what: str) -> str:
    """A reason or an answer as one line.

    Raises:
        Refusal: LIMIT.
    """
    said = " ".join(text.split())
    if len(said) > WORDS_CHARS_MAX:
        raise Refusal(
            Code.LIMIT, f"The {what} has {len(said)} characters; {WORDS_CHARS_MAX} are the most. "
            "Nothing was done.", next="Say it shorter.",
        )
    return said
