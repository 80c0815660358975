"""Asking what happened and how things are: events, stories, status."""

from __future__ import annotations

from typing import Any

from coordinator.words.requests.agents import AgentRow
from coordinator.words.requests.backlog import Task
from coordinator.words.requests.base import Count, Place, Reply, Request
from coordinator.words.requests.health import Aside
from coordinator.words.requests.leases import Lease, Waiter
from coordinator.words.requests.negotiation import Unlock
from coordinator.words.requests.reviews import Review
from coordinator.words.requests.verification import VerificationList
from coordinator.words.texts import Line, Name


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
    task: str | None = None  # that was asked for, by its id
    resource: str | None = None  # that was asked for, by its name from the root


class Events(Request[EventList]):
    """The log after `after`, oldest first; `tail` gives the last ones instead. Of a `resource` with
    those of its regions."""

    op = "events"
    http = ("GET", "/v1/events")
    writes = False
    after: Place = 0
    limit: Count = 200
    tail: bool = False
    agent: Name | None = None
    task: Name | None = None
    resource: Name | None = None
    kind: Name | None = None
    cwd: Line | None = None


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
    requests: list[Unlock] = []  # unlock requests that wait for their holders' answers
    aside: list[Aside] = []  # what could not be served
    verified: VerificationList | None = None  # where a command verifies what tasks have done
    messages: int = 0  # messages to people that no person has seen
    leases_held: int | None = None  # how many leases are live; null: an older one does not say


class Status(Request[StatusReply]):
    """Everything that the dashboard shows, read in one snapshot."""

    op = "status"
    http = ("GET", "/v1/status")
    writes = False
    events: Place = 10
    leases: Place = 5000  # how many leases are told of at most
