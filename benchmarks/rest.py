"""`python -m benchmarks rest`: what a daemon costs that nobody asks anything, with its watcher on.

Read from /proc, so Linux only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, show_report
from benchmarks.measuring.own_daemon import own_daemon


class Report(msgspec.Struct):
    """`core_share`: CPU seconds per second of wall time, 1.0 is one core."""

    seconds: float
    files_watched: int
    resident_mb: float
    core_share: float
    wakeups_per_s: float


def run(seconds: float, files: int = 2000, folder: Path | None = None) -> Report:
    """Let a daemon over `files` files settle, then watch it for `seconds`.

    Raises:
        RuntimeError: there is no /proc.
    """
    if not Path("/proc/self/stat").exists():
        raise RuntimeError("this benchmark reads /proc, which is not here")
    with own_daemon(folder, git=True) as daemon:
        for n in range(files):
            path = daemon.root / f"src/d{n % 50}/m{n}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x = 1\n", "utf-8")
        time.sleep(5)
        pid = daemon.process.pid
        cpu, switches, began = _cpu_s(pid), _switches(pid), time.monotonic()
        time.sleep(seconds)
        spent = time.monotonic() - began
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        return Report(
            spent, files, pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
            (_cpu_s(pid) - cpu) / spent, (_switches(pid) - switches) / spent,
        )


def _cpu_s(pid: int) -> float:
    """CPU seconds of all threads, from the scheduler's own account (finer than clock ticks)."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text("ascii").split()[0])
    return total / 1e9


def _switches(pid: int) -> int:
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text("ascii", "replace").splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def measure_rest(
    seconds: Annotated[float, typer.Option(min=1, help="How long to watch it.")] = 20.0,
    files: Annotated[int, typer.Option(help="Files in its repository.")] = 2000,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Memory and CPU of a daemon that nobody asks anything."""
    show_report(run(seconds, files, folder), as_json, describe)


def describe(report: Report) -> Iterator[str]:
    """The figures in one line."""
    yield (f"At rest for {report.seconds:.0f} s over {report.files_watched} files: "
           f"{report.resident_mb:.1f} MB resident, {report.core_share * 100:.2f} % of a core, "
           f"{report.wakeups_per_s:.1f} wake-ups a second.")
