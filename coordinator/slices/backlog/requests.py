"""Asking for tasks: adding, claiming, finishing, giving back, taking in and out as text."""

from __future__ import annotations

from typing import Any, Literal

from coordinator.words.requests.base import Count, Number, Place, Reply, Request, Whole
from coordinator.words.requests.leases import Lease
from coordinator.words.requests.tasks import Candidate, Judged, Partial, Task, TaskState, Unlanded
from coordinator.words.texts import Document, Line, Name, Page, Words

TaskOrder = Literal["arrival", "priority"]


class TaskAdd(Request[Task]):
    """Add a task. `resources` are leased with its claim; a resource may be marked `shared:NAME`.
    `needs`: pools of the environment; a value of each is given with its claim."""

    op = "task_add"
    http = ("POST", "/v1/tasks")
    title: Name
    prompt: Document = ""
    resources: list[Name] = []
    priority: Whole = 0
    after: list[Name] = []
    attempts_max: Whole | None = None
    needs: list[Name] = []  # names of pools
    cwd: Name | None = None


class TaskEdit(Request[Task]):
    """Change the text of a task. Omitted fields stay; `resources`, `needs` and `after` are complete
    lists.

    A task that an agent works on, or that is done or cancelled, is refused. `seen`: the
    `updated_at` that the change is based on; VERSION_CHANGED if the task has changed since.
    `before` and `behind` give the task a place in the order of dispatch: its priority follows, and
    the priorities of the tasks before it are raised as far as necessary.
    """

    op = "task_edit"
    http = ("PATCH", "/v1/tasks/{task}")
    operator_only = True
    task: Name
    title: Name | None = None
    prompt: Document | None = None
    resources: list[Name] | None = None
    priority: Whole | None = None
    before: Name | None = None  # the task that it is to be given out right before; null: as it is
    behind: Name | None = None  # the task that it is to be given out right after; null: as it is
    after: list[Name] | None = None
    attempts_max: Whole | None = None
    needs: list[Name] | None = None  # names of pools
    seen: Name | None = None
    cwd: Name | None = None


class TaskList(Reply):
    items: list[Task]
    counts: dict[str, int]  # state -> how many tasks are in it, of those of `agent` and `filter`
    next: int | None = None
    """Give this as `after` for the next page, or as `skip` where `order` is `priority`; null: there
    is no more."""


class Tasks(Request[TaskList]):
    """The backlog in order of arrival, or the next to be given out first. `skip` and `limit` are a
    window of it."""

    op = "tasks"
    http = ("GET", "/v1/tasks")
    writes = False
    state: TaskState | None = None
    agent: Name | None = None  # only what it has claimed
    limit: Count = 200
    after: Place = 0
    filter: Line = ""  # only with this in its id, title, holder or a resource, A as a
    order: TaskOrder = "arrival"  # the oldest first, or the next to be given out first
    skip: Place = 0  # how many are left out at the beginning
    brief: bool = False  # prompts and results are left empty


class TaskLink(Reply):
    """A task among those that come before and after one another."""

    task: str
    title: str
    state: str  # as of a task
    after: list[str]  # which of these tasks have to be done before it


class TaskShown(Task):
    """One task with all that is about it."""

    chain: list[TaskLink] = []  # what it comes after, itself, what comes after it; alone: empty
    wrote: list[str] = []  # what it was seen to change, of files and regions
    leased: list[str] = []  # what was leased for it to be written, by the log


class TaskShow(Request[TaskShown]):
    """One task, with who holds what it needs, what comes before and after it, what it wrote."""

    op = "task_show"
    http = ("GET", "/v1/tasks/{task}")
    writes = False
    task: Name


class Claimed(Reply):
    task: Task
    acquisition_id: str | None
    leases: list[Lease]
    excerpts: list[dict[str, Any]]
    partial: Partial | None
    warnings: list[str]
    tried: list[Candidate] = []  # the last of what was tried for it and not written, with the texts
    environment: dict[str, str] = {}  # what its programs find in these variables, by its `needs`


class TaskClaim(Request[Claimed]):
    """Take a task and all its leases in one transaction; without `task`, the best that the agent
    can start. A task that the agent has claimed already is answered again with `reentrant` only."""

    op = "task_claim"
    http = ("POST", "/v1/tasks/claim")
    agent: Name
    task: Name | None = None
    ttl_s: Number | None = None
    wait_s: Number = 0.0
    cwd: Name | None = None  # in which working tree it is worked on
    reentrant: bool = False  # what the agent has already is this asker's


class TaskDone(Request[Task]):
    """The task is finished; its leases are released and its dependents may become ready."""

    op = "task_done"
    http = ("POST", "/v1/tasks/{task}/done")
    agent: Name
    task: Name
    result: Words = ""
    force: bool = False
    landed: Name | None = None  # of work in a launch's worktree: the commit; empty: nothing to land

    def for_people(self) -> bool:
        # A launch that an agent has begun ends what it has landed.
        return self.force and self.landed is None


class TaskFail(Request[Task]):
    """The attempt failed: retried after a backoff, or dead past the limit; changes are flagged.

    `blocked`: it met resources that another holds; they join the task, no attempt is counted, and
    it is offered again when they are free. `unlanded`: its work was refused at the merge boundary;
    all of it is flagged, leased or not. `model_error`: not the attempt, but the model, its server
    or the agent's wiring failed; no attempt is counted.
    """

    op = "task_fail"
    http = ("POST", "/v1/tasks/{task}/fail")
    agent: Name
    task: Name
    reason: Words = ""
    blocked: list[Name] = []
    log_tail: Page = ""
    cwd: Name | None = None
    force: bool = False
    unlanded: Unlanded | None = None
    model_error: bool = False
    outcome: Name | None = None  # the code of what was refused, for the task's blackboard

    def for_people(self) -> bool:
        return self.force


class TaskOutcome(Request[Judged]):
    """The outcome of an attempt, as its checker judges it (`VERIFY_FAILED` and the like). It is
    noted on the task's blackboard, with the remedy. After `backlog.rounds_max` in a row a person
    gets the task."""

    op = "task_outcome"
    http = ("POST", "/v1/tasks/{task}/outcome")
    agent: Name
    task: Name
    outcome: Name
    note: Words = ""


class TaskRetry(Request[Task]):
    """Put a dead, failed or cancelled task back, with its attempts counted afresh. A cancelled one
    whose partial work is under review waits for the verdict again."""

    op = "task_retry"
    http = ("POST", "/v1/tasks/{task}/retry")
    operator_only = True
    task: Name


class TaskCancel(Request[Task]):
    """Take a task out of the backlog; a claimed one only with `force`."""

    op = "task_cancel"
    http = ("POST", "/v1/tasks/{task}/cancel")
    operator_only = True
    task: Name
    reason: Words = ""
    force: bool = False

    def for_people(self) -> bool:
        return self.force


class Imported(Reply):
    items: list[Task]
    next: str | None = None
    warnings: list[str] = []  # what the author of the text should know: older names, tasks left out
    known: list[Task] = []  # tasks of `known` that the text has, and that were not added again


class TaskImport(Request[Imported]):
    """Add many tasks, all or none, from YAML, JSON lines or a Markdown check-list. Resources in it
    begin at the root. Without a `format` the ending of `name` tells it, else the text."""

    op = "task_import"
    http = ("POST", "/v1/tasks/import")
    text: Document
    format: Literal["yaml", "jsonl", "markdown"] | None = None
    name: Name = ""  # of the file that it was read from
    known: list[Name] = []  # tasks of an earlier text: one of the same title is not added again


class Exported(Reply):
    text: str


class TaskExport(Request[Exported]):
    """The whole backlog as text that `task_import` reads."""

    op = "task_export"
    http = ("GET", "/v1/tasks/export")
    writes = False
    format: Literal["yaml", "jsonl", "markdown"] = "yaml"


class Limited(Reply):
    agent: str
    rests_until: str | None  # until when it is given nothing (UTC); null: it continues
    given_back: list[str]  # ids of its tasks, which others may take
    reviews: list[str]  # what it had begun of them, for a person


class LimitReached(Request[Limited]):
    """The agent has met its provider's limit and is given nothing until it may continue. Its tasks
    go back, to agents of other profiles first, and no attempt is lost. `for_s` 0: it continues now.
    """

    op = "limit_reached"
    http = ("POST", "/v1/agents/limit")
    agent: Name
    until: Name | None = None  # an instant, like 2026-11-21T14:32:00Z
    for_s: Number | None = None  # or so many seconds; at most 7 days
    note: Line = ""
    log_tail: Page = ""
