"""`python -m benchmarks one-file`: what it brings, and costs, to share one file by region.

N agents take N tasks, one for each function of one file; each thinks, and writes its function. Once
with tasks that lease regions and commits of regions, once with tasks that lease the file and whole
writes. Beside that, what one commit of a region costs over the least that it could be: the bare
parse of the file, and its bytes on the disk (write, fsync), turn by turn.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, show_report
from benchmarks.measuring.own_daemon import OwnDaemon, own_daemon
from benchmarks.measuring.samples import paired
from coordinator.client.client import Client
from coordinator.regions.grammar import load, parse
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Refusal

NAME, LANGUAGE = "shared.py", "python"
#: How often an agent asks for its task again while others have the file (seconds).
AGAIN_S = 0.02
#: Between two commits of one agent (seconds): nobody writes faster.
PAUSE_S = 0.1


class Report(msgspec.Struct):
    """Seconds, but for the last three: milliseconds, and the median of paired ratios."""

    agents: int
    longest_s: float
    """The longest thinking of one agent: no schedule is faster."""
    by_region_s: float
    by_file_s: float
    lost: int
    refused: int
    """Refusals that agents met while they shared the file by region."""
    lines: int
    commit_ms: float
    floor_ms: float
    commit_ratio: float


def run(agents: int, think_s: float, lines: int, rounds: int,
        folder: Path | None = None) -> Report:
    """Measure all three.

    Raises:
        RuntimeError: the daemon did not start.
    """
    dice = random.Random(1)
    think = [think_s * dice.uniform(0.8, 1.0) for _ in range(agents)]
    with own_daemon(folder, git=True) as daemon:
        fine, lost_fine, refused = _shared(daemon, think, by_region=True)
        whole, lost_whole, _ = _shared(daemon, think, by_region=False)
        commit, floor = _commits(daemon, lines, rounds)
    return Report(
        agents, max(think), fine, whole, lost_fine + lost_whole, refused, lines,
        median(commit) * 1000, median(floor) * 1000, paired(commit, floor),
    )


def _function(number: int, value: str) -> str:
    return f"def work_{number}(value):\n    return {value}\n"


def _text(values: list[str]) -> str:
    return "\n\n".join(_function(number, value) for number, value in enumerate(values))


def _shared(daemon: OwnDaemon, think: list[float], *,
            by_region: bool) -> tuple[float, int, int]:
    """Wall clock in seconds, edits that are not there, refusals that agents met."""
    file = daemon.root / NAME
    file.write_text(_text(["value"] * len(think)))
    with Client(daemon.root) as client:
        tasks = [client.call(rq.TaskAdd(
            title=f"work_{number}",
            resources=[f"{NAME}::work_{number}" if by_region else NAME])).task
            for number in range(len(think))]
    refused = 0

    def works(number: int) -> None:
        nonlocal refused
        with Client(daemon.root, agent=f"{'fine' if by_region else 'whole'}-{number}") as agent:
            while True:
                try:
                    agent.claim(tasks[number])
                    break
                except Refusal as refusal:
                    if refusal.code not in HELD:
                        raise
                    refused += 1
                    time.sleep(AGAIN_S)
            time.sleep(think[number])
            new = _function(number, f"'done {number}'")
            if by_region:
                agent.commit_region(f"{NAME}::work_{number}", new)
            else:
                file.write_text(file.read_text().replace(_function(number, "value"), new))
            agent.call(rq.TaskDone(agent=str(agent.agent), task=tasks[number]))

    threads = [threading.Thread(target=works, args=(number,)) for number in range(len(think))]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    text = file.read_text()
    return took, sum(_function(number, f"'done {number}'") not in text
                     for number in range(len(think))), refused


def _commits(daemon: OwnDaemon, lines: int, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of each commit of one function of a file of so many lines, and of each floor."""
    count = max(1, lines // 4)
    file, beside = daemon.root / "large.py", daemon.root / ".coord" / "floor"
    file.write_text(_text(["value"] * count))
    load(LANGUAGE)
    commits: list[float] = []
    floors: list[float] = []
    with Client(daemon.root, agent="writer") as agent:
        agent.acquire(*(f"large.py::work_{number}" for number in range(min(count, 50))))
        for turn in range(-2, rounds):
            number = (turn + 2) % min(count, 50)
            began = time.perf_counter()
            agent.commit_region(f"large.py::work_{number}", _function(number, f"value + {turn}"))
            took = time.perf_counter() - began
            data = file.read_bytes()
            began = time.perf_counter()
            parse(data, LANGUAGE)
            with beside.open("wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            floor = time.perf_counter() - began
            time.sleep(PAUSE_S)
            if turn >= 0:  # the first ones start the worker
                floors.append(floor)
                commits.append(took)
    return commits, floors


def measure_one_file(
    agents: Annotated[int, typer.Option(min=2, max=100, help="Agents at once.")] = 10,
    think: Annotated[float, typer.Option(min=0.01, help="Each thinks about so long (s).")] = 5.0,
    lines: Annotated[int, typer.Option(min=20, max=100_000, help="Of the file that is committed "
                                       "to.")] = 2000,
    rounds: Annotated[int, typer.Option(min=3, max=1000, help="Commits.")] = 30,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Agents that share one file, by region and as a whole; and what one commit costs."""
    show_report(run(agents, think, lines, rounds, folder), as_json, describe)


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield (f"{report.agents} agents, each at a function of its own in one file; {report.lost} "
           "edits lost.")
    yield (f"by region {report.by_region_s:.2f} s, {report.by_region_s / report.longest_s:.2f} "
           f"times the longest agent; {report.refused} refusals")
    yield (f"by file   {report.by_file_s:.2f} s, {report.by_file_s / report.by_region_s:.1f} "
           "times as long")
    yield (f"one commit in {report.lines:,} lines takes {report.commit_ms:.1f} ms, "
           f"{report.commit_ratio:.2f} times a bare parse and an fsync of the file")
