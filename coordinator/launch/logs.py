"""Where the output of launched agents lies, and its last lines.

A run has its folder in `.coord/runs/`; each attempt at a task has two files there, named by task
and attempt: `T-3-1.prompt.md`, what the agent was told, and `T-3-1.log`, what it said. Reads only.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from coordinator.files.state import StateDir

#: Bytes from the end of a log that are looked at for its last lines.
TAIL_BYTES = 4_096


def log_path(run: Path, task: str, attempt: int) -> Path:
    """The output of one attempt."""
    return run / f"{task}-{attempt}.log"


def prompt_path(run: Path, task: str, attempt: int) -> Path:
    """What the agent of one attempt was told."""
    return run / f"{task}-{attempt}.prompt.md"


def find(state: StateDir, task: str) -> list[Path]:
    """The logs of a task (`T-3`), of all runs and attempts, oldest first."""
    found: list[tuple[float, str, Path]] = []
    for path in state.runs.glob(f"*/{task}-*.log"):
        attempt = path.stem.removeprefix(f"{task}-")
        if attempt.isdecimal():
            with contextlib.suppress(FileNotFoundError):
                found.append((path.stat().st_mtime, path.name, path))
    return [path for _, _, path in sorted(found)]


def tail(path: Path, size: int = TAIL_BYTES) -> str:
    """The last `size` bytes as text; empty when there is no such file."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - size))
            return file.read(size).decode("utf-8", "replace")
    except OSError:
        return ""


def last_line(path: Path) -> str:
    """The last line that says anything; what a bare carriage return overwrote is left out."""
    for line in reversed(tail(path).splitlines()):
        if line.strip():
            return line.strip()
    return ""
