"""Asking for leases: acquire, release, renew, withdraw, list."""

from __future__ import annotations

from typing import Literal

from coordinator.words.requests.base import Count, Mode, Number, Place, Reply, Request, Whole
from coordinator.words.texts import Line, Name

LeaseOrder = Literal["grant", "folder"]


class Replaced(Reply):
    fencing_token: int
    locked_at: str


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
    reentrant: bool = False  # whether its holder had it already
    replaces: Replaced | None = None  # the lease that its holder had until now, only to read
    agreed_as: str | None = None  # U-n: others write it, too, as its holders agreed
    worktree: str | None = None  # the linked working tree of the copy; None: the main one
    purpose: str = "asked"  # what it is for: asked, claim, hook:TOOL, commit:C-3; only coord says
    further: bool = False  # named with its grant: its holder had a copy in another tree before


class ChangedSince(Reply):
    resource: str
    regions: list[str]  # which of them; empty where the file is not divided
    diff: str  # unified; empty where it is too long, or the content was not kept


class Acquired(Reply):
    acquisition_id: str
    leases: list[Lease]
    warnings: list[str]
    changed: list[ChangedSince] = []  # for a queued request: what has changed since it asked


class Acquire(Request[Acquired]):
    """Lease every resource, or none. Refused: LOCKED with who, why, excerpts and other work.

    What the agent has already is somebody's: another thread or program may act as the same agent.
    So it is refused, too, but with `reentrant`."""

    op = "acquire"
    http = ("POST", "/v1/locks")
    agent: Name
    resources: list[Name]
    mode: Mode = "exclusive"
    ttl_s: Number | None = None
    task: Name | None = None
    description: Line = ""
    wait_s: Number = 0.0
    priority: Whole = 0
    retry: bool = True  # stay in the queue after a refusal; granted when free, told by a notice
    cwd: Name | None = None
    new: bool = False  # regions that are not there yet, too: they are about to be added
    reentrant: bool = False  # what the agent has already is this asker's, and is renewed
    passing: bool = False  # the asker is gone with the answer: queued only if its agent lives


class Released(Reply):
    released: list[Lease]
    reviews: list[str] = []  # of what was ended by force: changes that are kept for a human


class Release(Request[Released]):
    """Give leases back: named by resource, by acquisition, or all of a task's. Owner-checked.
    `keep_shared`: only the right to write; the reply tells them as they are then."""

    op = "release"
    http = ("POST", "/v1/locks/release")
    agent: Name
    resources: list[Name] = []
    acquisition_id: Name | None = None
    task: Name | None = None
    lease_token: Name | None = None
    force: bool = False
    keep_shared: bool = False  # what is named stays leased, shared: others may read it again
    cwd: Name | None = None

    def for_people(self) -> bool:
        return self.force


class Renewed(Reply):
    leases: list[Lease]


class Renew(Request[Renewed]):
    """Extend leases from now, never past `max_hold`. An expired lease is refused: STALE_TOKEN."""

    op = "renew"
    http = ("POST", "/v1/locks/renew")
    agent: Name
    resources: list[Name] = []
    acquisition_id: Name | None = None
    lease_token: Name | None = None
    ttl_s: Number | None = None
    cwd: Name | None = None


class Withdrawn(Reply):
    acquisition_id: str


class Withdraw(Request[Withdrawn]):
    """Leave the queue."""

    op = "withdraw"
    http = ("POST", "/v1/locks/withdraw")
    agent: Name
    acquisition_id: Name


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
    held_by: list[str] = []  # the agents that hold it now


class LeaseFolder(Reply):
    folder: str  # like `src/`; the root's is `./`, that of keys and other names is empty
    count: int  # how many of the requested leases are in it


class LockList(Reply):
    items: list[Lease]
    waiters: list[Waiter]
    next: int | None = None
    """Give this as `after` for the next page, or as `skip` where `order` is `folder`; null: there
    is no more."""
    resource: str | None = None  # that was asked for, by its name from the root
    total: int = 0  # how many there are of those that were asked for; an older one does not say
    folders: list[LeaseFolder] = []  # where `order` is `folder`: all that have any, in order


class Locks(Request[LockList]):
    """Live leases and who waits; `resource` narrows both to what overlaps it, `agent` to what is
    its own, and to who waits for that. `skip` and `limit` are a window of the leases."""

    op = "locks"
    http = ("GET", "/v1/locks")
    writes = False
    agent: Name | None = None
    resource: Name | None = None
    limit: Count = 1000
    after: Place = 0
    cwd: Name | None = None
    filter: Line = ""  # only leases with this in resource, holder, task or description, A as a
    order: LeaseOrder = "grant"  # as they were granted, or by their folders and names
    skip: Place = 0  # how many are left out at the beginning
