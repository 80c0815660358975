"""`coord state …`: versioned values of keys, and the changes that their owners apply."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from coordinator.cli.app import (
    AgentName,
    AsJson,
    Limit,
    Quiet,
    Short,
    app,
    carry_out,
    client,
    complain,
    here,
    say,
    seconds,
    tell,
)
from coordinator.cli.app import fail as refuse
from coordinator.cli.definition import Listed, typer
from coordinator.client.owner import ChangeFailed, ChangeRefused, Owner
from coordinator.commands import state as bodies
from coordinator.commands.lists import in_line
from coordinator.commands.state import STATES
from coordinator.files.programs import missing
from coordinator.words import requests as rq
from coordinator.words.exit_codes import Exit
from coordinator.words.refusals import Code, Refusal

if TYPE_CHECKING:
    from coordinator.client.client import Client

state_app = typer.Typer(
    cls=Listed, name="state", help="Versioned values of keys, and their changes.",
    no_args_is_help=True,
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

#: The exit code by which an owner's command says no for good.
REFUSES = 100


@state_app.command("get")
def get(
    key: Key,
    version: Annotated[int | None, typer.Option(help="As it was at this version.")] = None,
    as_json: AsJson = False,
) -> None:
    """The value of a key."""
    carry_out(bodies.get, **locals())


@state_app.command("list")
def listing(
    prefix: Annotated[
        str | None, typer.Argument(help="Only this key and those that continue it.")
    ] = None,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False,
    as_json: AsJson = False,
) -> None:
    """The keys that have values."""
    carry_out(bodies.listing, **locals())


@state_app.command("put")
def put(
    key: Key, value: Value, agent: AgentName = None, version: Version = None, token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Store a value, if nobody has written since the version that you read."""
    value = _given(value)
    carry_out(bodies.put, **locals())


@state_app.command("patch")
def patch(
    key: Key, change: Value, agent: AgentName = None, version: Version = None, token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Change some fields of a value: a JSON merge patch, in which null removes a field."""
    change = _given(change)
    carry_out(bodies.patch, **locals())


@state_app.command("delete")
def delete(
    key: Key, agent: AgentName = None, version: Version = None, token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Delete a value; its older versions are kept for a while."""
    carry_out(bodies.delete, **locals())


@state_app.command("history")
def history(
    key: Key, limit: Annotated[int, typer.Option(help="The newest so many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """The versions of a key that are kept, the newest first."""
    carry_out(bodies.history, **locals())


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
                shell = here()
                bodies.tell_value(shell, told.state)
                tell(shell)
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
    wanted = _given(wanted)
    during = os.environ.get("COORD_CHANGE")  # it is asked for while another one is applied
    carry_out(bodies.change, **locals())


@state_app.command("changes")
def changes(
    key: Annotated[
        str | None, typer.Argument(help="Only of this key and those that continue it.")
    ] = None,
    state: Annotated[str, typer.Option(help=", ".join(STATES))] = "open",
    limit: Limit = 200, quiet: Quiet = False, short: Short = False,
    as_json: AsJson = False,
) -> None:
    """Changes that were asked for, in their order."""
    carry_out(bodies.changes, **locals())


@state_app.command("next")
def next_(
    key: Key, agent: AgentName = None,
    wait: Annotated[str | None, typer.Option(help="Wait so long for one: 30s.")] = None,
    as_json: AsJson = False,
) -> None:
    """As a key's owner: the next change to apply. (Lease the key before: `coord lock KEY`.)"""
    carry_out(bodies.next_, **locals())


@state_app.command("done")
def done(
    change: ChangeId, value: Value, agent: AgentName = None,
    attempt: Annotated[int, typer.Option(help="As `coord state next` told it.")] = 1,
    as_json: AsJson = False,
) -> None:
    """As a key's owner: the change is applied; the value that the key has now."""
    value = _given(value)
    carry_out(bodies.done, **locals())


@state_app.command("fail")
def fail(
    change: ChangeId, agent: AgentName = None,
    attempt: Annotated[int, typer.Option(help="As `coord state next` told it.")] = 1,
    why: Annotated[str, typer.Option("--why", "-m", help="What the asker is told.")] = "",
    refuse: Annotated[bool, typer.Option("--refuse", help="Not to be tried again.")] = False,
    as_json: AsJson = False,
) -> None:
    """As a key's owner: the change could not be applied, or is refused."""
    carry_out(bodies.fail, **locals())


@state_app.command("own")
def own(
    key: Key,
    command: Annotated[list[str], typer.Argument(help="A program and its arguments, after `--`.")],
    agent: AgentName = None,
    give: Annotated[str, typer.Option(help="One change may take so long.")] = "60s",
    wait: Annotated[str | None, typer.Option(help="Stand in line so long for the key.")] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when no change can be applied now.")
    ] = False,
) -> None:
    """Own a key: run a command for each change, one by one. It reads {change, key, value, wanted}
    as JSON from standard input and prints the key's new value; exit code 100 refuses the change,
    any other but 0 is a failed attempt, tried again later."""
    limit = seconds(give) or 60.0
    if shutil.which(command[0]) is None:
        refusal, code = missing(command[0])
        refuse(refusal)
        raise typer.Exit(code)
    with client() as session:
        own = session.token is None  # no agent's shell, which may have the key already
        if own:
            session.agent = agent or session.agent or f"owner-{os.getpid()}"
            _check_free(session, key)
        owner = Owner(session, key, lambda value, wanted, change: _run(
            command, {"change": change.change, "key": change.key, "value": value,
                      "wanted": wanted}, limit), give=limit + 5)

        def ends(*_: object) -> None:
            owner.stop()
            session.hang_up()
            if owner.at is not None:
                complain(f"coord: it ends after {owner.at}; once more ends it at once")
            for sent in (signal.SIGTERM, signal.SIGINT):
                signal.signal(sent, signal.default_int_handler)

        for sent in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sent, ends)
        wanted_name, who = session.agent, session.name()
        taken = f" ({wanted_name} is another agent)" if own and who != wanted_name else ""
        try:
            applied = owner.run(
                until_idle=until_idle, wait=seconds(wait) or 0.0,
                begun=lambda: complain(
                    f"coord: {who} owns {key}{taken}; Ctrl-C ends it"))
        except Refusal as refusal:
            if not owner.stopping or refusal.code is not Code.DAEMON_DOWN:
                raise
            applied = owner.applied
        finally:
            if own:
                with suppress(Refusal):
                    session.call(rq.Leave(agent=who, reason="it has ended"))
    refused = f", {owner.refused} refused" if owner.refused else ""
    say(f"{applied} {'change' if applied == 1 else 'changes'} applied{refused}")
    for change, why in owner.failing.items():
        complain(f"coord: {change} was not applied: {in_line(why)}")
    if owner.failing:
        complain(f"  next: `coord state changes {key}` tells what waits, and what is tried again")
        raise typer.Exit(Exit.INCOMPLETE)


def _check_free(session: Client, key: str) -> None:
    """That the name which a person gives does not hold the key itself: the owner is an agent of its
    own, which that would keep out.

    Raises:
        Refusal: LOCKED.
    """
    if any(one.locked_by == session.agent for one in session.locks(resource=key).items):
        raise Refusal(
            Code.LOCKED, f"{session.agent} holds {key} already, and not for this command. Nothing "
            "was started.", next=f"`coord unlock {key} --agent {session.agent}`, then repeat it.")


def _run(command: list[str], given: dict[str, Any], limit: float) -> Any:
    """What the command prints, as JSON; it has so many seconds.

    Raises:
        ChangeRefused: it says no for good. ChangeFailed: it failed, or took too long.
    """
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, env={**os.environ, "COORD_CHANGE": str(given["change"])},
    )
    try:
        told, said = started.communicate(msgspec.json.encode(given), timeout=limit)
    except subprocess.TimeoutExpired:
        raise ChangeFailed(f"it took longer than {limit:g} s and was ended") from None
    finally:
        _end(started)
    last = " ".join(said.decode(errors="replace").split())[-300:]
    if started.returncode == REFUSES:
        raise ChangeRefused(last or "refused")
    if started.returncode != 0:
        raise ChangeFailed(f"exit code {started.returncode}" + (f": {last}" if last else ""))
    try:
        return msgspec.json.decode(told)
    except msgspec.DecodeError as bad:
        raise ChangeFailed(f"what it printed is not JSON: {bad}") from None


def _end(started: subprocess.Popen[bytes]) -> None:
    """Nothing that the command has started outlives it."""
    try:
        os.killpg(started.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        started.wait()


def _given(text: str) -> str:
    """What was typed, or is read from standard input."""
    return sys.stdin.read() if text == "-" else text
