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

from coordinator.cli.app import EndedError, client, complain, here, say, seconds, tell
from coordinator.cli.app import fail as refuse
from coordinator.client.owner import ChangeFailed, ChangeRefused, Owner
from coordinator.commands.lists import in_line
from coordinator.commands.signatures import AgentName, Argument, AsJson, Option, command
from coordinator.files.programs import missing
from coordinator.slices.state import commands as bodies
from coordinator.slices.state.commands import Key
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Exit, Refusal

if TYPE_CHECKING:
    from coordinator.client.client import Client


#: The exit code by which an owner's command says no for good.
REFUSES = 100


@command("state watch")
def watch(
    key: Key,
    after: Annotated[
        int | None, Option("Tell of versions after this one; default: from now on.")
    ] = None,
    once: Annotated[bool, Option("End after the first change.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print each new version of a key, until it is interrupted."""
    with client() as session:
        if after is None:
            after = session.call(rq.StateWatch(key=key, wait_s=0)).state.version
        while True:
            state_watched = session.call(rq.StateWatch(key=key, after=after, wait_s=30))
            if not state_watched.changed:
                continue
            after = state_watched.state.version
            if as_json:
                say(msgspec.json.encode(state_watched.state).decode())
            else:
                shell = here()
                bodies.tell_value(shell, state_watched.state)
                tell(shell)
            sys.stdout.flush()
            if once:
                return


@command("state own")
def own(
    key: Key,
    command: Annotated[list[str], Argument("A program and its arguments, after `--`.")],
    agent: AgentName = None,
    give: Annotated[str, Option("One change may take so long.")] = "60s",
    wait: Annotated[str | None, Option("Stand in line so long for the key.")] = None,
    until_idle: Annotated[bool, Option("End when no change can be applied now.")] = False,
) -> None:
    """Own a key: run a command for each change, one by one. It reads {change, key, value, wanted}
    as JSON from standard input and prints the key's new value; exit code 100 refuses the change,
    any other but 0 is a failed attempt, tried again later."""
    limit = seconds(give) or 60.0
    if shutil.which(command[0]) is None:
        refusal, code = missing(command[0])
        refuse(refusal)
        raise EndedError(code)
    with client() as session:
        own = session.token is None  # no agent's shell, which may have the key already
        if own:
            session.agent = agent or session.agent or f"owner-{os.getpid()}"
            _check_free(session, key)
        owner = Owner(session, key, lambda value, wanted, change: _run(
            command, {"change": change.change, "key": change.key, "value": value,
                      "wanted": wanted}, limit), give=limit + 5)

        _end_by_signal(owner, session)
        wanted_name, who = session.agent, session.name()
        taken = f" ({wanted_name} is another agent)" if own and who != wanted_name else ""
        try:
            applied = owner.run(
                until_idle=until_idle, wait=seconds(wait) or 0.0,
                begun=lambda: complain(f"coord: {who} owns {key}{taken}; Ctrl-C ends it"))
        except Refusal as refusal:
            if not owner.stopping or refusal.code is not Code.DAEMON_DOWN:
                raise
            applied = owner.applied
        finally:
            if own:
                with suppress(Refusal):
                    session.call(rq.Leave(agent=who, reason="it has ended"))
    _tell_applied(owner, key, applied)


def _end_by_signal(owner: Owner, session: Client) -> None:
    """Ctrl-C has it end after the change that it is at; once more ends it at once."""
    def ends(*_: object) -> None:
        owner.stop()
        session.hang_up()
        if owner.at is not None:
            complain(f"coord: it ends after {owner.at}; once more ends it at once")
        for sent in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sent, signal.default_int_handler)

    for sent in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sent, ends)


def _tell_applied(owner: Owner, key: str, applied: int) -> None:
    refused = f", {owner.refused} refused" if owner.refused else ""
    say(f"{applied} {'change' if applied == 1 else 'changes'} applied{refused}")
    for change, why in owner.failing.items():
        complain(f"coord: {change} was not applied: {in_line(why)}")
    if owner.failing:
        complain(f"  next: `coord state changes {key}` tells what waits, and what is tried again")
        raise EndedError(Exit.INCOMPLETE)


def _check_free(session: Client, key: str) -> None:
    """Check that the name given by a person does not hold the key itself. The owner is an agent of
    its own, which that lease would keep out.

    Raises:
        Refusal: LOCKED.
    """
    if any(lease.locked_by == session.agent for lease in session.locks(resource=key).items):
        raise Refusal(
            Code.LOCKED, f"{session.agent} holds {key} already, and not for this command. Nothing "
            "was started.", next=f"`coord unlock {key} --agent {session.agent}`, then repeat it.")


def _run(command: list[str], given: dict[str, Any], limit: float) -> Any:
    """Run the command and return its output, read as JSON. `limit`: its seconds.

    Raises:
        ChangeRefused: it says no for good. ChangeFailed: it failed, or took too long.
    """
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, env={**os.environ, "COORD_CHANGE": str(given["change"])},
    )
    try:
        output, data = started.communicate(msgspec.json.encode(given), timeout=limit)
    except subprocess.TimeoutExpired:
        raise ChangeFailed(f"it took longer than {limit:g} s and was ended") from None
    finally:
        _end(started)
    last = " ".join(data.decode(errors="replace").split())[-300:]
    if started.returncode == REFUSES:
        raise ChangeRefused(last or "refused")
    if started.returncode != 0:
        raise ChangeFailed(f"exit code {started.returncode}" + (f": {last}" if last else ""))
    try:
        return msgspec.json.decode(output)
    except msgspec.DecodeError as bad:
        raise ChangeFailed(f"what it printed is not JSON: {bad}") from None


def _end(started: subprocess.Popen[bytes]) -> None:
    """End all processes that the command has started."""
    try:
        os.killpg(started.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        started.wait()


def _given(text: str) -> str:
    """Return the typed text, or standard input."""
    return sys.stdin.read() if text == "-" else text
