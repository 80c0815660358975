"""Asking for what a launched agent said."""

from __future__ import annotations

from coordinator.words.requests.base import Number, Place, Reply, Request
from coordinator.words.texts import Line, Name


class TaskLogLines(Reply):
    task: str
    log: str  # the attempt's log, like `20261128T091500-42/T-3-1.log`; empty: there is none yet
    lines: list[str]  # for people: JSON is put into words
    next: int  # the continuation of this log: the next request's `after`
    cut: bool = False  # what came before these lines is left out


class TaskLog(Request[TaskLogLines]):
    """The output of a task's launched agent, newest attempt; with `wait_s`, wait so long until
    there is more.

    Without `after`, the end of the log. With it, what came since, or the beginning of a log newer
    than `log`.
    """

    op = "task_log"
    http = ("GET", "/v1/tasks/{task}/log")
    writes = False
    operator_only = True
    task: Name
    log: Line = ""  # the log that `after` refers to, as it was returned
    after: Place | None = None
    wait_s: Number = 0.0

    def for_people(self) -> bool:
        return True
