"""Leases: acquire, release, renew.

The order in `acquire` is the promise: what has lapsed and is in the way is closed (and flagged)
first, then the whole set is weighed against live leases, the line and open reviews, and only then
is anything granted: all or nothing, in one transaction. What the resources mean and hold on the
disk was looked at before.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from coordinator.kernel import answered, tasks
from coordinator.kernel.core import Actor, Service, check_at_rest, check_wait, ms
from coordinator.kernel.holders import agents, notices
from coordinator.kernel.leasing import (
    circles,
    lapse,
    partial_work,
    redirect,
    since_asked,
    task_locks,
    waiting_line,
)
from coordinator.kernel.leasing.blockers import Asking, Blockers, find_blockers
from coordinator.kernel.leasing.grant import (
    Before,
    baselines,
    check_looked,
    checked_ttl,
    end,
    grant,
    had_already,
    lease_reply,
    lend,
    make_shared,
    quarantined,
    take_over,
)
from coordinator.kernel.leasing.links import with_links
from coordinator.kernel.leasing.located import check_count, locate, once, own_key
from coordinator.kernel.leasing.named_leases import check_token, chosen, of_token, stale
from coordinator.kernel.leasing.other_names import with_other_names
from coordinator.kernel.leasing.regions import check_known
from coordinator.kernel.leasing.typed_names import lease_typed
from coordinator.kernel.use_cases import Steps, WaitForGrant, look_and_write
from coordinator.looking.facts import AnyNeed, Whole
from coordinator.rules import leases as rule
from coordinator.rules.agents import is_there
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso, short
from coordinator.words.refusals import HELD, Code, Refusal
from coordinator.words.resource_names import READ, Located


def needs(req: rq.Acquire) -> list[AnyNeed]:
    """What to look at before a request is decided: its files, with what is in them."""
    names, cwd = req.resources, req.cwd
    if len(names) == 1 and ":" not in names[0]:
        return [Whole(names[0], cwd)]  # nearly always
    return [Whole(text, cwd) for text in names if ":" not in text or "/" in text]


def acquire_and_wait(svc: Service, req: rq.Acquire) -> Steps:
    """See `requests.Acquire`: whoever may wait is answered when the lease is granted."""
    value = yield from look_and_write(
        needs(req), lambda tx, actor: acquire(svc, tx, actor, req), queues=req.wait_s > 0)
    if req.wait_s <= 0 or not isinstance(value, Refusal) or value.code not in HELD:
        return value
    place = value.facts.get("acquisition_id")
    if place is None:
        return value
    granted = yield WaitForGrant(place, req.retry, not req.reentrant, req.passing)
    return value if granted is None else granted


def acquire(svc: Service, tx: Tx, actor: Actor, req: rq.Acquire) -> rq.Acquired | Refusal:
    """See `requests.Acquire`."""
    for text in req.resources:
        if text.startswith(READ):  # it would be a key of this name, and protect no file
            name = text.removeprefix(READ)
            raise Refusal(
                Code.INVALID, f"`{text}` is how a task names what it only reads; a lease has a "
                f"mode for that. Nothing was leased.",
                next=f"`coord lock {quote(name)} --mode shared --agent {req.agent}`")
    located = with_links(tx, locate(svc, tx, req.resources, req.cwd))
    check_count(svc, len(located))  # (a link may lead through many)
    check_known(svc, tx, located, req.agent, req.cwd, new=req.new)
    task_locks.check_known(tx, located)
    return acquire_located(svc, tx, actor, req, located, reentrant=req.reentrant)


def acquire_located(
    svc: Service, tx: Tx, actor: Actor, req: rq.Acquire, located: Sequence[Located], *,
    held_before: Before | None = None, lent: Sequence[LeaseRow] = (), waits: bool = True,
    purpose: str = purposes.ASKED, reentrant: bool = True,
) -> rq.Acquired | Refusal:
    """`acquire` where what the request's resources mean is known already. `held_before`: of
    the one thing that is asked for. `lent`: leases of its
    parent that are handed down to it, if nothing else is in the way. `waits`: else whoever is
    refused waits for nobody, and closes no circle. `purpose`: what coord itself asks for it for.
    `reentrant`: what the holder has already is no other's of its name."""
    limits = svc.settings.leases
    ttl_ms = checked_ttl(svc, req.ttl_s)
    check_wait(svc, req.wait_s)
    if not -1000 <= req.priority <= 1000:
        raise Refusal(Code.INVALID, "`priority` must be between -1000 and 1000.")
    task = tasks.named(tx, req.task)
    asking = agents.may_act(tx, actor, req.agent)
    wanted = [(one, req.mode) for one in located]
    before = (
        waiting_line.same_again(tx, req.agent, located, req.mode) if tx.present().waiters else None
    )
    asked_at = before.asked_at if before is not None else tx.now
    if before is not None and before.purpose == purposes.ASKED:
        purpose = purposes.ASKED  # what it has asked for, it is given as that
    blockers = find_blockers(
        svc, tx, req.agent, wanted, Asking(priority=req.priority, asked_at=asked_at,
        acquisition=before.acquisition_id if before is not None else None, lent=lent),
    )
    stands = req.retry and not (req.passing and not is_there(asking, tx.now_ms))
    if not reentrant:
        had_by_another(blockers, located, req)
    other = circle = None
    blocked = bool(blockers.leases or blockers.waiters)
    if blocked:
        other = redirect.offer(svc, tx, req.agent)
        circle = circles.find(
            svc, tx, req.agent, blockers, [one.resource for one in located],
            priority=req.priority, before=before.acquisition_id if before is not None else None,
        ) if waits and (stands or req.wait_s > 0 or not req.passing) else None
    else:
        check_looked(svc, tx, wanted, blockers)
    contents = since_asked.contents(
        tx, located, before.acquisition_id if before is not None else None) if blocked else {}
    agents.noted(tx, req.agent, asking)
    if blockers.closed and not blocked:
        return quarantined(blockers)
    asks = None
    # A place that a request is held open for, or a question stands at, is theirs: it stays.
    joins = before is not None and bool(before.held)
    keeps = before is not None and (joins or waiting_line.has_question(tx, before))
    if before is not None:
        stays = blocked and (stands or req.wait_s > 0 or keeps)
        asks = waiting_line.asked_again(tx, before, stays, joins)
    if not blocked:
        for lease in lent:
            lend(tx, lease, req.agent)
        if lent:
            blockers = find_blockers(svc, tx, req.agent, wanted, Asking(req.priority, asked_at))
            blockers.looked = True
        granted = grant(
            svc, tx, req.agent, wanted, blockers, ttl_ms=ttl_ms, task=task,
            description=req.description, before=held_before, purpose=purpose,
        )
        if before is not None and before.held:  # whoever is held open for it hears of it, too
            waiting_line.tell(tx, before.acquisition_id, had_already(granted))
        return granted
    acquisition = None
    if stands or req.wait_s > 0 or keeps:
        task_locks.make_real(tx, blockers.leases)
        acquisition = asks or f"W-{tx.number('waiter')}"
        if before is not None and asks is None:  # who asked before is told of the grant, too
            answered.move(tx, before.acquisition_id, acquisition)
        if joins and req.wait_s > 0:
            tx.effects.joined.add(acquisition)
        stay_ms = ms(max(req.wait_s, limits.line_s if stands else 0))
        until = tx.later(stay_ms)
        tx.record(
            ev.WaiterQueued(
                acquisition_id=acquisition, agent=req.agent, mode=req.mode, priority=req.priority,
                asked_at=asked_at, held=req.wait_s > 0 or joins,
                until=max(until, before.until) if before is not None and keeps else until,
                ttl_ms=ttl_ms, task=task, description=req.description,
                resources=list(dict.fromkeys(
                    (r.resource.name, r.resource.kind, r.resource.scope) for r in located)),
                met=blockers.held_at,
                worktrees={r.resource.name: r.worktree for r in once(located) if r.worktree},
                contents=contents,
                gives_way_to=circles.goes_on(circle, req.agent), purpose=purpose,
            )
        )
    refusal = redirect.locked(
        svc, tx, req.agent, located, blockers, acquisition, other, circle, task=task
    )
    if joins and stands and req.wait_s <= 0 and acquisition is not None:
        tx.effects.stays[acquisition] = acquisition
    return refusal


def had_by_another(blockers: Blockers, located: Sequence[Located], req: rq.Acquire) -> None:
    """That the agent has none of this yet: who has, may be another of its name.

    Raises:
        Refusal: LOCKED.
    """
    rows = [row for one in located
            if (row := blockers.own.get(own_key(one.resource))) is not None
            and row.purpose != purposes.OFFERED]
    if not rows:
        return
    first = rows[0]
    raise Refusal(
        Code.LOCKED, f"{first.file_path} is leased by {first.locked_by} already (since "
        f"{short(from_iso(first.locked_at))}), and this request did not say that it comes from "
        "whoever took it. Another thread or program of that name may be at it. Nothing was leased.",
        next="Ask with `reentrant` if it is you who has it; else release it first, or be an agent "
        "of your own.",
        conflicts=[{"resource": row.file_path, "kind": row.kind, "mode": row.mode,
                    "holder": row.locked_by, "task": row.task_id,
                    "description": row.task_description, "since": row.locked_at,
                    "until": row.expires_at} for row in rows],
        holder=first.locked_by, resource=first.file_path, held_by_itself=True)


def release(svc: Service, tx: Tx, actor: Actor, req: rq.Release) -> rq.Released:
    """See `requests.Release`."""
    person = actor.row is None
    if req.force and not person:
        raise Refusal(Code.UNAUTHORIZED, "Only a person may override with force.",
                      next="Ask the person who runs coord.")
    if req.force and req.keep_shared:
        raise Refusal(
            Code.INVALID, "`keep_shared` is for the holder, who goes on reading: it goes with no "
            "`force`. Nothing was released.", next="Repeat it without one of them.",
            field="keep_shared")
    rows = chosen(svc, tx, req.agent, req.resources, req.acquisition_id, req.task, req.cwd,
                   ("unlock", "releases"))
    if not person:
        agents.acting(tx, actor, req.agent)
    rows = of_token(svc, rows, req.lease_token)
    for row in rows:
        if row.locked_by != req.agent and not (req.force and tx.agent(req.agent) is None):
            # (With force it is the holder who is named: by now that is another.)
            place = waiting_line.place_of(tx, req.agent, row.scope)
            raise Refusal(
                Code.NOT_HOLDER,
                f"{row.file_path} is leased by {row.locked_by}, not by {req.agent}"
                + (f", who waits for it ({place})" if place else "") + ". Only the "
                "holder can unlock it; it stays so.",
                next=(f"`coord request withdraw {place} --agent {req.agent}` leaves the line. "
                      if place else "")
                + f"Ask {row.locked_by}, or `coord unlock {lease_typed(svc, row, req.cwd)} "
                f"--agent {row.locked_by} --force` as a person.",
                holder=row.locked_by, resource=row.file_path,
            )
        check_token(svc, row, req.lease_token)
        if row.locked_by == req.agent and row.expires_at <= tx.now and not req.force:
            raise stale(row.file_path)
    named = {row.fencing_token for row in rows}
    rows = with_other_names(svc, tx, rows)
    if svc.landing:
        check_at_rest(svc, [row.task_id for row in rows])
    flagged = _flag_forced(svc, tx, rows, req) if req.force else {}
    told = []
    of_tasks = {row.scope for row in rows if row.task_id is not None}
    for row in rows:
        if req.keep_shared and row.fencing_token in named:
            told.append(lease_reply(row) if row.mode == "shared" else
                        make_shared(svc, tx, row, baselines(tx, row)))
            continue
        # Whoever forces it in the holder's own name (`--agent HOLDER --force`) is a person.
        by = req.agent if row.locked_by != req.agent else agents.HUMAN if req.force else None
        had = baselines(tx, row) if row.task_id is None else None
        end(tx, row, by=by)
        told.append(lease_reply(row))
        if by is None and row.task_id is None and row.scope not in of_tasks:
            take_over(tx, row, had)
        if by is not None:
            kept = flagged.get(row.locked_by)
            who = "a person" if by == agents.HUMAN else by
            notices.post(
                tx, row.locked_by, "overridden",
                f"Your lease on {row.file_path} was released by {who} (override). "
                "Do not write it without a new lease."
                + (kept.told("Your changes are") if kept else ""),
                resource=row.file_path,
            )
    return rq.Released(released=told, reviews=[
        name for one in flagged.values() for name in (one.review, *one.others)])


def _flag_forced(
    svc: Service, tx: Tx, rows: Sequence[LeaseRow], req: rq.Release
) -> dict[str, partial_work.Flagged]:
    """A person ends leases by force: what their holders had changed is flagged; holder -> review.

    Raises:
        Unready: the files have to be looked at.
    """
    partial_work.look_at(svc, tx, rows)
    out = {}
    for holder in dict.fromkeys(row.locked_by for row in rows):
        theirs = [row for row in rows if row.locked_by == holder]
        files = partial_work.changed_since(svc, tx, theirs, shared=True)
        flagged = lapse.flag_overridden(
            svc, tx, theirs, files, req.agent if holder != req.agent else "a person")
        if flagged is not None:
            out[holder] = flagged
    return out


def renew(svc: Service, tx: Tx, actor: Actor, req: rq.Renew) -> rq.Renewed:
    """See `requests.Renew`."""
    if tx.agent(req.agent) is None:
        raise Refusal(Code.UNKNOWN_AGENT, f"No agent is called {req.agent}; nothing was renewed.")
    if req.resources or req.acquisition_id:
        rows = chosen(svc, tx, req.agent, req.resources, req.acquisition_id, None, req.cwd,
                       ("renew", "extends"))
    else:  # all that it has: what has lapsed meanwhile is none of it
        rows = [row for row in tx.each(LeaseRow, "leases_of_holder", req.agent)
                if row.expires_at > tx.now]
    rows = of_token(svc, rows, req.lease_token)
    for row in rows:
        if row.locked_by != req.agent:
            raise Refusal(
                Code.NOT_HOLDER, f"{row.file_path} is leased by {row.locked_by}; it stays so.",
                next=f"`coord request file {lease_typed(svc, row, req.cwd)} --reason WHY --agent "
                f"{req.agent}` asks {row.locked_by} for it.",
                holder=row.locked_by, resource=row.file_path,
            )
        check_token(svc, row, req.lease_token)
        if row.expires_at <= tx.now:
            raise stale(row.file_path)
    ttl_ms = None if req.ttl_s is None else checked_ttl(svc, req.ttl_s)
    agents.acting(tx, actor, req.agent)
    named = {row.fencing_token for row in rows}
    until: list[tuple[int, str]] = []
    out = []
    for row in with_other_names(svc, tx, rows):
        current = from_iso(row.expires_at)
        new = rule.renewed_until(
            tx.now_ms, ttl_ms or row.ttl_ms, from_iso(row.max_until), current
        )
        until.append((row.fencing_token, iso(new)))
        if row.fencing_token not in named:
            continue
        out.append(lease_reply(row, expires_at=iso(new), token=svc.seal(row.fencing_token)))
    if until:
        tx.record(ev.LeaseRenewed(agent=req.agent, until=until))
    return rq.Renewed(leases=out)
