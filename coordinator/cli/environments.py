"""`coord env`: values of the environment for the agent whose shell this is."""

from __future__ import annotations

import shlex
from typing import Annotated

from coordinator.cli.app import agent_or_refuse, client, complain, print_json, say
from coordinator.client.client import Client
from coordinator.commands.signatures import AgentName, Argument, AsJson, Option, command
from coordinator.launch import pool_commands
from coordinator.settings import load
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal


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
