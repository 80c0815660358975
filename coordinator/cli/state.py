"""`coord state …`: versioned values of keys, and the changes that their owners apply."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Annotated, Any

import msgspec
import typer

from coordinator.cli.app import (
    AgentName,
    AsJson,
    agent_or_refuse,
    app,
    ask,
    client,
    complain,
    one_of,
    print_json,
    say,
    seconds,
    width,
)
from coordinator.cli.render import ago, columns
from coordinator.client.owner import ChangeRefused, Owner
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock
from coordinator.words.refusals import Code, Refusal

state_app = typer.Typer(
    name="state", help="Versioned values of keys, and their changes.", no_args_is_help=True
)
app.add_typer(state_app)
Key = Annotated[str, typer.Argument(help="Like key:account:12345.")]
Value = Annotated[str, typer.Argument(help="JSON; `-` reads it from standard input.")]
Version = Annotated[
    int | None, typer.Option("--version", help="The version that you have read; 0: nothing yet.")
]
Token = Annotated[
    int | None, typer.Option("--token", help="Fencing token, where you hold a lease on the key.")
]
ChangeId = Annotated[str, typer.Argument(help="K-3, or 3.", metavar="CHANGE")]
STATES = ("open", "queued", "given", "done", "refused", "dead", "dropped", "all")
#: The exit code by which an owner's command says no for good.
REFUSES = 100


@state_app.command("get")
def get(
    key: Key,
    version: Annotated[int | None, typer.Option(help="As it was at this version.")] = None,
    as_json: AsJson = False,
) -> None:
    """The value of a key."""
    found = ask(rq.StateGet(key=key, version=version))
    if as_json:
        print_json(found)
    else:
        _say_value(found)


@state_app.command("list")
def listing(
    prefix: Annotated[
        str | None, typer.Argument(help="Only this key and those that continue it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The keys that have values."""
    found = ask(rq.StateKeys(prefix=prefix, limit=1000))
    if as_json:
        print_json(found)
        return
    if not found.items:
        say("No value is stored.")
        return
    _table(found.items)


@state_app.command("put")
def put(
    key: Key, value: Value, agent: AgentName = None, version: Version = None, token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Store a value, if nobody has written since the version that you read."""
    _written(rq.StatePut(agent=agent_or_refuse(agent), key=key, value=_json(value),
                         version=version, fencing_token=token), as_json)


@state_app.command("patch")
def patch(
    key: Key, change: Value, agent: AgentName = None, version: Version = None, token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Change some fields of a value: a JSON merge patch, in which null removes a field."""
    _written(rq.StatePatch(agent=agent_or_refuse(agent), key=key, patch=_json(change),
                           version=version, fencing_token=token), as_json)


@state_app.command("delete")
def delete(
    key: Key, agent: AgentName = None, version: Version = None, token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Delete a value; its older versions are kept for a while."""
    _written(rq.StateDelete(agent=agent_or_refuse(agent), key=key, version=version,
                            fencing_token=token), as_json)


@state_app.command("history")
def history(
    key: Key, limit: Annotated[int, typer.Option(help="The newest so many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """The versions of a key that are kept, the newest first."""
    found = ask(rq.StateHistory(key=key, limit=limit))
    if as_json:
        print_json(found)
    else:
        _table(found.items, values=True)


@state_app.command("watch")
def watch(
    key: Key,
    after: Annotated[
        int | None, typer.Option(help="Tell of versions after this one; default: from now on.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End after the first change.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print each new version of a key, until it is interrupted."""
    with client() as session:
        if after is None:
            after = session.call(rq.StateWatch(key=key, wait_s=0)).state.version
        while True:
            told = session.call(rq.StateWatch(key=key, after=after, wait_s=30))
            if not told.changed:
                continue
            after = told.state.version
            if as_json:
                say(msgspec.json.encode(told.state).decode())
            else:
                _say_value(told.state)
            sys.stdout.flush()
            if once:
                return


@state_app.command("change")
def change(
    key: Key, wanted: Value, agent: AgentName = None,
    note: Annotated[str, typer.Option("--note", "-m", help="Why.")] = "",
    wait: Annotated[str | None, typer.Option(help="Wait so long for its end: 30s.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask the owner of a key for a change; it is applied once, in its turn."""
    asked = ask(rq.ChangeAdd(agent=agent_or_refuse(agent), key=key, wanted=_json(wanted),
                             note=note, during=os.environ.get("COORD_CHANGE")))
    if wait is not None:
        asked = ask(rq.ChangeShow(change=asked.change, wait_s=seconds(wait) or 0.0))
    if as_json:
        print_json(asked)
    else:
        say(_line(asked))


@state_app.command("changes")
def changes(
    key: Annotated[
        str | None, typer.Argument(help="Only of this key and those that continue it.")
    ] = None,
    state: Annotated[str, typer.Option(help=", ".join(STATES))] = "open",
    as_json: AsJson = False,
) -> None:
    """Changes that were asked for, in their order."""
    found = ask(rq.Changes(key=key, state=one_of(state, STATES, f"No change is ever {state!r}"),
                           limit=1000))
    if as_json:
        print_json(found)
        return
    if not found.items:
        say("No change waits to be applied." if state == "open" else "There is none.")
        return
    now = SystemClock().now_ms()
    rows = [(one.change, one.state, one.key, one.asked_by, ago(one.asked_at, now),
             str(one.attempts), one.why or one.note) for one in found.items]
    heads = ("id", "state", "key", "asked by", "since", "tries", "note")
    for line in columns(heads, rows, "==/===~", width()):
        say(line)


@state_app.command("next")
def next_(
    key: Key, agent: AgentName = None,
    wait: Annotated[str | None, typer.Option(help="Wait so long for one: 30s.")] = None,
    as_json: AsJson = False,
) -> None:
    """As a key's owner: the next change to apply. (Lease the key before: `coord lock KEY`.)"""
    given = ask(rq.ChangeNext(agent=agent_or_refuse(agent), key=key, wait_s=seconds(wait) or 0.0))
    if as_json:
        print_json(given)
        return
    one = given.change
    say(f"{one.change}  attempt {one.attempts} of {one.attempts_max}, until {one.given_until}")
    say(f"{one.key} is at version {given.state.version}: {_text(given.state.value)}")
    say(f"wanted: {_text(one.wanted)}")
    say(f"  then: coord state done {one.change} VALUE --attempt {one.attempts}")


@state_app.command("done")
def done(
    change: ChangeId, value: Value, agent: AgentName = None,
    attempt: Annotated[int, typer.Option(help="As `coord state next` told it.")] = 1,
    as_json: AsJson = False,
) -> None:
    """As a key's owner: the change is applied; the value that the key has now."""
    ended = ask(rq.ChangeDone(agent=agent_or_refuse(agent), change=change, attempt=attempt,
                              value=_json(value)))
    if as_json:
        print_json(ended)
    else:
        say(_line(ended))


@state_app.command("fail")
def fail(
    change: ChangeId, agent: AgentName = None,
    attempt: Annotated[int, typer.Option(help="As `coord state next` told it.")] = 1,
    why: Annotated[str, typer.Option("--why", "-m", help="What the asker is told.")] = "",
    refuse: Annotated[bool, typer.Option("--refuse", help="Not to be tried again.")] = False,
    as_json: AsJson = False,
) -> None:
    """As a key's owner: the change could not be applied, or is refused."""
    ended = ask(rq.ChangeFail(agent=agent_or_refuse(agent), change=change, attempt=attempt,
                              why=why, refuse=refuse))
    if as_json:
        print_json(ended)
    else:
        say(_line(ended))


@state_app.command("own")
def own(
    key: Key,
    command: Annotated[list[str], typer.Argument(help="A program and its arguments, after `--`.")],
    agent: AgentName = None,
    give: Annotated[str, typer.Option(help="One change may take so long.")] = "60s",
    wait: Annotated[str | None, typer.Option(help="Stand in line so long for the key.")] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when no change waits.")
    ] = False,
) -> None:
    """Own a key: run a command for each change, one by one. It reads {change, key, value, wanted}
    as JSON from standard input and prints the key's new value; exit code 100 refuses the change,
    any other but 0 is a failed attempt, tried again later."""
    limit = seconds(give) or 60.0
    with client() as session:
        if session.token is None:
            session.agent = agent or session.agent or f"owner-{os.getpid()}"
        owner = Owner(session, key, lambda value, wanted, change: _run(
            command, {"change": change.change, "key": change.key, "value": value,
                      "wanted": wanted}, limit), give=limit + 5)

        def ends(*_: object) -> None:
            owner.stop()
            session.hang_up()

        for sent in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sent, ends)
        complain(f"coord: {session.name()} owns {key}; Ctrl-C ends it")
        try:
            applied = owner.run(until_idle=until_idle, wait=seconds(wait) or 0.0)
        except Refusal as refusal:
            if not owner.stopping or refusal.code is not Code.DAEMON_DOWN:
                raise
            applied = owner.applied
    say(f"{applied} {'change' if applied == 1 else 'changes'} applied")


def _run(command: list[str], given: dict[str, Any], limit: float) -> Any:
    """What the command prints, as JSON; it has so many seconds.

    Raises:
        ChangeRefused: it says no for good. RuntimeError: it failed, or took too long.
    """
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, env={**os.environ, "COORD_CHANGE": str(given["change"])},
    )
    try:
        told, said = started.communicate(msgspec.json.encode(given), timeout=limit)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"it took longer than {limit:g} s and was ended") from None
    finally:
        _end(started)
    last = " ".join(said.decode(errors="replace").split())[-300:]
    if started.returncode == REFUSES:
        raise ChangeRefused(last or "refused")
    if started.returncode != 0:
        raise RuntimeError(f"exit code {started.returncode}" + (f": {last}" if last else ""))
    try:
        return msgspec.json.decode(told)
    except msgspec.DecodeError as bad:
        raise RuntimeError(f"what it printed is not JSON: {bad}") from None


def _end(started: subprocess.Popen[bytes]) -> None:
    """Nothing that the command has started outlives it."""
    try:
        os.killpg(started.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        started.wait()


def _json(text: str) -> msgspec.Raw:
    """JSON that was typed or is read from standard input.

    Raises:
        Refusal: INVALID.
    """
    given = sys.stdin.read() if text == "-" else text
    try:
        msgspec.json.decode(given)
    except (msgspec.DecodeError, RecursionError) as bad:
        raise Refusal(
            Code.INVALID, f"{given[:60]!r} is not JSON: {bad}. Nothing was written.",
            next="Write text in double quotes within single ones: '\"text\"'.",
        ) from None
    return msgspec.Raw(given.encode())


def _written(request: rq.Request[rq.StateValue], as_json: bool) -> None:
    made = ask(request)
    if as_json:
        print_json(made)
    else:
        say(f"{made.key}  version {made.version}" + ("  deleted" if made.deleted else ""))


def _say_value(found: rq.StateValue) -> None:
    """A pipe gets the value alone; a person is told the version, too."""
    if sys.stdout.isatty():
        say(f"{found.key}  version {found.version}, written by {found.written_by}")
    say("(deleted)" if found.deleted else _text(found.value, indent=2))


def _text(raw: msgspec.Raw, indent: int = 0) -> str:
    return msgspec.json.format(bytes(raw), indent=indent or -1).decode()


def _table(items: list[rq.StateValue], *, values: bool = False) -> None:
    now = SystemClock().now_ms()
    rows = [(one.key, str(one.version), one.written_by or "", ago(one.written_at, now)
             if one.written_at else "", f"{one.size} bytes",
             ("(deleted)" if one.deleted else _text(one.value)) if values else "")
            for one in items]
    heads = ("key", "version", "by", "since", "size", "value" if values else "")
    for line in columns(heads, rows, "/====~", width()):
        say(line)


def _line(one: rq.Change) -> str:
    parts = [one.change, one.state, one.key]
    if one.version is not None:
        parts.append(f"version {one.version}")
    return "  ".join(parts) + (f"  {one.why}" if one.why else "")
