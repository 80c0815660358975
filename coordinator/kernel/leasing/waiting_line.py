"""The wait queue: how waiters enter it, are served from it, and leave it.

After each job that freed something, `wake` names the waiters near it. Each waiter is served in a
transaction of its own (`serve`). So none can fail another's request, and none passes another,
because an earlier waiter blocks as a lease does (invariant 9). A waiter whose request is still open
is told of its grant at once. One that went away gets a notice, and its lease is short until it is
used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from sys import intern
from typing import NamedTuple

from coordinator.kernel import answered, blocked_steps, unserved
from coordinator.kernel.core import Actor, Service, listed, ms
from coordinator.kernel.holders import agents, notices
from coordinator.kernel.leasing import deadlocks, pending_unlocks, redirect, since_asked
from coordinator.kernel.leasing.blockers import Asking, Blockers, find_blockers
from coordinator.kernel.leasing.grant import Agreed, Terms, check_looked, grant, had_already
from coordinator.kernel.leasing.links import as_they_lead
from coordinator.kernel.leasing.located import Wanted, locate_name, once, place
from coordinator.kernel.leasing.overlapping import HOLDERS_TOLD_MAX, each_lease_near, near
from coordinator.kernel.leasing.waits import waited_for
from coordinator.looking.facts import Place
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import is_there
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, NearWaiter, PlaceRow, WaiterRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, short
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import WINDOW, Located, Resource, file_scope, path_of


def same_again(
    tx: Tx, agent: str, located: Sequence[Located], mode: str | None = None
) -> WaiterRow | None:
    """The place of an agent that asks again for what it waits for. It keeps that place (its age
    counts on), and has only the one: two grants would surprise. But one that a request is held open
    for is not another's that wants it in another `mode`: that request would be left without."""
    names = sorted(located_resource.resource.name for located_resource in located)
    for waiter in tx.each(WaiterRow, "waiters_of_agent", agent):
        wanted = [place.name for place in
                  tx.each(PlaceRow, "waiter_places_of", waiter.acquisition_id)]
        if wanted == names and (mode in (None, waiter.mode) or not waiter.held):
            return waiter
    return None


def withdraw(svc: Service, tx: Tx, actor: Actor, req: rq.Withdraw) -> rq.Withdrawn:
    """See `requests.Withdraw`."""
    waiter = tx.first(WaiterRow, "waiter_get", req.acquisition_id)
    if waiter is None:
        raise Refusal(Code.UNKNOWN_LEASE, f"{req.acquisition_id} does not stand in line.")
    if waiter.agent != req.agent:
        raise Refusal(Code.NOT_HOLDER, f"{req.acquisition_id} belongs to {waiter.agent}.")
    agents.acting(tx, actor, req.agent)
    step_out(tx, waiter, "withdrawn")
    return rq.Withdrawn(acquisition_id=req.acquisition_id)


def place_of(tx: Tx, agent: str, scope: str) -> str | None:
    """The place of an agent in the queue for this scope."""
    for waiter in tx.each(WaiterRow, "waiters_of_agent", agent):
        if scope in tx.values("waiter_scopes_of", waiter.acquisition_id):
            return waiter.acquisition_id
    return None


def is_heard(tx: Tx, acquisition: str) -> bool:
    """Whether the agent of this place is there, to hear of what it is granted."""
    waiter = tx.first(WaiterRow, "waiter_get", acquisition)
    return waiter is not None and is_there(tx.agent(waiter.agent), tx.now_ms)


def leave(tx: Tx, acquisition: str, reason: str) -> None:
    """Remove this waiter from the queue, if it is there."""
    waiter = tx.first(WaiterRow, "waiter_get", acquisition)
    if waiter is not None:
        step_out(tx, waiter, reason)


def step_out(tx: Tx, waiter: WaiterRow, reason: str) -> None:
    """Remove a waiter from the queue. Waiters behind it may be served now."""
    _leave(tx, waiter, reason)
    pending_unlocks.left_line(tx, waiter.acquisition_id, reason)


def _leave(tx: Tx, waiter: WaiterRow, reason: str) -> None:
    freed = _resources(tx, waiter.acquisition_id)
    tx.record(ev.WaiterLeft(acquisition_id=waiter.acquisition_id, agent=waiter.agent,
                            reason=reason))
    tx.freed += [(resource.name, resource.kind, resource.scope) for resource in freed]


def has_question(tx: Tx, waiter: WaiterRow) -> bool:
    """Whether an unlock request has this place in the queue."""
    return pending_unlocks.pending(tx, waiter.acquisition_id) is not None


def asked_again(tx: Tx, waiter: WaiterRow, stays: bool, joins: bool) -> str | None:
    """Replace the agent's place in the queue: it is about to be granted, queued anew (`stays`), or
    removed. Returns the id to use if an unlock request, or a request that is held open, continues
    there. `joins`: this request waits with the open one."""
    _leave(tx, waiter, "asked again")
    if stays and (joins or pending_unlocks.pending(tx, waiter.acquisition_id) is not None):
        return waiter.acquisition_id
    pending_unlocks.left_line(tx, waiter.acquisition_id, "asked again")
    return None


def wake(svc: Service, tx: Tx) -> None:
    """Note who waits near what this job has freed, the best first: each is to be served."""
    tx.effects.offers = True
    if tx.present().waiters:
        # A waiter for another region of a file may wait for the new name of a renamed region.
        names = {row.acquisition_id for name, kind, scope in dict.fromkeys(tx.freed)
                 for row in near(tx, NearWaiter, "waiters_near", rule.as_resource(
                     *((path_of(name, kind), "file", file_scope(scope)) if kind == "region"
                       else (name, kind, scope))))}
        names |= {name for _, _, scope in dict.fromkeys(tx.freed)
                  for name in tx.values("waiters_met", scope)}
        names = {name for name in names if not unserved.rests(tx, "waiter", name)}
        tx.effects.wake.update(dict.fromkeys(in_order(svc, tx, names)))
    tx.freed.clear()


def in_order(svc: Service, view: View, acquisitions: Iterable[str]) -> list[str]:
    """These waiters in the order of their standing."""
    step = ms(svc.settings.leases.age_step_s)
    waiters = view.each_of(WaiterRow, "waiter_get", acquisitions)
    waiters.sort(key=lambda w: (rule.standing(w.priority, w.asked_at, view.now_ms, step),
                                w.acquisition_id))
    return [waiter.acquisition_id for waiter in waiters]


def everybody(svc: Service, view: View) -> list[str]:
    """All waiters in the order of their standing, without those that are set aside for now."""
    names = [row.acquisition_id for row in view.each(WaiterRow, "waiters_all")]
    return in_order(svc, view, [n for n in names if not unserved.rests(view, "waiter", n)])


def serve(svc: Service, tx: Tx, acquisition: str) -> bool:
    """Grant to this waiter if nothing blocks it now. Returns whether it was granted.

    Raises:
        Unready: lapsed leases have to be closed before, or files to be looked at.
        Refusal: it cannot be served: what it waits for lies outside by now, or is too large.
    """
    waiter = tx.first(WaiterRow, "waiter_get", acquisition)
    if waiter is None:
        return False
    if waiter.until <= tx.now:
        _waited_in_vain(svc, tx, waiter)
        return False
    wanted, blockers = _weighed(svc, tx, waiter)
    if blockers.blocked or blockers.closed:
        pending_unlocks.lost_its_holder(tx, acquisition)
        if len(wanted) > 1 and waited_for(tx, waiter.agent):
            deadlocks.look_for_deadlock(svc, tx, waiter.agent)  # it may be in a second deadlock
        return False
    _give(svc, tx, waiter, wanted, blockers, _Handed())
    return True


def set_aside(svc: Service, tx: Tx, acquisition: str, why: str) -> None:
    """Set this waiter aside because it cannot be served. It keeps its place and is tried again.
    Waiters behind it are served meanwhile."""
    waiter = tx.first(WaiterRow, "waiter_get", acquisition)
    if waiter is None:
        return
    if waiter.until <= tx.now:
        _waited_in_vain(svc, tx, waiter)
        return
    unserved.put(tx, "waiter", acquisition, why, agent=waiter.agent, task=waiter.task_id)
    tx.freed += [(resource.name, resource.kind, resource.scope) for resource
                 in _resources(tx, acquisition)]


def nobody_listens(tx: Tx, acquisition: str) -> None:
    """The request that was held open for this waiter is gone: what it is granted from now on is
    only offered."""
    waiter = tx.first(WaiterRow, "waiter_get", acquisition)
    if waiter is not None and waiter.held:
        tx.record(ev.WaiterChanged(acquisition_id=acquisition, agent=waiter.agent, held=False))


def _waited_in_vain(svc: Service, tx: Tx, waiter: WaiterRow) -> None:
    """The time of a waiter is over. It was told that it would hear of the file, so it is told this.
    """
    wanted = [resource.name for resource in _resources(tx, waiter.acquisition_id)]
    step_out(tx, waiter, "timed out")
    # A turn to write is asked for again with the write itself.
    if not waiter.held and not all(name.startswith(WINDOW) for name in wanted):
        step = blocked_steps.keep_waited_in_vain(svc, tx, waiter, wanted).step_id
        notices.post(
            tx, waiter.agent, "line",
            f"You do not stand in line for {listed(wanted)} any more: it did not become free in "
            f"time. Ask again if you still need it. ({step})",
            acquisition_id=waiter.acquisition_id, step=step,
        )


def look_before_approval(tx: Tx, waiter: WaiterRow) -> None:
    """Require what the waiter's answer tells, before an approval records anything.

    Raises:
        Unready.
    """
    tx.looked.require(_places(tx, waiter.acquisition_id))
    with contextlib.suppress(Refusal):
        wanted = [(located, waiter.mode) for located in _lie(tx, waiter.acquisition_id)]
        since_asked.changed(tx, waiter.acquisition_id, wanted)


def serve_approved(
    svc: Service, tx: Tx, waiter: WaiterRow, text: str, no_longer_than: str | None
) -> bool:
    """Grant to a waiter whose unlock request was just approved, if nothing else blocks it.

    It passes earlier waiters only with `no_longer_than` (ISO text), which limits its grant: see
    `rules.negotiation`.
    """
    try:
        wanted, blockers = _weighed(svc, tx, waiter, handed=True)
        check_looked(svc, tx, wanted, blockers)
    except Refusal as refusal:  # the holder's answer stays; the asker is tried again later
        set_aside(svc, tx, waiter.acquisition_id, refusal.message)
        return False
    if blockers.leases or blockers.closed or (blockers.waiters and no_longer_than is None):
        return False
    _give(svc, tx, waiter, wanted, blockers,
          _Handed(text, no_longer_than if blockers.waiters else None))
    return True


def serve_agreed(
    svc: Service, tx: Tx, waiter: WaiterRow, text: str, no_longer_than: str | None, agreed: Agreed
) -> None:
    """Grant to a waiter what its holder shares with it from now on: it was looked at, and nothing
    else is in the way (`agreements.entry`)."""
    wanted, blockers = _weighed(svc, tx, waiter, agreed.name, handed=True)
    _give(svc, tx, waiter, wanted, blockers, _Handed(text, no_longer_than, agreed))


def _weighed(svc: Service, tx: Tx, waiter: WaiterRow, agreed: str | None = None, *,
             handed: bool = False) -> tuple[list[Wanted], Blockers]:
    """`handed`: its holder gives it, so that it is that and no more."""
    tx.looked.require(_places(tx, waiter.acquisition_id))
    matches = once(_lie(tx, waiter.acquisition_id))
    if not handed:
        matches = as_they_lead(tx, matches, since_asked.then(tx, waiter.acquisition_id))
    wanted: list[Wanted] = [(located, waiter.mode if agreed is None else "shared") for located
                            in matches]
    blockers = find_blockers(
        svc, tx, waiter.agent, wanted, Asking(priority=waiter.priority, asked_at=waiter.asked_at,
        acquisition=waiter.acquisition_id, agreed=agreed, purpose=waiter.purpose),
    )
    return wanted, blockers


class _Handed(NamedTuple):
    """How a waiter comes by what it is given. `said`: in words, where its holder has given it."""

    said: str = ""
    no_longer_than: str | None = None
    agreed: Agreed | None = None


def _give(
    svc: Service, tx: Tx, waiter: WaiterRow, wanted: Sequence[Wanted], blockers: Blockers,
    handed: _Handed,
) -> None:
    """Grant to a waiter what it waits for, and tell it."""
    text = handed.said
    check_looked(svc, tx, wanted, blockers)
    changed = since_asked.changed(tx, waiter.acquisition_id, wanted)
    tx.record(
        ev.WaiterLeft(acquisition_id=waiter.acquisition_id, agent=waiter.agent, reason="granted")
    )
    pending_unlocks.left_line(
        tx, waiter.acquisition_id, "the lease ended unanswered; granted from line"
    )
    offered = None if waiter.held else min(waiter.ttl_ms, ms(svc.settings.leases.offered_ttl_s))
    reply = grant(
        svc, tx, waiter.agent, wanted, blockers, Terms(
            waiter.ttl_ms, waiter.task_id, waiter.description,
            purposes.OFFERED if offered is not None and waiter.purpose == purposes.ASKED
            else intern(waiter.purpose),
            first_ttl_ms=offered, no_longer_than=handed.no_longer_than, agreed=handed.agreed),
    )
    reply.changed = changed
    if text:
        reply.warnings.append(text)
    tell(tx, waiter.acquisition_id, reply)
    # Others that wait for what this agent holds now let its other waiters pass.
    tx.effects.wake.update({
        row.acquisition_id: None for row in tx.each(WaiterRow, "waiters_of_agent", waiter.agent)})
    if text or not waiter.held:  # an answer is told, even where the grant itself is awaited
        names = [lease.resource for lease in reply.leases]
        notices.post(
            tx, waiter.agent, "granted",
            f"{text or 'You waited for ' + ', '.join(names) + ':'} "
            f"{'It' if text else 'it'} is yours until "
            f"{short(from_iso(min(lease.expires_at for lease in reply.leases)))}. "
            "Read it afresh before you write" + ("." if changed else "; it may have changed.")
            + since_asked.describe(changed),
            acquisition_id=reply.acquisition_id, waited_as=waiter.acquisition_id, resources=names,
        )


def tell(tx: Tx, acquisition: str, reply: rq.Acquired) -> None:
    """Tell all requests that wait at this place of the grant, once it is on disk. A client whose
    connection broke, and that asks again under its idempotency key, gets the same answer."""
    tx.effects.granted.append((acquisition, reply))
    for asker, asked in answered.awaited(tx, acquisition):
        answered.note(tx, asker, asked, reply)
        reply = had_already(reply)
    answered.wait_no_more(tx, acquisition)


def stop_holding(
    svc: Service, tx: Tx, acquisition: str, stay: bool, last: bool = True, *, listens: bool = False
) -> Refusal | None:
    """End a request that waited for this acquisition, and return its answer.

    If it is the `last` request there, the place becomes an ordinary waiter's (`stay`) or is given
    up. None means that nothing blocks it now: then it is granted, and told as any grant is, as long
    as somebody `listens`.
    """
    waiter = tx.first(WaiterRow, "waiter_get", acquisition)
    if waiter is None:
        return Refusal(Code.LOCKED, f"{acquisition} left the line. Nothing is held for it.",
                       next="Ask again for what it waited for.", acquisition_id=acquisition)
    tx.looked.require(_places(tx, acquisition))
    located = _locate_resources(tx, acquisition)
    # An agent that gets its turn later would not be there to write.
    is_turn = all(located_resource.resource.name.startswith(WINDOW) for located_resource in located)
    stay = stay and not is_turn
    wanted: list[Wanted] = [(located_resource, waiter.mode) for located_resource in located]
    blockers = find_blockers(
        svc, tx, waiter.agent, wanted, Asking(priority=waiter.priority, asked_at=waiter.asked_at,
        acquisition=acquisition, purpose=waiter.purpose),
    )
    if listens and not is_turn and not (blockers.blocked or blockers.closed):
        _give(svc, tx, waiter, wanted, blockers, _Handed())
        return None
    other = redirect.offer(svc, tx, waiter.agent)
    deadlock = deadlocks.find_deadlock(svc, tx, waiter.agent, blockers, located,
        priority=waiter.priority, queued=acquisition) if blockers.blocked else None
    if last:
        _end_holding(tx, waiter, stay)
    asked = redirect.Unserved(
        waiter.agent, located, acquisition if stay or not last else None, waiter.task_id)
    return redirect.locked(svc, tx, asked, blockers, other, deadlock)


def _end_holding(tx: Tx, waiter: WaiterRow, stay: bool) -> None:
    """No request of this waiter is open any longer."""
    answered.wait_no_more(tx, waiter.acquisition_id)
    if stay:
        tx.record(ev.WaiterChanged(
            acquisition_id=waiter.acquisition_id, agent=waiter.agent, held=False))
    else:
        step_out(tx, waiter, "timed out")


def _resources(tx: View, acquisition: str) -> list[Resource]:
    return [rule.as_resource(row.name, row.kind, row.scope)
            for row in tx.each(PlaceRow, "waiter_places_of", acquisition)]


def _places(tx: Tx, acquisition: str) -> list[Place]:
    return [place(row.name, row.kind, row.worktree)
            for row in tx.each(PlaceRow, "waiter_places_of", acquisition)]


def _lie(tx: Tx, acquisition: str) -> list[Located]:
    """The present locations of a waiter's resources."""
    return [locate_name(tx, row.name, row.kind, row.scope, row.worktree)
            for row in tx.each(PlaceRow, "waiter_places_of", acquisition)]


def _locate_resources(tx: Tx, acquisition: str) -> list[Located]:
    """The locations of a waiter's resources; where they cannot be told, those at the time of its
    request."""
    result = []
    for row in tx.each(PlaceRow, "waiter_places_of", acquisition):
        try:
            result.append(tx.looked.located(place(row.name, row.kind, row.worktree)))
        except Refusal:
            result.append(Located(
                rule.as_resource(row.name, row.kind, row.scope), None, None, row.worktree))
    return result


def listing(svc: Service, view: View, *, about: Resource | None = None,
            agent: str | None = None) -> list[rq.Waiter]:
    """The waiters in the order in which they will be looked at. `about`: only those that wait for
    what overlaps it. `agent`: only those of this agent, or that wait for something it holds. Places
    count in the whole queue, whatever is shown."""
    step = ms(svc.settings.leases.age_step_s)
    waiters = view.each(WaiterRow, "waiters_all")
    waiters.sort(key=lambda w: (rule.standing(w.priority, w.asked_at, view.now_ms, step),
                                w.acquisition_id))
    result = []
    for position, w in enumerate(waiters, 1):
        wanted = _resources(view, w.acquisition_id)
        if about is not None and not any(overlaps(about, resource) for resource in wanted):
            continue
        held_by = _held_by(view, w)
        if agent is not None and agent != w.agent and agent not in held_by:
            continue
        result.append(rq.Waiter(
            acquisition_id=w.acquisition_id, agent=w.agent, resources=[r.name for r in wanted],
            mode=w.mode, priority=w.priority, asked_at=w.asked_at, until=w.until, position=position,
            description=w.description, held_by=held_by,
        ))
    return result


def _held_by(view: View, waiter: WaiterRow) -> list[str]:
    """The holders of something that it waits for."""
    result: dict[str, None] = {}
    for row in view.each(PlaceRow, "waiter_places_of", waiter.acquisition_id):
        asked = rule.as_resource(row.name, row.kind, row.scope)
        reach = rule.reach(row.kind, waiter.purpose, row.worktree)
        for lease in each_lease_near(view, asked):
            if lease.expires_at > view.now and rule.conflicts(
                    asked, waiter.mode, waiter.agent, lease, within=reach):
                result[lease.locked_by] = None
            if len(result) == HOLDERS_TOLD_MAX:
                return list(result)
    met = view.value("waiter_met", waiter.acquisition_id) if not result else None
    if met:  # what it waits for is leased by another name
        result = {row.locked_by: None for row in view.each(LeaseRow, "leases_at_scope", met)
                  if row.expires_at > view.now}
    return list(result)
