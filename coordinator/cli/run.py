"""`coord run`: an agent's own CLI in a session that is kept current, its terminal untouched.

The module owns everything before the agent's program takes this process over. Nothing of coord
stays between the program and its terminal. The sessions' keeper notices its end.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, NoReturn

from coordinator import profiles
from coordinator.cli.app import EndedError, agent_or_refuse, client, complain, fail, print_json, say
from coordinator.client.client import Client
from coordinator.client.locating import locate_root
from coordinator.commands.signatures import AgentName, Argument, AsJson, Option, command
from coordinator.files.programs import missing
from coordinator.files.roots import is_prepared
from coordinator.files.state import StateDir
from coordinator.launch import pool_commands
from coordinator.namespaces import orders
from coordinator.profiles import Profile
from coordinator.settings import load
from coordinator.wiring import session_wiring, shims
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal


@command("run", passes_on=True)
def run(
    profile: Annotated[
        str, Argument("The agent's profile: claude-code, codex, …, or shell for any command.")
    ],
    arguments: Annotated[
        list[str] | None, Argument("What goes to the program itself; for `shell`, the command.")
    ] = None,
    program: Annotated[
        str | None, Option("The program, where it is not called as the profile says.")
    ] = None,
    needs: Annotated[list[str] | None, Option(
        "A pool of which it is given a value in its environment, like port (repeatable)."
    )] = None,
    where_possible: Annotated[
        bool, Option("Where there can be no session, say so and start the program by itself.")
    ] = False,
) -> int:
    """Start an agent's own CLI so that it cannot write what others hold.

    What others hold is read-only for it and for all that it starts, as long as they hold it, also
    for a command that already runs. Nothing else differs: no command is rewritten, and its own
    rules, prompts and terminal are as always.
    """
    if profile.startswith("-"):
        raise Refusal(Code.INVALID, f"`coord run` has no option {profile}. Nothing was started.",
                      next="coord run --help")
    root = locate_root()
    known_profile, typed = profiles.load(profile, root), arguments or []
    own = [program] if program else _program(known_profile)
    brought = _brought(profile, root, typed)
    if own and not any(word.split("=")[0] in known_profile.in_session[:1] for word in typed):
        own += known_profile.in_session
    words = _find_program(profile, own + (brought.arguments if own else []) + typed)
    try:
        if not where_possible or _is_wanted(root):
            _become_in_session(profile, words, brought.environment, needs)
    except Refusal as refusal:
        if not where_possible:
            raise
        complain(f"coord: {words[0]} runs without a session of its own: "
                 f"{refusal.facts.get('why') or refusal.message}")
    _become(words, {**os.environ, **brought.environment})


def _brought(profile: str, root: Path, arguments: list[str]) -> session_wiring.Brought:
    """Return the hooks that a session brings along if its agent does not read the repository's."""
    try:
        return session_wiring.bring(profiles.load(profile, root), StateDir(root), Path.home(),
                                    Path.cwd(), arguments, os.environ)
    except Refusal as refusal:
        instead = f"{refusal.next or ''} Or start it in {root}.".strip()
        complain("coord: this session has no hooks, so its edits are not leased: "
                 f"{refusal.message} {instead}")
        return session_wiring.Brought()


def _is_wanted(root: Path) -> bool:
    """Whether programs typed in this folder run in a session."""
    return is_prepared(str(root)) and load(root).settings.hooks.confine


def _become_in_session(profile: str, words: list[str], more: dict[str, str],
                       needs: list[str] | None) -> NoReturn:
    """
    Raises:
        Refusal: there can be none; no agent was registered.
    """
    with Client(agent=profile, profile=profile) as client:
        orders.connect(start=True).close()  # outside of all sessions, with power over them
        agent = client.register(description=f"coord run {profile}")
        try:
            environment = _environment(client) | more | _take_values(client, agent, needs)
            opened = client.call(rq.OpenSession(
                agent=agent, path=environment["PATH"], directory=str(Path.cwd())))
            _become([*orders.entrance(opened, Path.cwd()), *words], environment)
        except BaseException:
            client.call(rq.Leave(agent=agent, reason="it could not be started"))
            raise


def _take_values(client: Client, agent: str, needs: list[str] | None) -> dict[str, str]:
    """Its values of the pools that are asked for, and of those that each session has, if they can
    be had."""
    always = [name for name, pool in load(client.root).settings.pools.items() if pool.session]
    result = take(client, agent, needs).environment if needs else {}
    for name in always:
        try:
            result |= take(client, agent, [name]).environment
        except Refusal as refusal:
            complain(f"coord: this session has no value of the pool {name}: {refusal.message}")
    return result


def _become(words: list[str], environment: dict[str, str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(words[0], words, environment)
    except OSError as bad:
        raise Refusal(Code.INVALID, f"{words[0]} cannot be run: {bad.strerror}. Nothing was "
                      "started.") from None


def _program(profile: Profile) -> list[str]:
    """Return the program as a person types it; empty if the profile leaves it open."""
    return [profile.command[0]] if profile.command and "{" not in profile.command[0] else []


def _find_program(profile: str, words: list[str]) -> list[str]:
    if not words:
        raise Refusal(
            Code.INVALID, f"The profile {profile} names no program, so nothing was started.",
            next=f"coord run {profile} -- COMMAND ARGUMENT…",
        )
    program = shims.real(words[0])
    if program is None:
        refusal, code = missing(words[0])
        fail(refusal)
        raise EndedError(code)
    # As typed, unless it is a shim, because a program may look at its own name.
    return [program, *words[1:]] if shims.hides(words[0]) else words


def _environment(client: Client) -> dict[str, str]:
    """Return the environment, with the agent's identity for `coord` and its hooks."""
    state = StateDir(client.root)
    mine = os.environ
    return {
        **mine,
        "COORD_ROOT": str(client.root), "COORD_AGENT": str(client.agent),
        "COORD_AGENT_TOKEN": str(client.token), "COORD_SOCKET": str(state.socket()),
        # At the end: only used if there is no other `coord`.
        "PATH": f"{mine.get('PATH', os.defpath)}{os.pathsep}{state.bin}",
    }


@command("env")
def env(
    pools: Annotated[list[str] | None, Argument("Names of pools, like port db.",
                                                metavar="NAME…")] = None,
    agent: AgentName = None,
    release: Annotated[bool, Option("Give values back: of these pools, or all.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give the agent a value of each pool, and print lines for `eval "$(coord env port)"`.

    A pool is set in `coord.toml`: ports, databases, devices. Asked again it is the same value. It
    ends with the agent's task, or its session. Without names: what it has.
    """
    name = agent_or_refuse(agent)
    with client() as session:
        given = give_back(session, name, pools or []) if release else take(
            session, name, pools or [])
    if as_json:
        print_json(given)
        return
    for warning in given.warnings:
        complain(f"coord: {warning}")
    for variable, text in given.environment.items():
        say(f"unset {variable}" if release else f"export {variable}={shlex.quote(text)}")


def take(session: Client, agent: str, pools: list[str]) -> rq.Environment:
    """Have a value of each pool given to the agent, and made ready if it is new.

    Raises:
        Refusal: INVALID, LOCKED: it was given none; or a command has failed, and all that was new
            is given back.
    """
    given = session.call(rq.EnvironmentTake(agent=agent, pools=pools))
    if given.new:
        pools_set = load(session.root).settings.pools
        own = {name: pool for name, pool in pools_set.items() if name in given.new}
        try:
            pool_commands.prepare(own, pool_commands.list_calls(given, session.root))
        except Refusal:
            session.call(rq.EnvironmentRelease(agent=agent, pools=given.new))
            raise
    return given


def give_back(session: Client, agent: str, pools: list[str]) -> rq.Environment:
    """Give values back, after their `drop`."""
    held = session.call(rq.EnvironmentTake(agent=agent))
    calls = [call for call in pool_commands.list_calls(held, session.root)
             if not pools or call.pool in pools]
    for trouble in pool_commands.drop(load(session.root).settings.pools, calls) if calls else ():
        complain(f"coord: {trouble}")
    return session.call(rq.EnvironmentRelease(agent=agent, pools=pools))
