"""The coordinator at a glance, and one event in words: the kernel and each slice add to these.

What has failed too often, of whatever kind.
"""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.words.requests.agents import AgentRow
from coordinator.words.requests.base import Reply
from coordinator.words.requests.health import Aside
from coordinator.words.requests.leases import Lease, Waiter
from coordinator.words.requests.negotiation import Unlock
from coordinator.words.requests.reviews import Review
from coordinator.words.requests.tasks import Task
from coordinator.words.requests.verification import VerificationList


class EventRow(Reply):
    seq: int
    at: str
    kind: str
    agent: str | None
    task: str | None
    resource: str | None
    data: dict[str, Any]
    text: str


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


NULL = msgspec.Raw(b"null")


class DeadLetter(Reply):
    id: str  # of the task, change or step: T-3, K-3 or S-3
    kind: str  # task, change, call, acquire, propose, webhook
    what: str
    agent: str | None
    attempts: int
    why: str
    since: str
    content: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)  # all, when shown alone
