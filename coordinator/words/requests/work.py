"""Asking for what holders have changed and not finished."""

from __future__ import annotations

from coordinator.words.requests.base import Count, Place, Reply, Request
from coordinator.words.texts import Name


class WorkFile(Reply):
    agent: str  # whose lease it is
    resource: str  # the lease; of a region: nothing else of its file is in the difference
    task: str | None
    path: str
    worktree: str | None  # the linked worktree it lies in; None: the main one
    change: str  # new, modified, deleted
    diff: str  # since the lease was granted
    cut: bool = False  # the difference goes on, and is too long to be told


class WorkList(Reply):
    items: list[WorkFile]
    next: int | None = None
    cut: list[str] = []  # leases below which there is more than is told


class Work(Request[WorkList]):
    """What is changed on disk below live leases since they were granted, oldest lease first.

    It compares what a lease began with to the file as it is now, so what somebody else saved there
    is in it, too. Of a region it tells that region's changes, below a directory or glob also files
    that are new and not ignored.
    """

    op = "work"
    http = ("GET", "/v1/work")
    writes = False
    agent: Name | None = None  # only below leases of this agent
    resource: Name | None = None  # only below leases of this name
    after: Place = 0  # a lease's fencing token
    limit: Count = 50  # leases that are looked at
