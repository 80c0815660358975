"""`coord signal …`: hints on tasks and resources, which fade and never block."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from coordinator.cli.app import (
    AgentName,
    AsJson,
    agent_or_refuse,
    app,
    ask,
    print_json,
    say,
    seconds,
    width,
)
from coordinator.cli.render import ago, columns, span
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock

signal_app = typer.Typer(
    name="signal", help="Hints on tasks and files, which fade.", no_args_is_help=True
)
app.add_typer(signal_app)


@signal_app.command("add")
def add(
    subject: Annotated[str, typer.Argument(help="T-3, or a path, `dir/`, glob, key or region.")],
    name: Annotated[str, typer.Argument(help="priority, saturation, warning, or your own word.")],
    agent: AgentName = None,
    strength: Annotated[float, typer.Option(help="More than 0, at most 10.")] = 1.0,
    half_life: Annotated[
        str | None, typer.Option(help="Half of it is gone after this: 45s, 10m, 2h.")
    ] = None,
    note: Annotated[str, typer.Option("--note", "-m", help="Why, for those who read it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Leave a hint, or add to the one that is there."""
    left = ask(
        rq.SignalAdd(
            agent=agent_or_refuse(agent), subject=subject, name=name, strength=strength,
            half_life_s=seconds(half_life), note=note, cwd=os.getcwd(),  # noqa: PTH109
        )
    )
    if as_json:
        print_json(left)
        return
    say(f"{left.subject}  {left.name} {left.strength:g}, half of it after {span(left.half_life_s)}")


@signal_app.command("list")
def listing(
    subject: Annotated[
        str | None, typer.Argument(help="Only on this task or resource, and below it.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Only signals of this name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hints with their strength now."""
    found = ask(rq.Signals(subject=subject, name=name, limit=1000,
                           cwd=os.getcwd()))  # noqa: PTH109
    if as_json:
        print_json(found)
        return
    if not found.items:
        say("There are no signals." if subject is None else f"There are none on {subject}.")
        return
    now = SystemClock().now_ms()
    rows = [
        (one.subject, one.name, f"{one.strength:.2f}", span(one.half_life_s), ago(one.at, now),
         one.agent or "coord", one.note)
        for one in found.items
    ]
    heads = ("on", "signal", "now", "half-life", "since", "by", "note")
    for line in columns(heads, rows, "/=====~", width()):
        say(line)
