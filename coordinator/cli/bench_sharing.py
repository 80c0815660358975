"""`coord bench billing`, `state` and `strategies`: what agents make of values and files that they
share, and what it costs.

Parses and prints; what is measured and how is `coordinator.bench`'s business.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from coordinator.bench import billing as billing_bench
from coordinator.bench import state as state_bench
from coordinator.bench import strategies as strategies_bench
from coordinator.cli.app import AsJson, print_json, say
from coordinator.cli.definition import typer
from coordinator.words.exit_codes import Exit
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
    return Exit.OK if report.kept else Exit.INCOMPLETE


def state(
    clients: Annotated[int, typer.Option(min=1, max=500, help="At once.")] = 64,
    seconds: Annotated[float, typer.Option(min=0.1, help="For each contender.")] = 5.0,
    writes: Annotated[int, typer.Option(min=3, max=100_000, help="Of a file, each way.")] = 200,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Values that many clients store, beside SQLite; and a proposed file beside a leased one."""
    report = state_bench.run(clients, seconds, writes, folder)
    if as_json:
        print_json(report)
        return
    say(f"{report.clients} clients store one value after the other, each on disk before it is "
        "answered.")
    say(f"{'':28} {'values/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'coord is':>9}")
    for one in report.values:
        say(f"{one.contender:28} {one.rate:9.0f} {one.p50_ms:8.3f} {one.p99_ms:8.3f} "
            f"{one.ratio:8.2f}x")
    say("One client writes a small file.")
    say(f"{'':28} {'files/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'propose':>9}")
    for one in report.file:
        say(f"{one.contender:28} {one.rate:9.0f} {one.p50_ms:8.3f} {one.p99_ms:8.3f} "
            f"{one.ratio:8.2f}x")


def strategies(
    agents: Annotated[str, typer.Option(help="Numbers of agents.")] = "2,10,30",
    edits: Annotated[int, typer.Option(min=1, max=100, help="Of each agent.")] = 3,
    think: Annotated[float, typer.Option(min=0.01, max=600, help="About each edit (s).")] = 0.3,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 1,
    folder: Folder = None,
    as_json: AsJson = False,
) -> int:
    """The same edits of few and of many shared files, by each way to share them."""
    report = strategies_bench.run(numbers(agents, 1, 200), edits, think, seed, folder)
    if as_json:
        print_json(report)
    else:
        say(f"Each agent carries {edits} edits, and thinks about {report.think_s:g} s about each.")
        say(f"{'':12} {'files':>5} {'agents':>6} {'edits':>6} {'wall s':>7} {'edits/s':>8} "
            f"{'wasted s':>9} {'waiting s':>10} {'lost':>5} {'doubled':>7}")
        for one in report.figures:
            say(f"{one.strategy:12} {one.files:>5} {one.agents:6} {one.edits:6} {one.wall_s:7.2f} "
                f"{one.per_s:8.2f} {one.wasted_s:9.2f} {one.waiting_s:10.2f} {one.lost:5} "
                f"{one.doubled:7}")
    return Exit.OK if report.kept else Exit.INCOMPLETE
