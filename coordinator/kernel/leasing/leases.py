"""The use cases that acquire, release and renew leases.

`acquire` promises an order. First coord closes the lapsed leases that are in the way, and flags
what their holders changed. Then `acquire` weighs the whole set against live leases, the wait queue
and open reviews. Only then one transaction grants all of the set, or nothing. The looks at the disk
come before all of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import NamedTuple

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
    Terms,
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
from coordinator.store.rows import AgentRow, LeaseRow, WaiterRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso, short
from coordinator.words.refusals import HELD, Code, Refusal
from coordinator.words.resource_names import READ, Located


def needs(req: rq.Acquire) -> list[AnyNeed]:
    """List the files, with their contents, that coord looks at before it decides a request."""
    names, cwd = req.resources, req.cwd
    if len(names) == 1 and ":" not in names[0]:
        return [Whole(names[0], cwd)]  # nearly all requests
    return [Whole(text, cwd) for text in names if ":" not in text or "/" in text]


def acquire_and_wait(svc: Service, req: rq.Acquire) -> Steps:
    """Serve `requests.Acquire`. A request that may wait gets its answer with the grant."""
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
    """Decide `requests.Acquire` in a transaction."""
    for text in req.resources:
        if text.startswith(READ):  # a lease on this text would protect no file
            name = text.removeprefix(READ)
            raise Refusal(
                Code.INVALID, f"`{text}` is how a task names what it only reads; a lease has a "
                f"mode for that. Nothing was leased.",
                next=f"`coord lock {quote(name)} --mode shared --agent {req.agent}`")
    located = with_links(tx, locate(svc, tx, req.resources, req.cwd))
    check_count(svc, len(located))  # links may have added resources
    check_known(svc, tx, located, req.agent, req.cwd, new=req.new)
    task_locks.check_known(tx, located)
    return acquire_located(svc, tx, actor, req, located, How(reentrant=req.reentrant))


class How(NamedTuple):
    """The conditions of a request that the request itself does not state.

    Attributes:
        held_before: the content of the one requested resource before the agent changed it.
        lent: leases of the agent's parent; the agent gets them if nothing else is in the way.
        waits: False keeps the refused agent out of deadlocks, for it waits for nobody.
        purpose: why coord itself takes the lease, or `ASKED` if the agent asks for it.
        reentrant: True says that the asker itself took what its agent already holds. False says
            that another thread or process of the same name may have taken it.
    """

    held_before: Before | None = None
    lent: Sequence[LeaseRow] = ()
    waits: bool = True
    purpose: str = purposes.ASKED
    reentrant: bool = True


PLAINLY = How()


def acquire_located(
    svc: Service, tx: Tx, actor: Actor, req: rq.Acquire, located: Sequence[Located],
    how: How = PLAINLY,
) -> rq.Acquired | Refusal:
    """Do what `acquire` does, for resources that the caller has located."""
    ttl_ms = checked_ttl(svc, req.ttl_s)
    check_wait(svc, req.wait_s)
    if not -1000 <= req.priority <= 1000:
        raise Refusal(Code.INVALID, "`priority` must be between -1000 and 1000.")
    task = tasks.named(tx, req.task)
    agent_row = agents.may_act(tx, actor, req.agent)
    wanted = [(located_resource, req.mode) for located_resource in located]
    own_place = (
        waiting_line.same_again(tx, req.agent, located, req.mode) if tx.present().waiters else None
    )
    purpose = how.purpose
    if own_place is not None and own_place.purpose == purposes.ASKED:
        purpose = purposes.ASKED  # the agent itself asked for this place
    asking = Asking(
        req.priority, tx.now if own_place is None else own_place.asked_at,
        None if own_place is None else own_place.acquisition_id, lent=how.lent)
    blockers = find_blockers(svc, tx, req.agent, wanted, asking)
    stays_queued = req.retry and not (req.passing and not is_there(agent_row, tx.now_ms))
    if not how.reentrant:
        _refuse_held_leases(blockers, located, req)
    if blockers.blocked:
        return _refuse_and_queue(svc, tx, req, located, _Blocked(
            blockers, own_place, stays_queued, ttl_ms, task, purpose, agent_row, how.waits))
    check_looked(svc, tx, wanted, blockers)
    agents.noted(tx, req.agent, agent_row)
    if blockers.closed:
        return quarantined(blockers)
    if own_place is not None:
        waiting_line.asked_again(tx, own_place, False, bool(own_place.held))
    for lease in how.lent:
        lend(tx, lease, req.agent)
    if how.lent:
        blockers = find_blockers(svc, tx, req.agent, wanted,
                                 Asking(req.priority, asking.asked_at))
        blockers.looked = True
    granted = grant(svc, tx, req.agent, wanted, blockers, Terms(
        ttl_ms, task, req.description, purpose, before=how.held_before))
    if own_place is not None and own_place.held:  # tells the open requests at this place, too
        waiting_line.tell(tx, own_place.acquisition_id, had_already(granted))
    return granted


class _Blocked(NamedTuple):
    """A request that something blocks. `own_place` is the place in the queue that its agent already
    has for the same resources. `stays_queued`: the request stays in the queue after the answer."""

    blockers: Blockers
    own_place: WaiterRow | None
    stays_queued: bool
    ttl_ms: int
    task: str | None
    purpose: str
    agent_row: AgentRow | None
    waits: bool


def _refuse_and_queue(svc: Service, tx: Tx, req: rq.Acquire, located: Sequence[Located],
                      blocked: _Blocked) -> Refusal:
    """Make the refusal of a blocked request, and put the request into the queue if it may stay."""
    own_place, blockers = blocked.own_place, blocked.blockers
    own_id = None if own_place is None else own_place.acquisition_id
    stays_queued = blocked.stays_queued
    other = redirect.offer(svc, tx, req.agent)
    circle = circles.find(
        svc, tx, req.agent, blockers, [located_resource.resource for located_resource in located],
        priority=req.priority, before=own_id,
    ) if blocked.waits and (stays_queued or req.wait_s > 0 or not req.passing) else None
    contents = since_asked.contents(tx, located, own_id)
    agents.noted(tx, req.agent, blocked.agent_row)
    # The place stays while an open request waits at it, or an unlock request stands at it.
    joins = own_place is not None and bool(own_place.held)
    keeps_place = own_place is not None and (joins or waiting_line.has_question(tx, own_place))
    enters = stays_queued or req.wait_s > 0 or keeps_place
    kept_id = None if own_place is None else waiting_line.asked_again(tx, own_place, enters, joins)
    acquisition = None
    if enters:
        task_locks.make_real(tx, blockers.leases)
        acquisition = kept_id or f"W-{tx.number('waiter')}"
        if own_place is not None and kept_id is None:  # the grant answers the older request, too
            answered.move(tx, own_place.acquisition_id, acquisition)
        if joins and req.wait_s > 0:
            tx.effects.joined.add(acquisition)
        until = tx.later(ms(max(req.wait_s, svc.settings.leases.line_s if stays_queued else 0)))
        tx.record(
            ev.WaiterQueued(
                acquisition_id=acquisition, agent=req.agent, mode=req.mode, priority=req.priority,
                asked_at=tx.now if own_place is None else own_place.asked_at,
                held=req.wait_s > 0 or joins,
                until=max(until, own_place.until) if own_place and keeps_place else until,
                ttl_ms=blocked.ttl_ms, task=blocked.task, description=req.description,
                resources=list(dict.fromkeys(
                    (r.resource.name, r.resource.kind, r.resource.scope) for r in located)),
                met=blockers.held_at,
                worktrees={r.resource.name: r.worktree for r in once(located) if r.worktree},
                contents=contents,
                gives_way_to=circles.goes_on(circle, req.agent), purpose=blocked.purpose,
            )
        )
    refusal = redirect.locked(
        svc, tx, redirect.Unserved(req.agent, located, acquisition, blocked.task), blockers, other,
        circle)
    if joins and stays_queued and req.wait_s <= 0 and acquisition is not None:
        tx.effects.stays[acquisition] = acquisition
    return refusal


def _refuse_held_leases(blockers: Blockers, located: Sequence[Located], req: rq.Acquire) -> None:
    """Refuse what the agent holds already, for another thread of its name may have taken it.

    Raises:
        Refusal: LOCKED.
    """
    rows = [row for located_resource in located
            if (row := blockers.own.get(own_key(located_resource.resource))) is not None
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
    """Serve `requests.Release`."""
    is_person = actor.row is None
    if req.force and not is_person:
        raise Refusal(Code.UNAUTHORIZED, "Only a person may override with force.",
                      next="Ask the person who runs coord.")
    if req.force and req.keep_shared:
        raise Refusal(
            Code.INVALID, "`keep_shared` is for the holder, who goes on reading: it goes with no "
            "`force`. Nothing was released.", next="Repeat it without one of them.",
            field="keep_shared")
    rows = chosen(svc, tx, req, ("unlock", "releases"))
    if not is_person:
        agents.acting(tx, actor, req.agent)
    rows = of_token(svc, rows, req.lease_token)
    for row in rows:
        _check_may_release(svc, tx, row, req)
    named_tokens = {row.fencing_token for row in rows}
    rows = with_other_names(svc, tx, rows)
    if svc.landing:
        check_at_rest(svc, [row.task_id for row in rows])
    flagged = _flag_changes(svc, tx, rows, req) if req.force else {}
    task_scopes = {row.scope for row in rows if row.task_id is not None}
    released = []
    for row in rows:
        if req.keep_shared and row.fencing_token in named_tokens:
            released.append(lease_reply(row) if row.mode == "shared" else
                            make_shared(svc, tx, row, baselines(tx, row)))
            continue
        # With `force` a person acts, also under the holder's own name.
        by = req.agent if row.locked_by != req.agent else agents.HUMAN if req.force else None
        kept_contents = baselines(tx, row) if row.task_id is None else None
        end(tx, row, by=by)
        released.append(lease_reply(row))
        if by is not None:
            _tell_overridden(tx, row, by, flagged.get(row.locked_by))
        elif row.task_id is None and row.scope not in task_scopes:
            take_over(tx, row, kept_contents)
    return rq.Released(released=released, reviews=[
        name for review in flagged.values() for name in (review.review, *review.others)])


def _check_may_release(svc: Service, tx: Tx, row: LeaseRow, req: rq.Release) -> None:
    """Refuse to release a lease that another holds, or that has lapsed.

    Raises:
        Refusal: NOT_HOLDER, STALE_TOKEN.
    """
    # A request with `force` names the holder, and another agent may hold the lease by now.
    if row.locked_by != req.agent and not (req.force and tx.agent(req.agent) is None):
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


def _tell_overridden(tx: Tx, row: LeaseRow, by: str, flagged: partial_work.Flagged | None) -> None:
    """Tell the holder who has released its lease."""
    who = "a person" if by == agents.HUMAN else by
    notices.post(
        tx, row.locked_by, "overridden",
        f"Your lease on {row.file_path} was released by {who} (override). "
        "Do not write it without a new lease."
        + (flagged.told("Your changes are") if flagged else ""),
        resource=row.file_path,
    )


def _flag_changes(
    svc: Service, tx: Tx, rows: Sequence[LeaseRow], req: rq.Release
) -> dict[str, partial_work.Flagged]:
    """Flag what the holders changed, before a person ends their leases by force. The result has
    the review for each holder whose changes are flagged.

    Raises:
        Unready: somebody has to look at the files first.
    """
    partial_work.look_at(svc, tx, rows)
    result = {}
    for holder in dict.fromkeys(row.locked_by for row in rows):
        holder_rows = [row for row in rows if row.locked_by == holder]
        files = partial_work.changed_since(svc, tx, holder_rows, shared=True)
        flagged = lapse.flag_overridden(
            svc, tx, holder_rows, files, req.agent if holder != req.agent else "a person")
        if flagged is not None:
            result[holder] = flagged
    return result


def renew(svc: Service, tx: Tx, actor: Actor, req: rq.Renew) -> rq.Renewed:
    """Serve `requests.Renew`."""
    if tx.agent(req.agent) is None:
        raise Refusal(Code.UNKNOWN_AGENT, f"No agent is called {req.agent}; nothing was renewed.")
    if req.resources or req.acquisition_id:
        rows = chosen(svc, tx, req, ("renew", "extends"))
    else:  # the request means all leases of the agent that have not lapsed
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
    named_tokens = {row.fencing_token for row in rows}
    new_ends: list[tuple[int, str]] = []
    leases = []
    for row in with_other_names(svc, tx, rows):
        old_end = from_iso(row.expires_at)
        new_end = rule.renewed_until(
            tx.now_ms, ttl_ms or row.ttl_ms, from_iso(row.max_until), old_end
        )
        new_ends.append((row.fencing_token, iso(new_end)))
        if row.fencing_token not in named_tokens:
            continue
        leases.append(lease_reply(row, expires_at=iso(new_end), token=svc.seal(row.fencing_token)))
    if new_ends:
        tx.record(ev.LeaseRenewed(agent=req.agent, until=new_ends))
    return rq.Renewed(leases=leases)
