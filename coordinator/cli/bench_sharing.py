"""`coord bench billing`: what agents that change one value make of it.

Parses and prints; what is measured and how is `coordinator.bench`'s business.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coordinator.bench import billing as billing_bench
from coordinator.cli.app import AsJson, print_json, say
from coordinator.words.refusals import Code, Refusal

Folder = Annotated[
    Path | None, typer.Option("--dir", help="Where to put the databases (default: temporary).")
]


def numbers(text: str, least: int, most: int) -> list[int]:
    """A list of numbers as it is typed.

    Raises:
        Refusal: INVALID.
    """
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or any(not least <= n <= most for n in found):
        raise Refusal(Code.INVALID, f"{text!r} is not a list of numbers from {least} to {most}.",
                      next="Write 2,10.")
    return found


def billing(
    agents: Annotated[str, typer.Option(help="Numbers of agents.")] = "2,10,100",
    think: Annotated[float, typer.Option(min=0.01, max=600, help="Each thinks about so long "
                                         "(s).")] = 0.2,
    kills: Annotated[int, typer.Option(min=0, max=100, help="Kills of the daemon in each run; and "
                                       "one of an agent, then.")] = 0,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 1,
    folder: Folder = None,
    as_json: AsJson = False,
) -> int:
    """Agents that add fees and credits to what one customer owes, by each strategy."""
    report = billing_bench.run(numbers(agents, 2, 500), think, kills, seed, folder)
    if as_json:
        print_json(report)
    else:
        say(f"Each agent thinks about {report.think_s:g} s between reading and writing.")
        say(f"{'':12} {'agents':>6} {'result':>7} {'expected':>8} {'lost':>5} {'doubled':>7} "
            f"{'wall s':>8} {'waiting s':>10} {'wasted s':>9} {'kills':>5}")
        for one in report.figures:
            say(f"{one.strategy:12} {one.agents:6} {one.result:7} {one.expected:8} {one.lost:5} "
                f"{one.doubled:7} {one.wall_s:8.2f} {one.waiting_s:10.2f} {one.wasted_s:9.2f} "
                f"{one.kills:5}")
    return 0 if report.kept else 1
