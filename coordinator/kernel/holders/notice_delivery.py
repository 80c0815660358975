"""Delivering messages to a running agent at its next hook call, in order, each once.

A message leaves the box after the hook has printed it and confirmed that. The `receipt` holds what
is recorded then. An expiry that is near is announced once for each lease. A grant is told together
with what changed in the file since the agent asked.
"""

from __future__ import annotations

from coordinator.kernel.core import Service
from coordinator.kernel.holders import notices, settled_notices
from coordinator.kernel.leasing.changed_parts import make_difference
from coordinator.looking.facts import Content
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, ReadRow
from coordinator.words.clock import from_iso, short

#: An agent is told of a lease that ends within this time (ms) and cannot be renewed.
NEAR_MS = 300_000
#: Holders named when a session begins.
HOLDERS_MAX = 8


def deliver(svc: Service, tx: Tx, agent: str, receipt: list[ev.Event]) -> list[str]:
    """The agent's messages as sentences; they are delivered once `receipt` is recorded."""
    _warn(tx, agent)
    box = settled_notices.waiting(tx, agent)
    if not box.last:
        return []
    result = []
    for notice, facts in box.standing:
        kind, text = notice.kind, notice.text
        line = f"[coord] {text}"
        if kind == "granted":
            line += _changes(svc, tx, agent, facts.get("resources", []), receipt)
        result.append(line)
    receipt.append(ev.NoticesDelivered(agent=agent, up_to=box.last))
    return result


def welcome(tx: Tx, agent: str, profile: str) -> str:
    """What an agent should know when its session begins. `profile`: that of an agent that a person
    started; empty if coord started it, so that its commands cannot write what others hold."""
    text = (
        f"[coord] Other agents work in this repository at the same time; you are {agent}. Before "
        "each write a lease on the file is taken for you. If a write is refused, somebody else has "
        "that file: do not work around it; take the other task you are offered, or do something "
        "else and come back. Read a file again before you write it if you are told it changed."
    )
    if profile:
        text += (
            " Nothing keeps your shell commands from files that others hold: edit with your tools. "
            f"What a command changes there is found and shown to a person. (`coord run {profile}` "
            "starts a session in which it cannot.)"
        )
    held = tx.each(LeaseRow, "leases_live", tx.now, 0, None, 200)
    others = list(dict.fromkeys(
        f"{row.file_path} ({row.locked_by})" for row in held if row.locked_by != agent))
    if others:
        names = ", ".join(others[:HOLDERS_MAX])
        more = f" and {len(others) - HOLDERS_MAX} more" if len(others) > HOLDERS_MAX else ""
        text += f" Held by others now: {names}{more}."
    return text


def _changes(
    svc: Service, tx: Tx, agent: str, resources: list[str], receipt: list[ev.Event]
) -> str:
    """The changes in files since the agent read them. From then on the agent knows them.

    Raises:
        Unready: they have to be looked at.
    """
    result = []
    reads: list[tuple[str, str | None]] = []
    read = {name: row for name in resources
            if (row := tx.first(ReadRow, "read_get", agent, name)) is not None}
    tx.looked.require(Content(svc.where(None, name)) for name in read)
    for name, row in read.items():
        content = tx.looked.content(svc.where(None, name))
        if content.hash == row.hash:
            continue
        text = make_difference(tx, name, row.hash, content)
        if text is not None:
            result.append(f"\n{text}")
            reads.append((name, content.hash))
    if reads:
        receipt.append(ev.ContentRead(agent=agent, reads=reads, how="told"))
    return " It changed since you read it:" + "".join(result) if result else ""


def _warn(tx: Tx, agent: str) -> None:
    """Leases that end soon though the agent is at work: renewals do not reach past max_hold."""
    for row in tx.each(LeaseRow, "leases_near_end", agent, tx.now, tx.later(NEAR_MS)):
        name, until = row.file_path, row.expires_at
        tx.record(ev.LeaseWarned(fencing_token=row.fencing_token, agent=agent, resource=name))
        notices.post(
            tx, agent, "near",
            f"Your lease on {name} ends at {short(from_iso(until))} and cannot be renewed any "
            "more: finish, or release it.", resource=name,
        )
