"""`coord state …`: versioned values of keys, and the changes that their owners apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from coordinator.commands import forms
from coordinator.commands.lists import ago, columns
from coordinator.commands.shell import Asking, Shell, ask, choices, one_of, seconds
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
from coordinator.words.refusals import Code, Refusal
from coordinator.words.wrong_values import in_words

declare_group("state", "Versioned values of keys, and their changes.",
              order="get list put patch delete history watch change changes next done fail own")
Key = Annotated[str, Argument("Like key:account:12345.")]
Value = Annotated[str, Argument("JSON; `-` reads it from standard input.", reads_input=True)]
Version = Annotated[
    int | None, Option("The version that you have read; 0: nothing yet.")
]
Token = Annotated[
    int | None, Option("Fencing token, where you hold a lease on the key.")
]
ChangeId = Annotated[str, Argument("K-3, or 3.", metavar="CHANGE")]

STATES = choices(rq.Changes, "state")


@command("state get")
def get(
    shell: Shell, *, key: Key,
    version: Annotated[int | None, Option("As it was at this version.")] = None,
    as_json: AsJson = False,
) -> Asking:
    """The value of a key."""
    reply = yield from ask(rq.StateGet(key=key, version=version))
    if as_json:
        shell.json(reply)
    else:
        tell_value(shell, reply)


@command("state list")
def listing(
    shell: Shell, *,
    prefix: Annotated[str | None, Argument("Only this key and those that continue it.")] = None,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """The keys that have values."""
    reply = yield from ask(rq.StateKeys(prefix=prefix, limit=limit))
    ids = [row.key for row in reply.items]
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json,
                     limit=limit):
        return
    if not reply.items:
        shell.say("No value is stored.")
        return
    _table(shell, reply.items)
    if reply.next is not None:
        shell.say(f"… {limit} shown, and there are more: "
                  f"`coord state list --limit {limit * 10}`")


@command("state put")
def put(
    shell: Shell, *, key: Key, value: Value, agent: AgentName = None, version: Version = None,
    token: Token = None, as_json: AsJson = False,
) -> Asking:
    """Store a value, if nobody has written since the version that you read."""
    name = yield from shell.acting(agent)
    yield from _written(shell, rq.StatePut(agent=name, key=key, value=json(value),
                                           version=version, fencing_token=token), as_json)


@command("state patch")
def patch(
    shell: Shell, *, key: Key, change: Value, agent: AgentName = None, version: Version = None,
    token: Token = None, as_json: AsJson = False,
) -> Asking:
    """Change some fields of a value: a JSON merge patch, in which null removes a field."""
    name = yield from shell.acting(agent)
    yield from _written(shell, rq.StatePatch(agent=name, key=key, patch=json(change),
                                             version=version, fencing_token=token), as_json)


@command("state delete")
def delete(
    shell: Shell, *, key: Key, agent: AgentName = None, version: Version = None,
    token: Token = None, as_json: AsJson = False,
) -> Asking:
    """Delete a value; its older versions are kept for a while."""
    name = yield from shell.acting(agent)
    yield from _written(shell, rq.StateDelete(agent=name, key=key, version=version,
                                              fencing_token=token), as_json)


@command("state history")
def history(
    shell: Shell, *, key: Key,
    limit: Annotated[int, Option("The newest so many.")] = 20,
    as_json: AsJson = False,
) -> Asking:
    """The versions of a key that are kept, the newest first."""
    reply = yield from ask(rq.StateHistory(key=key, limit=limit))
    if as_json:
        shell.json(reply)
    else:
        _table(shell, reply.items, values=True)


@command("state change", needs_program=True)
def change(
    shell: Shell, *, key: Key, wanted: Value, agent: AgentName = None,
    note: Annotated[str, Option("Why.", "-m")] = "",
    wait: Annotated[str | None, Option("Wait so long for its end: 30s.")] = None,
    as_json: AsJson = False,
) -> Asking:
    """Ask the owner of a key for a change; it is applied once, in its turn."""
    asked = yield from ask(rq.ChangeAdd(agent=(yield from shell.acting(agent)), key=key,
                                        wanted=json(wanted), note=note, during=shell.change))
    if wait is not None:
        asked = yield from ask(
            rq.ChangeShow(change=asked.change, wait_s=seconds(wait, "--wait") or 0.0))
    _ended(shell, asked, as_json)


@command("state changes")
def changes(
    shell: Shell, *,
    key: Annotated[str | None, Argument("Only of this key and those that continue it.")] = None,
    state: Annotated[str, Option(", ".join(STATES))] = "open",
    limit: Limit = 200, quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """Changes that were asked for, in their order."""
    which = one_of(state, STATES, f"No change is ever {state!r}")
    reply = yield from ask(rq.Changes(key=key, state=which, limit=limit))
    ids = [row.change for row in reply.items]
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json,
                     limit=limit):
        return
    if not reply.items:
        shell.say("No change waits to be applied." if state == "open" else "There is none.")
        return
    rows = [
        (
            row.change,
            row.state,
            row.key,
            row.asked_by,
            ago(row.asked_at, shell.now_ms),
            str(row.attempts),
            row.why or row.note,
        )
        for row in reply.items
    ]
    forms.table(shell, ("id", "state", "key", "asked by", "since", "tries", "note"), "==//==~",
                rows, reply.next is not None, f"coord state changes --limit {limit * 10}")


@command("state next")
def next_(
    shell: Shell, *, key: Key, agent: AgentName = None,
    wait: Annotated[str | None, Option("Wait so long for one: 30s.")] = None,
    as_json: AsJson = False,
) -> Asking:
    """As a key's owner: the next change to apply. (Lease the key before: `coord lock KEY`.)"""
    who = yield from shell.acting(agent)
    given = yield from ask(rq.ChangeNext(agent=who, key=key,
                                         wait_s=seconds(wait, "--wait") or 0.0))
    if as_json:
        shell.json(given)
        return
    change = given.change
    shell.say(
        f"{change.change}  attempt {change.attempts} of {change.attempts_max}, "
        f"until {change.given_until}"
    )
    shell.say(f"{change.key} is at version {given.state.version}: {_text(given.state.value)}")
    shell.say(f"wanted: {_text(change.wanted)}")
    shell.say(f"  then: coord state done {change.change} VALUE --attempt {change.attempts} "
              f"--agent {who}")


@command("state done")
def done(
    shell: Shell, *, change: ChangeId, value: Value, agent: AgentName = None,
    attempt: Annotated[int, Option("As `coord state next` told it.")] = 1,
    as_json: AsJson = False,
) -> Asking:
    """As a key's owner: the change is applied; the value that the key has now."""
    _ended(shell, (yield from ask(rq.ChangeDone(
        agent=(yield from shell.acting(agent)), change=change, attempt=attempt,
        value=json(value)))), as_json)


@command("state fail")
def fail(
    shell: Shell, *, change: ChangeId, agent: AgentName = None,
    attempt: Annotated[int, Option("As `coord state next` told it.")] = 1,
    why: Annotated[str, Option("What the asker is told.", "-m")] = "",
    refuse: Annotated[bool, Option("Not to be tried again.")] = False,
    as_json: AsJson = False,
) -> Asking:
    """As a key's owner: the change could not be applied, or is refused."""
    _ended(shell, (yield from ask(rq.ChangeFail(
        agent=(yield from shell.acting(agent)), change=change, attempt=attempt, why=why,
        refuse=refuse))), as_json)


def tell_value(shell: Shell, reply: rq.StateValue) -> None:
    """A pipe gets the value alone; a person is told the version, too."""
    if shell.terminal:
        shell.say(f"{reply.key}  version {reply.version}, written by {reply.written_by}")
    shell.say("(deleted)" if reply.deleted else _text(reply.value, indent=2))


def json(text: str) -> msgspec.Raw:
    """JSON that was typed.

    Raises:
        Refusal: INVALID.
    """
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as bad:
        raise Refusal(
            Code.INVALID, f"{text[:60]!r} is not JSON: {in_words(bad)}. Nothing was written.",
            next="Write text in double quotes within single ones: '\"text\"'.",
        ) from None
    return msgspec.Raw(text.encode())


def _written(shell: Shell, request: rq.Request[rq.StateValue], as_json: bool) -> Asking:
    made: Any = yield from ask(request)
    if as_json:
        shell.json(made)
    else:
        shell.say(f"{made.key}  version {made.version}" + ("  deleted" if made.deleted else ""))


def _ended(shell: Shell, change: rq.Change, as_json: bool) -> None:
    if as_json:
        shell.json(change)
        return
    parts = [change.change, change.state, change.key]
    if change.version is not None:
        parts.append(f"version {change.version}")
    shell.say("  ".join(parts) + (f"  {change.why}" if change.why else ""))


def _table(shell: Shell, items: Sequence[rq.StateValue], *, values: bool = False) -> None:
    rows = [
        (
            row.key,
            str(row.version),
            row.written_by or "",
            ago(row.written_at, shell.now_ms) if row.written_at else "",
            f"{row.size} bytes" if row.size != 1 else "1 byte",
            ("(deleted)" if row.deleted else _text(row.value)) if values else "",
        )
        for row in items
    ]
    heads = ("key", "version", "by", "since", "size", "value" if values else "")
    for line in columns(heads, rows, "/=/==~", shell.width):
        shell.say(line)


def _text(raw: msgspec.Raw, indent: int = 0) -> str:
    return msgspec.json.format(bytes(raw), indent=indent or -1).decode()
