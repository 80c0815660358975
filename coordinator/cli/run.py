"""`coord run`: an agent's own CLI in a session that is kept current, its terminal untouched.

Owns what happens before the agent's program takes this process over: nothing of coord stays between
it and its terminal. Its end is seen by the sessions' keeper.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from coordinator import profiles
from coordinator.cli.app import app
from coordinator.client.client import Client
from coordinator.files.state import StateDir
from coordinator.namespaces import orders
from coordinator.profiles import Profile
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal


@app.command("run", context_settings={"ignore_unknown_options": True})
def run(
    profile: Annotated[str, typer.Argument(help="The agent's profile: claude-code, codex, …, or "
                                                "shell for any command.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="What goes to the program itself; for `shell`, the command."),
    ] = None,
) -> int:
    """Start an agent's own CLI so that it cannot write what others hold.

    What others hold is read-only for it and for all that it starts, as long as they hold it, also
    for a command that runs already. Nothing else differs: no command is rewritten, and its own
    rules, prompts and terminal are as they always are.
    """
    with Client(agent=profile, profile=profile) as client:
        words = _command(profiles.load(profile, client.root), arguments or [])
        orders.connect(start=True).close()  # outside of all sessions, where it has power over them
        agent = client.register(description=f"coord run {profile}")
        try:
            opened = client.call(rq.OpenSession(agent=agent))
            sys.stdout.flush()
            sys.stderr.flush()
            words = [*orders.entrance(opened, Path.cwd()), *words]
            os.execve(words[0], words, _environment(client))
        except BaseException:
            client.call(rq.Leave(agent=agent, reason="it could not be started"))
            raise


def _command(profile: Profile, arguments: list[str]) -> list[str]:
    """The program as a person types it, and what goes to it."""
    own = [profile.command[0]] if profile.command and "{" not in profile.command[0] else []
    words = own + arguments
    if not words:
        raise Refusal(
            Code.INVALID, f"The profile {profile.name} names no program, so nothing was started.",
            next=f"coord run {profile.name} -- COMMAND ARGUMENT…",
        )
    if shutil.which(words[0]) is None:
        raise Refusal(Code.INVALID, f"There is no program called {words[0]}. Nothing was started.",
                      next=f"Install it, or put its folder on PATH: `which {words[0]}`")
    return words


def _environment(client: Client) -> dict[str, str]:
    """As it is, and who the agent is for `coord` and its hooks."""
    state = StateDir(client.root)
    mine = os.environ
    return {
        **mine,
        "COORD_ROOT": str(client.root), "COORD_AGENT": str(client.agent),
        "COORD_AGENT_TOKEN": str(client.token), "COORD_SOCKET": str(state.socket()),
        # At its end: only where there is no `coord` on it already.
        "PATH": f"{mine.get('PATH', os.defpath)}{os.pathsep}{state.bin}",
    }
