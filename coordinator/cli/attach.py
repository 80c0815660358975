"""`coord attach`: a launched agent's terminal, followed, or taken over by a person."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated, NoReturn

import msgspec

from coordinator.cli.app import ask, complain, people_only, say
from coordinator.client.locating import locate_root
from coordinator.commands.lists import in_line
from coordinator.commands.signatures import Argument, Option, command
from coordinator.files.state import StateDir
from coordinator.launch import door, following
from coordinator.launch.following import Following, Launched, Shown
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Exit, Refusal

#: The time between two looks at new output (seconds).
LOOK_S = 0.2


@command("attach")
def attach(
    agent: Annotated[
        str | None, Argument("A launched agent; may be left out where one is at work.")
    ] = None,
    take_over: Annotated[bool, Option(
        "Go on with its conversation yourself, in its own CLI; when you leave it, the agent goes "
        "on.")] = False,
    lines: Annotated[int, Option("Of what it said before, the last so many.", "-n", least=0)] = 40,
    as_json: Annotated[bool, Option("One JSON object a line.", "--json")] = False,
) -> int:
    """Show what a launched agent says and does, as it comes. Ctrl-C leaves; the agent continues.

    With --take-over its unattended program is stopped, and the interactive program of its CLI
    continues the same conversation in this terminal, as the same agent. It keeps its task and
    leases, which are renewed, and no time limit runs. Leave it as you always do; then the agent
    continues unattended, unless its task was ended meanwhile (`coord task done`).
    """
    state = StateDir(locate_root())
    launched = following.find(state, agent)
    if launched is None:
        raise _not_launched(str(agent))
    if take_over:
        _take_over(launched)
    return _follow(Following(state, launched, lines), as_json)


def _not_launched(agent: str) -> Refusal:
    is_registered = any(row.agent == agent for row in ask(rq.Agents()).items)
    if not is_registered:
        return Refusal(Code.UNKNOWN_AGENT, f"No agent is called {agent}.")
    return Refusal(
        Code.INVALID, f"{agent} was not started by `coord launch`, so it has a terminal of its own "
        "and nobody else keeps what it says.", next=f"coord explain {agent}",
    )


# ------------------------------------------------------------ following


def _follow(followed: Following, as_json: bool) -> int:
    """Until the agent has ended; the exit code tells whether well."""
    try:
        while True:
            for shown in followed.poll():
                _show(followed.agent, shown, as_json)
                if shown.kind == "over":
                    return Exit.OK if shown.well else Exit.INCOMPLETE
            sys.stdout.flush()
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        begun = "\n" if sys.stderr.isatty() else ""  # after the `^C` on the screen
        complain(f"{begun}coord: detached; {followed.agent} goes on.")
        return 0


def _show(agent: str, shown: Shown, as_json: bool) -> None:
    if as_json:
        line = {"agent": agent, "task": shown.task, "kind": shown.kind, "text": shown.text}
        say(msgspec.json.encode(line).decode())
    elif shown.kind == "said":
        say(shown.text)
    else:
        say(f"== {in_line(shown.text)}")


# ------------------------------------------------------------ taking over


def _take_over(launched: Launched) -> NoReturn:
    """Become the agent's own interactive program.

    Raises:
        Refusal: INVALID, UNAUTHORIZED: not from here; the launch's own.
    """
    agent = launched.worker.agent
    people_only("taking another over", f"coord attach {agent}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refusal(Code.INVALID, f"Taking {agent} over needs a terminal to type at; nothing was "
                      "changed.", next=f"coord attach {agent}")
    if launched.record.door is None:
        raise Refusal(Code.BAD_TRANSITION, f"The launch of {agent} has no door to ask at.",
                      next=f"coord attach {agent}")
    link = door.send_request(Path(launched.record.door), agent)
    complain(f"coord: waiting for {agent} to stop …")
    with link:
        role = door.read_answer(link, agent)
    complain(in_line(f"coord: you are {agent} now, at {role.task} '{role.title}'."))
    complain("coord: when you leave, it goes on unattended"
             + (" and its work lands." if role.lands else
                f"; if {role.task} is done, say so before:\n"
                f"  coord task done {role.task} --agent {agent}"))
    sys.stdout.flush()
    sys.stderr.flush()
    environment = {**role.env, **door.terminal_of(os.environ)}
    try:
        os.chdir(role.place)
        os.execvpe(role.argv[0], role.argv, environment)
    except OSError as bad:
        raise Refusal(Code.INVALID, f"{role.argv[0]} cannot be run: {bad.strerror}. {agent} goes "
                      "on.") from None
