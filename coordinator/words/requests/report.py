"""Asking what a time of work came to: who waited for whom, which files were in demand."""

from __future__ import annotations

from coordinator.words.requests.base import Count, Reply, Request
from coordinator.words.texts import Name


class WaitedFor(Reply):
    """How one agent waited for another."""

    agent: str  # who waited
    holder: str  # for whom; where several held it, each of them has a line
    times: int  # how often it was refused for what that one held
    waited_s: float  # seconds in line for it, or without a task because of it
    stood_s: float  # seconds of that in which its request was held open: it did nothing else


class HotFile(Reply):
    """A resource, and how much it was in demand."""

    resource: str
    grants: int  # how often it was leased
    refused: int  # how often it was refused
    agents: int  # how many agents had it, or wanted it
    held_s: float  # seconds for which it was leased, of all its leases together
    waited_s: float  # seconds of waiting for it, of all who waited together


class AgentsPart(Reply):
    """What one agent did."""

    agent: str
    claimed: int  # tasks that it began
    done: int  # tasks that it finished
    failed: int  # attempts at tasks that failed, and left nothing half done
    in_review: int  # attempts that left something half done, which was kept as a review
    grants: int  # leases that it got
    refused: int  # how often it was refused what another held
    held_s: float  # seconds of its leases, all together
    waited_s: float  # seconds of waiting, all together
    stood_s: float  # seconds of that in which it did nothing else


class RefusedCount(Reply):
    code: str  # of the catalogue
    count: int  # how often


class ReportReply(Reply):
    since: str | None  # as asked, else the first event (UTC); null: there is none
    until: str  # up to this instant (UTC)
    span_s: float  # seconds between them
    events: int  # how many events were counted
    waited: list[WaitedFor]  # who waited for whom, the longest first
    files: list[HotFile]  # the most wanted first
    agents: list[AgentsPart]  # by name
    refusals: list[RefusedCount]  # that the log knows of: those of leases, proposals and attempts
    waited_s: float  # seconds of waiting, of all agents together
    stood_s: float  # seconds of that in which agents did nothing else: time lost
    tasks: dict[str, int] = {}  # verb -> how many changes of tasks: claim, done, fail, …


class Report(Request[ReportReply]):
    """What a time of work came to, by the log: who waited for whom and how long, which files were
    in demand, what was refused, what each agent did. Without bounds: all of the log."""

    op = "report"
    http = ("GET", "/v1/report")
    writes = False
    since: Name | None = None  # an instant, like 2026-11-21T14:32:00Z: from there on
    until: Name | None = None  # an instant: up to there; default: now
    limit: Count = 20  # how many lines of a list at most
