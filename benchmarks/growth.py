"""`python -m benchmarks dispatch` and `overlap`: how the cost of a decision grows.

Both run the real service in process (`inside`), count CPU and waiting alike (wall time), take the
median over many decisions, and fit log(cost) over log(size): 0 is flat, 1 is linear.

*Dispatch* is adversarial: the best tasks are those whose paths are held, so that a dispatcher that
walks the backlog in order meets all of them before it finds one to give. With `signals` on, the
next tasks have hints on themselves and on their files, and dispatch weighs them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, parse_numbers, show_report
from benchmarks.measuring.inside import START_MS, Inside, inside
from benchmarks.measuring.samples import exponent
from coordinator.kernel.leasing.blockers import below, find_blockers
from coordinator.looking.facts import Looked
from coordinator.settings import Settings, Signalling
from coordinator.slices.backlog.events import TaskAdded
from coordinator.slices.signals import signals as hints
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from coordinator.words.resource_names import resource, task_resource

#: Weights with which hints count while it is measured: any that are not zero cost the same.
WEIGHTS = {"files_blocked": -1.0, "saturation": -1.0}
LATER = iso(START_MS + 86_400_000)


class Point(msgspec.Struct):
    """One size. `cost_us` is a decision's median, `first_us` the very first one's."""

    size: int
    held: int
    cost_us: float
    first_us: float


class Growth(msgspec.Struct):
    """Points, and the growth exponent for each number of leases held (or kind of question)."""

    points: list[Point]
    exponents: dict[str, float]


def dispatch(
    sizes: Sequence[int], held: Sequence[int], cycles: int = 200, folder: Path | None = None, *,
    signals: bool = False,
) -> Growth:
    """Choose + claim + complete, with each backlog and each number of leases held (never more than
    half of the backlog). `signals`: dispatch weighs hints, and the next tasks have as many as there
    can be."""
    out = Growth([], {})
    for leases in held:
        points = [
            _cycles(size, leases, min(cycles, size // 2 - 10), folder, signals)
            for size in sizes if leases <= size // 2
        ]
        out.points += points
        out.exponents[f"{leases} held"] = exponent(
            [p.size for p in points], [p.cost_us for p in points]
        )
    return out


def _cycles(size: int, held: int, cycles: int, folder: Path | None, signals: bool) -> Point:
    settings = Settings(signals=Signalling(weights=WEIGHTS)) if signals else None
    with inside(folder, settings) as place:
        place.run(lambda tx: _fill_backlog(tx, size))
        place.run(lambda tx: _hold(tx, held))
        if signals:
            place.run(lambda tx: _leave_hints(tx, held, size))
        place.settle()
        took = []
        for _ in range(cycles):
            before = time.perf_counter()
            got = place.serve(rq.TaskClaim(agent="worker"))
            place.serve(rq.TaskDone(agent="worker", task=got.task.task))
            took.append((time.perf_counter() - before) * 1e6)
        return Point(size, held, median(took[1:]), took[0])


def _task_path(number: int) -> str:
    return f"src/d{number % 97}/m{number}.py"


def _fill_backlog(tx: Tx, size: int) -> None:
    for n in range(1, size + 1):
        path = _task_path(n)
        tx.record(
            TaskAdded(
                task=f"T-{n}", n=n, title=f"task {n}", prompt="", priority=0, state="ready",
                attempts_max=3, resources=[(path, "file", f"p/{path}/", "exclusive")], after=[],
            )
        )


def _leave_hints(tx: Tx, held: int, size: int) -> None:
    """Two on each of the next tasks that can be started: on itself, and on its file."""
    last = min(size, held + hints.SIGNALS_MAX // 2)
    for number in range(held + 1, last + 1):
        hints.leave(tx, task_resource(f"T-{number}"), "saturation", 1 + number % 3, 600_000)
        hints.leave(tx, resource(_task_path(number), "file"), "files_blocked", 1.0, 600_000)


def _hold(tx: Tx, held: int) -> None:
    for number in range(1, held + 1):
        _grant(tx, number, _task_path(number))


def _grant(tx: Tx, number: int, path: str) -> None:
    tx.record(
        ev.LeaseGranted(
            fencing_token=tx.number("fencing"), resource=path, agent=f"holder-{number % 50}",
            description="", expires_at=LATER, lease_kind="file", mode="exclusive",
            scope=f"p/{path}/", slot="", inode=None, worktree=None, content_hash=None,
            acquisition_id=f"A-{number}", task=None, ttl_ms=86_400_000, max_until=LATER,
            baselines=None,
        )
    )


def overlap(sizes: Sequence[int], checks: int = 400, folder: Path | None = None) -> Growth:
    """The conflict check (`find_blockers`) of free files, held files and whole small directories,
    among live leases on files of 200 to a directory, and 100 globs."""
    out = Growth([], {})
    costs: dict[str, list[float]] = {"a free file": [], "a held file": [], "a directory": []}
    with inside(folder) as place:
        place.run(lambda tx: _globs(tx))
        there = 0
        for size in sorted(sizes):
            _fill_leases(place, there, size)
            there = size
            place.settle()
            for kind, series in costs.items():
                took = [_check(place, kind, n, size) for n in range(checks + 1)]
                series.append(median(took[1:]))
                out.points.append(Point(size, size, series[-1], took[0]))
    for kind, series in costs.items():
        out.exponents[kind] = exponent(sorted(sizes), series)
    return out


def _lease_path(number: int) -> str:
    return f"src/p{number // 20_000}/q{number // 200}/m{number}.py"


def _globs(tx: Tx) -> None:
    for n in range(100):
        path = f"docs/part{n}/**/*.md"
        tx.db.execute(
            Q["lease_insert"],
            (10_000_000 + n, path, f"g{n}", tx.now, "", LATER, "glob", "exclusive",
             f"p/docs/part{n}/", path, None, None, None, f"G-{n}", None, 86_400_000, LATER,
             None, None, None, None, "asked"),
        )


def _fill_leases(place: Inside, have: int, want: int) -> None:
    at = iso(START_MS)
    rows = (
        (n + 1, path, f"h{n % 500}", at, "", LATER, "file", "exclusive", f"p/{path}/", "", None,
         None, None, f"A-{n}", None, 86_400_000, LATER, None, None, None, None,
         "asked")
        for n, path in ((n, _lease_path(n)) for n in range(have, want))
    )
    with place.db:
        place.db.executemany(Q["lease_insert"], rows)


def _check(place: Inside, kind: str, number: int, size: int) -> float:
    # a stride that is prime to all sizes walks the whole of them
    at = number * 7_919 % size
    path = _lease_path(at)
    text = {
        "a free file": path.replace("/m", "/new"), "a held file": path,
        "a directory": path.rpartition("/")[0] + f"/m{at}.d/",
    }[kind]
    located = place.service.tree.resolve(text)
    looked = Looked()
    if located.resource.kind == "dir":
        place.engine.look([below(place.service, located)], looked)

    def job(tx: Tx) -> float:
        tx.looked = looked
        before = time.perf_counter()
        found = find_blockers(place.service, tx, "asker", [(located, "exclusive")])
        spent = time.perf_counter() - before
        if found.blocked != (kind == "a held file"):
            raise RuntimeError(f"{text}: a wrong answer")
        return spent * 1e6

    spent: float = place.run(job)
    return spent


def measure_dispatch(
    tasks: Annotated[str, typer.Option(help="Sizes of the backlog.")] = "100,1000,10000,100000",
    held: Annotated[str, typer.Option(help="Leases held on the best tasks' paths.")] = "0,100,1000",
    signals: Annotated[
        bool, typer.Option("--signals", help="With hints on the next tasks, and weights for them.")
    ] = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Choosing, claiming and completing a task, as backlog and leases grow."""
    growth = dispatch(parse_numbers(tasks), parse_numbers(held, least=0), folder=folder,
                      signals=signals)
    show_report(growth, as_json, lambda report: describe(report, "tasks"))


def measure_overlap(
    leases: Annotated[str, typer.Option(help="Live leases.")] = "1000,10000,100000,1000000",
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """The check for conflicts, as live leases grow."""
    growth = overlap(parse_numbers(leases), folder=folder)
    show_report(growth, as_json, lambda report: describe(report, "leases"))


def describe(report: Growth, sizes: str) -> Iterator[str]:
    """The figures in lines; `sizes` says what there are more of at each point."""
    yield "In process, on a real SQLite file with synchronous=OFF: this measures the decision."
    yield f"{sizes:>9} {'held':>9} {'median us':>10} {'first us':>10}"
    for point in report.points:
        yield f"{point.size:9} {point.held:9} {point.cost_us:10.1f} {point.first_us:10.1f}"
    for name, slope in report.exponents.items():
        yield f"growth exponent, {name}: {slope:.3f}"
