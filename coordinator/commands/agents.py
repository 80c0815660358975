"""`coord agents`, `lost-writes`, `sweep`: who works here, what was lost, what expired."""

from __future__ import annotations

from typing import Annotated

from coordinator.commands import forms
from coordinator.commands.lists import Names, ago, columns, span
from coordinator.commands.shell import Asking, Shell, ask
from coordinator.commands.signatures import AsJson, Option, Quiet, Short, command, declare_group
from coordinator.words import requests as rq

declare_group("agents", "Registered agents, and the agent CLIs coord knows.", "list profiles")


@command("agents")
@command("agents list")
def registered(
    shell: Shell, *,
    everyone: Annotated[bool, Option("Also those that left.", "--all")] = False,
    quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """Registered agents: state, what they hold, do and wait for."""
    reply = yield from ask(rq.Agents(all=everyone))
    ids = [row.agent for row in reply.items]
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json):
        return
    if not reply.items:
        shell.say("No agent is registered.")
        return
    rows = [
        (
            row.agent,
            f"rests until {row.rests_until[:16]}Z" if row.rests_until else row.state,
            ago(row.seen_at, shell.now_ms),
            str(row.leases),
            Names(row.tasks),
            f"waits for {', '.join(row.waiting_for)}" if row.waiting_for else row.progress or "",
        )
        for row in reply.items
    ]
    heads = ("agent", "state", "seen", "holds", "tasks", "doing")
    for line in columns(heads, rows, "/===/~", shell.width):
        shell.say(line)


@command("lost-writes")
def lost_writes(
    shell: Shell, *,
    agent: Annotated[str | None, Option("Only this agent's.", "-a")] = None,
    quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """List work that was thrown away because another agent had written first."""
    reply = yield from ask(rq.LostWrites(agent=agent))
    ids = list(dict.fromkeys(write.resource for write in reply.items))
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json):
        return
    if not reply.items:
        shell.say("No write was lost.")
        return
    rows = [
        (
            write.agent,
            write.resource,
            str(write.total),
            str(write.in_a_row),
            span(write.wasted_s),
            ago(write.last_at, shell.now_ms),
        )
        for write in reply.items
    ]
    heads = ("agent", "resource", "lost", "in a row", "wasted", "last")
    for line in columns(heads, rows, "//====", shell.width):
        shell.say(line)


@command("sweep")
def sweep(shell: Shell, *, as_json: AsJson = False) -> Asking:
    """Tidy now: close expired leases, flag partial work, serve the queue."""
    done = yield from ask(rq.Sweep())
    if as_json:
        shell.json(done)
        return
    for lease in done.lapsed:
        shell.say(f"lapsed {lease.resource} ({lease.locked_by})")
    for name in done.stale:
        shell.say(f"stale agent {name}")
    for review in done.reviews:
        shell.say(f"flagged {review}: `coord review show {review}`")
    if not (done.lapsed or done.stale or done.reviews):
        shell.say("Nothing had lapsed.")
