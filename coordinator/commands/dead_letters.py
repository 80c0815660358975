"""`coord dead …`: what was given up until a person acts."""

from __future__ import annotations

from typing import Annotated

import msgspec

from coordinator.commands import forms
from coordinator.commands.lists import ago
from coordinator.commands.shell import Asking, Shell, ask, each, one_of
from coordinator.commands.signatures import (
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

declare_group("dead", "Dead letters: retry or drop what was given up.")
Id = Annotated[str, Argument("T-3, K-3 or S-3.", metavar="ID")]
Ids = Annotated[list[str], Argument("T-3, K-3, S-3, …", metavar="ID…")]

KINDS = ("task", "change", "call", "acquire", "propose", "webhook")


@command("dead list")
def listing(
    shell: Shell, *,
    kind: Annotated[str | None, Option("task, change, call, acquire, propose or webhook.")] = None,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """Tasks, changes of keys and steps that were given up, the newest first."""
    which = kind
    if kind is not None:
        which = one_of(kind, KINDS, f"No dead letter is ever of the kind {kind!r}")
    found = yield from ask(rq.Dead(kind=which, limit=limit))
    ids = [one.id for one in found.items]
    if forms.printed(shell, found, ids, quiet=quiet, short=short, as_json=as_json,
                     limit=limit):
        return
    if not found.items:
        shell.say("Nothing was given up.")
        return
    now = shell.now_ms
    rows = [
        (
            one.id,
            one.kind,
            one.what,
            one.agent or "",
            str(one.attempts),
            ago(one.since, now),
            one.why,
        )
        for one in found.items
    ]
    heads = ("id", "kind", "what", "agent", "tries", "since", "why")
    forms.table(shell, heads, "==//==~", rows, found.next is not None,
                f"coord dead list --limit {limit * 10}")
    shell.say(f"next: coord dead show {ids[0]}")


@command("dead show")
def show(shell: Shell, *, letter: Id, as_json: AsJson = False) -> Asking:
    """One of them, whole."""
    found = yield from ask(rq.DeadShow(id=letter))
    if as_json:
        shell.json(found)
        return
    by = f" by {found.agent}" if found.agent else ""
    shell.say(f"{found.id}  {found.kind}: {found.what}{by}")
    shell.say(f"given up at {found.since} after {found.attempts} "
              f"{'try' if found.attempts == 1 else 'tries'}: {found.why or 'no reason'}")
    shell.say(msgspec.json.format(bytes(found.content), indent=2).decode())
    shell.say(f"  next: coord dead retry {found.id}, or coord dead drop {found.id}")


@command("dead retry")
def retry(shell: Shell, *, letters: Ids, as_json: AsJson = False) -> Asking:
    """Let them be tried again, from the first attempt on."""
    yield from each(shell, [rq.DeadRetry(id=one) for one in dict.fromkeys(letters)],
                    lambda told: shell.say(f"{told.id} is tried again: {told.what}"), as_json)


@command("dead drop")
def drop(shell: Shell, *, letters: Ids, as_json: AsJson = False) -> Asking:
    """Give them up for good; whoever had asked is told."""
    yield from each(shell, [rq.DeadDrop(id=one) for one in dict.fromkeys(letters)],
                    lambda told: shell.say(f"{told.id} is dropped: {told.what}"), as_json)
