"""What launched agents say, as it is said (`task_log`): read from the logs of their runs.

A log is a file that a launch writes; the coordinator is not told when it grows. So who waits for
more has its size looked at, in a worker, while the request is open.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from coordinator.files.state import StateDir
from coordinator.kernel.core import Service, check_wait
from coordinator.profiles import agent_logs
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal

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
        """The new lines; after `wait_s` seconds, or when whoever asked is `gone`, there may be
        none.

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
