"""The record of a launch on disk, so that the next launch can tidy up after one that died.

`.coord/runs/RUN/record` names the launcher, its agents and their processes; never a token. It is
replaced as a whole, so that a reader never sees half of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec

from coordinator.files.state import StateDir
from coordinator.workers.process_group import lives, mark


class Worker(msgspec.Struct):
    """One agent of a run and the process that it has now; `pid` is its process group, too, unless
    a person has taken it over: then it is one at that person's terminal."""

    agent: str
    pid: int | None = None
    mark: str | None = None
    task: str | None = None
    attempt: int | None = None
    taken_over: bool = False
    gone: str | None = None
    """Why it stopped working, in words; None: it works."""
    failed: bool = False
    """Whether that was some trouble."""


class Log(msgspec.Struct):
    """The writer of a log, its task, and how that ended, in words; None: it has not ended."""

    profile: str
    agent: str
    title: str
    ended: str | None = None


class Record(msgspec.Struct, kw_only=True):
    """The record of a launch."""

    run: str
    launcher: int
    launcher_mark: str | None
    started_at: str
    profile: str
    imported: str | None = None  # sha256 of the task file
    source: str | None = None  # its path
    tasks: list[str] = []
    workers: list[Worker] = []
    logs: dict[str, Log | str] = {}
    """By a log's name, in order; unnamed logs are by `profile`. Earlier runs have its profile
    alone."""
    door: str | None = None
    """The socket at which a person asks for one of its agents (door.py)."""
    outlived_by: int | None = None
    """The process that tidies up when the launcher dies."""
    ended_at: str | None = None

    @property
    def orphaned(self) -> bool:
        """Whether its launcher is gone without having ended it."""
        if self.ended_at is not None:
            return False
        return not lives(self.launcher, self.launcher_mark)

    def wrote(self, log: str) -> str:
        """The profile of the agent that wrote the log of this name."""
        known_log = self.logs.get(log, self.profile)
        return known_log if isinstance(known_log, str) else known_log.profile

    def logs_of(self, agent: str) -> list[tuple[str, Log]]:
        """The logs that this agent wrote, oldest first."""
        return [(name, log) for name, log in self.logs.items()
                if isinstance(log, Log) and log.agent == agent]


class RunFile:
    """The record of the launch that is going on; used from all its threads."""

    def __init__(self, state: StateDir, profile: str, now: str) -> None:
        """Make the run's folder.

        Raises:
            OSError: no permission, disk full.
        """
        name = now[:19].replace(":", "").replace("-", "") + f"-{os.getpid()}"
        self.folder = state.runs / name
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self.record = Record(
            run=name, launcher=os.getpid(), launcher_mark=mark(os.getpid()), started_at=now,
            profile=profile,
        )
        self._write()

    def worker(self, worker: Worker) -> None:
        """Note an agent's present process."""
        with self._lock:
            workers = [other_worker for other_worker in self.record.workers
                       if other_worker.agent != worker.agent]
            self.record.workers = [*workers, worker]
            self._try_to_write()

    def begins(self, log: str, whose: Log) -> None:
        """Note whose log this is, with the next note."""
        with self._lock:
            self.record.logs[log] = whose

    def ends(self, log: str, how: str) -> None:
        """Note how the work of this log ended."""
        with self._lock:
            known_log = self.record.logs.get(log)
            if isinstance(known_log, Log):
                known_log.ended = how
            self._try_to_write()

    def outlived_by(self, pid: int | None) -> None:
        """Note the process that tidies up when the launcher dies."""
        self.record.outlived_by = pid
        self.save()

    def save(self) -> None:
        """Write the record."""
        with self._lock:
            self._try_to_write()

    def _try_to_write(self) -> None:
        """Write the record if possible. A full disk is no reason to leave an agent without its
        supervisor: the next note is written with all before it, and the cleanup also finds agents
        without it."""
        with contextlib.suppress(OSError):
            self._write()

    def _write(self) -> None:
        new = self.folder / "record.new"
        new.write_bytes(msgspec.json.format(msgspec.json.encode(self.record), indent=1))
        new.replace(self.folder / "record")


def records(state: StateDir) -> Iterator[tuple[Path, Record]]:
    """All launches that left a readable record, newest first."""
    paths = sorted(state.runs.glob("*/record"), reverse=True)
    for _, same_second in groupby(paths, lambda path: path.parent.name.partition("-")[0]):
        matches: list[tuple[Path, Record]] = []
        for path in same_second:
            with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
                matches.append((path, msgspec.json.decode(path.read_bytes(), type=Record)))
        yield from sorted(matches, key=lambda pair: pair[1].started_at, reverse=True)


def read(folder: Path) -> Record | None:
    """The record of the launch in this folder, if it can be read."""
    try:
        return msgspec.json.decode((folder / "record").read_bytes(), type=Record)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None


def profile_of(log: Path) -> str | None:
    """The name of the profile whose agent wrote this log; None if unknown."""
    record = read(log.parent)
    return None if record is None else record.wrote(log.name)


def close(path: Path, record: Record, now: str) -> None:
    """Note that the cleanup after this launch is done."""
    record.ended_at = now
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1))


def digest(text: str) -> str:
    """The name of a task file's content."""
    return hashlib.sha256(text.encode()).hexdigest()
