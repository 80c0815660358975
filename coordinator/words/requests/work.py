"""Asking for what holders have changed and not finished."""

from __future__ import annotations

from coordinator.words.requests.base import Count, Place, Reply, Request
from coordinator.words.texts import Name


class WorkFile(Reply):
    agent: str  # whose lease it is
    resource: str  # the lease
    task: str | None
    path: str
    worktree: str | None  # the linked worktree it lies in; None: the main one
    change: str  # new, modified, deleted
    diff: str  # since the lease was granted
    cut: bool = False  # the difference goes on, and is too long to be told


class WorkList(Reply):
    items: list[WorkFile]
    next: int | None = None


class Work(Request[WorkList]):
    """What is changed on disk below live leases since they were granted, oldest lease first.

    It compares what a lease began with to the file as it is now, so what somebody else saved there
    is in it, too. Left out are regions of a file, and files that are new below a directory or glob.
    """

    op = "work"
    http = ("GET", "/v1/work")
    writes = False
    agent: Name | None = None  # only below leases of this agent
    resource: Name | None = None  # only below leases of this name
    after: Place = 0  # a lease's fencing token
    limit: Count = 50  # leases that are looked at
