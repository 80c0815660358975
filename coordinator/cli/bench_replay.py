"""`coord bench replay`: agents carry one release of a package to the next, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from coordinator.cli.app import AsJson, complain, print_json, say
from coordinator.cli.definition import typer
from coordinator.commands.lists import in_line
from coordinator.simulation.driver import Asked, Result, run
from coordinator.simulation.plan_making import DISCOVERED_SHARE
from coordinator.words.exit_codes import Exit


def replay_command(
    old: Annotated[Path, typer.Argument(help="A release, unpacked.")],
    new: Annotated[Path, typer.Argument(help="The next one.")],
    agents: Annotated[int, typer.Option(min=1, max=50, help="Agents at once.")] = 6,
    tasks_per_agent: Annotated[int, typer.Option(min=1, max=100)] = 4,
    think: Annotated[
        str, typer.Option(help="fixed:0.1s, uniform:0.5s-2s or lognormal:2s.")
    ] = "lognormal:2s",
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 1,
    uncoordinated: Annotated[
        bool, typer.Option("--uncoordinated", help="Without leases: shows what gets lost.")
    ] = False,
    kill: Annotated[int, typer.Option(min=0, help="Agents to kill in mid-edit.")] = 0,
    discovered: Annotated[
        float, typer.Option(min=0, max=1, help="Share of tasks that find a file out on the way.")
    ] = DISCOVERED_SHARE,
    granularity: Annotated[
        Literal["file", "region"],
        typer.Option(help="What tasks lease: whole files, or the regions that they change."),
    ] = "file",
    keep: Annotated[
        Path | None, typer.Option(help="Leave the repository in this (empty) folder.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Each task as it goes.")] = False,
    as_json: AsJson = False,
) -> int:
    """Carry OLD to NEW with N agents; compare the result with NEW byte by byte."""
    asked = Asked(
        old=old, new=new, agents=agents, tasks_per_agent=tasks_per_agent, think=think, seed=seed,
        uncoordinated=uncoordinated, kill=kill, discovered=discovered, keep=keep,
        granularity=granularity,
    )
    tell = (lambda line: complain(in_line(line))) if verbose else (lambda line: None)
    result = run(asked, say=tell)
    if as_json:
        print_json(result)
    else:
        describe(result)
    return Exit.OK if result.good or uncoordinated else Exit.INCOMPLETE


def describe(result: Result) -> None:
    """The figures in words."""
    how = "through coord" if result.coordinated else "without coordination"
    say(f"{result.agents} agents carried {result.edits} edits in {result.tasks} tasks {how}"
        + (f"; {result.killed} killed in mid-edit." if result.killed else "."))
    say(f"lost edits     {result.lost_edits}"
        + ("  (the result equals NEW, byte for byte)" if result.equal else
           f"  ({len(result.differing_files)} files differ from NEW)"))
    say(f"wall clock     {result.wall_s:.2f} s; one after the other {result.serial_s:.2f} s")
    say(f"speed-up       {result.speedup:.2f}; at best possible {result.best_speedup:.2f} "
        "(work shared evenly, or the heaviest chain of tasks that share a file or region)"
        + (f"; with leases on files at best {result.best_by_file:.2f}"
           if result.best_by_file != result.best_speedup else ""))
    if result.coordinated:
        say(f"conflicts      {result.conflicts}; redirected {result.redirects}, "
            f"taken {result.redirects_taken}; given back {result.given_back}")
        say(f"reviews        {result.reviews}")
        say(f"overhead       {result.overhead_ms:.0f} ms a task; in line {result.waited_s:.2f} s "
            "in all")
    for line in result.lost[:10]:
        say(f"  lost: {line}")
    if len(result.lost) > 10:
        say(f"  … and {len(result.lost) - 10} more")
    for line in result.problems:
        complain(f"  problem: {line}")
