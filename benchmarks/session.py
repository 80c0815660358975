"""`python -m benchmarks session`: what a session adds to a command, a start and a grant.

A real keeper and real namespaces. A command is `bash -c true`, timed by the same program outside
and inside of a session, turn by turn; one that joins its agent's session is the same by the program
that Claude Code puts before it; a start is the way from the request to the end of `true` in a
session of its own, beside `true`; a grant is a lease taken and given back with so many sessions of
others open, beside the same with none. Seconds are of one run and one machine: read the ratios.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, parse_numbers, show_report
from benchmarks.measuring.own_daemon import own_daemon
from benchmarks.measuring.samples import paired
from coordinator.client.client import Client
from coordinator.namespaces import orders
from coordinator.wiring import command_prefix
from coordinator.wiring.command_prefix import HOOK
from coordinator.words import requests as rq

#: An agent of a person's: its first hook, and then as below, by the program that it is given.
_JOINS = """
import json, subprocess, sys, time
prefix, hook = sys.argv[1], json.loads(sys.stdin.readline())
said = {"session_id": "bench", "cwd": ".", "hook_event_name": "SessionStart", "source": "startup"}
subprocess.run(hook, input=json.dumps(said).encode(), check=True, stdout=subprocess.DEVNULL)
for line in sys.stdin:
    before = time.perf_counter()
    subprocess.run([prefix, "true # pwd -P >|"], check=True)
    print(time.perf_counter() - before, flush=True)
"""

#: Prints how long one `bash -c true` took (seconds), for each line that it reads.
_TIMES = """
import subprocess, sys, time
for line in sys.stdin:
    before = time.perf_counter()
    subprocess.run(["bash", "-c", "true"], check=True)
    print(time.perf_counter() - before, flush=True)
"""


class Reach(msgspec.Struct):
    """A grant, and its end, with `sessions` of others open: medians (ms), and what they add to the
    same with none."""

    sessions: int
    lock_ms: float
    unlock_ms: float
    lock_added_ms: float
    unlock_added_ms: float


class Report(msgspec.Struct):
    """Medians (ms); `command_ratio` is that of paired ratios."""

    runs: int
    command_ms: float
    command_bare_ms: float
    command_ratio: float
    joined_ms: float
    """A command that joins its agent's session."""
    start_ms: float
    start_bare_ms: float
    grants: list[Reach]


def run(counts: Sequence[int], runs: int, folder: Path | None = None) -> Report:
    """Measure all of it.

    Raises:
        Refusal: BAD_TRANSITION: this user can have no sessions.
    """
    with own_daemon(folder, git=True) as daemon, _own_keeper(daemon.root.parent), \
            Client(daemon.root, agent="") as client:
        orders.connect(start=True).close()
        inside, bare = _commands(daemon.root, client, runs)
        joined = _joined(daemon.root, daemon.socket, runs)
        start, start_bare = _starts(daemon.root, client, runs)
        alone = _grants(daemon.root, "alone", runs)
        reaches = []
        with contextlib.ExitStack() as open_ones:
            for number, count in enumerate(sorted(counts)):
                for _ in range(count - ([0, *sorted(counts)][number])):
                    open_ones.enter_context(_session(client, daemon.root, ["cat"]))
                lock, unlock = _grants(daemon.root, f"beside-{count}", runs)
                reaches.append(Reach(count, lock * 1000, unlock * 1000,
                                     (lock - alone[0]) * 1000, (unlock - alone[1]) * 1000))
    return Report(
        runs, median(inside) * 1000, median(bare) * 1000, paired(inside, bare),
        median(joined) * 1000,
        median(start) * 1000, median(start_bare) * 1000, reaches,
    )


@contextlib.contextmanager
def _own_keeper(place: Path) -> Iterator[None]:
    """The keeper, and what stands before commands, are the benchmark's own."""
    mine = {"XDG_STATE_HOME": str(place / "state"), "XDG_DATA_HOME": str(place / "data")}
    before = {name: os.environ.get(name) for name in mine}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def _entrance(client: Client, root: Path) -> list[str]:
    """What starts a program in a new session of a new agent."""
    request = rq.OpenSession(agent=_registered(client), path=os.environ["PATH"])
    return orders.entrance(client.call(request), root)


def _registered(client: Client) -> str:
    return client.call(rq.Register(agent="bench", profile="bench", unique=True)).agent


@contextlib.contextmanager
def _session(client: Client, root: Path, command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with _pipes([*_entrance(client, root), *command], root) as process:
        yield process


@contextlib.contextmanager
def _pipes(command: list[str], root: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, cwd=root, text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def _commands(root: Path, client: Client, runs: int) -> tuple[list[float], list[float]]:
    timer = [sys.executable, "-I", "-c", _TIMES]
    inside: list[float] = []
    bare: list[float] = []
    with _session(client, root, timer) as one, _pipes(timer, root) as other:
        for number in range(-5, runs):
            for process, spent in ((one, inside), (other, bare)):
                seconds = _one(process)
                if number >= 0:
                    spent.append(seconds)
    return inside, bare


def _joined(root: Path, socket: str, runs: int) -> list[float]:
    command_prefix.make(root, HOOK)
    hook = [sys.executable, "-I", "-S", "-E", str(HOOK), socket, "claude-code", "open"]
    words = [sys.executable, "-I", "-c", _JOINS, str(command_prefix.place(root))]
    with _pipes(words, root) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(hook) + "\n")  # (by its own words it would be a hook's)
        return [_one(process) for _ in range(runs + 5)][5:]


def _one(process: subprocess.Popen[str]) -> float:
    """How long its next command took (seconds)."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _starts(root: Path, client: Client, runs: int) -> tuple[list[float], list[float]]:
    def spent(command: Callable[[], list[str]]) -> float:
        before = time.perf_counter()
        subprocess.run(command(), cwd=root, check=True)
        return time.perf_counter() - before

    def entered(request: rq.OpenSession) -> list[str]:
        return [*orders.entrance(client.call(request), root), "true"]

    agents = [_registered(client) for _ in range(runs)]
    inside, bare = [], []
    for agent in agents:
        request = rq.OpenSession(agent=agent, path=os.environ["PATH"])
        inside.append(spent(partial(entered, request)))
        bare.append(spent(lambda: ["true"]))
    return inside, bare


def _grants(root: Path, name: str, runs: int) -> tuple[float, float]:
    """Medians (seconds) of taking a file, and of giving it back."""
    (root / name).write_text("x\n")
    lock, unlock = [], []
    with Client(root, agent=name) as holder:
        for number in range(-3, runs):
            begun = time.perf_counter()
            holder.acquire(name)
            granted = time.perf_counter()
            holder.release(name)
            if number >= 0:
                lock.append(granted - begun)
                unlock.append(time.perf_counter() - granted)
    return median(lock), median(unlock)


def measure_session(
    sessions: Annotated[str, typer.Option(help="Sessions that a grant has to reach.")] = "1,10,50",
    runs: Annotated[int, typer.Option(min=5, help="Commands, starts and grants.")] = 40,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """What an agent's session adds to its commands, to its start, and to grants."""
    show_report(run(parse_numbers(sessions), runs, folder), as_json, describe)


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield (f"a command takes {report.command_ratio:.2f} times as long in a session "
           f"({report.command_ms:.1f} ms, bare {report.command_bare_ms:.1f} ms)")
    yield f"one that joins its agent's session takes {report.joined_ms:.1f} ms"
    yield f"a start takes {report.start_ms:.1f} ms, bare {report.start_bare_ms:.1f} ms"
    for reach in report.grants:
        yield (f"{reach.sessions:4} sessions: a grant takes {reach.lock_ms:.1f} ms, of that for "
               f"them {reach.lock_added_ms:.1f}; its end {reach.unlock_ms:.1f}, "
               f"{reach.unlock_added_ms:.1f}")
