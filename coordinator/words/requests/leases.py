"""Asking for leases: acquire, release, renew, withdraw, list."""

from __future__ import annotations

from coordinator.words.requests.base import Mode, Reply, Request
from coordinator.words.texts import Line


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
    description: Line = ""
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
