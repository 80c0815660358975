"""Agent sessions as their hooks show them: who is calling, registered at first sight.

A process that `coord launch` started shows its token; a person's own `claude` has none, and is
registered under its profile and its session's id, shortened. A sub-agent is a holder of its own
where its CLI tells it apart, with the session as its parent.
"""

from __future__ import annotations

import re

from coordinator.dialects.decode import HookCall
from coordinator.kernel.core import Actor, Service, ms
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing import grant, lapse
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words.file_names import sha256
from coordinator.words.refusals import Code, Refusal

#: Characters of a session's id in its agent's name. From its end: ids may begin with the time.
ID_CHARS = 8
#: A UUID whose end is random, or a digest: not one of the versions that end with the machine.
_UUID = re.compile(r"[0-9a-f]{12}[^126][0-9a-f]{19}")


def holder(svc: Service, tx: Tx, actor: Actor, profile: str, heard: HookCall) -> str:
    """The holder that this hook speaks for; registered if it is new, noted as hooked."""
    root = _session(svc, tx, actor, profile, heard)
    if not heard.sub or heard.moment == "end":
        return root
    name = f"{root}.{short(heard.sub)}"
    row = tx.agent(name)
    if row is None or row.state == "gone":
        kind = heard.sub_type or "sub-agent"
        agents.enrol(tx, agents.NewSession(
            name, profile, root, f"{kind} of {root}", origin="sub_agent"))
    _hooked(tx, name, heard.session)
    return name


def _session(svc: Service, tx: Tx, actor: Actor, profile: str, heard: HookCall) -> str:
    if actor.agent is not None:
        name = actor.agent
        agents.acting(tx, actor, name)
    else:
        session = heard.parent or heard.session
        name = named(profile, session)
        row = tx.agent(name)
        if row is None or row.state == "gone":
            _enrol(svc, tx, name, profile)
        else:
            agents.heard_of(tx, row, moved=True)
    _hooked(tx, name, heard.parent or heard.session)
    return name


def join(svc: Service, tx: Tx, actor: Actor, req: rq.Join) -> rq.Joined:
    """See `requests.Join`."""
    announced = svc.callers.get(req.call)
    if announced is not None and not _left(tx, announced):
        return rq.Joined(agent=announced)
    if not req.profile or not req.session:
        raise Refusal(Code.INVALID, "`profile` and `session` have to be given.")
    name = named(req.profile, req.session)
    agents.check_name(name)
    row = tx.agent(name)
    if row is None or row.state == "gone":
        _enrol(svc, tx, name, req.profile)
        return rq.Joined(agent=name)
    of_old = row.session if row.session is not None else req.session
    if row.origin != agents.SESSION or of_old != req.session:
        raise Refusal(
            Code.UNAUTHORIZED, f"{name} is another agent, not this session; nobody acts for it so.",
            next="Start the agent with a session of its own.",
        )
    return rq.Joined(agent=name)


def _enrol(svc: Service, tx: Tx, name: str, profile: str) -> None:
    silence_ms = ms(svc.settings.leases.ttl_s)
    agents.enrol(tx, agents.NewSession(
        name, profile, None, f"a session of {profile}", silence_ms=silence_ms,
        origin=agents.SESSION))


def _left(tx: Tx, agent: str) -> bool:
    row = tx.agent(agent)
    return row is None or row.state == "gone"


def ended(svc: Service, tx: Tx, actor: Actor, agent: str, *, why: str) -> None:
    """A session or sub-agent has ended. Its leases are released. If it was at a task, its changes
    are kept for a person. An agent that shows a token was registered by somebody else, usually a
    launcher, which ends it: a session is one of its runs, and the launcher knows whether the task
    is done."""
    row = tx.agent(agent)
    if row is None or row.state == "gone":
        return
    if actor.agent == agent:
        if not tx.has("tasks_of_holder", agent):
            turn_over(tx, agent)
    else:
        lapse.end_agent(svc, tx, agent, clean=True, reason=why)


def turn_over(tx: Tx, agent: str) -> None:
    """The agent rests until its person speaks again: what it holds for no task is released."""
    for row in tx.each(LeaseRow, "leases_of_holder", agent):
        if row.task_id is None and row.expires_at > tx.now:
            grant.end(tx, row)


def _hooked(tx: Tx, name: str, session: str) -> None:
    row = tx.agent(name)
    if row is not None and (row.hooked_at is None or row.session != session):
        tx.record(ev.AgentHooked(agent=name, session=session[:200]))


def named(profile: str, session: str) -> str:
    """The holder's name for a session of an agent CLI."""
    return f"{profile}-{short(session)}" if session else profile


def short(session: str) -> str:
    """A session's id as part of its holder's name. It is the end of a UUID with random characters,
    and a digest of another long id, because several may end alike."""
    kept = "".join(sign for sign in session if sign.isascii() and sign.isalnum()).lower()
    if len(kept) > ID_CHARS and not _UUID.fullmatch(kept):
        return sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:ID_CHARS]
    return kept[-ID_CHARS:] or "unnamed"
