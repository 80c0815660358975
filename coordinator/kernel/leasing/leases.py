"""Leases: acquire, release, renew.

The order in `acquire` is the promise: what has lapsed and is in the way is closed (and flagged)
first, then the whole set is weighed against live leases, the line and open reviews, and only then
is anything granted: all or nothing, in one transaction. What the resources mean and hold on the
disk was looked at before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from shlex import quote
from typing import NamedTuple

import msgspec

from coordinator.kernel import answered, tasks
from coordinator.kernel.core import Actor, Service, check_at_rest, check_wait, ms
from coordinator.kernel.holders import agents, notices
from coordinator.kernel.leasing import (
    deadlocks,
    lapse,
    other_trees,
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
from coordinator.kernel.use_cases import Steps, WaitForGrant, Write
from coordinator.looking.facts import AnyNeed, Whole
from coordinator.rules import leases as rule
from coordinator.rules.leases import is_there
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import AgentRow, LeaseRow, WaiterRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso, short
from coordinator.words.refusals import HELD, Code, Refusal
from coordinator.words.resource_names import READ, Located


def needs(req: rq.Acquire) -> list[AnyNeed]:
    """What to look at before a request is decided: its files and their contents."""
    names, cwd = req.resources, req.cwd
    if len(names) == 1 and ":" not in names[0]:
        return [Whole(names[0], cwd)]  # nearly always
    return [Whole(text, cwd) for text in names if ":" not in text or "/" in text]


def acquire_and_wait(svc: Service, req: rq.Acquire) -> Steps:
    """See `requests.Acquire`. A request that may wait is answered when the lease is granted."""
    value = yield Write(lambda tx, actor: acquire(svc, tx, actor, req), last=True,
                        queues=req.wait_s > 0, needs=needs(req))
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
    if len(located) > 1:  # (a link may lead through many)
        check_count(svc, len(located))
    check_known(svc, tx, located, req.agent, req.cwd, new=req.new)
    task_locks.check_known(tx, located)
    agents.check_guarded(svc, tx, req.agent)
    return acquire_located(svc, tx, actor, req, located,
                           PLAINLY if req.reentrant else UNLESS_HELD)


class How(msgspec.Struct, frozen=True, gc=False):
    """How something is asked for, beside what the request says.

    Attributes:
        held_before: what the one thing that is asked for held.
        lent: leases of its parent that are handed down to it, if nothing else is in the way.
        waits: else a refused agent waits for nobody, and takes part in no deadlock.
        purpose: what coord itself asks for it for.
        reentrant: what the holder has already is no other's of its name.
    """

    held_before: Before | None = None
    lent: Sequence[LeaseRow] = ()
    waits: bool = True
    purpose: str = purposes.ASKED
    reentrant: bool = True


PLAINLY = How()
UNLESS_HELD = How(reentrant=False)


def acquire_located(
    svc: Service, tx: Tx, actor: Actor, req: rq.Acquire, located: Sequence[Located],
    how: How = PLAINLY,
) -> rq.Acquired | Refusal:
    """`acquire` where what the request's resources mean is known already."""
    ttl_ms = _check_terms(svc, req)
    task = tasks.named(tx, req.task)
    row = agents.may_act(tx, actor, req.agent)
    wanted = list(zip(located, repeat(req.mode)))
    before = (
        waiting_line.same_again(tx, req.agent, located, req.mode) if tx.present().waiters else None
    )
    asking = (Asking(req.priority, tx.now, lent=how.lent, purpose=how.purpose) if before is None
              else _stand_as_before(req, before, how))
    blockers = find_blockers(svc, tx, req.agent, wanted, asking)
    if blockers.own and not how.reentrant:
        had_by_another(blockers, located, req)
    if blockers.blocked:
        stands = req.retry and not (req.passing and not is_there(row, tx.now_ms))
        return _queue(svc, tx, req, located, _Blocked(
            blockers, before, stands, ttl_ms, task, asking.purpose, row, how.waits))
    check_looked(svc, tx, wanted, blockers)
    beside = other_trees.look(svc, tx, req.agent, asking.purpose, wanted, blockers, how.lent)
    agents.noted(tx, req.agent, row)
    if blockers.closed:
        return quarantined(blockers)
    if before is not None:
        waiting_line.asked_again(tx, before, False, bool(before.held))
    if how.lent:
        for lease in how.lent:
            lend(tx, lease, req.agent)
        blockers = find_blockers(svc, tx, req.agent, wanted, Asking(
            req.priority, asking.asked_at, purpose=asking.purpose))
        blockers.looked = True
    granted = grant(svc, tx, req.agent, wanted, blockers, Terms(
        ttl_ms, task, req.description, asking.purpose, before=how.held_before))
    if beside is not None:
        other_trees.tell(svc, tx, req.agent, granted, blockers, beside)
    if before is not None and before.held:  # a request that is held open hears of it, too
        waiting_line.tell(tx, before.acquisition_id, had_already(granted))
    return granted


def _check_terms(svc: Service, req: rq.Acquire) -> int:
    """Check how long and how urgently something is asked for. Returns the TTL in ms.

    Raises:
        Refusal: INVALID.
    """
    if req.wait_s:
        check_wait(svc, req.wait_s)
    if not -1000 <= req.priority <= 1000:
        raise Refusal(Code.INVALID, "`priority` must be between -1000 and 1000.")
    return checked_ttl(svc, req.ttl_s)


def _stand_as_before(req: rq.Acquire, before: WaiterRow, how: How) -> Asking:
    """The agent's former place in the queue. What it asked for itself stays asked for."""
    purpose = purposes.ASKED if before.purpose == purposes.ASKED else how.purpose
    return Asking(req.priority, before.asked_at, before.acquisition_id, lent=how.lent,
                  purpose=purpose)


class _Blocked(NamedTuple):
    """A blocked request. `before`: its agent's place in the queue for the same, if it has one;
    `stands`: it stays in the queue."""

    blockers: Blockers
    before: WaiterRow | None
    stands: bool
    ttl_ms: int
    task: str | None
    purpose: str
    row: AgentRow | None
    waits: bool

    @property
    def place(self) -> str | None:
        """The name of its agent's place."""
        return None if self.before is None else self.before.acquisition_id


class _Place(NamedTuple):
    """A place that is to be taken in the queue.

    Attributes:
        asks: the name that it keeps, if it does.
        joins: another request of the agent is held open for the same.
        until: it is not given up before this (ISO text).
    """

    asks: str | None
    joins: bool
    until: str
    contents: dict[str, str]
    deadlock: deadlocks.Deadlock | None


def _queue(svc: Service, tx: Tx, req: rq.Acquire, located: Sequence[Located],
           blocked: _Blocked) -> Refusal:
    """Refuse a request, and put it into the queue if it stays."""
    before, blockers, stands = blocked.before, blocked.blockers, blocked.stands
    other = redirect.offer(svc, tx, req.agent)
    takes_part = blocked.waits and (stands or req.wait_s > 0 or not req.passing)
    deadlock = deadlocks.find_deadlock(svc, tx, req.agent, blockers, located,
        priority=req.priority, queued=blocked.place) if takes_part else None
    contents = since_asked.contents(tx, located, blocked.place)
    agents.noted(tx, req.agent, blocked.row)
    # A place with an open request, or with a question, is in use, so it stays.
    joins = before is not None and bool(before.held)
    keeps = before is not None and (joins or waiting_line.has_question(tx, before))
    until = before.until if before is not None and keeps else ""
    queues = stands or req.wait_s > 0 or keeps
    asks = None if before is None else waiting_line.asked_again(tx, before, queues, joins)
    acquisition = None
    if queues:
        acquisition = _take_place(svc, tx, req, located, blocked,
                                  _Place(asks, joins, until, contents, deadlock))
    return redirect.locked(
        svc, tx, redirect.Unserved(req.agent, located, acquisition, blocked.task), blockers, other,
        deadlock)


def _take_place(svc: Service, tx: Tx, req: rq.Acquire, located: Sequence[Located],
                blocked: _Blocked, place: _Place) -> str:
    """Put a request into the queue; the name of its place."""
    before = blocked.before
    task_locks.make_real(tx, blocked.blockers.leases)
    acquisition: str = place.asks or f"W-{tx.number('waiter')}"
    if before is not None and place.asks is None:  # an earlier request is told of the grant, too
        answered.move(tx, before.acquisition_id, acquisition)
    if place.joins and req.wait_s > 0:
        tx.effects.joined.add(acquisition)
    elif place.joins and blocked.stands:
        tx.effects.stays[acquisition] = acquisition
    until = tx.later(ms(max(req.wait_s, svc.settings.leases.line_s if blocked.stands else 0)))
    tx.record(ev.WaiterQueued(
        acquisition_id=acquisition, agent=req.agent, mode=req.mode, priority=req.priority,
        asked_at=tx.now if before is None else before.asked_at,
        held=req.wait_s > 0 or place.joins,
        until=max(until, place.until),
        ttl_ms=blocked.ttl_ms, task=blocked.task, description=req.description,
        resources=list(dict.fromkeys(
            (r.resource.name, r.resource.kind, r.resource.scope) for r in located)),
        met=blocked.blockers.held_at,
        worktrees={r.resource.name: r.worktree for r in once(located) if r.worktree},
        contents=place.contents,
        gives_way_to=deadlocks.keep_choice(place.deadlock, req.agent), purpose=blocked.purpose,
    ))
    return acquisition


def had_by_another(blockers: Blockers, located: Sequence[Located], req: rq.Acquire) -> None:
    """Check that the agent has none of this yet. A present holder may be another agent of the same
    name.

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
    """See `requests.Release`."""
    _check_force(actor, req)
    rows = chosen(svc, tx, req, ("unlock", "releases"))
    if actor.row is not None:
        agents.acting(tx, actor, req.agent)
    rows = of_token(svc, rows, req.lease_token)
    for row in rows:
        _check_may_release(svc, tx, row, req)
    kept = {row.fencing_token for row in rows} if req.keep_shared else ()
    present = tx.present()
    if present.renamed:
        rows = with_other_names(svc, tx, rows)
    if svc.landing:
        check_at_rest(svc, [row.task_id for row in rows])
    flagged = _flag_forced(svc, tx, rows, req) if req.force else {}
    goes_on = _list_untasked(rows) if present.claims else ()
    released = []
    for row in rows:
        released.append(
            _keep_shared(svc, tx, row) if row.fencing_token in kept
            else _end_released(tx, row, req, flagged, row.scope in goes_on))
    return rq.Released(released=released, reviews=[
        name for review in flagged.values() for name in (review.review, *review.others)])


def _list_untasked(rows: Sequence[LeaseRow]) -> set[str]:
    """The scopes of leases that no task takes with it: one of its holder may need them still."""
    return {row.scope for row in rows if row.task_id is None} - {
        row.scope for row in rows if row.task_id is not None}


def _keep_shared(svc: Service, tx: Tx, row: LeaseRow) -> rq.Lease:
    """Its holder goes on reading."""
    return (lease_reply(row) if row.mode == "shared"
            else make_shared(svc, tx, row, baselines(tx, row)))


def _check_force(actor: Actor, req: rq.Release) -> None:
    if req.force and actor.row is not None:
        raise Refusal(Code.UNAUTHORIZED, "Only a person may override with force.",
                      next="Ask the person who runs coord.")
    if req.force and req.keep_shared:
        raise Refusal(
            Code.INVALID, "`keep_shared` is for the holder, who goes on reading: it goes with no "
            "`force`. Nothing was released.", next="Repeat it without one of them.",
            field="keep_shared")


def _end_released(tx: Tx, row: LeaseRow, req: rq.Release,
                  flagged: Mapping[str, partial_work.Flagged], goes_on: bool) -> rq.Lease:
    """End one lease. If another agent ends it, the holder is told. If the holder ends it, a task
    of its own that needs the same `goes_on` with what was known."""
    # `--force` under the holder's name means that a person acts.
    by = req.agent if row.locked_by != req.agent else agents.HUMAN if req.force else None
    had = baselines(tx, row) if goes_on else None
    end(tx, row, by=by)
    if by is not None:
        _tell_overridden(tx, row, by, flagged.get(row.locked_by))
    elif goes_on:
        take_over(tx, row, had)
    return lease_reply(row)


def _check_may_release(svc: Service, tx: Tx, row: LeaseRow, req: rq.Release) -> None:
    """Whether this lease is the asker's to release, and still lives.

    Raises:
        Refusal: NOT_HOLDER, STALE_TOKEN.
    """
    # With force the holder is named, and the lease may have another holder meanwhile.
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
    if req.lease_token is not None:
        check_token(svc, row, req.lease_token)
    if row.locked_by == req.agent and row.expires_at <= tx.now and not req.force:
        raise stale(row.file_path)


def _tell_overridden(tx: Tx, row: LeaseRow, by: str, kept: partial_work.Flagged | None) -> None:
    """The holder hears who has released its lease."""
    who = "a person" if by == agents.HUMAN else by
    notices.post(
        tx, row.locked_by, "overridden",
        f"Your lease on {row.file_path} was released by {who} (override). "
        "Do not write it without a new lease." + (kept.told("Your changes are") if kept else ""),
        resource=row.file_path,
    )


def _flag_forced(
    svc: Service, tx: Tx, rows: Sequence[LeaseRow], req: rq.Release
) -> dict[str, partial_work.Flagged]:
    """A person ends leases by force: what their holders had changed is flagged; holder -> review.

    Raises:
        Unready: the files have to be looked at.
    """
    partial_work.look_at(svc, tx, rows)
    result = {}
    for holder in dict.fromkeys(row.locked_by for row in rows):
        theirs = [row for row in rows if row.locked_by == holder]
        files = partial_work.changed_since(svc, tx, theirs, shared=True)
        flagged = lapse.flag_overridden(
            svc, tx, theirs, files, req.agent if holder != req.agent else "a person")
        if flagged is not None:
            result[holder] = flagged
    return result


def renew(svc: Service, tx: Tx, actor: Actor, req: rq.Renew) -> rq.Renewed:
    """See `requests.Renew`."""
    if tx.agent(req.agent) is None:
        raise Refusal(Code.UNKNOWN_AGENT, f"No agent is called {req.agent}; nothing was renewed.")
    if req.resources or req.acquisition_id:
        rows = chosen(svc, tx, req, ("renew", "extends"))
    else:  # all that it has now; an expired lease is not among it
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
    leases = []
    for row in with_other_names(svc, tx, rows):
        current = from_iso(row.expires_at)
        new = rule.renewed_until(tx.now_ms, ttl_ms or row.ttl_ms, from_iso(row.max_until), current)
        until.append((row.fencing_token, iso(new)))
        if row.fencing_token not in named:
            continue
        leases.append(lease_reply(row, expires_at=iso(new), token=svc.seal(row.fencing_token)))
    if until:
        tx.record(ev.LeaseRenewed(agent=req.agent, until=until))
    return rq.Renewed(leases=leases)
