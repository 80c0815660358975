"""The health of this coordinator, the list of this user's coordinators, and the output of launched
agents.

`GET /v1/health` and `coord doctor` show the health. The output of an agent (`task_log`) is read
from the log files that a launch writes. A launch does not announce that a file has grown, so an
open request has a worker look at its size again. The module changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from coordinator.client import running_coordinators
from coordinator.files import coordinators
from coordinator.files.state import StateDir
from coordinator.kernel.core import Service, check_wait
from coordinator.profiles import agent_logs
from coordinator.resources import program_version
from coordinator.settings import Loaded
from coordinator.store.database import integrity
from coordinator.store.migrations import SCHEMA_VERSION
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal


class Running(NamedTuple):
    """A coordinator as it runs. `warnings`: those of its parts, beside what is seen here."""

    state: StateDir
    reader: apsw.Connection
    loaded: Loaded
    started_at: str
    watcher: Mapping[str, Any]
    http: str | None
    heard: Mapping[str, str]
    warnings: Sequence[str]


def reply(request: rq.Health, running: Running) -> rq.HealthReply:
    """The answer to `requests.Health`."""
    state, reader, loaded = running.state, running.reader, running.loaded
    sentences = [*loaded.warnings(), *running.warnings]
    if running.watcher.get("mode") == "polling":
        sentences.append(str(running.watcher.get("detail")))
    if (full := warn_of_little_room(state.path)) is not None:
        sentences.append(full)
    wal = state.database.with_name(state.database.name + "-wal")
    return rq.HealthReply(
        version=program_version(), sqlite=apsw.sqlite_lib_version(), root=str(state.root),
        pid=os.getpid(), started_at=running.started_at, schema_version=SCHEMA_VERSION,
        db_bytes=_size(state.database), wal_bytes=_size(wal), resident_bytes=_resident_bytes(),
        events=int(str(reader.execute("SELECT coalesce(max(seq), 0) FROM events").get)),
        watcher=dict(running.watcher), http=running.http, warnings=sentences,
        config={"settings": msgspec.to_builtins(loaded.settings), "sources": loaded.sources},
        heard=dict(running.heard), integrity=integrity(reader) if request.integrity else None,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def list_coordinators() -> rq.CoordinatorList:
    """Ask each coordinator in a worker, including this one, which continues meanwhile."""
    def ask_all() -> rq.CoordinatorList:
        notes = coordinators.tidy(time.time())
        return rq.CoordinatorList(items=running_coordinators.ask_all(notes))

    return await asyncio.to_thread(ask_all)


#: How often a log that grows is looked at (seconds).
LOOK_S = 0.25
#: Most of a log that one answer tells (bytes).
ANSWER_BYTES_MAX = 64_000


class TaskLogs:
    """Answers `task_log` for one repository.

    Args:
        find_task: the id of a task however it was typed, or a `Refusal`.
    """

    def __init__(self, state: StateDir, service: Service,
                 find_task: Callable[[str], str | Refusal]) -> None:
        self._state = state
        self._service = service
        self._find_task = find_task

    async def answer(self, request: rq.TaskLog, gone: Callable[[], bool],
                     ) -> rq.TaskLogLines:
        """The new lines. After `wait_s` seconds, or when the asker is `gone`, there may be none.

        Raises:
            Refusal: UNKNOWN_TASK; INVALID: it waits too long.
        """
        task = self._find_task(request.task)
        if isinstance(task, Refusal):
            raise task
        check_wait(self._service, request.wait_s)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.wait_s
        while True:
            reply = await asyncio.to_thread(self._read, task, request)
            if reply.lines or loop.time() >= deadline or gone():
                return reply
            await asyncio.sleep(LOOK_S)

    def _read(self, task: str, request: rq.TaskLog) -> rq.TaskLogLines:
        nothing = rq.TaskLogLines(task=task, log="", lines=[], next=0)
        logs = agent_logs.find(self._state, task)
        if not logs:
            return nothing
        path = logs[-1]
        log = f"{path.parent.name}/{path.name}"
        begin = None if request.after is None else request.after if request.log == log else 0
        try:
            start, size = _find_start(path, begin)
        except OSError:  # it was removed meanwhile
            return nothing
        if start == size:  # nothing new: who waits looks often, and a profile is not read for that
            return rq.TaskLogLines(task=task, log=log, lines=[], next=start)
        follower = agent_logs.Follower(path, agent_logs.stream_of(path, self._state.root), start)
        lines = list(follower.shown())
        return rq.TaskLogLines(task=task, log=log, lines=lines, next=follower.position,
                               cut=start > (begin or 0))


def _find_start(path: Path, begin: int | None) -> tuple[int, int]:
    """The byte to read a log from, and its size. The byte is `begin` (None: near the end), or that
    of the first line after it from which on one answer can tell all.

    Raises:
        OSError: the log cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        earliest = max(0, size - ANSWER_BYTES_MAX)
        if begin is not None and earliest <= begin <= size:
            return begin, size
        if earliest == 0:
            return 0, size
        file.seek(earliest)
        file.readline(ANSWER_BYTES_MAX)
        return file.tell(), size


#: With less than this (bytes) the next transaction may find no room.
LITTLE_BYTES = 2_000_000


def warn_of_little_room(folder: Path) -> str | None:
    """The advice for a disk with little room for this folder, in words. None if there is enough, or
    if that cannot be told."""
    try:
        filesystem = os.statvfs(folder)
    except OSError:
        return None
    left = filesystem.f_bavail * filesystem.f_frsize
    if left >= LITTLE_BYTES and (filesystem.f_favail or not filesystem.f_files):
        return None
    what = f"{left // 1000:,} KB" if left < LITTLE_BYTES else "no inode (`df -i`)"
    return (f"the disk of {folder} has {what} left: where there is no room, what is to be written "
            "is refused (STORAGE). Make room; nothing has to be started again")
