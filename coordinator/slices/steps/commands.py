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
    reply = yield from ask(rq.Dead(kind=which, limit=limit))
    ids = [letter.id for letter in reply.items]
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json,
                     limit=limit):
        return
    if not reply.items:
        shell.say("Nothing was given up.")
        return
    now = shell.now_ms
    rows = [
        (
            letter.id,
            letter.kind,
            letter.what,
            letter.agent or "",
            str(letter.attempts),
            ago(letter.since, now),
            letter.why,
        )
        for letter in reply.items
    ]
    heads = ("id", "kind", "what", "agent", "tries", "since", "why")
    forms.table(shell, heads, "==//==~", rows, reply.next is not None,
                f"coord dead list --limit {limit * 10}")
    shell.say(f"next: coord dead show {ids[0]}")


@command("dead show")
def show(shell: Shell, *, letter: Id, as_json: AsJson = False) -> Asking:
    """One of them, whole."""
    reply = yield from ask(rq.DeadShow(id=letter))
    if as_json:
        shell.json(reply)
        return
    by = f" by {reply.agent}" if reply.agent else ""
    shell.say(f"{reply.id}  {reply.kind}: {reply.what}{by}")
    shell.say(f"given up at {reply.since} after {reply.attempts} "
              f"{'try' if reply.attempts == 1 else 'tries'}: {reply.why or 'no reason'}")
    shell.say(msgspec.json.format(bytes(reply.content), indent=2).decode())
    shell.say(f"  next: coord dead retry {reply.id}, or coord dead drop {reply.id}")


@command("dead retry")
def retry(shell: Shell, *, letters: Ids, as_json: AsJson = False) -> Asking:
    """Let them be tried again, from the first attempt on."""
    yield from each(shell, [rq.DeadRetry(id=letter) for letter in dict.fromkeys(letters)],
                    lambda done: shell.say(f"{done.id} is tried again: {done.what}"), as_json)


@command("dead drop")
def drop(shell: Shell, *, letters: Ids, as_json: AsJson = False) -> Asking:
    """Give them up for good; whoever had asked is told."""
    yield from each(shell, [rq.DeadDrop(id=letter) for letter in dict.fromkeys(letters)],
                    lambda done: shell.say(f"{done.id} is dropped: {done.what}"), as_json)
