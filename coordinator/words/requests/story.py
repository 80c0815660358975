"""Asking what happened and how things are: events, stories, status, health; stopping."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from coordinator.words.requests.agents import AgentRow
from coordinator.words.requests.backlog import Task
from coordinator.words.requests.base import Count, Reply, Request, Whole
from coordinator.words.requests.leases import Lease, Waiter
from coordinator.words.requests.negotiation import Unlock
from coordinator.words.requests.reviews import Review
from coordinator.words.requests.verification import VerificationList
from coordinator.words.texts import Name


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
    after: Whole = 0
    limit: Count = 200
    tail: bool = False
    agent: Name | None = None
    task: Name | None = None
    resource: Name | None = None
    kind: Name | None = None


class Story(Reply):
    subject: str
    sentences: list[str]


class Explain(Request[Story]):
    """The story of one task, review, unlock request, message, agent or resource, in sentences."""

    op = "explain"
    http = ("GET", "/v1/explain")
    writes = False
    subject: Name
    cwd: Name | None = None


class ReplayResult(Reply):
    events: int
    equal: bool
    differences: list[str]
    sentences: list[str] = []  # how things were after the event that was asked for


class Replay(Request[ReplayResult]):
    """Rebuild the state from the log into a fresh database and compare; or, with `until`, tell how
    things were after that event: who held what, what was claimed, what had been tried."""

    op = "replay"
    http = ("POST", "/v1/replay")
    writes = False
    operator_only = True
    until: Whole | None = None


class Aside(Reply):
    """Something that could not be served and is tried again at `retry_at`."""

    what: str
    subject: str
    reason: str
    since: str
    tries: int
    retry_at: str


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
    requests: list[Unlock] = []  # unlock requests that wait for their holders' answers
    aside: list[Aside] = []  # what could not be served
    verified: VerificationList | None = None  # where a command verifies what tasks have done
    messages: int = 0  # messages to people that no person has seen


class Status(Request[StatusReply]):
    """Everything that the dashboard shows, read in one snapshot."""

    op = "status"
    http = ("GET", "/v1/status")
    writes = False
    events: Whole = 10


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
    heard: dict[str, str]
    """Profile -> when a hook of its was last heard (UTC), since the daemon started."""
    integrity: str | None = None
    aside: list[Aside] = []
    """What could not be served and is tried again."""


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
    bytes_freed: int = 0
    """By how much the database's file is shorter."""


class Compact(Request[Compacted]):
    """Apply the retention rule to the log and the blobs now."""

    op = "compact"
    http = ("POST", "/v1/compact")
    operator_only = True
    keep_days: Annotated[float, Meta(gt=0, le=1e6)] | None = None
