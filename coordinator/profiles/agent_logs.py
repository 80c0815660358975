"""Finding the output of launched agents, and its last lines.

A run has a folder in `.coord/runs/`. Each attempt at a task has two files there, named by task and
attempt: `T-3-1.prompt.md` is the prompt, `T-3-1.log` the output. The module only reads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from coordinator.dialects.stream import LINE_BYTES_MAX, Reader, StreamTable, Told
from coordinator.files import runs
from coordinator.files.state import StateDir
from coordinator.profiles.profile import load
from coordinator.words.refusals import Refusal

#: Bytes from the end of a log that are looked at for its last lines.
TAIL_BYTES = 4_096


def log_path(run: Path, task: str, attempt: int) -> Path:
    """The output of one attempt."""
    return run / f"{task}-{attempt}.log"


def task_of(name: str) -> str:
    """The task of a log of this name: `T-3` of `T-3-2.log`."""
    return name.rpartition("-")[0]


def prompt_path(run: Path, task: str, attempt: int) -> Path:
    """The prompt of one attempt."""
    return run / f"{task}-{attempt}.prompt.md"


def find(state: StateDir, task: str) -> list[Path]:
    """The logs of a task (`T-3`), of all runs and attempts, oldest first."""
    matches: list[tuple[float, str, Path]] = []
    for path in state.runs.glob(f"*/{task}-*.log"):
        attempt = path.stem.removeprefix(f"{task}-")
        if attempt.isdecimal():
            with contextlib.suppress(FileNotFoundError):
                matches.append((path.stat().st_mtime, path.name, path))
    return [path for _, _, path in sorted(matches)]


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
    """The last line with content, without what a bare carriage return overwrote, and without the
    advice of a refusal."""
    lines = [line.strip() for line in tail(path).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not line.startswith("next: ")),
                lines[-1] if lines else "")


def stream_of(log: Path, root: Path) -> StreamTable | None:
    """The stream table of this log, from the profile of its run. None if the profile is unknown or
    gone."""
    name = runs.profile_of(log)
    with contextlib.suppress(Refusal):
        return load(name, root).stream if name is not None else None
    return None


class Follower:
    """Feeds a reader with a log file's new content."""

    def __init__(self, path: Path, table: StreamTable | None, begin: int = 0) -> None:
        self.reader = Reader(table)
        self._path = path
        self._at = begin
        self._rest = b""

    @property
    def position(self) -> int:
        """The byte after the last whole line that was read."""
        return self._at - len(self._rest)

    def poll(self, *, over: bool = False) -> Told:
        """Read on to the last whole line; when it is `over`, to the end."""
        for line in self._lines(over):
            self.reader.feed(line)
        return self.reader.told

    def shown(self, *, over: bool = False) -> Iterator[str]:
        """The new output, for a person to read."""
        for line in self._lines(over):
            yield from self.reader.feed(line)

    def _lines(self, over: bool) -> Iterator[str]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except OSError:
            return
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        if over and self._rest:
            whole, self._rest = [*whole, self._rest], b""
        if len(self._rest) > LINE_BYTES_MAX:
            self._rest = b""
        for line in whole:
            if len(line) <= LINE_BYTES_MAX:
                yield line.decode("utf-8", "replace")


def interrupted(log: Path, table: StreamTable) -> str:
    """The session of the attempt with this log, if it was cut off; otherwise empty."""
    message = Follower(log, table).poll(over=True)
    return "" if message.ended else message.session


def readable(path: Path, table: StreamTable | None) -> str:
    """An agent's output, for a person or its successor to read: JSON put into words."""
    if table is None:
        return tail(path, 16_384)
    return "\n".join(Follower(path, table).shown(over=True))
