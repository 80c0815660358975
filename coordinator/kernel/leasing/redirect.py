"""The answer to a blocked agent: who holds it and why, what explains it, and one other task.

Made for a language model to read: facts first, one next action, not a menu.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from coordinator.archive.index import LIVING_SOURCE
from coordinator.kernel import tasks
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import deadlocks, git_turn
from coordinator.kernel.leasing.blockers import BLOCKERS_MAX, Blockers
from coordinator.kernel.leasing.deadlocks import Deadlock
from coordinator.rules.leases import as_resource
from coordinator.rules.pools import list_needs
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import AgentRow, LeaseRow, TaskRow
from coordinator.words.clock import from_iso, short
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import TASK, WINDOW, Located, Resource, is_window
from coordinator.words.texts import block, quoted

#: An edit of a file by another is over by then (seconds).
WINDOW_RETRY_S = 1.0
#: Conflicts listed in one answer.
CONFLICTS_MAX = 20
#: A section is shown again after this time (ms), because it may be another session of a name that a
#: person uses.
SHOWN_AGAIN_MS = 3_600_000


def excerpts(svc: Service, paths: Sequence[str], words: str = "") -> list[dict[str, Any]]:
    """Sections of the context archive that explain these paths, within the byte budget."""
    found_excerpts = svc.archive.excerpts(paths, svc.settings.archive.excerpt_bytes, words)
    return [
        {"section": e.number, "title": e.title, "source": e.source, "text": e.text} for e
        in found_excerpts
    ]


def written(quotes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The excerpts that people wrote. What others are doing is told elsewhere."""
    return [quote for quote in quotes if quote["source"] != LIVING_SOURCE]


#: One other task for a blocked agent; None if there is none.
Offer = TaskRow | None


def offer(svc: Service, tx: Tx, agent: str) -> Offer:
    """The task that a blocked agent is sent to. Asked before anything is recorded.

    Raises:
        Unready: files of the next tasks have to be looked at.
    """
    return next((task for part in svc.slices
                 if (task := part.offer_task(svc, tx, agent)) is not None), None)


class Unserved(NamedTuple):
    """What an agent asked for and does not get now. `acquisition`: its place in the wait queue, if
    it has one; `task`: the task that it asked for."""

    agent: str
    located: Sequence[Located]
    acquisition: str | None = None
    task: str | None = None


def locked(svc: Service, tx: Tx, asked: Unserved, blockers: Blockers, other: Offer,
           deadlock: Deadlock | None = None) -> Refusal:
    """The LOCKED refusal. Its own event and the agent's place in the queue are kept with it."""
    agent, located, acquisition, task = asked
    deadlock = _find_own_deadlock(svc, tx, asked, deadlock)
    conflicts_ = _conflicts(tx, blockers)
    names = [located_resource.resource.name for located_resource in located]
    paths = [c["resource"] for c in conflicts_] or names
    quotes = excerpts(svc, [*names, *paths], " ".join(c["description"] for c in conflicts_))
    offered = None if other is None else _describe_offer(tx, other, agent)
    retry_after = _retry_after(svc, tx, blockers)
    gives_way = deadlock is not None and deadlock.must_give_way(agent)
    if deadlock is not None and gives_way:
        offered, step = None, deadlock.command  # one thing to do, and nothing beside it
    elif offered is not None:
        step = offered["command"]
    else:
        step = f"{'Wait, or ask' if acquisition else 'Try'} again in {retry_after:g} s."
    shown = _section(tx, agent, quotes)
    unlisted = max(0, len(_each_once(blockers.leases)) - CONFLICTS_MAX)
    message = _message(asked, conflicts_, unlisted, shown, offered, deadlock,
                       backlog=tx.last_number("task") > 0)
    deadlocks.tell_recipient(svc, tx, deadlock, agent, acquisition)
    tx.record(_make_event(asked, names, conflicts_, offered, shown))
    held = _held(blockers)
    for part in svc.slices:
        part.refused(svc, tx, held, task)
    return Refusal(
        Code.DEADLOCK if gives_way else Code.LOCKED, message, next=step,
        conflicts=conflicts_, conflicts_unlisted=unlisted, excerpts=quotes, redirect=offered,
        retry_after_s=retry_after, queue_position=_position(tx, acquisition),
        acquisition_id=acquisition, deadlock=deadlock.list_others(agent) if deadlock else [],
        give_way=gives_way, victim=deadlock.victim if deadlock else None,
    )


def _find_own_deadlock(svc: Service, tx: Tx, asked: Unserved, deadlock: Deadlock | None
                       ) -> Deadlock | None:
    if (deadlock is not None and asked.acquisition is None
            and not deadlock.must_give_way(asked.agent)):
        # An agent that is not queued for this ends its wait by itself, so nobody gives way to it.
        return deadlocks.find_queued_deadlock(svc, tx, asked.agent)
    return deadlock


def _describe_offer(tx: Tx, other: TaskRow, agent: str) -> dict[str, Any]:
    """The one other task that a blocked agent may take meanwhile."""
    return {
        "task": other.task_id, "title": other.title, "priority": other.priority,
        "resources": tasks.reply(tx, other).resources,
        "command": f"coord task claim {other.task_id} --agent {agent}",
    }


def _make_event(asked: Unserved, names: list[str], conflicts_: list[dict[str, Any]],
                offered: dict[str, Any] | None, shown: Shown | None) -> ev.AcquisitionRefused:
    waiting = {c["holder"] for c in conflicts_ if c["waiting"]}
    holding = {c["holder"] for c in conflicts_ if not c["waiting"]}
    return ev.AcquisitionRefused(
        agent=asked.agent, resources=names, holders=sorted(waiting | holding), task=asked.task,
        before=sorted(waiting - holding), redirect=offered["task"] if offered else None,
        explained=shown.ref if shown is not None and shown.text else None,
    )


class Shown(NamedTuple):
    """The section of the archive that a refusal names. `text`: empty where the agent has seen it
    already; `ref`: what that is known by."""

    name: str
    text: str
    ref: str


def _section(tx: Tx, agent: str, quotes: Sequence[dict[str, Any]]) -> Shown | None:
    """What people wrote about the resource; the holder's work is told anyway. A section is quoted
    whole once a session, because a model keeps what it has read and pays for each repetition."""
    matches = written(quotes)
    if not matches:
        return None
    q = matches[0]
    digest = hashlib.sha256(q["text"].encode()).hexdigest()[:12]
    ref = f"{q['section']}@{q['source']} {digest}"
    agent_row = tx.first(AgentRow, "agent_get", agent)
    before = (agent_row.explained or "").split("\n") if agent_row else []
    since = tx.later(-SHOWN_AGAIN_MS)
    seen = any(line.endswith(f" {ref}") and line > since for line in before)
    return Shown(f"{q['section']} {quoted(q['title'])} ({q['source']})",
                 "" if seen else q["text"], ref)


def _held(blockers: Blockers) -> list[Resource]:
    """What others hold of it, without git's turn and without edits that end in a moment."""
    return list(dict.fromkeys(
        as_resource(row.file_path, row.kind, row.scope) for row in blockers.leases
        if not (row.kind == "key" and (git_turn.is_turn_name(row.file_path)
                                       or row.file_path.startswith(WINDOW)))))


def _each_once(leases: Sequence[LeaseRow]) -> list[LeaseRow]:
    """One lease for each resource of a holder, without copies in other working trees. The lease
    that ends last stands for all."""
    result: dict[tuple[str, str, str], LeaseRow] = {}
    for row in leases:
        key = (row.locked_by, row.kind, row.file_path)
        if key not in result or result[key].expires_at < row.expires_at:
            result[key] = row
    return list(result.values())


def _conflicts(tx: Tx, blockers: Blockers) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for lease in _each_once(blockers.leases)[:CONFLICTS_MAX]:
        holder = tx.first(AgentRow, "agent_get", lease.locked_by)
        result.append(
            {
                "resource": lease.file_path, "kind": lease.kind, "mode": lease.mode,
                "holder": lease.locked_by, "task": lease.task_id,
                "description": lease.task_description, "since": lease.locked_at,
                "until": lease.expires_at, "last_activity": holder.seen_at if holder else None,
                "doing": holder.progress if holder else None, "waiting": False,
            }
        )
    for waiter in blockers.waiters[: CONFLICTS_MAX - len(result)]:
        result.append(
            {
                "resource": waiter.name, "kind": waiter.kind, "mode": waiter.mode,
                "holder": waiter.agent, "task": None, "description": "stands before you in line",
                "since": waiter.asked_at, "until": None, "last_activity": None, "doing": None,
                "waiting": True,
            }
        )
    return result


def _message(
    asked: Unserved, conflicts_: list[dict[str, Any]], unlisted: int, shown: Shown | None,
    offered: dict[str, Any] | None, deadlock: Deadlock | None, *, backlog: bool,
) -> str:
    agent, acquisition = asked.agent, asked.acquisition
    stands = "You are next in line."
    parts = _describe_pools(asked.located)
    if conflicts_:
        sentences, stands = _describe_conflicts(conflicts_, unlisted, stands, bool(acquisition))
        parts += sentences
    if shown is not None:
        parts.append(f"See context archive section {shown.name}"
                     + (f":\n{block(shown.text)}\n" if shown.text else ", as shown before."))
    if deadlock is not None:
        parts.append(deadlocks.describe(deadlock, agent))
        if deadlock.must_give_way(agent):
            return _joined(parts)
    if offered:
        parts.append(f"Meanwhile take {quoted(offered['title'])}: "
                     f"`{offered['command']}`.")
    elif backlog:  # without any tasks nobody looks for one
        parts.append("No other task can be started now.")
    if acquisition:
        parts.append(stands)
    return _joined(parts)


def _describe_pools(located: Sequence[Located]) -> list[str]:
    """Sentences about pools of which any value was asked for."""
    names = [resource_asked.resource.name for resource_asked in located]
    return [f"No value of the pool {pool} is free."
            for pool in list_needs((name, "exclusive") for name in names)]


def _describe_conflicts(conflicts_: list[dict[str, Any]], unlisted: int, stands: str,
                        in_line: bool) -> tuple[list[str], str]:
    """Sentences about the blockers, and about the agent's place in the queue."""
    first = conflicts_[0]
    parts = [_describe_conflict(first)]
    if first["waiting"]:
        stands = "You are in line, too."
    held = {c["resource"] for c in conflicts_ if not c["waiting"]} - {first["resource"]}
    if held:
        count = len(held) + unlisted
        least = "At least " if CONFLICTS_MAX + unlisted >= BLOCKERS_MAX else ""
        parts.append(f"{least}{count} more of what you asked for "
                     f"{'is' if count == 1 else 'are'} held, too.")
    line = {c["holder"] for c in conflicts_ if c["waiting"]} - {first["holder"]}
    if line and in_line:
        stands = f"You are in line behind {len(line)}."
    elif line:
        parts.append(f"{len(line)} {_verb('stand', len(line))} in line before you.")
    return parts, stands


def _describe_conflict(conflict: dict[str, Any]) -> str:
    """Who has what was asked for or is earlier in the queue, and until when."""
    holder, resource = conflict["holder"], conflict["resource"]
    if conflict["waiting"]:
        return f"{resource} is next for {holder}, who stands before you in line: leave it."
    if conflict["kind"] == "key" and git_turn.is_turn_name(resource):
        what = quoted(conflict["description"]) if conflict["description"] else "git"
        return (f"{holder} changes the whole working tree just now ({what}). Modify nothing there "
                "until that has ended, and read afresh then.")
    if is_window(conflict["kind"], resource):
        return f"{holder} is writing {resource.removeprefix(WINDOW)} just now. That takes a moment."
    until = short(from_iso(conflict["until"]))
    why = f" ({quoted(conflict['description'])})" if conflict["description"] else ""
    if resource.startswith(TASK):
        return (f"{resource.removeprefix(TASK)} is already locked by {holder}{why} until {until}. "
                f"Leave it to {holder}.")
    task = f" for {conflict['task']}" if conflict["task"] else ""
    return f"{resource} is leased by {holder}{task}{why} until {until}: leave it."


def _joined(parts: Sequence[str]) -> str:
    return " ".join(parts).replace("\n ", "\n").rstrip()


def _verb(verb: str, count: int) -> str:
    """A verb as it goes with so many."""
    return f"{verb}s" if count == 1 else verb


def _retry_after(svc: Service, tx: Tx, blockers: Blockers) -> float:
    soonest = svc.settings.leases.retry_s
    for lease in blockers.leases:
        left = (from_iso(lease.expires_at) - tx.now_ms) / 1000
        soonest = min(soonest, max(0.1, left), WINDOW_RETRY_S if is_window(
            lease.kind, lease.file_path) else soonest)
    return round(soonest, 1)


def _position(tx: Tx, acquisition: str | None) -> int | None:
    if acquisition is None:
        return None
    return 1 + int(tx.value("waiter_position", acquisition) or 0)
