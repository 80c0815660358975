"""Agents: registering, being heard of, falling silent, leaving; and the messages kept for them."""

from __future__ import annotations

import re
import secrets
from functools import lru_cache
from typing import NamedTuple

from coordinator.kernel import answered
from coordinator.kernel.core import Actor, Service, ms, owner, token_hash
from coordinator.kernel.holders import notices, settled_notices
from coordinator.kernel.leasing import lapse
from coordinator.rules.leases import renewed_until
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import AgentRow, LeaseRow, PlaceRow, TaskRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words import texts
from coordinator.words.clock import from_iso, iso
from coordinator.words.refusals import Code, Refusal

#: `seen_at` is written at most this often for an agent: liveness needs no finer grain.
SEEN_EVERY_MS = 15_000
#: Whom a message may go to, or come from, besides an agent of that name: there is none.
ALL, HUMAN = "all", "human"
#: The origin of a name: only a person acted for it, or a CLI's hooks reported it.
PERSON, SESSION = "person", "session"
_NAME = re.compile(r"[^\x00-\x20\x7f/\\\"'`$]{1,100}")


def register(svc: Service, tx: Tx, actor: Actor, req: rq.Register, name: str) -> rq.Registered:
    """Register an agent under this name.

    Raises:
        Refusal: NAME_TAKEN: another has it.
    """
    row = tx.first(AgentRow, "agent_get", name)
    if row is not None and row.state != "gone" and not is_only_a_label(row):
        raise Refusal(
            Code.NAME_TAKEN, f"{name} is the name of a session that is live (heard of at "
            f"{row.seen_at}). It keeps it; nobody was registered.", agent=name,
        )
    warnings = [f"{req.agent} is there already and lives, so this is {name}."]
    token = answered.agent_token(svc, tx.once) if tx.once else secrets.token_hex(16)
    enrol(tx, NewSession(
        name, req.profile, req.parent, req.description, token,
        silence_ms=ms(req.silence_s) if req.silence_s else None,
        origin="launch" if req.launch and actor.operator else "program"), row)
    return rq.Registered(agent=name, token=token,
                         warnings=warnings if name != req.agent and not req.parent else [])


def check_registration(svc: Service, actor: Actor, req: rq.Register) -> None:
    """Check that the asker may register this agent with this silence.

    Raises:
        Refusal: INVALID, UNAUTHORIZED.
    """
    _check_new(req.agent)
    if not actor.operator and req.parent != actor.agent:
        raise Refusal(
            Code.UNAUTHORIZED,
            f"The token that came with this is {actor.agent}'s, which is registered: it may "
            "register sub-agents of its own (`parent`), nobody else. Nobody was registered.",
            next=f"To act as {actor.agent}, name it beside its token (`agent`; COORD_AGENT).",
        )
    if req.silence_s is not None and not 1 <= req.silence_s <= svc.settings.leases.ttl_max_s:
        raise Refusal(Code.INVALID, "`silence_s` must be between 1 and the longest TTL.")


def is_only_a_label(row: AgentRow) -> bool:
    """Whether a name was only acted for by a person: no session has it."""
    return row.is_label and row.token_hash is None


class NewSession(NamedTuple):
    """A session that is to be registered. `origin`: how it came, as `schema.sql` lists it."""

    agent: str
    profile: str
    parent: str | None
    description: str
    token: str | None = None
    silence_ms: int | None = None
    origin: str = "program"


def enrol(tx: Tx, new: NewSession, former: AgentRow | None = None) -> None:
    """Write the registration of a new session. It inherits nothing from one that had its name, but
    a program has the messages that wait for its `former` life."""
    tx.record(ev.AgentRegistered(
        agent=new.agent, parent=new.parent, profile=new.profile, description=new.description,
        token_hash=token_hash(new.token) if new.token else None, silence_ms=new.silence_ms,
        anew=True, origin=new.origin,
        keeps_messages=(former is not None and notices.may_return(former)
                        and new.origin == "program" and new.parent is None),
    ))


@lru_cache(maxsize=1024)
def check_name(name: str) -> None:
    """Agent names are shown everywhere and typed at shells.

    Raises:
        Refusal: INVALID.
    """
    if not _NAME.fullmatch(name) or not texts.is_harmless(name) or " " in texts.one_line(name):
        raise Refusal(
            Code.INVALID,
            f"{name[:60]!r} cannot be an agent's name: 1 to 100 characters, without spaces, "
            "quotes, slashes or control characters.",
        )


def _check_new(name: str) -> None:
    """Check that a new agent may have this name.

    Raises:
        Refusal: INVALID.
    """
    check_name(name)
    if name in (ALL, HUMAN):
        raise Refusal(
            Code.INVALID, f"{name!r} cannot be an agent's name: `coord tell {name}` means "
            f"{'every agent' if name == ALL else 'a person'}. Nothing was done.",
            next="Choose another name.",
        )


def check_guarded(svc: Service, tx: Tx, name: str) -> None:
    """Check that an agent, or the one whose sub-agent it is, is asked before it writes.

    Raises:
        Refusal: UNGUARDED.
    """
    if not svc.unguarded:
        return
    session = owner(tx, name)
    why = svc.unguarded.get(session)
    if why is not None:
        row = tx.agent(session)
        assert row is not None, "its hooks have reported in"
        raise Refusal(
            Code.UNGUARDED, f"{session} is unguarded: {why}. It could write without being asked, "
            "so nothing was leased to it. What it holds stays its own.",
            next=f"`coord init --agent {row.profile}` puts its hooks back; then repeat this.")


def may_act(tx: Tx, actor: Actor, name: str) -> AgentRow | None:
    """Check that `actor` may act as `name`; its row, None if a person acts for one that is new.

    Records nothing: it comes before all that may have to be looked at.

    Raises:
        Refusal: UNAUTHORIZED, UNKNOWN_AGENT, INVALID.
    """
    if actor.row is not None and actor.row.agent == name:
        return actor.row
    row, asking = tx.agent(name), actor.agent
    if row is None or row.state == "gone":
        if asking is not None:
            if row is None:
                raise Refusal(Code.UNKNOWN_AGENT, f"No agent is called {name}.")
            raise Refusal(
                Code.UNKNOWN_AGENT, f"{name} has left; its token ended with it.",
                next="Register again.",
            )
        _check_new(name)
        return None
    if asking is not None and asking != name and row.parent != asking:
        raise Refusal(
            Code.UNAUTHORIZED, f"This token belongs to {asking}; it cannot act for {name}."
        )
    return row


def acting(tx: Tx, actor: Actor, name: str, *, moved: bool = True) -> None:
    """Check that `actor` may act as `name`, and note that it was heard of.

    A person may act for anybody; a name that is new is registered for them then and there.

    Raises:
        Refusal: UNAUTHORIZED, UNKNOWN_AGENT, INVALID.
    """
    row = actor.row
    if row is None or row.agent != name:
        row = may_act(tx, actor, name)
    if row is None:
        noted(tx, name, None)
    else:
        heard_of(tx, row, moved=moved)


def noted(tx: Tx, name: str, row: AgentRow | None) -> None:
    """Note that an agent that `may_act` let pass has done something; `row` is what that gave."""
    if row is None:
        enrol(tx, NewSession(name, "manual", None, "acted for by a person", origin=PERSON))
    else:
        heard_of(tx, row, moved=True)


def heard_of(tx: Tx, row: AgentRow, *, moved: bool, progress: str | None = None) -> None:
    """The agent is active: note it (at most every 15 s, or so often that it is not taken for
    silent), and renew what it holds if it moves."""
    # Renewal follows the last sign that it moves: bare heartbeats in between do not count.
    last = row.progress_at if moved else row.seen_at
    every = SEEN_EVERY_MS if row.silence_ms is None else min(SEEN_EVERY_MS, row.silence_ms // 3)
    if (
        last is not None and last > tx.later(-every) and row.state == "active"
        and (progress is None or progress == row.progress)
    ):
        return
    tx.record(ev.AgentSeen(agent=row.agent, progress=progress, moved=moved))
    if moved:
        renew_all(tx, row.agent)


def renew_all(tx: Tx, agent: str) -> None:
    """Extend every live lease and claim of an agent that shows progress."""
    until = []
    for lease in tx.each(LeaseRow, "leases_of_holder", agent):
        if tx.now >= lease.expires_at:
            continue
        current = from_iso(lease.expires_at)
        new = renewed_until(tx.now_ms, lease.ttl_ms, from_iso(lease.max_until), current)
        if new > current:
            until.append((lease.fencing_token, iso(new)))
    if until:
        tx.record(ev.LeaseRenewed(agent=agent, until=until))
    claims = []
    for task in tx.each(TaskRow, "tasks_of_holder", agent):
        if task.claim_until is None or task.claim_max is None or tx.now >= task.claim_until:
            continue
        current = from_iso(task.claim_until)
        new = renewed_until(tx.now_ms, task.ttl_ms or 0, from_iso(task.claim_max), current)
        if new > current:
            claims.append((task.task_id, iso(new)))
    if claims:
        tx.record(ev.ClaimRenewed(agent=agent, until=claims))


def heartbeat(svc: Service, tx: Tx, actor: Actor, req: rq.Heartbeat) -> rq.Alive:
    """See `requests.Heartbeat`."""
    row = _find_agent(tx, actor, req.agent)
    progress = req.progress[:500] if req.progress is not None else None
    heard_of(tx, row, moved=progress is not None, progress=progress)
    if req.ack:
        first = tx.value("notices_first", req.agent)
        if first is not None and first <= req.ack:
            tx.record(ev.NoticesDelivered(agent=req.agent, up_to=req.ack))
    box = settled_notices.waiting(tx, req.agent, req.ack)
    if box.settled:
        tx.record(ev.NoticesDelivered(agent=req.agent, up_to=box.settled))
    standing = [rq.Notice(notice=notice.notice, at=notice.at, kind=notice.kind, text=notice.text,
                          data=facts) for notice, facts in box.standing]
    return rq.Alive(
        agent=req.agent, state="active", notices=standing,
        hears="hooks" if row.hooked_at is not None else
              "commands" if is_only_a_label(row) else "calls",
    )


def leave(svc: Service, tx: Tx, actor: Actor, req: rq.Leave) -> rq.Left:
    """See `requests.Leave`."""
    _find_agent(tx, actor, req.agent)
    lapse.check_may_end(svc, tx, req.agent)
    ending = lapse.end_agent(
        svc, tx, req.agent, clean=req.clean, reason=req.reason or "left", log_tail=req.log_tail
    )
    return rq.Left(agent=req.agent, released=ending.released, reviews=ending.reviews)


def agents(svc: Service, view: View, actor: Actor, req: rq.Agents) -> rq.AgentList:
    """See `requests.Agents`."""
    return rq.AgentList(items=listing(view, req.all))


def listing(view: View, everyone: bool = False) -> list[rq.AgentRow]:
    """Agents with what they hold and wait for."""
    result = []
    for row in view.each(AgentRow, "agents_all" if everyone else "agents_there"):
        waiting = [
            place.name
            for waiter in view.each(WaiterRow, "waiters_of_agent", row.agent)
            for place in view.each(PlaceRow, "waiter_places_of", waiter.acquisition_id)
        ]
        result.append(rq.AgentRow(
            agent=row.agent, parent=row.parent, profile=row.profile,
            description=row.description, state=row.state, registered_at=row.registered_at,
            seen_at=row.seen_at, progress_at=row.progress_at, progress=row.progress,
            leases=int(view.value("lease_count", row.agent, view.now)),
            tasks=[task.task_id for task in view.each(TaskRow, "tasks_of_holder", row.agent)],
            waiting_for=waiting, session=row.session, hooked_at=row.hooked_at,
            rests_until=row.rests_until if (row.rests_until or "") > view.now else None,
            rests_why=row.rests_why if (row.rests_until or "") > view.now else None,
        ))
    return result


def _find_agent(tx: Tx, actor: Actor, name: str) -> AgentRow:
    row = tx.agent(name)
    if row is None or row.state == "gone":
        raise Refusal(Code.UNKNOWN_AGENT, f"No registered agent is called {name}.")
    if not actor.operator and actor.agent != name and row.parent != actor.agent:
        raise Refusal(
            Code.UNAUTHORIZED, f"This token belongs to {actor.agent}; it cannot act for {name}."
        )
    return row
