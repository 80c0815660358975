"""Programs have lasting names: one that is run again is the agent that it was.

A program is an agent that registered by itself. Its life ends when it leaves; when its process has
ended, unless it has handed its token on or had named a silence; or when it was silent for long.
Then the next registration of its name ends that life, as any other end does, and continues the
name: messages wait for it, and idempotency keys are kept by it. A life that lasts keeps its name.

A silent program becomes stale, and is active again with its next request. It is gone when its
process has ended, or after `FORGOTTEN_MS`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from coordinator.kernel.core import Actor, Service
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing import lapse
from coordinator.kernel.use_cases import FindAsker, Pause, Read, Step, Steps, Write, decide
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import AgentRow, Row
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code, Refusal

#: A program that named no silence is silent after this (ms). One that is silent is gone after that.
SILENCE_MS, FORGOTTEN_MS = 900_000, 86_400_000
#: So long (ms) a process that only registered may have handed its token on to one that acts.
HAND_ON_MS = 60_000
#: How often, and after how many seconds, to look again whether a dead process has hung up.
HANGS_UP_TRIES, AGAIN_S = 25, 0.02
#: Names with a number that may be taken over from a life that has ended.
LOOKED_AT_MAX = 50
#: Refusals of the registration itself, whatever became of a former life.
_OWN = (Code.INVALID, Code.NAME_TAKEN, Code.UNAUTHORIZED)
#: Mark of a process -> whether it has ended; None: unknown.
Ended = Mapping[str, bool | None]


class ProcessRow(Row, frozen=True):
    """The process that registered a program. `handed`: another has acted with its token."""

    process: str
    handed: int


def register(svc: Service, req: rq.Register) -> Steps:
    """See `requests.Register`."""
    mark = yield FindAsker()
    ended: Ended = {}
    for _ in range(HANGS_UP_TRIES):
        ended = yield from _look(svc, req.agent, numbered=req.unique and req.parent is None)
        if not (yield from _hangs_up_late(svc, req.agent, ended)):
            break
        yield Pause(AGAIN_S)
    value = yield _write(svc, req, mark, ended)
    if ended and isinstance(value, Refusal) and value.code not in _OWN:
        value = yield _write(svc, req, mark, {})  # the former life's files cannot be looked at
    return value


def _write(svc: Service, req: rq.Register, mark: str, ended: Ended) -> Write:
    return Write(lambda tx, actor: _register(svc, tx, actor, req, (mark, ended)), last=True)


def _register(svc: Service, tx: Tx, actor: Actor, req: rq.Register,
              seen: tuple[str, Ended]) -> rq.Registered:
    agents.check_registration(svc, actor, req)
    name, former = _choose_name(svc, tx, req, seen[1])
    if former is not None:
        lapse.end_agent(svc, tx, name, clean=False, reason="its program ended and runs again")
    registered = agents.register(svc, tx, actor, req, name)
    tx.write_beside("program_put", name, seen[0])
    return registered


def _choose_name(svc: Service, tx: Tx, req: rq.Register, ended: Ended
                 ) -> tuple[str, AgentRow | None]:
    """The name that is asked for, or if it is `unique` the first with a number that nobody has who
    lives; and who had it, if that life is to be ended."""
    taken = set(tx.values("agents_named", req.agent))
    names = [req.agent, *(f"{req.agent}-{n}" for n in range(2, len(taken) + 3))]
    for name in names if req.unique else names[:1]:
        row = tx.agent(name) if name in taken else None
        if row is None or (agents.is_only_a_label(row) and not req.unique):
            return name, None
        if row.origin == "program" and row.token_hash is not None and is_over(
                svc, tx, name, ended):
            return name, row
    return req.agent, None


def is_over(svc: Service, tx: View, name: str, ended: Ended) -> bool:
    """Whether the life of this name has ended, with the lives of all its sub-agents. `ended`: its
    processes, as they were looked at."""
    rows = [tx.agent(member) for member in lapse.family(tx, name)]
    return all(_has_ended(svc, tx, row, ended) and not lapse.is_landing(svc, tx, row.agent)
               for row in rows if row is not None)


def _has_ended(svc: Service, tx: View, row: AgentRow, ended: Ended) -> bool:
    if _is_connected(svc, tx, row):
        return False
    process = tx.first(ProcessRow, "program_process", row.agent)
    has_ended = ended.get(process.process) if process is not None else None
    if (process is not None and has_ended and not process.handed and row.silence_ms is None
            and _has_acted(svc, tx, row)):
        return True
    silence_ms = row.silence_ms or SILENCE_MS
    return has_ended is not False and tx.now_ms - from_iso(row.seen_at) >= silence_ms


def _has_acted(svc: Service, view: View, row: AgentRow) -> bool:
    """Whether the process that registered an agent is the one that acts with its token, if no other
    was seen to. One that only registered may hand it on."""
    return (svc.presence.has_acted(row.token_hash) or row.seen_at > row.registered_at
            or view.has("leases_of_holder", row.agent)
            or view.now_ms - from_iso(row.registered_at) >= HAND_ON_MS)


def _is_connected(svc: Service, view: View, row: AgentRow) -> bool:
    """Whether a connection is open that acts for this agent, with its token or its parent's."""
    parent = view.agent(row.parent) if row.parent is not None else None
    return svc.presence.is_connected(row.token_hash) or (
        parent is not None and svc.presence.is_connected(parent.token_hash))


def _look(svc: Service, name: str, *, numbered: bool = False) -> Generator[Step, Any, Ended]:
    """Whether the processes of this agent and its sub-agents have ended; `numbered`: also those of
    the same name with a number."""
    def read(view: View, actor: Actor) -> set[str]:
        names = view.values("agents_named", name)[:LOOKED_AT_MAX if numbered else 1]
        return {row.process for agent in names for member in lapse.family(view, agent)
                if (row := view.first(ProcessRow, "program_process", member)) is not None}

    marks = yield Read(read)
    return {mark: svc.presence.look_at(mark) for mark in marks} if isinstance(marks, set) else {}


def _hangs_up_late(svc: Service, name: str, ended: Ended) -> Generator[Step, Any, bool]:
    """Whether a process has ended whose connection is not closed yet."""
    if True not in ended.values():
        return False
    connected = yield Read(lambda view, actor: any(
        svc.presence.is_connected(row.token_hash)
        for row in map(view.agent, lapse.family(view, name)) if row is not None))
    return connected is True


# ------------------------------------------------------------ silence


def find_silent(svc: Service, view: View) -> list[str]:
    """Programs that were silent for so long that something has to be done. A program that holds a
    lease or a claim, or has a connection, is not silent."""
    rows = view.each(AgentRow, "programs_silent", view.later(-SILENCE_MS),
                     view.later(-FORGOTTEN_MS), view.now)
    return [row.agent for row in rows if not _is_connected(svc, view, row)]


def fall_silent(svc: Service, name: str) -> Generator[Step, Any, bool]:
    """Make a silent program stale, or let it go. Returns whether it is silent."""
    ended = yield from _look(svc, name)
    value = yield decide(lambda tx: _fall_silent(svc, tx, name, ended))
    return value is True


def _fall_silent(svc: Service, tx: Tx, name: str, ended: Ended) -> bool:
    row = tx.agent(name)
    if row is None or name not in find_silent(svc, tx):
        return False
    over = is_over(svc, tx, name, ended)
    if over and (row.state == "stale" or True in ended.values()):
        lapse.end_agent(svc, tx, name, clean=False, reason=f"silent since {row.seen_at}")
    elif not over and (row.state == "stale" or len(lapse.family(tx, name)) > 1):
        tx.record(ev.AgentSeen(agent=name))  # its process, or a sub-agent, lives
        return False
    else:
        tx.record(ev.AgentState(agent=name, state="stale", reason=f"silent since {row.seen_at}"))
    return True


def forget(tx: Tx) -> None:
    """Forget the processes of programs that are gone."""
    tx.write_beside("programs_forget")
