"""`coord dead …`: what was given up until a person acts."""

from __future__ import annotations

import msgspec

from coordinator.commands import forms
from coordinator.commands.lists import ago
from coordinator.commands.shell import Asking, Shell, ask, each, one_of
from coordinator.words import requests as rq

KINDS = ("task", "change", "call", "acquire", "propose", "webhook")


def listing(
    shell: Shell, *, kind: str | None, limit: int, quiet: bool, short: bool, as_json: bool
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


def show(shell: Shell, *, letter: str, as_json: bool) -> Asking:
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


def retry(shell: Shell, *, letters: list[str], as_json: bool) -> Asking:
    """Let them be tried again, from the first attempt on."""
    yield from each(shell, [rq.DeadRetry(id=one) for one in dict.fromkeys(letters)],
                    lambda told: shell.say(f"{told.id} is tried again: {told.what}"), as_json)


def drop(shell: Shell, *, letters: list[str], as_json: bool) -> Asking:
    """Give them up for good; whoever had asked is told."""
    yield from each(shell, [rq.DeadDrop(id=one) for one in dict.fromkeys(letters)],
                    lambda told: shell.say(f"{told.id} is dropped: {told.what}"), as_json)
