"""`python -m benchmarks billing`: several agents change what one customer owes.

A customer owes 100. One agent adds a late fee of 50, the next gives a credit of 20, and so on; each
thinks between reading and writing. Each strategy starts from 100, and ends at 100 and the sum of
all steps, or something was lost or doubled. With `kills` the daemon is killed so many times
meanwhile (SIGKILL), and one agent in its thought, whose step another does again.

Owns the course and the figures; what agents do stands in `billing_agent`, a process each of theirs.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import typer

from benchmarks.billing_agent import Order, Step, Strategy, nothing_owed
from benchmarks.command_line import AsJson, Folder, Seed, end, parse_numbers, show_report
from benchmarks.measuring.own_daemon import OwnDaemon, own_daemon, own_environment
from coordinator.client.client import Client
from coordinator.client.locating import connect
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal

OWED, FEE, CREDIT = 100, 50, -20
#: Agents in one process: beyond that threads hold one another up.
TOGETHER = 25
#: A run that takes longer than all thoughts one after the other, twice, and this (seconds), hangs.
SLACK_S = 120.0


class Figure(msgspec.Struct):
    """One strategy with so many agents. `waiting_s`: of all agents together, all time that was not
    thought; `wasted_s`: thought whose outcome was thrown away, that of a killed agent included."""

    strategy: str
    agents: int
    result: int
    expected: int
    lost: int
    doubled: int
    wall_s: float
    waiting_s: float
    wasted_s: float
    kills: int

    @property
    def good(self) -> bool:
        """Whether the account is right."""
        return not self.lost and not self.doubled and self.result == self.expected


class Report(msgspec.Struct):
    """All of them. `kept`: whether every strategy with coord kept every step."""

    think_s: float
    figures: list[Figure]
    kept: bool


class Worker:
    """A process of agents, and what it says."""

    def __init__(self, order: Order, told: _Told) -> None:
        environment = own_environment()
        environment["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)
        # Where a coordinator that it starts notes itself: beside the benchmark's own.
        environment["XDG_STATE_HOME"] = str(Path(order.root).parent / "state")
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "benchmarks.billing_agent"], cwd=order.root,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
        )
        self.say(msgspec.json.encode(order))
        self.ready = threading.Event()
        self._told = told
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def say(self, line: bytes = b"go") -> None:
        """A line on its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def await_ready(self) -> None:
        """Until its agents are registered.

        Raises:
            RuntimeError: it ended before.
        """
        if not self.ready.wait(SLACK_S):
            raise RuntimeError(f"an agent's process did not begin (code {self.process.poll()})")

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        self._thread.join()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            facts = json.loads(line)
            if "ready" in facts:
                self.ready.set()
            else:
                self._told.note(facts)


class _Told:
    """What all agents have said so far."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.thinks: list[str] = []
        self.done: dict[str, dict[str, Any]] = {}
        self.account: dict[str, Any] | None = None

    def note(self, facts: dict[str, Any]) -> None:
        with self._changed:
            if "thinks" in facts:
                self.thinks.append(facts["thinks"])
            elif "done" in facts:
                self.done[facts["done"]] = facts
            else:
                self.account = facts["account"]
            self._changed.notify_all()

    def until(self, so: Any, seconds: float) -> bool:
        """Wait until `so()`; false: it did not come."""
        with self._changed:
            return bool(self._changed.wait_for(so, seconds))


def run(agents: Sequence[int], think_s: float, kills: int = 0, seed: int = 1,
        folder: Path | None = None) -> Report:
    """Each strategy with each number of agents, in one repository with a daemon of its own.

    Raises:
        RuntimeError: it did not start, or a run did not end.
    """
    figures = []
    with own_daemon(folder) as daemon, _ended(daemon):
        for count in agents:
            for strategy in get_args(Strategy):
                figures.append(_one(daemon, strategy, count, think_s, kills, seed))
    return Report(think_s, figures, all(one.good for one in figures if one.strategy != "none"))


def _one(daemon: OwnDaemon, strategy: Strategy, count: int, think_s: float, kills: int,
         seed: int) -> Figure:
    key = f"key:customer:{strategy}-{count}"
    steps = [Step(f"step-{n}", f"{strategy}-{count}-{n}", CREDIT if n % 2 else FEE)
             for n in range(count)]
    order = Order(str(daemon.root), key, strategy, think_s, seed)
    told = _Told()
    kills = 0 if strategy == "none" else kills
    _begin(daemon, order)
    with contextlib.ExitStack() as stack:
        def worker(**facts: Any) -> Worker:
            made = Worker(msgspec.structs.replace(order, **facts), told)
            stack.callback(made.end)
            return made

        doomed = worker(steps=steps[:1]) if kills else None
        rest = steps[1:] if kills else steps
        workers = [worker(steps=rest[at:at + TOGETHER]) for at in range(0, len(rest), TOGETHER)]
        if strategy == "owner":
            workers.append(worker(owns=f"owner-{count}"))
        if doomed is not None:
            workers.append(doomed)
        for one in workers:
            one.await_ready()
        began = time.perf_counter()
        for one in workers:
            one.say()
        killed = _Killed(daemon, told, kills, count, think_s, seed)
        wasted_s = 0.0
        if doomed is not None:
            wasted_s = _kill_in_thought(doomed, steps[0], told, think_s)
            again = worker(steps=[msgspec.structs.replace(steps[0], agent=f"{strategy}-again")])
            again.await_ready()
            again.say()
        if not told.until(lambda: len(told.done) == count, 2 * count * 1.5 * think_s + SLACK_S):
            raise RuntimeError(f"{strategy}: {len(told.done)} of {count} steps came to their end")
        wall_s = time.perf_counter() - began
        killed.end()
        account = _look(daemon, order, told, worker)
    there = Counter(account["steps"])
    return Figure(
        strategy, count, account["owed"], OWED + sum(step.amount for step in steps),
        lost=sum(step.name not in there for step in steps),
        doubled=sum(n - 1 for n in there.values()), wall_s=wall_s,
        waiting_s=sum(one["waited_s"] for one in told.done.values()),
        wasted_s=wasted_s + sum(one["wasted_s"] for one in told.done.values()),
        kills=killed.count,
    )


def _begin(daemon: OwnDaemon, order: Order) -> None:
    """The customer owes 100."""
    account = nothing_owed(OWED)
    if order.strategy == "none":
        _file(daemon, order).write_text(json.dumps(account))
        return
    with Client(daemon.root, agent="clerk", autostart=False) as client:
        client.call(rq.StatePut(agent=client.name(), key=order.key, version=0,
                                value=msgspec.Raw(msgspec.json.encode(account))))


def _look(daemon: OwnDaemon, order: Order, told: _Told, worker: Any) -> dict[str, Any]:
    if order.strategy == "none":
        found: dict[str, Any] = json.loads(_file(daemon, order).read_text())
        return found
    worker(look=True)  # starts a coordinator, where the last one was killed
    if not told.until(lambda: told.account is not None, SLACK_S):
        raise RuntimeError("the account cannot be read")
    assert told.account is not None
    return told.account


def _file(daemon: OwnDaemon, order: Order) -> Path:
    return daemon.root / f"{order.key.replace(':', '-')}.json"


def _kill_in_thought(doomed: Worker, step: Step, told: _Told, think_s: float) -> float:
    """Kill the process of this step's agent while it thinks; how long it had thought (seconds)."""
    told.until(lambda: step.name in told.thinks, SLACK_S + think_s * 1000)
    before = time.perf_counter()
    time.sleep(think_s / 4)
    os.kill(doomed.process.pid, signal.SIGKILL)
    doomed.process.wait()
    if step.name in told.done:
        raise RuntimeError("the agent had ended before it was killed")
    return time.perf_counter() - before


class _Killed:
    """Kills the daemon `kills` times while agents are at work, from a thread of its own."""

    def __init__(self, daemon: OwnDaemon, told: _Told, kills: int, agents: int, think_s: float,
                 seed: int) -> None:
        self.count = 0
        self._daemon, self._told, self._kills, self._agents = daemon, told, kills, agents
        self._think_s, self._dice, self._over = think_s, random.Random(seed), threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def end(self) -> None:
        """Kill no more."""
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        for number in range(self._kills):
            after = number * self._agents // self._kills
            while not (self._told.thinks and len(self._told.done) >= after):
                if self._over.wait(0.005):
                    return
            if self._over.wait(self._dice.uniform(0, self._think_s)):
                return
            self._kill()

    def _kill(self) -> None:
        while (sock := connect(self._daemon.state)) is None:  # the last one's heir is not there yet
            if self._over.wait(0.02):
                return
        sock.close()
        os.kill(int(self._daemon.state.lock.read_text()), signal.SIGKILL)
        self.count += 1


@contextlib.contextmanager
def _ended(daemon: OwnDaemon) -> Iterator[None]:
    """Ends whatever coordinator serves there at last: agents have started it after a kill."""
    try:
        yield
    finally:
        with contextlib.suppress(Refusal), Client(daemon.root, autostart=False) as client:
            client.call(rq.Shutdown())


def measure_billing(
    agents: Annotated[str, typer.Option(help="Numbers of agents.")] = "2,10,100",
    think: Annotated[float, typer.Option(min=0.01, max=600, help="Each thinks about so long "
                                         "(s).")] = 0.2,
    kills: Annotated[int, typer.Option(min=0, max=100, help="Kills of the daemon in each run; and "
                                       "one of an agent, then.")] = 0,
    seed: Seed = 1,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Agents that add fees and credits to what one customer owes, by each strategy."""
    report = run(parse_numbers(agents, 2, 500), think, kills, seed, folder)
    show_report(report, as_json, describe)
    end(good=report.kept)


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield f"Each agent thinks about {report.think_s:g} s between reading and writing."
    yield (f"{'':12} {'agents':>6} {'result':>7} {'expected':>8} {'lost':>5} {'doubled':>7} "
           f"{'wall s':>8} {'waiting s':>10} {'wasted s':>9} {'kills':>5}")
    for figure in report.figures:
        yield (f"{figure.strategy:12} {figure.agents:6} {figure.result:7} {figure.expected:8} "
               f"{figure.lost:5} {figure.doubled:7} {figure.wall_s:8.2f} {figure.waiting_s:10.2f} "
               f"{figure.wasted_s:9.2f} {figure.kills:5}")
