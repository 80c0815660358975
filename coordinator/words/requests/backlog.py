"""Asking for tasks: adding, claiming, finishing, giving back, taking in and out as text."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from coordinator.words.requests.base import Reply, Request
from coordinator.words.requests.leases import Lease
from coordinator.words.texts import Page, Words


class Task(Reply):
    task: str
    title: str
    prompt: str
    state: str
    priority: int
    resources: list[str]
    after: list[str]
    attempts: int
    attempts_max: int
    not_before: str | None
    claimed_by: str | None
    claimed_at: str | None
    claim_until: str | None
    partial: str | None
    result: str | None
    created_at: str
    updated_at: str
    held_by: list[str] = []  # who holds what it needs, when shown on its own
    explanation: str = ""


class TaskAdd(Request[Task]):
    """Add a task. `resources` are leased with its claim; a resource may be marked `shared:NAME`."""

    op = "task_add"
    http = ("POST", "/v1/tasks")
    title: str
    prompt: str = ""
    resources: list[str] = []
    priority: int = 0
    after: list[str] = []
    attempts_max: int | None = None
    cwd: str | None = None


class TaskList(Reply):
    items: list[Task]
    counts: dict[str, int]
    next: str | None = None


class Tasks(Request[TaskList]):
    """The backlog in order of arrival."""

    op = "tasks"
    http = ("GET", "/v1/tasks")
    writes = False
    state: str | None = None
    limit: int = 200
    after: int = 0


class TaskShow(Request[Task]):
    """One task, with who holds what it needs."""

    op = "task_show"
    http = ("GET", "/v1/tasks/{task}")
    writes = False
    task: str


class Partial(Reply):
    review: str
    summary: str
    files: list[dict[str, Any]]
    diff: str


class Claimed(Reply):
    task: Task
    acquisition_id: str | None
    leases: list[Lease]
    excerpts: list[dict[str, Any]]
    partial: Partial | None
    warnings: list[str]


class TaskClaim(Request[Claimed]):
    """Take a task and all its leases in one transaction; without `task`, the best it can start."""

    op = "task_claim"
    http = ("POST", "/v1/tasks/claim")
    agent: str
    task: str | None = None
    ttl_s: float | None = None
    wait_s: float = 0.0


class TaskDone(Request[Task]):
    """The task is finished; its leases are released and its dependents may become ready."""

    op = "task_done"
    http = ("POST", "/v1/tasks/{task}/done")
    agent: str
    task: str
    result: Words = ""
    force: bool = False
    landed: str | None = None  # of work in a launch's worktree: the commit; empty: nothing to land


class Unlanded(msgspec.Struct, kw_only=True):
    """Work that did not land: the linked worktree it lies in, the commits it is between."""

    worktree: str
    began: str
    commit: str


class TaskFail(Request[Task]):
    """The attempt failed: retried after a backoff, or dead past the limit; changes are flagged.

    `blocked`: it met resources that another holds; they join the task, no attempt is counted, and
    it is offered again when they are free. `unlanded`: its work was refused at the merge boundary;
    all of it is flagged, leased or not. `model_error`: not the attempt, but the model or its server
    failed; no attempt is counted.
    """

    op = "task_fail"
    http = ("POST", "/v1/tasks/{task}/fail")
    agent: str
    task: str
    reason: Words = ""
    blocked: list[str] = []
    log_tail: Page = ""
    cwd: str | None = None
    force: bool = False
    unlanded: Unlanded | None = None
    model_error: bool = False


class TaskRetry(Request[Task]):
    """Put a dead, failed or cancelled task back, with its attempts counted afresh."""

    op = "task_retry"
    http = ("POST", "/v1/tasks/{task}/retry")
    operator_only = True
    task: str


class TaskCancel(Request[Task]):
    """Take a task out of the backlog; a claimed one only with `force`."""

    op = "task_cancel"
    http = ("POST", "/v1/tasks/{task}/cancel")
    operator_only = True
    task: str
    reason: Words = ""
    force: bool = False


class Imported(Reply):
    items: list[Task]
    next: str | None = None


class TaskImport(Request[Imported]):
    """Add many tasks, all or none, from YAML, JSON lines or a Markdown check-list."""

    op = "task_import"
    http = ("POST", "/v1/tasks/import")
    text: str
    format: Literal["yaml", "jsonl", "markdown"]
    cwd: str | None = None


class Exported(Reply):
    text: str


class TaskExport(Request[Exported]):
    """The whole backlog as text that `task_import` reads."""

    op = "task_export"
    http = ("GET", "/v1/tasks/export")
    writes = False
    format: Literal["yaml", "jsonl", "markdown"] = "yaml"
