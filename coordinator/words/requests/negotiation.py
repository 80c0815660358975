"""Asking a holder to release what it holds, and its answer."""

from __future__ import annotations

from typing import Literal

from coordinator.words.requests.base import Count, Mode, Place, Reply, Request
from coordinator.words.requests.leases import Lease
from coordinator.words.texts import Name, Words

UnlockVerdict = Literal["approve", "narrow", "coexist", "reject"]


class Unlock(Reply):
    request: str
    status: str
    requested_by: str
    holder: str
    resource: str
    mode: str
    reason: str
    requested_at: str
    responded_at: str | None
    responded_by: str | None
    override: bool
    answer: str | None
    releases: list[str]  # while it is pending: all that an approval would release


class UnlockList(Reply):
    items: list[Unlock]
    next: int | None = None


class UnlockAnswered(Reply):
    unlock: Unlock
    released: list[Lease]
    granted: bool  # whether the asker has it now
    message: str
    kept: list[Lease] = []  # what the holder has of it from now on


class RequestFile(Request[Unlock]):
    """Ask the holder of a resource to release it, and be queued for it. The holder is told with its
    next hook call, and the asker is told the answer in the same way."""

    op = "request_file"
    http = ("POST", "/v1/requests")
    agent: Name
    resource: Name
    reason: Words
    holder: Name | None = None  # needed only where several hold parts of it
    mode: Mode = "exclusive"
    cwd: Name | None = None


class Requests(Request[UnlockList]):
    """Unlock requests in order of arrival; without `state`, what waits for an answer."""

    op = "requests"
    http = ("GET", "/v1/requests")
    writes = False
    state: Literal["pending", "approved", "narrowed", "coexisting", "rejected", "withdrawn",
                   "all"] = "pending"
    agent: Name | None = None  # only what it asks or is asked
    resource: Name | None = None  # only what asks for just this (`task:T-3`, a path)
    limit: Count = 200
    after: Place = 0


class RequestAnswer(Request[UnlockAnswered]):
    """The holder's answer. `approve` releases its lease and grants to the asker in one transaction.
    `narrow` does the same, except for what the holder keeps. With `coexist` both hold it, and write
    it by turns.

    With `force` a person answers in its place (`agent` is that person's name).
    """

    op = "request_answer"
    http = ("POST", "/v1/requests/{request}/answer")
    agent: Name
    request: Name
    verdict: UnlockVerdict
    keep: list[Name] = []  # narrow: parts of what it holds, beside what is asked for
    answer: Words = ""
    force: bool = False
    resource: Name | None = None  # the request has to be for this
    cwd: Name | None = None  # where the names that are kept begin

    def for_people(self) -> bool:
        return self.force


class RequestWithdraw(Request[Unlock]):
    """The asker takes the request back, and leaves the queue."""

    op = "request_withdraw"
    http = ("POST", "/v1/requests/{request}/withdraw")
    agent: Name
    request: Name
    resource: Name | None = None  # the request has to be for this
