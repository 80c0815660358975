"""What can be asked of the coordinator and what it answers: one shape each, for every door.

A `Request[R]` names its operation, whether it writes, and its HTTP method and path; `R` is the
shape of its reply. Unknown fields and wrong types are refused by the decoder (INVALID). Durations
are seconds (`*_s`), instants UTC ISO-8601 text, sizes bytes. No rule lives here.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

R = TypeVar("R")
Mode = Literal["exclusive", "shared"]
Verdict = Literal["keep", "revert", "reassign"]


class Reply(msgspec.Struct, kw_only=True, omit_defaults=False):
    """Base of all replies; unknown fields from a newer daemon are ignored by an older client."""


class Request(msgspec.Struct, Generic[R], kw_only=True, forbid_unknown_fields=True):
    """Base of all requests. `R` is the reply."""

    op: ClassVar[str]
    http: ClassVar[tuple[str, str]]
    writes: ClassVar[bool] = True
    operator_only: ClassVar[bool] = False


# ---------------------------------------------------------------- agents


class Registered(Reply):
    agent: str
    token: str
    resumed: bool


class Register(Request[Registered]):
    """Register a holder, or resume one by its name (a new token is issued, its leases stay)."""

    op = "register"
    http = ("POST", "/v1/agents")
    agent: str
    profile: str = ""
    parent: str | None = None
    description: str = ""
    silence_s: float | None = None  # silent for longer: stale, its leases are closed
    unique: bool = False  # take `name-2`, `name-3`, … when the name is in use


class Notice(Reply):
    notice: int
    at: str
    kind: str
    text: str
    data: dict[str, Any]


class Alive(Reply):
    agent: str
    state: str
    notices: list[Notice]


class Heartbeat(Request[Alive]):
    """The agent is alive; with `progress` it moves, and its leases and claims are renewed."""

    op = "heartbeat"
    http = ("POST", "/v1/agents/heartbeat")
    agent: str
    progress: str | None = None
    ack: int = 0  # notices up to this number have been delivered


class Left(Reply):
    agent: str
    released: list[str]
    reviews: list[str]


class Leave(Request[Left]):
    """The session ends. `clean`: its work is finished and leases are released; otherwise partial
    work is flagged exactly as if they had lapsed."""

    op = "leave"
    http = ("POST", "/v1/agents/leave")
    agent: str
    clean: bool = True
    reason: str = ""
    log_tail: str = ""


class AgentRow(Reply):
    agent: str
    parent: str | None
    profile: str
    description: str
    state: str
    registered_at: str
    seen_at: str
    progress_at: str | None
    progress: str | None
    leases: int
    tasks: list[str]
    waiting_for: list[str]


class AgentList(Reply):
    items: list[AgentRow]
    next: str | None = None


class Agents(Request[AgentList]):
    """Registered agents; those that left only with `all`."""

    op = "agents"
    http = ("GET", "/v1/agents")
    writes = False
    all: bool = False


# ---------------------------------------------------------------- leases


class Lease(Reply):
    resource: str
    kind: str
    mode: str
    locked_by: str
    locked_at: str
    expires_at: str
    fencing_token: int
    content_hash: str | None
    acquisition_id: str
    task: str | None
    description: str
    lease_token: str | None = None  # only ever in the reply to its own grant
    reentrant: bool = False  # it was held already


class Acquired(Reply):
    acquisition_id: str
    leases: list[Lease]
    warnings: list[str]


class Acquire(Request[Acquired]):
    """Lease every resource, or none. Refused: LOCKED with who, why, excerpts and other work."""

    op = "acquire"
    http = ("POST", "/v1/locks")
    agent: str
    resources: list[str]
    mode: Mode = "exclusive"
    ttl_s: float | None = None
    task: str | None = None
    description: str = ""
    wait_s: float = 0.0
    priority: int = 0
    retry: bool = True  # stay in line after a refusal; granted when free, told by a notice
    cwd: str | None = None


class Released(Reply):
    released: list[Lease]


class Release(Request[Released]):
    """Give leases back: named by resource, by acquisition, or all of a task's. Owner-checked."""

    op = "release"
    http = ("POST", "/v1/locks/release")
    agent: str
    resources: list[str] = []
    acquisition_id: str | None = None
    task: str | None = None
    lease_token: str | None = None
    force: bool = False
    cwd: str | None = None


class Renewed(Reply):
    leases: list[Lease]


class Renew(Request[Renewed]):
    """Extend leases from now, never past `max_hold`. A lapsed lease is refused: STALE_TOKEN."""

    op = "renew"
    http = ("POST", "/v1/locks/renew")
    agent: str
    resources: list[str] = []
    acquisition_id: str | None = None
    lease_token: str | None = None
    ttl_s: float | None = None
    cwd: str | None = None


class Withdrawn(Reply):
    acquisition_id: str


class Withdraw(Request[Withdrawn]):
    """Leave the line."""

    op = "withdraw"
    http = ("POST", "/v1/locks/withdraw")
    agent: str
    acquisition_id: str


class Waiter(Reply):
    acquisition_id: str
    agent: str
    resources: list[str]
    mode: str
    priority: int
    asked_at: str
    until: str
    position: int
    description: str


class LockList(Reply):
    items: list[Lease]
    waiters: list[Waiter]
    next: str | None = None


class Locks(Request[LockList]):
    """Live leases and who waits; `resource` narrows to what overlaps it."""

    op = "locks"
    http = ("GET", "/v1/locks")
    writes = False
    agent: str | None = None
    resource: str | None = None
    limit: int = 1000
    after: int = 0
    cwd: str | None = None


# ---------------------------------------------------------------- backlog


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
    result: str = ""
    force: bool = False


class TaskFail(Request[Task]):
    """The attempt failed: retried after a backoff, or dead past the limit; changes are flagged.

    `blocked`: it met resources that another holds; they join the task, no attempt is counted, and
    it is offered again when they are free.
    """

    op = "task_fail"
    http = ("POST", "/v1/tasks/{task}/fail")
    agent: str
    task: str
    reason: str = ""
    blocked: list[str] = []
    log_tail: str = ""
    cwd: str | None = None
    force: bool = False


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
    reason: str = ""
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


# ---------------------------------------------------------------- sweep and review


class Swept(Reply):
    lapsed: list[Lease]
    stale: list[str]
    reviews: list[str]
    tasks: list[str]
    granted: list[str]


class Sweep(Request[Swept]):
    """Tidy now: close what has lapsed, flag partial work, serve the line."""

    op = "sweep"
    http = ("POST", "/v1/sweep")


class ReviewFile(Reply):
    path: str
    change: str
    kept: bool
    baseline_hash: str | None
    flagged_hash: str | None
    note: str
    diff: str = ""
    baseline: str | None = None  # base64, only when asked for
    flagged: str | None = None


class Review(Reply):
    review: str
    state: str
    reason: str
    agent: str | None
    task: str | None
    summary: str
    leased_at: str | None
    opened_at: str
    decided_at: str | None
    decided_by: str | None
    note: str | None
    files: list[ReviewFile]
    log_tail: str = ""
    timeline: list[str] = []


class ReviewList(Reply):
    items: list[Review]
    next: str | None = None


class Reviews(Request[ReviewList]):
    """Flagged work; without `state`, what is open."""

    op = "reviews"
    http = ("GET", "/v1/reviews")
    writes = False
    state: Literal["open", "kept", "reverted", "reassigned", "all"] = "open"
    limit: int = 200


class ReviewShow(Request[Review]):
    """One review with its diffs and timeline; `content` adds the bytes (base64)."""

    op = "review_show"
    http = ("GET", "/v1/reviews/{review}")
    writes = False
    review: str
    content: bool = False


class ReviewDecide(Request[Review]):
    """A human's verdict. `revert` restores the bytes at grant where nobody changed them since."""

    op = "review_decide"
    http = ("POST", "/v1/reviews/{review}/decide")
    operator_only = True
    review: str
    verdict: Verdict
    note: str = ""
    by: str = ""


class ReviewUndo(Request[Review]):
    """Take a verdict back; files that a revert wrote get their bytes again."""

    op = "review_undo"
    http = ("POST", "/v1/reviews/{review}/undo")
    operator_only = True
    review: str
    by: str = ""


# ---------------------------------------------------------------- archive


class Hit(Reply):
    number: str
    title: str
    source: str
    snippet: str


class HitList(Reply):
    items: list[Hit]
    next: str | None = None


class ArchiveSearch(Request[HitList]):
    """Full-text search over the context archive and the living sections."""

    op = "archive_search"
    http = ("GET", "/v1/archive/search")
    writes = False
    query: str
    limit: int = 10


class ArchiveSection(Reply):
    number: str
    title: str
    source: str
    body: str
    paths: list[str]


class ArchiveShow(Request[ArchiveSection]):
    """One section by number (`4.2`, `4.2@file.md`) or title."""

    op = "archive_show"
    http = ("GET", "/v1/archive/show")
    writes = False
    ref: str


class Indexed(Reply):
    added: int
    changed: int
    removed: int
    warnings: list[str]


class ArchiveIndexNow(Request[Indexed]):
    """Read changed Markdown again now."""

    op = "archive_index"
    http = ("POST", "/v1/archive/index")
    writes = False


# ---------------------------------------------------------------- the log, status, the daemon


class EventRow(Reply):
    seq: int
    at: str
    kind: str
    agent: str | None
    task: str | None
    resource: str | None
    data: dict[str, Any]
    text: str


class EventList(Reply):
    items: list[EventRow]
    next: int | None = None


class Events(Request[EventList]):
    """The log after `after`, oldest first; `tail` gives the last ones instead."""

    op = "events"
    http = ("GET", "/v1/events")
    writes = False
    after: int = 0
    limit: int = 200
    tail: bool = False
    agent: str | None = None
    task: str | None = None
    resource: str | None = None
    kind: str | None = None


class Story(Reply):
    subject: str
    sentences: list[str]


class Explain(Request[Story]):
    """The story of one task, review, agent or resource, in sentences."""

    op = "explain"
    http = ("GET", "/v1/explain")
    writes = False
    subject: str
    cwd: str | None = None


class ReplayResult(Reply):
    events: int
    equal: bool
    differences: list[str]


class Replay(Request[ReplayResult]):
    """Rebuild the state from the log into a fresh database and compare."""

    op = "replay"
    http = ("POST", "/v1/replay")
    writes = False
    operator_only = True


class StatusReply(Reply):
    at: str
    root: str
    agents: list[AgentRow]
    leases: list[Lease]
    waiters: list[Waiter]
    tasks: dict[str, int]
    claimed: list[Task]
    reviews: list[Review]
    events: list[EventRow]
    health: dict[str, Any]


class Status(Request[StatusReply]):
    """Everything that the dashboard shows, read in one snapshot."""

    op = "status"
    http = ("GET", "/v1/status")
    writes = False
    events: int = 10


class HealthReply(Reply):
    version: str
    root: str
    pid: int
    started_at: str
    schema_version: int
    db_bytes: int
    wal_bytes: int
    resident_bytes: int
    events: int
    watcher: dict[str, Any]
    http: str | None
    warnings: list[str]
    config: dict[str, Any]
    integrity: str | None = None


class Health(Request[HealthReply]):
    """How the daemon is; `integrity` also checks the database page by page."""

    op = "health"
    http = ("GET", "/v1/health")
    writes = False
    integrity: bool = False


class Stopping(Reply):
    pid: int


class Shutdown(Request[Stopping]):
    """Drain and exit."""

    op = "shutdown"
    http = ("POST", "/v1/shutdown")
    writes = False
    operator_only = True


class Compacted(Reply):
    events_removed: int
    blobs_removed: int


class Compact(Request[Compacted]):
    """Apply the retention rule to the log and the blobs now."""

    op = "compact"
    http = ("POST", "/v1/compact")
    operator_only = True
    keep_days: float | None = None
