"""What signals do to a crowd of agents: `make signals-simulation`.

A seeded simulation in virtual time over the real service: 50 agents carry 500 tasks that share
files. A task declares some of its files; half-way it may turn out to need others. Then its agent
leases these, and when they are held it does one of what a launched agent does: it gives the task
back as blocked, stands in line, or carries the task that it is offered and comes back.

coord leaves its hints in every run. What differs is whether dispatch weighs them: all weights zero,
or one of `CANDIDATES`. Runs are compared in pairs: the same shape and seed, so the same tasks,
files, durations and tempers. Nothing is decided here that the service decides.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from math import comb
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from benchmarks.command_line import AsJson, show_report
from benchmarks.measuring.inside import START_MS, Inside, inside
from coordinator.cli.app import one_of
from coordinator.operations.listing import OPERATIONS
from coordinator.settings import Settings, Signalling
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import HELD, Code, Refusal

SHAPES = ("many hot files", "few hot files", "directories", "priorities")
#: Weights that are tried against none: avoid what was contended, and the opposite, for to take it
#: first may shorten the longest chain of tasks that wait for one another.
CANDIDATES: dict[str, dict[str, float]] = {
    "files_blocked -1": {"files_blocked": -1.0},
    "files_blocked +1": {"files_blocked": 1.0},
    "saturation -1": {"saturation": -1.0},
    "saturation +1": {"saturation": 1.0},
    "both -1": {"files_blocked": -1.0, "saturation": -1.0},
    "both +1": {"files_blocked": 1.0, "saturation": 1.0},
}
MEASURES = ("refused", "idle_s", "makespan_s")
#: How long an agent stands in line before it gives its task back (ms), and redirects in redirects.
PATIENCE_MS, DEPTH_MAX = 300_000, 2
TTL_S = 14_000.0
#: What counts as a clear win: the middle of the differences in makespan is at least this much
#: shorter, over all shapes together, and so often that chance would do it once in a hundred.
CLEAR_SHARE, CLEAR_CHANCE = 0.02, 0.01


@dataclass(frozen=True)
class Work:
    """One task: what it declares, what it turns out to need, and how long its halves take (ms)."""

    declared: tuple[str, ...]
    hidden: tuple[str, ...]
    first_ms: int
    second_ms: int
    priority: int


@dataclass
class Figures:
    """Of one run. `idle_s`: agents that asked and were given nothing, until the last task was done;
    `waited_s`: in line, a task in hand; `wasted_s`: work that was given back. Sums over agents, in
    seconds; `makespan_s` is the clock's."""

    refused: int = 0
    given_back: int = 0
    redirected: int = 0
    idle_s: float = 0.0
    waited_s: float = 0.0
    wasted_s: float = 0.0
    makespan_s: float = 0.0
    done: int = 0


def tasks(shape: str, seed: int, count: int) -> list[Work]:
    """The tasks of one shape and seed."""
    dice = random.Random(f"{shape} {seed}")
    return [_task(shape, dice) for _ in range(count)]


def _task(shape: str, dice: random.Random) -> Work:
    many = dice.choices((1, 2, 3), (5, 3, 2))[0] + (more := dice.choices((0, 1, 2), (5, 4, 1))[0])
    names: list[str] = []
    home = dice.randrange(25)
    while len(names) < many:
        name = _file(shape, dice, home)
        if name not in names:
            names.append(name)
    whole = dice.lognormvariate(0.0, 0.6) * 60_000
    half = dice.uniform(0.3, 0.7)
    return Work(
        tuple(names[more:]), tuple(names[:more]), round(whole * half), round(whole * (1 - half)),
        dice.randrange(4) if shape == "priorities" else 0,
    )


def _file(shape: str, dice: random.Random, home: int) -> str:
    if shape == "few hot files":
        if dice.random() < 0.1:
            return f"src/hot{dice.randrange(6)}.py"
        return f"src/m{dice.randrange(600)}.py"
    if shape == "directories":
        folder = home if dice.random() < 0.85 else dice.randrange(25)
        return f"src/part{folder}/m{int(12 * dice.random() ** 1.5)}.py"
    return f"src/m{min(399, int(400 * dice.random() ** 1.4))}.py"  # many, some more than others


#: What an agent waits for: ("sleep", ms), ("line", acquisition id, until ms) or ("idle",).
Pause = tuple[Any, ...]
Course = Generator[Pause, Any, Any]


class Simulation:
    """Agents, their clock, and the service that they ask."""

    def __init__(self, place: Inside, work: Mapping[str, Work], agents: int, seed: int) -> None:
        self._place, self._work = place, work
        self.figures = Figures()
        self.now_ms = START_MS + 10_000
        self._dice = random.Random(f"tempers {seed}")
        self._temper = {name: self._dice.choice(("gives back", "waits", "redirect"))
                        for name in work}
        self._courses = {f"agent-{n}": self._agent(f"agent-{n}") for n in range(agents)}
        self._heap: list[tuple[int, int, str, Any, int]] = []
        self._n = 0
        #: Which of its pauses an agent is in: an event for an earlier one is stale.
        self._pause = dict.fromkeys(self._courses, 0)
        self._idle: deque[tuple[str, int]] = deque()
        self._line: dict[str, str] = {}
        self._granted: set[str] = set()
        self._seen = 0
        self._freed = False

    def run(self) -> Figures:
        """Until every task is done."""
        for name in self._courses:
            self._go_on(name, None)
        while self.figures.done < len(self._work):
            if not self._heap:
                raise RuntimeError(f"nobody moves: {self.figures}")
            at, _, name, value, pause = heapq.heappop(self._heap)
            if pause != self._pause.get(name, pause):
                continue
            self.now_ms = max(self.now_ms, at)
            if name:
                self._go_on(name, value)
            self._serve_idle()
        end = self.now_ms
        self.figures.makespan_s = (end - START_MS - 10_000) / 1000
        self.figures.idle_s += sum(end - since for _, since in self._idle) / 1000
        return self.figures

    # ------------------------------------------------------------ the clock

    def _at(self, at_ms: int, name: str, value: Any) -> None:
        self._n += 1
        heapq.heappush(self._heap, (at_ms, self._n, name, value, self._pause.get(name, 0)))

    def _go_on(self, name: str, value: Any) -> bool:
        """Run an agent to its next pause; whether that is another than idling."""
        self._pause[name] += 1
        for acquisition in [one for one, who in self._line.items() if who == name]:
            del self._line[acquisition]
        what, *facts = self._courses[name].send(value)
        if what == "sleep":
            self._at(self.now_ms + facts[0], name, None)
        elif what == "line":
            if facts[0] in self._granted:
                self._at(self.now_ms, name, "granted")
            else:
                self._line[facts[0]] = name
                self._at(facts[1], name, "in vain")
        return bool(what != "idle")

    def _serve_idle(self) -> None:
        """Whatever came free is offered to those without work, the longest idle first. What one of
        them is not given, none is: they hold nothing, so they are all alike."""
        if not self._freed:
            return
        self._freed = False
        while self._idle:
            name, since = self._idle.popleft()
            if not self._go_on(name, None):
                self._idle.pop()
                self._idle.appendleft((name, since))
                return
            self.figures.idle_s += (self.now_ms - since) / 1000

    # ------------------------------------------------------------ asking

    def _ask(self, request: rq.Request[Any]) -> Any:
        engine = self._place.engine
        engine.now_ms = self.now_ms
        try:
            return engine.ask(OPERATIONS[request.op], request)
        finally:
            for acquisition in engine.granted[self._seen:]:
                self._granted.add(acquisition)
                if (name := self._line.pop(acquisition, None)) is not None:
                    self._at(self.now_ms, name, "granted")
            self._seen = len(engine.granted)

    def _agent(self, me: str) -> Course:
        while True:
            try:
                claimed = self._ask(rq.TaskClaim(agent=me, ttl_s=TTL_S))
            except Refusal as refusal:
                if refusal.code is not Code.NOTHING_TO_DO:
                    raise
                self._idle.append((me, self.now_ms))
                yield ("idle",)
                continue
            yield from self._carry(me, claimed.task.task, 0)

    def _carry(self, me: str, task: str, depth: int) -> Course:
        work = self._work[task]
        yield ("sleep", work.first_ms)
        if work.hidden and not (yield from self._lease(me, task, work, depth)):
            self.figures.given_back += 1
            self.figures.wasted_s += work.first_ms / 1000
            back = self._ask(rq.TaskFail(agent=me, task=task, blocked=list(work.hidden),
                                         reason="met files that others hold"))
            self._freed = True
            if back.not_before is not None:
                self._at(from_iso(back.not_before), "", None)
            return
        yield ("sleep", work.second_ms)
        self._ask(rq.TaskDone(agent=me, task=task))
        self.figures.done += 1
        self._freed = True

    def _lease(self, me: str, task: str, work: Work, depth: int) -> Generator[Pause, Any, bool]:
        """Lease what was not declared; false: the task is to be given back."""
        asked = rq.Acquire(agent=me, resources=list(work.hidden), task=task, ttl_s=TTL_S,
                           wait_s=600.0)
        until, turned = self.now_ms + PATIENCE_MS, False
        while True:
            try:
                self._ask(asked)
                return True
            except Refusal as refusal:
                if refusal.code not in HELD and refusal.code is not Code.DEADLOCK:
                    raise
                facts = refusal.facts
            self.figures.refused += 1
            place = str(facts["acquisition_id"])
            if victim := facts.get("victim"):
                self._told_to_give_way(str(victim))
            temper = self._temper[task]
            if facts["give_way"] or temper == "gives back" or self.now_ms >= until:
                self._step_out(me, place)
                return False
            offered = facts["redirect"]
            if temper == "redirect" and offered and depth < DEPTH_MAX and not turned:
                turned = True
                self._ask(rq.TaskClaim(agent=me, task=offered["task"], ttl_s=TTL_S))
                self.figures.redirected += 1
                yield from self._carry(me, offered["task"], depth + 1)
                until = self.now_ms + PATIENCE_MS
                if place in self._granted:
                    return True
                continue
            began = self.now_ms
            came = yield ("line", place, until)
            self.figures.waited_s += (self.now_ms - began) / 1000
            if came == "granted":
                return True
            self._step_out(me, place)
            return False

    def _told_to_give_way(self, victim: str) -> None:
        """Chosen out of a circle, it is told so by a notice: here at once, if it stands in line."""
        if victim in self._line.values():
            self._at(self.now_ms, victim, "give way")

    def _step_out(self, me: str, place: str) -> None:
        if place not in self._granted:
            self._ask(rq.Withdraw(agent=me, acquisition_id=place))
            self._freed = True


def simulate(shape: str, seed: int, weights: Mapping[str, float], agents: int = 50,
             count: int = 500, folder: Path | None = None) -> Figures:
    """One run."""
    settings = Settings(signals=Signalling(weights=dict(weights)))
    work = tasks(shape, seed, count)
    with inside(folder, settings) as place:
        named: dict[str, Work] = {}
        for one in work:
            place.engine.now_ms += 1
            made = place.engine.ask(OPERATIONS["task_add"], rq.TaskAdd(
                title="work", resources=list(one.declared), priority=one.priority,
                attempts_max=100))
            named[made.task] = one
        return Simulation(place, named, agents, seed).run()


# ------------------------------------------------------------ comparing


@dataclass(frozen=True)
class Difference:
    """A measure with these weights less without, as a share of what it is without; the middle, the
    quartiles and the ends over seeds, and in how many runs it was less or more."""

    weights: str
    shape: str
    measure: str
    middle: float
    lower: float
    upper: float
    least: float
    most: float
    less: int
    more: int


def difference(weights: str, shape: str, measure: str,
               pairs: Sequence[tuple[Figures, Figures]]) -> Difference:
    """Of paired runs (without, with)."""
    shares = sorted(
        (getattr(with_, measure) - getattr(without, measure)) / max(1, getattr(without, measure))
        for without, with_ in pairs)
    quarter = (len(shares) - 1) // 4
    return Difference(
        weights, shape, measure, median(shares), shares[quarter], shares[-1 - quarter], shares[0],
        shares[-1], sum(s < 0 for s in shares), sum(s > 0 for s in shares))


def chance(less: int, more: int) -> float:
    """How likely a fair coin falls so much to one side, or more (two-sided sign test)."""
    n, k = less + more, min(less, more)
    return min(1.0, 2 * sum(comb(n, i) for i in range(k + 1)) / 2**n) if n else 1.0


def wins(found: Sequence[Difference]) -> bool:
    """Whether weights win clearly: `found` are their differences, those of all shapes together
    under the shape `all`. In no shape may the middle of the makespans be longer."""
    spans = [one for one in found if one.measure == "makespan_s"]
    whole = next(one for one in spans if one.shape == "all")
    return (whole.middle <= -CLEAR_SHARE and whole.less > whole.more
            and chance(whole.less, whole.more) <= CLEAR_CHANCE
            and all(one.middle <= 0 for one in spans))


def _job(job: tuple[str, int, str, int, int]) -> tuple[tuple[str, int, str], Figures]:
    shape, seed, name, agents, count = job
    return (shape, seed, name), simulate(shape, seed, CANDIDATES.get(name, {}), agents, count)


def simulate_signals(
    seeds: Annotated[int, typer.Option(min=1, help="Of each shape.")] = 10,
    first_seed: Annotated[int, typer.Option(help="They are counted from this one on.")] = 1,
    agents: Annotated[int, typer.Option(min=1, help="At once.")] = 50,
    tasks: Annotated[int, typer.Option(min=1, help="Of all of them.")] = 500,
    only: Annotated[
        list[str] | None, typer.Option(help=f"Weights: {', '.join(CANDIDATES)}.")
    ] = None,
    shape: Annotated[list[str] | None, typer.Option(help=f"{', '.join(SHAPES)}.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="At once.")] = 2,
    as_json: AsJson = False,
) -> None:
    """What hints do to a crowd of agents, in virtual time over the real service."""
    names = [one_of(name, CANDIDATES, f"{name!r} is not tried") for name in only or CANDIDATES]
    shapes = [one_of(name, SHAPES, f"{name!r} is no shape") for name in shape or SHAPES]
    numbers = range(first_seed, first_seed + seeds)
    jobs = [(kind, seed, name, agents, tasks)
            for kind in shapes for seed in numbers for name in ("none", *names)]
    with ProcessPoolExecutor(processes) as pool:
        runs = dict(pool.map(_job, jobs))
    differences = [
        difference(name, kind, measure, [
            (runs[shape_name, seed, "none"], runs[shape_name, seed, name])
            for shape_name in (shapes if kind == "all" else (kind,)) for seed in numbers])
        for name in names for kind in (*shapes, "all") for measure in MEASURES]
    without = {kind: [runs[kind, seed, "none"] for seed in numbers] for kind in shapes}
    report = Report(agents, tasks, seeds, differences, without)
    show_report(report, as_json, describe)


@dataclass(frozen=True)
class Report:
    """What weights change, and how the runs without any are."""

    agents: int
    tasks: int
    seeds: int
    differences: list[Difference]
    without: dict[str, list[Figures]]


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield (f"{report.tasks} tasks, {report.agents} agents, {report.seeds} seeds of each shape; "
           "without weights, the middle of the seeds:")
    for shape, figures in report.without.items():
        yield f"  {shape:15} " + "  ".join(
            f"{key} {median(getattr(run, key) for run in figures):,.0f}"
            for key in asdict(figures[0]))
    yield "with weights, as a difference from without: middle (quartiles; ends), less/more"
    for change in report.differences:
        yield (f"  {change.weights:17} {change.shape:15} {change.measure:11} {change.middle:+7.1%} "
               f"({change.lower:+.1%} to {change.upper:+.1%}; {change.least:+.1%} to "
               f"{change.most:+.1%}) {change.less}/{change.more}")
    for name in dict.fromkeys(change.weights for change in report.differences):
        clear = wins([change for change in report.differences if change.weights == name])
        yield f"{name}: {'wins clearly' if clear else 'does not win clearly'}"
