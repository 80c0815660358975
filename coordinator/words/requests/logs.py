"""Asking for what a launched agent said."""

from __future__ import annotations

from coordinator.words.requests.base import Number, Place, Reply, Request
from coordinator.words.texts import Line, Name


class TaskLogLines(Reply):
    task: str
    log: str  # the attempt's log, like `20261128T091500-42/T-3-1.log`; empty: there is none yet
    lines: list[str]  # for people: JSON is put into words
    next: int  # where this log goes on: the next request's `after`
    cut: bool = False  # what came before these lines is not told


class TaskLog(Request[TaskLogLines]):
    """What the launched agent of a task has said, newest attempt; with `wait_s`, wait so long until
    it says more.

    Without `after` the end of the log. With it, what came since; of a newer log than `log` the
    beginning.
    """

    op = "task_log"
    http = ("GET", "/v1/tasks/{task}/log")
    writes = False
    operator_only = True
    task: Name
    log: Line = ""  # the log in which `after` counts, as it was told
    after: Place | None = None
    wait_s: Number = 0.0

    def for_people(self) -> bool:
        return True
