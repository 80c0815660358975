"""`python -m benchmarks strategies`: the same edits of shared files, by each way to share them.

Agents carry the same seeded edits: each adds a line to one function of a file, and thinks between
reading and writing. Once they lease the file before they think; once they think first and propose;
once each works on a copy and lands it by merging; once they lease the function alone. Real time
over a real daemon, thoughts scaled down. An edit that is not in the end where it belongs is lost,
and one that is there twice is doubled: both must be 0.
"""

from __future__ import annotations

import contextlib
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, Seed, end, parse_numbers, show_report
from benchmarks.measuring.own_daemon import OwnDaemon, own_daemon
from coordinator.client.client import Client
from coordinator.files.content import digest
from coordinator.merging.act import merge_texts
from coordinator.source.outlines import Outlines
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal

#: Files among which edits choose, and functions of each.
FILES = {"few": 2, "many": 20}
FUNCTIONS = 12
TTL_S, LINE_S = 30.0, 300.0
#: Before what others hold just now is asked for again (seconds).
PAUSE_S = 0.01
LOST = frozenset({Code.VERSION_CHANGED, Code.REGION_CHANGED})


@dataclass(frozen=True)
class Edit:
    """One line in one function of one file; thought about for so long (seconds)."""

    name: str
    path: str
    function: str
    think_s: float

    def made(self, text: str) -> str:
        """The text of the file with this line at the end of its function."""
        return re.sub(rf"(def {self.function}\(done\):\n(?:    .*\n)*)", rf"\1{self.line}", text,
                      count=1)

    @property
    def line(self) -> str:
        """What it adds."""
        return f"    done.append('{self.name}')\n"


class Figure(msgspec.Struct):
    """One strategy. `per_s`: edits that landed in a second; the rest in seconds, of all agents
    together: thought whose outcome was thrown away, and all time that was not thought."""

    strategy: str
    agents: int
    files: str
    edits: int
    wall_s: float
    per_s: float
    wasted_s: float
    waiting_s: float
    lost: int
    doubled: int


class Report(msgspec.Struct):
    """All of them, and whether every edit is there once."""

    think_s: float
    figures: list[Figure]
    kept: bool


def edits(agents: int, each: int, files: str, think_s: float, seed: int) -> list[list[Edit]]:
    """Each agent's edits: the same for every strategy."""
    dice = random.Random(f"{seed} {agents} {files}")
    return [[Edit(f"edit-{agent}-{n}", f"m{dice.randrange(FILES[files])}.py",
                  f"work_{dice.randrange(FUNCTIONS)}", think_s * dice.uniform(0.5, 1.5))
             for n in range(each)] for agent in range(agents)]


def fresh(root: Path, count: int) -> None:
    """The files as they are before."""
    for number in range(count):
        (root / f"m{number}.py").write_text("\n\n".join(
            f"def work_{n}(done):\n    done.append('begun {n}')\n" for n in range(FUNCTIONS)))


class Worker:
    """One agent, and what it spent."""

    def __init__(self, root: Path, name: str, merger: Merger) -> None:
        self._root, self._merger = root, merger
        self.client = Client(root, agent=name, autostart=False)
        self.client.register()
        self.thought_s = 0.0
        self.needed_s = 0.0

    def carry(self, mine: Sequence[Edit], way: Callable[[Worker, Edit], None]) -> None:
        """Carry all of them, one after the other."""
        for edit in mine:
            self.needed_s += edit.think_s
            way(self, edit)

    def think(self, edit: Edit) -> None:
        """Think about an edit."""
        before = time.perf_counter()
        time.sleep(edit.think_s)
        self.thought_s += time.perf_counter() - before

    def _read(self, edit: Edit) -> bytes:
        return (self._root / edit.path).read_bytes()

    def _propose(self, edit: Edit, base: bytes, new: str) -> Refusal | None:
        """Propose the whole file; why it was lost, or None."""
        while True:
            try:
                self.client.call(rq.Propose(agent=self.client.name(), changes=[
                    rq.ProposedChange(resource=edit.path, version=digest(base), content=new)]))
                return None
            except Refusal as no:
                if no.code in LOST:
                    return no
                if no.code not in HELD:
                    raise
                time.sleep(PAUSE_S)  # another is writing, or has a lease after its losses

    # ------------------------------------------------------------ the ways

    def pessimistic(self, edit: Edit) -> None:
        """Lease the file, read, think, write."""
        with self.client.lease(edit.path, ttl=TTL_S, wait=LINE_S):
            text = self._read(edit).decode()
            self.think(edit)
            _write(self._root / edit.path, edit.made(text))

    def regions(self, edit: Edit) -> None:
        """Lease the function, read, think, commit its text."""
        region = f"{edit.path}::{edit.function}"
        with self.client.lease(region, ttl=TTL_S, wait=LINE_S):
            self.think(edit)
            while True:
                text = edit.made(self._read(edit).decode())
                found = re.search(rf"def {edit.function}\(done\):\n(?:    .*\n)*", text)
                assert found is not None
                try:
                    self.client.commit_region(region, found[0])
                    return
                except Refusal as no:
                    if no.code not in HELD:
                        raise
                    time.sleep(PAUSE_S)  # another writes the file just now

    def optimistic(self, edit: Edit) -> None:
        """Read, think, propose; again when another was first; under a lease after its losses."""
        with contextlib.ExitStack() as held:
            while True:
                base = self._read(edit)
                self.think(edit)
                no = self._propose(edit, base, edit.made(base.decode()))
                if no is None:
                    return
                self._take_turn(edit, no, held)

    def isolated(self, edit: Edit) -> None:
        """Think on a copy, land it by merging; think again only where both changed one place."""
        with contextlib.ExitStack() as held:
            while True:
                base = self._read(edit)
                self.think(edit)
                mine = edit.made(base.decode()).encode()
                while True:
                    now = self._read(edit)
                    merged = self._merger.merge(base, now, mine, edit.path)
                    if merged is None:
                        break
                    no = self._propose(edit, now, merged.decode())
                    if no is None:
                        return
                    self._take_turn(edit, no, held)

    def _take_turn(self, edit: Edit, no: Refusal, held: contextlib.ExitStack) -> None:
        """Whoever was put in line after its losses takes the lease, until it has written: one that
        it is given and does not use would keep the others out."""
        if no.facts.get("acquisition_id"):
            self.client.acquire(edit.path, wait=LINE_S, retry=False, reentrant=True)
            held.callback(self.client.release, edit.path)  # also where it had come meanwhile


class Merger:
    """The merge by regions, one at a time: one worker reads for all."""

    def __init__(self, outlines: Outlines) -> None:
        self._outlines, self._turn = outlines, threading.Lock()

    def merge(self, base: bytes, ours: bytes, theirs: bytes, path: str) -> bytes | None:
        """None: both have changed one place."""
        if ours == base:
            return theirs
        with self._turn:
            done = merge_texts(base, ours, theirs, path,
                               asking=lambda: self._outlines)
        return None if done.by == "conflict" else done.data


WAYS: dict[str, Callable[[Worker, Edit], None]] = {
    "pessimistic": Worker.pessimistic, "optimistic": Worker.optimistic,
    "isolated": Worker.isolated, "by region": Worker.regions,
}


def run(agents: Sequence[int], each: int, think_s: float, seed: int = 1,
        folder: Path | None = None, files: Sequence[str] = tuple(FILES)) -> Report:
    """Every strategy with each number of agents, on few and on many files.

    Raises:
        RuntimeError: the daemon did not start.
    """
    figures = []
    with own_daemon(folder, git=True) as daemon, Outlines() as outlines:
        merger = Merger(outlines)
        for kind in files:
            for count in agents:
                asked = edits(count, each, kind, think_s, seed)
                for name in WAYS:
                    figures.append(_one(daemon, name, kind, asked, merger))
    return Report(think_s, figures, not any(one.lost or one.doubled for one in figures))


def _one(daemon: OwnDaemon, name: str, kind: str, asked: list[list[Edit]],
         merger: Merger) -> Figure:
    fresh(daemon.root, FILES[kind])
    workers = [Worker(daemon.root, f"{name[:2]}-{kind}-{len(asked)}-{n}", merger)
               for n in range(len(asked))]
    failed: list[BaseException] = []

    def carry(worker: Worker, mine: list[Edit]) -> None:
        try:
            worker.carry(mine, WAYS[name])
        except BaseException as bad:
            failed.append(bad)

    threads = [threading.Thread(target=carry, args=one)
               for one in zip(workers, asked, strict=True)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall_s = time.perf_counter() - began
    for worker in workers:
        worker.client.close()
    if failed:
        raise failed[0]
    whole = [edit for mine in asked for edit in mine]
    lost, doubled = compare(daemon.root, whole)
    thought, needed = (sum(getattr(one, what) for one in workers)
                       for what in ("thought_s", "needed_s"))
    return Figure(
        name, len(asked), kind, len(whole), wall_s, (len(whole) - lost) / wall_s,
        max(0.0, thought - needed), len(workers) * wall_s - thought, lost, doubled)


def compare(root: Path, whole: Sequence[Edit]) -> tuple[int, int]:
    """Edits that are not in their function, and how many are there more than once."""
    lost = doubled = 0
    texts: dict[str, Any] = {}
    for edit in whole:
        text = texts.setdefault(edit.path, (root / edit.path).read_text())
        body = re.search(rf"def {edit.function}\(done\):\n((?:    .*\n)*)", text)
        there = body[1].count(edit.line) if body is not None else 0
        lost += there == 0
        doubled += max(0, text.count(edit.line) - 1)
    return lost, doubled


def _write(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def measure_strategies(
    agents: Annotated[str, typer.Option(help="Numbers of agents.")] = "2,10,30",
    edits: Annotated[int, typer.Option(min=1, max=100, help="Of each agent.")] = 3,
    think: Annotated[float, typer.Option(min=0.01, max=600, help="About each edit (s).")] = 0.3,
    seed: Seed = 1,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """The same edits of few and of many shared files, by each way to share them."""
    report = run(parse_numbers(agents, 1, 200), edits, think, seed, folder)
    show_report(report, as_json, describe)
    end(good=report.kept)


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield f"Each agent thinks about {report.think_s:g} s about each of its edits."
    yield (f"{'':12} {'files':>5} {'agents':>6} {'edits':>6} {'wall s':>7} {'edits/s':>8} "
           f"{'wasted s':>9} {'waiting s':>10} {'lost':>5} {'doubled':>7}")
    for figure in report.figures:
        yield (f"{figure.strategy:12} {figure.files:>5} {figure.agents:6} {figure.edits:6} "
               f"{figure.wall_s:7.2f} {figure.per_s:8.2f} {figure.wasted_s:9.2f} "
               f"{figure.waiting_s:10.2f} {figure.lost:5} {figure.doubled:7}")
