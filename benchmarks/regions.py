"""`python -m benchmarks regions`: what finding a file's regions costs over its bare parse.

Both take turns on the same bytes in one process, as in the worker. The file is generated, so that
every machine measures the same: functions, classes with methods, constants and comments, as long as
asked. Starting the worker is told apart, as what the first question costs more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import AsJson, show_report
from benchmarks.measuring.samples import paired
from coordinator.regions.grammar import load, parse
from coordinator.regions.reader import outline
from coordinator.source.outlines import Outlines

LANGUAGE = "python"


class Report(msgspec.Struct):
    """Times in milliseconds, medians over rounds; ratios are medians over rounds, too."""

    lines: int
    bytes: int
    regions: int
    parse_ms: float
    outline_ms: float
    asked_ms: float
    """The same by the worker, over its pipes."""
    started_ms: float
    """The first question to a worker: with its start."""
    outline_ratio: float
    asked_ratio: float


def run(lines: int, rounds: int) -> Report:
    """Measure a file of about so many lines."""
    data = made(lines)
    load(LANGUAGE)
    bare: list[float] = []
    found: list[float] = []
    asked: list[float] = []
    with Outlines() as outlines:
        started = _ms(lambda: outlines.of(data, LANGUAGE))
        for _ in range(rounds):
            bare.append(_ms(lambda: parse(data, LANGUAGE)))
            found.append(_ms(lambda: outline(data, LANGUAGE)))
            asked.append(_ms(lambda: outlines.of(data, LANGUAGE)))
    return Report(
        data.count(b"\n"), len(data), len(outline(data, LANGUAGE).regions), median(bare),
        median(found), median(asked), started, paired(found, bare), paired(asked, bare),
    )


def made(lines: int) -> bytes:
    """A Python file of about so many lines (20 at least), always the same."""
    out = [b"import os\nfrom typing import Any\n\n"]
    for n in range(max(1, lines // 20)):
        out.append(
            b"LIMIT_%d = {'a': %d}\n\n\n"
            b"# How it is reckoned.\n"
            b"def total_%d(items: list[Any], rate: float = 0.5) -> float:\n"
            b'    """The sum of the items."""\n'
            b"    found = [item.price * rate for item in items if item is not None]\n"
            b"    if not found:\n"
            b"        raise ValueError(f'nothing in {items!r}')\n"
            b"    return sum(found) + LIMIT_%d['a']\n\n\n"
            b"class Order_%d:\n"
            b"    @property\n"
            b"    def size(self) -> int:\n"
            b"        return len(self.rows)  # all of them\n\n"
            b"    def path(self, name: str) -> str:\n"
            b"        return os.path.join(self.root, name, *(str(row) for row in self.rows))\n\n"
            % (n, n, n, n, n)
        )
    return b"".join(out)


def _ms(work: Callable[[], object]) -> float:
    before = time.perf_counter()
    work()
    return (time.perf_counter() - before) * 1000


def measure_regions(
    lines: Annotated[int, typer.Option(min=20, max=100_000, help="Of the file.")] = 2000,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Turns of each.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Finding a file's regions, over the bare parse of its bytes."""
    show_report(run(lines, rounds), as_json, describe)


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield f"A Python file of {report.lines:,} lines with {report.regions} regions."
    yield f"{'':34} {'ms':>8} {'over the parse':>15}"
    for step, took_ms, ratio in (
        ("bare parse", report.parse_ms, 1.0),
        ("parse, query and division", report.outline_ms, report.outline_ratio),
        ("the same, asked of the worker", report.asked_ms, report.asked_ratio),
    ):
        yield f"{step:34} {took_ms:8.2f} {ratio:14.2f}x"
    yield f"{'the first question, with its start':34} {report.started_ms:8.2f}"
