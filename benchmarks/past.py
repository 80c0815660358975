"""`python -m benchmarks past`: what a question about a part of the time costs, by the log's length.

Asks for the timeline of a minute, and how all was at a moment, in the middle of the log and near
its end, with the waypoints that the daemon would have made and without them. The medians are told
as ratios to those of the shortest log: 1 is flat.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, parse_numbers, show_report
from benchmarks.measuring.inside import START_MS, Inside, inside
from coordinator.daemon.log_summary import make_waypoint
from coordinator.daemon.waypoints import find_due, put_waypoint
from coordinator.store.ledger import View
from coordinator.words import requests as rq
from coordinator.words.clock import iso

AGENTS, FILES, BETWEEN_MS, WINDOW_MS = 20, 200, 400, 60_000


class Cost(msgspec.Struct):
    """One question to a log of so many events: its median, with waypoints and without."""

    events: int
    question: str
    ms: float
    without_ms: float


class Past(msgspec.Struct):
    """What was measured, and each median as a multiple of the one with the shortest log."""

    costs: list[Cost]
    ratios: dict[str, list[float]]
    waypoint_bytes_an_event: float


def ask_about_past(sizes: Sequence[int], tries: int = 5, folder: Path | None = None) -> Past:
    """The cost of each question for logs of these lengths, the shortest first."""
    report = Past([], {}, 0.0)
    with inside(folder) as place:
        place.serve(rq.TaskAdd(title="to be there"))
        for number in range(AGENTS):
            place.serve(rq.Register(agent=f"agent-{number}"))
        for size in sorted(sizes):
            _work_until(place, size)
            place.settle()
            report.costs += _measure(place, size, tries)
        rows = place.db.execute("SELECT sum(length(state) + length(begun)) FROM waypoints").get
        report.waypoint_bytes_an_event = round(int(str(rows or 0)) / place.ledger.seq, 1)
    for cost in report.costs:
        first = next(one for one in report.costs if one.question == cost.question)
        report.ratios.setdefault(cost.question, []).append(round(cost.ms / first.ms, 2))
    return report


def _work_until(place: Inside, events: int) -> None:
    """Agents take and release files until the log is so long; waypoints come as in the daemon."""
    number = 0
    while place.ledger.seq < events:
        agent, name = f"agent-{number % AGENTS}", f"src/f{number % FILES}.py"
        place.serve(rq.Acquire(agent=agent, resources=[name]))
        place.now_ms += BETWEEN_MS
        place.serve(rq.Release(agent=agent, resources=[name]))
        number += 1
        if number % 100 == 0:
            _make_waypoints(place)
    _make_waypoints(place)


def _make_waypoints(place: Inside) -> None:
    while (seq := find_due(View(place.db, place.now_ms))) is not None:
        state, begun = make_waypoint(View(place.db, place.now_ms), seq)
        place.run(lambda tx, seq=seq, state=state, begun=begun: put_waypoint(  # type: ignore[misc]
            tx, seq, state, begun))


def _measure(place: Inside, size: int, tries: int) -> list[Cost]:
    middle_ms, end_ms = (START_MS + place.now_ms) // 2, place.now_ms - WINDOW_MS
    asked: dict[str, rq.Request[Any]] = {}
    for where, at_ms in (("middle", middle_ms), ("end", end_ms)):
        asked[f"timeline, {where}"] = rq.Timeline(since=iso(at_ms), until=iso(at_ms + WINDOW_MS))
        asked[f"moment, {where}"] = rq.Moment(at=iso(at_ms))
    costs = [Cost(size, name, _time(place, request, tries), 0.0) for name, request in asked.items()]
    kept = place.db.execute("SELECT * FROM waypoints").fetchall()
    place.run(lambda tx: tx.write_beside("waypoints_delete_before", 2**62))
    for cost, request in zip(costs, asked.values(), strict=True):
        cost.without_ms = _time(place, request, tries)
    for row in kept:
        place.run(lambda tx, row=row: tx.write_beside("waypoint_put", *row))  # type: ignore[misc]
    return costs


def _time(place: Inside, request: rq.Request[Any], tries: int) -> float:
    took = []
    for _ in range(tries):
        began = time.perf_counter()
        place.serve(request)
        took.append((time.perf_counter() - began) * 1000)
    return round(median(took), 2)


def _describe(report: Past) -> Iterator[str]:
    yield f"{'events':>8}  {'question':<18} {'ms':>9} {'without waypoints':>18}"
    for cost in report.costs:
        yield f"{cost.events:>8}  {cost.question:<18} {cost.ms:>9.2f} {cost.without_ms:>18.2f}"
    for question, ratios in report.ratios.items():
        yield f"{question}: {', '.join(f'{ratio:g}x' for ratio in ratios)}"
    yield f"waypoints: {report.waypoint_bytes_an_event:g} bytes for each event"


def measure_past(
    sizes: Annotated[str, typer.Option(help="Lengths of the log.")] = "1000,5000,50000",
    tries: Annotated[int, typer.Option(help="So often each is asked.")] = 5,
    folder: Folder = None, as_json: AsJson = False,
) -> None:
    """What a question about a part of the time costs, by the log's length."""
    show_report(ask_about_past(parse_numbers(sizes, 1000), tries, folder), as_json, _describe)
