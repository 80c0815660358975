"""`python -m benchmarks hook`: what one guarded write costs the agent that makes it, in wall time.

The whole of it: a process starts, the payload goes to the real daemon, the lease is on disk, the
answer is there, the process is gone. Beside it, turn by turn, the same interpreter doing nothing
at all (`python -I -S -c pass`), which no hook in Python can go below, and the hooks of three tools
from PyPI where they are installed.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec
import typer

import coordinator._hook as hook_file
from benchmarks.command_line import AsJson, Folder, InstallPeers, Peers, show_report
from benchmarks.measuring.own_daemon import own_daemon
from benchmarks.measuring.samples import paired, percentile
from benchmarks.peers import hooks, installed

#: The file of which single functions are edited, and its lines.
LARGE, LARGE_LINES = "large.py", 2000


class Report(msgspec.Struct):
    """Times in milliseconds; `ratio` is the median of paired ratios."""

    runs: int
    hook_p50_ms: float
    hook_p99_ms: float
    nothing_p50_ms: float
    ratio: float
    ratio_held: float
    """The same for a file whose lease the agent has already: nothing is written."""
    ratio_region: float
    """The same for an edit of one function of a file of 2,000 lines: its region is leased."""
    peers: dict[str, float]
    """How many times as long the hooks of others take as ours: medians of paired ratios."""
    missing: list[str]


def run(runs: int, folder: Path | None = None, *, peers: bool = False) -> Report:
    """Start both in turn `runs` times; each guarded write is of another file.

    Raises:
        RuntimeError: a guarded write was not granted.
    """
    interpreter = str(Path(sys.executable).resolve())
    nothing = [interpreter, "-I", "-S", "-c", "pass"]
    hook, idle, again, region = [], [], [], []
    others: dict[str, list[float]] = {}
    with own_daemon(folder, git=True) as daemon, contextlib.ExitStack() as stack:
        rivals = stack.enter_context(hooks.open_peers(daemon.root)) if peers else []
        (token,) = daemon.register(["writer"])
        command = [interpreter, "-I", "-S", "-E", str(hook_file.__file__), daemon.socket,
                   "claude-code"]
        environment = {"COORD_AGENT_TOKEN": token}
        (daemon.root / LARGE).write_text("".join(map(_function, range(LARGE_LINES // 10))))
        for number in range(-3, runs):
            payload = _payload(daemon.root, f"src/made_{number}.py")
            idle_s = _time(nothing, b"", {})
            hook_s = _time(command, payload, environment)
            again_s = _time(command, payload, environment)
            region_s = _time(command, _edit(daemon.root, number + 3, "PreToolUse"), environment)
            _time(command, _edit(daemon.root, number + 3, "PostToolUse"), environment)
            if number >= 0:  # the first few warm the page cache
                idle.append(idle_s)
                hook.append(hook_s)
                again.append(again_s)
                region.append(region_s)
            for rival in rivals:
                spent = _time(rival.command, payload, rival.environment, daemon.root)
                if number >= 0:
                    others.setdefault(rival.name, []).append(spent)
    return Report(
        runs, median(hook) * 1000, percentile(hook, 0.99) * 1000, median(idle) * 1000,
        paired(hook, idle), paired(again, idle), paired(region, idle),
        {name: paired(spent, hook) for name, spent in others.items()},
        installed.list_missing(*installed.PEERS) if peers else [],
    )


def _payload(root: Path, name: str) -> bytes:
    return msgspec.json.encode(
        {
            "session_id": "00000000-0000-4000-8000-000000000000", "cwd": str(root),
            "hook_event_name": "PreToolUse", "tool_name": "Write",
            "tool_input": {"file_path": str(root / name), "content": "x = 1\n" * 200},
        }
    )


def _function(number: int) -> str:
    body = "".join(f"    value = value * {line} + {number}\n" for line in range(6))
    return f"def made_{number}(value):\n{body}    return value\n\n\n"


def _edit(root: Path, number: int, event: str) -> bytes:
    """An edit of another function each time; after it, it is made."""
    number %= LARGE_LINES // 10
    old, new = f"value * 3 + {number}\n", f"value * 33 + {number}\n"
    if event == "PostToolUse":
        file = root / LARGE
        file.write_text(file.read_text().replace(old, new))
    return msgspec.json.encode(
        {
            "session_id": "00000000-0000-4000-8000-000000000000", "cwd": str(root),
            "hook_event_name": event, "tool_name": "Edit", "tool_use_id": f"e{number}",
            "tool_input": {"file_path": str(root / LARGE), "old_string": old, "new_string": new},
        }
    )


def _time(
    command: list[str], given: bytes, environment: dict[str, str], where: Path | None = None
) -> float:
    before = time.perf_counter()
    done = subprocess.run(
        command, input=given, capture_output=True, check=False, env=environment, cwd=where
    )
    spent = time.perf_counter() - before
    if done.returncode or (where is None and (done.stdout or done.stderr)):
        raise RuntimeError(f"not granted: {done.returncode} {done.stdout!r} {done.stderr!r}")
    return spent


def measure_hook(
    runs: Annotated[int, typer.Option(min=5, help="Writes.")] = 60,
    peers: Peers = False,
    install_peers: InstallPeers = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """One guarded write, from the hook's start to its end, beside a bare interpreter's."""
    if install_peers:
        installed.install_peers()
    show_report(run(runs, folder, peers=peers or install_peers), as_json, describe)


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield f"A guarded write takes {report.ratio:.2f} times as long as `python -I -S -c pass`"
    yield (f"({report.ratio_held:.2f} when the lease is held already, {report.ratio_region:.2f} "
           "for one function of 2,000 lines);")
    yield (f"medians of {report.runs}: {report.hook_p50_ms:.1f} ms, p99 "
           f"{report.hook_p99_ms:.1f} ms, bare {report.nothing_p50_ms:.1f} ms.")
    for name, ratio in report.peers.items():
        yield f"the hook of {name} takes {ratio:.1f} times as long as ours"
    for sentence in report.missing:
        yield f"missing: {sentence}"
