"""`python -m benchmarks meaning`: what the index of meaning costs, and how its cost grows.

Made repositories of some sizes, each with files of the same make: a module of about a hundred
lines that uses three others. Of each: the first reading by the worker, an update of one changed
file, and a judgement of a change that breaks three callers. Updates and judgements are medians over
rounds, on another file each time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, parse_numbers, show_report
from benchmarks.measuring.samples import exponent
from coordinator.meaning.index import Index
from coordinator.source.meaning import Meaning

#: Files of one directory.
_FOLDER_FILES = 50


class Size(msgspec.Struct):
    """One repository. Times in milliseconds, but for the first reading."""

    files: int
    bytes: int
    first_s: float
    update_ms: float
    judge_ms: float
    breaks: int
    """What the judged change breaks: the same at each size."""
    index_bytes: int
    peak_mb: float
    """Resident memory of the worker at its most."""


class Report(msgspec.Struct):
    """All sizes, and the exponents of growth from the first to the last."""

    sizes: list[Size]
    update_exponent: float
    judge_exponent: float


def run(counts: list[int], rounds: int, folder: Path | None = None) -> Report:
    """Measure repositories of so many files.

    Raises:
        NoAnswerError: the worker failed.
    """
    sizes = [_size(count, rounds, folder) for count in counts]
    files = [float(one.files) for one in sizes]
    return Report(
        sizes, exponent(files, [one.update_ms for one in sizes]),
        exponent(files, [one.judge_ms for one in sizes]),
    )


def _size(count: int, rounds: int, folder: Path | None) -> Size:
    with tempfile.TemporaryDirectory(dir=folder) as made_in:
        root = Path(made_in).resolve()
        for number in range(count):
            file = root / path_of(number)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(made(number, count))
        index = root / ".index"
        with Meaning(str(root), str(index)) as meaning:
            began = time.perf_counter()
            meaning.read_all()
            first = time.perf_counter() - began
            updates: list[float] = []
            judged: list[float] = []
            breaks = 0
            for turn in range(rounds):
                number = (turn * 7919 + 13) % count
                path = path_of(number)
                old = made(number, count)
                (root / path).write_bytes(old + b"\n\ndef more_%d():\n    return total_0\n" % turn)
                began = time.perf_counter()
                meaning.update([path])
                updates.append((time.perf_counter() - began) * 1000)
                new = old.replace(b"rate: float = 0.5", b"rate: float")
                began = time.perf_counter()
                found = meaning.judge(path, old, new)
                judged.append((time.perf_counter() - began) * 1000)
                breaks = len(found.breaks)
            peak = _peak_mb(meaning.worker_id())
        with Index(index) as kept:
            kept.settle()
        return Size(
            count, len(made(0, count)), first, median(updates), median(judged), breaks,
            index.stat().st_size // count, peak,
        )


def path_of(number: int) -> str:
    """The path of a made file."""
    return f"part_{number // _FOLDER_FILES}/module_{number}.py"


def made(number: int, count: int) -> bytes:
    """A module of about a hundred lines that uses the three before it, always the same."""
    used = [(number - step) % count for step in (1, 2, 3)]
    out = [
        f"from part_{one // _FOLDER_FILES}.module_{one} import Order_{one}, total_{one}\n"
        for one in used
    ]
    out.append(
        f"\nLIMIT = {number}\n\n\n"
        f"def total_{number}(items: list, rate: float = 0.5) -> float:\n"
        '    """The sum of the items."""\n'
        "    found = [item.price * rate for item in items if item is not None]\n"
        "    if not found:\n        raise ValueError(items)\n    return sum(found) + LIMIT\n"
    )
    for one in used:
        out.append(
            f"\n\ndef with_{one}(items: list, order: Order_{one}) -> float:\n"
            f"    value = total_{one}(items)\n    order.add_{one}(value)\n"
            "    for row in order.rows:\n        print(row, value)\n    return value\n"
        )
    out.append(f"\n\nclass Order_{number}:\n    def __init__(self, rows: list) -> None:\n"
               "        self.rows = rows\n        self.sum = 0.0\n")
    out.append(f"\n    def add_{number}(self, value: float) -> None:\n        self.sum += value\n")
    for at in range(10):
        out.append(
            f"\n    def step_{at}(self, name: str, size: int = {at}) -> str:\n"
            "        if size > self.sum:\n            return name.upper()\n"
            "        self.rows.append((name, size))\n        return str(self.rows[-1])\n"
        )
    return "".join(out).encode()


def _peak_mb(pid: int | None) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(found.split()[1]) / 1024


def measure_meaning(
    files: Annotated[str, typer.Option(help="Sizes of repositories.")] = "100,1000,10000",
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Updates of each.")] = 25,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """The index of what files define and use: its first reading, an update, a judgement."""
    show_report(run(parse_numbers(files), rounds, folder), as_json, describe)


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield (f"{'files':>7} {'first reading s':>16} {'update ms':>10} {'judgement ms':>13} "
           f"{'breaks':>7} {'index bytes/file':>17} {'peak MB':>8}")
    for size in report.sizes:
        yield (f"{size.files:7,} {size.first_s:16.2f} {size.update_ms:10.2f} "
               f"{size.judge_ms:13.2f} {size.breaks:7} {size.index_bytes:17,} {size.peak_mb:8.1f}")
    yield (f"growth exponents: update {report.update_exponent:.2f}, "
           f"judgement {report.judge_exponent:.2f}")
