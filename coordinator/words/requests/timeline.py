"""Asking how a time of work went: who was at what, and how all was at a moment of it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from coordinator.words.requests.base import Count, Place, Reply, Request
from coordinator.words.requests.report import ReportReply
from coordinator.words.requests.story import StatusReply
from coordinator.words.texts import Name

SpanKind = Literal["task", "lease", "wait", "thinking", "refusal", "review"]
#: Into how many parts a window can be divided.
Parts = Annotated[int, Meta(ge=1, le=1000)]


class Span(Reply):
    """A time in which an agent was at one thing."""

    agent: str
    kind: SpanKind
    # `thinking`: it had a task or a lease, waited for nothing, and the log has nothing of it
    since: str  # when it began (UTC); it may be before the window
    until: str  # when it ended (UTC); of a refusal the same instant
    event: int  # the number of the event that began it
    subject: str  # the task, the resource or the review; empty: there is none
    text: str  # the task's title, what the lease is for, the refusal's code, the review's summary
    holders: list[str]  # of a wait and a refusal: who held what was asked for
    open: bool  # whether it went on when the window ended
    count: int  # how many it stands for: more than 1 where near ones were drawn together


class Demand(Reply):
    """How much a resource was in demand, part by part of the window."""

    resource: str
    held: list[float]  # how many agents had it, on average, in each part
    waited: list[float]  # how many agents waited for it, on average, in each part
    refused: list[int]  # how often it was refused in each part


class TimelineReply(Reply):
    since: str | None  # the beginning of the window, as asked, else the first event; null: none
    until: str  # the end of the window (UTC)
    spans: list[Span]  # in the order of their beginning
    together: bool  # whether near spans were drawn together; a shorter window shows each
    left_out: int  # how many spans are not shown, for there are more lanes than spans
    demand: list[Demand]  # of the resources that the report lists, in its order
    report: ReportReply  # what the window came to, as `report` tells it


class Timeline(Request[TimelineReply]):
    """How a time of work went, by the log: a lane for each agent (tasks, leases, waits, thinking,
    refusals, reviews), demand for each file over time, and who waited for whom. Without bounds: all
    of the log."""

    op = "timeline"
    http = ("GET", "/v1/timeline")
    writes = False
    since: Name | None = None  # an instant, like 2026-11-21T14:32:00Z: from there on
    until: Name | None = None  # an instant: up to there; default: now
    spans: Count = 2000  # how many spans at most; near ones are drawn together where there are more
    parts: Parts = 60  # into how many parts the window is divided for the demand
    limit: Count = 20  # how many resources, and lines of each list of the report, at most


class MomentReply(Reply):
    event: int  # the last event before the moment
    at: str  # the moment (UTC)
    first: int  # the earliest event after which the log can tell how things were
    last: int  # the newest event
    state: StatusReply  # how things were; without events and health, which are of today
    sentences: list[str]  # the same, with what was tried for each task, in sentences


class Moment(Request[MomentReply]):
    """How things were at a moment: who held what, who waited, what was claimed, what had been
    tried. Made again from the log. Of an event: just after it. Without bounds: now."""

    op = "moment"
    http = ("GET", "/v1/moment")
    writes = False
    event: Place | None = None  # the number of the event after which things are told
    at: Name | None = None  # or an instant, like 2026-11-21T14:32:00Z
