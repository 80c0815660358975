"""`python -m benchmarks replay`: agents carry one release of a package to the next, and nothing is
lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from benchmarks.command_line import AsJson, Seed, Verbose, end, show_report
from benchmarks.replay.driver import Asked, Result, run
from benchmarks.replay.plan_making import DISCOVERED_SHARE
from coordinator.cli.app import complain
from coordinator.commands.lists import in_line

#: So many lost edits are named.
NAMED_MAX = 10


def replay_release(
    old: Annotated[Path, typer.Argument(help="A release, unpacked.")],
    new: Annotated[Path, typer.Argument(help="The next one.")],
    agents: Annotated[int, typer.Option(min=1, max=50, help="Agents at once.")] = 6,
    tasks_per_agent: Annotated[int, typer.Option(min=1, max=100)] = 4,
    think: Annotated[
        str, typer.Option(help="fixed:0.1s, uniform:0.5s-2s or lognormal:2s.")
    ] = "lognormal:2s",
    seed: Seed = 1,
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
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Carry OLD to NEW with N agents; compare the result with NEW byte by byte."""
    asked = Asked(
        old=old, new=new, agents=agents, tasks_per_agent=tasks_per_agent, think=think, seed=seed,
        uncoordinated=uncoordinated, kill=kill, discovered=discovered, keep=keep,
        granularity=granularity,
    )
    tell = (lambda line: complain(in_line(line))) if verbose else (lambda line: None)
    result = run(asked, say=tell)
    show_report(result, as_json, describe)
    end(good=result.good or uncoordinated)


def describe(result: Result) -> Iterator[str]:
    """The figures in lines."""
    how = "through coord" if result.coordinated else "without coordination"
    killed = f"; {result.killed} killed in mid-edit." if result.killed else "."
    yield (f"{result.agents} agents carried {result.edits} edits in {result.tasks} tasks "
           f"{how}{killed}")
    equal = ("the result equals NEW, byte for byte" if result.equal else
             f"{len(result.differing_files)} files differ from NEW")
    yield f"lost edits     {result.lost_edits}  ({equal})"
    yield f"wall clock     {result.wall_s:.2f} s; one after the other {result.serial_s:.2f} s"
    by_file = (f"; with leases on files at best {result.best_by_file:.2f}"
               if result.best_by_file != result.best_speedup else "")
    yield (f"speed-up       {result.speedup:.2f}; at best possible {result.best_speedup:.2f} "
           f"(work shared evenly, or the heaviest chain of tasks that share a file or region)"
           f"{by_file}")
    if result.coordinated:
        yield (f"conflicts      {result.conflicts}; redirected {result.redirects}, "
               f"taken {result.redirects_taken}; given back {result.given_back}")
        yield f"reviews        {result.reviews}"
        yield (f"overhead       {result.overhead_ms:.0f} ms a task; in line "
               f"{result.waited_s:.2f} s in all")
    yield from (f"  lost: {line}" for line in result.lost[:NAMED_MAX])
    if len(result.lost) > NAMED_MAX:
        yield f"  … and {len(result.lost) - NAMED_MAX} more"
    yield from (f"  problem: {line}" for line in result.problems)
