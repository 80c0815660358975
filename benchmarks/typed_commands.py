"""`python -m benchmarks cli`: what a typed command costs one person, and a whole fleet.

*One command*: whole processes, in turns, each beside a bare interpreter (`python -I -S -c pass`)
just before it; the median of these ratios. Beside coord's: the same command by the whole program,
without the coordinator's help, and those of two peers from PyPI, where they are installed.

*A fleet*: agents that each take tasks, lock a file of their own, think, and unlock, all by
commands; the wall time over that of the thinking alone.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, InstallPeers, show_report
from benchmarks.measuring.own_daemon import own_daemon, own_environment
from benchmarks.peers.installed import (
    LEASES,
    PEERS,
    SYNC,
    install_peers,
    is_installed,
    list_missing,
    program,
)
from coordinator import _command
from coordinator.client.client import Client
from coordinator.words import requests as rq

BARE = (sys.executable, "-I", "-S", "-c", "pass")
#: As an agent's shell has it (`.coord/bin/coord`), and as the whole program.
QUICK = (sys.executable, "-I", "-S", _command.__file__)
PROGRAM = (sys.executable, "-P", "-m", "coordinator.cli.main")
#: What agents type in a loop, what people type, and what needs the program.
COMMANDS = ("lock a.py --agent ann", "unlock a.py --agent ann", "locks", "task list",
            "task claim --agent ann", "task done T-1 --agent ann --force", "task add another",
            "status", "events", "explain a.py", "review list", "request list", "lock --help",
            "--help", "__complete task show T",
            "ps", "up", "init", "doctor", "trust", "agents profiles", "guard check", "regions a.py",
            "impact a.py", "report", "replay", "task template", "task export",
            "merge-driver install", "completion bash", "--version")
WHOLE = ("locks", "status")
#: What the peers' own users type for a lock: who asks is said by these variables.
PEER_COMMANDS = {LEASES: ("claim a.py --purpose bench", "release a.py"),
                 SYNC: ("lock a.py --reason bench", "unlock a.py", "status")}
NAMED = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
ACTING = {"AGENT_NAME": "bench", "AGENT_SYNC_ID": "bench"}


class Cost(msgspec.Struct):
    """One command: the median of its time over a bare interpreter's."""

    command: str
    by: str
    ratio: float
    ms: float


class Report(msgspec.Struct):
    """Both halves. `ideal_s`: the thinking alone."""

    bare_ms: float
    costs: list[Cost]
    missing: list[str]
    agents: int
    wall_s: float
    ideal_s: float


def run(rounds: int, agents: int, think_s: float, tasks: int,
        folder: Path | None = None) -> Report:
    """Measure both.

    Raises:
        RuntimeError: the daemon did not start, or a task failed.
    """
    with own_daemon(folder) as daemon:
        for name in ("a.py", *(f"m{n}.py" for n in range(agents))):
            (daemon.root / name).write_text("x = 1\n")
        for words in (["init", "-q"], ["add", "."], [*NAMED, "commit", "-q", "-m", "Begin"]):
            subprocess.run(["git", *words], cwd=daemon.root, check=True)
        with Client(daemon.root) as boss:
            for n in range(rounds + 20):
                boss.call(rq.TaskAdd(title=f"Task {n}"))
        script = installed()
        ways = [("coord", one, (*script, *one.split())) for one in COMMANDS]
        ways += [("coord, as an agent's shell has it", one, (*QUICK, *one.split()))
                 for one in ("lock a.py --agent ann", "locks")]
        ways += [("the whole program", one, (*PROGRAM, *one.split())) for one in WHOLE]
        for peer, lines in PEER_COMMANDS.items():
            if is_installed(peer):
                command = program(peer, PEERS[peer])
                ways += [(peer, line, (command, *line.split())) for line in lines]
        costs, bare = _costs(daemon.root, ways, rounds)
        wall_s = _fleet(daemon.root, script, agents, think_s, tasks)
    return Report(bare * 1000, costs, list_missing(*PEER_COMMANDS), agents, wall_s,
                  think_s * tasks / agents)


def installed() -> tuple[str, ...]:
    """The `coord` script of this interpreter's environment; without one, what it runs."""
    script = Path(sys.executable).parent / "coord"
    return (str(script),) if script.exists() else (sys.executable, _command.__file__)


def _costs(root: Path, ways: Sequence[tuple[str, str, Sequence[str]]],
           rounds: int) -> tuple[list[Cost], float]:
    took: list[list[tuple[float, float]]] = [[] for _ in ways]
    for _ in range(rounds):
        for at, (_, _, words) in enumerate(ways):
            took[at].append((_timed(root, BARE), _timed(root, words)))
    out = [Cost(command, by, median(ours / bare for bare, ours in pairs),
                median(ours for _, ours in pairs) * 1000)
           for (by, command, _), pairs in zip(ways, took, strict=True)]
    return out, median(bare for pairs in took for bare, _ in pairs)


def _timed(root: Path, words: Sequence[str]) -> float:
    before = time.perf_counter()
    subprocess.run(words, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=False, env=own_environment() | ACTING)
    return time.perf_counter() - before


def _fleet(root: Path, script: Sequence[str], agents: int, think_s: float, tasks: int) -> float:
    """Seconds that the agents take for all tasks together."""

    def work(n: int) -> None:
        name = f"agent-{n}"
        for _ in range(tasks // agents):
            for words in ("task list", f"lock m{n}.py --agent {name} --wait 60s",
                          f"unlock m{n}.py --agent {name}"):
                if words.startswith("unlock"):
                    time.sleep(think_s)
                done = subprocess.run([*script, *words.split()], cwd=root, capture_output=True,
                                      text=True, check=False, env=own_environment() | ACTING)
                if done.returncode:
                    raise RuntimeError(f"{words}: {done.stderr}")

    before = time.perf_counter()
    with ThreadPoolExecutor(agents) as pool:
        list(pool.map(work, range(agents)))
    return time.perf_counter() - before


def measure_commands(
    rounds: Annotated[int, typer.Option(min=3, max=1000, help="Times each command.")] = 15,
    agents: Annotated[int, typer.Option(min=1, max=200, help="Of the fleet.")] = 30,
    think: Annotated[float, typer.Option(min=0.1, help="Each thinks so long (s).")] = 5.0,
    tasks: Annotated[int, typer.Option(min=1, help="Of all of them.")] = 120,
    fetch_peers: InstallPeers = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """What commands cost, in bare interpreters; and a fleet that types them."""
    if fetch_peers:
        install_peers()
    show_report(run(rounds, agents, think, tasks, folder), as_json, describe)


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield f"A bare interpreter takes {report.bare_ms:.1f} ms. A command takes so many of them:"
    for cost in report.costs:
        yield f"{cost.command:36} {cost.by:34} {cost.ratio:7.2f} {cost.ms:8.1f} ms"
    for sentence in report.missing:
        yield f"missing: {sentence}"
    yield (f"{report.agents} agents that think and type: {report.wall_s:.1f} s, of which they "
           f"think {report.ideal_s:.1f} s ({report.wall_s / report.ideal_s:.2f} times)")
