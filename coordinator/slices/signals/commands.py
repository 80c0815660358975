"""`coord signal …`: hints on tasks and resources."""

from __future__ import annotations

from typing import Annotated

from coordinator.commands import forms
from coordinator.commands.lists import ago, from_root, span
from coordinator.commands.shell import Asking, Shell, ask, seconds
from coordinator.commands.signatures import (
    AgentName,
    Argument,
    AsJson,
    Limit,
    Option,
    Quiet,
    Short,
    command,
    declare_group,
)
from coordinator.words import requests as rq

declare_group("signal", "Hints on tasks and files, which fade.")


@command("signal add")
def add(
    shell: Shell, *,
    subject: Annotated[str, Argument("T-3, or a path, `dir/`, glob, key or region.")],
    name: Annotated[str, Argument("priority, saturation, warning, or your own word.")],
    agent: AgentName = None,
    strength: Annotated[float, Option("More than 0, at most 10.")] = 1.0,
    half_life: Annotated[str | None, Option("Half of it is gone after this: 45s, 10m, 2h.")] = None,
    note: Annotated[str, Option("Why, for those who read it.", "-m")] = "",
    as_json: AsJson = False,
) -> Asking:
    """Leave a hint, or add to the one that is there."""
    left = yield from ask(
        rq.SignalAdd(
            agent=(yield from shell.acting(agent)),
            subject=subject,
            name=name,
            strength=strength,
            half_life_s=seconds(half_life, "--half-life"),
            note=note,
            cwd=shell.cwd,
        )
    )
    if as_json:
        shell.json(left)
        return
    shell.say(
        f"{left.subject}  {left.name} {left.strength:g}, half of it after {span(left.half_life_s)}"
    )


@command("signal list")
def listing(
    shell: Shell, *,
    subject: Annotated[str | None, Argument("Only on this task or resource, and below it.")] = None,
    name: Annotated[str | None, Option("Only signals of this name.")] = None,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """Hints with their strength now."""
    reply = yield from ask(rq.Signals(subject=subject, name=name, limit=limit, cwd=shell.cwd))
    ids = list(dict.fromkeys(signal.subject for signal in reply.items))
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json,
                     limit=limit):
        return
    if not reply.items:
        shell.say("There are no signals." if subject is None else
                  f"There are none on {reply.subject}." + from_root(subject, reply.subject))
        return
    now = shell.now_ms
    rows = [
        (
            signal.subject,
            signal.name,
            f"{signal.strength:.2f}",
            span(signal.half_life_s),
            ago(signal.at, now),
            signal.agent or "coord",
            signal.note,
        )
        for signal in reply.items
    ]
    heads = ("on", "signal", "now", "half-life", "since", "by", "note")
    forms.table(shell, heads, "/====/~", rows, reply.next is not None,
                f"coord signal list --limit {limit * 10}")
