"""Asking what happened and how things are: events, stories, status."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from coordinator.words.requests.base import Count, Place, Reply, Request
from coordinator.words.requests.status import EventRow, StatusReply
from coordinator.words.texts import Line, Name, Words


class EventList(Reply):
    items: list[EventRow]
    next: int | None = None
    task: str | None = None  # that was asked for, by its id
    resource: str | None = None  # that was asked for, by its name from the root


class Events(Request[EventList]):
    """The log after `after`, oldest first; `tail` gives the last ones instead. A `resource`
    includes its regions."""

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


class Status(Request[StatusReply]):
    """Everything that the dashboard shows, read in one snapshot."""

    op = "status"
    http = ("GET", "/v1/status")
    writes = False
    events: Place = 10
    leases: Place = 5000  # how many leases are listed at most


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
    """The state at a moment: who held what, who waited, what was claimed, what had been tried. It
    is rebuilt from the log. For an event: the state just after it. Without bounds: now."""

    op = "moment"
    http = ("GET", "/v1/moment")
    writes = False
    event: Place | None = None  # the number of the event after which the state is shown
    at: Name | None = None  # or an instant, like 2026-11-21T14:32:00Z


class WorkFile(Reply):
    agent: str  # whose lease it is
    resource: str  # the lease; of a region: nothing else of its file is in the difference
    task: str | None
    path: str
    worktree: str | None  # its linked worktree; None: the main one
    change: str  # new, modified, deleted
    diff: str  # since the lease was granted
    cut: bool = False  # the difference is longer than shown


class WorkList(Reply):
    items: list[WorkFile]
    next: int | None = None
    cut: list[str] = []  # leases below which there is more than shown


class Work(Request[WorkList]):
    """What has changed on disk below live leases since they were granted, oldest lease first.

    It compares what a lease began with to the present file, so changes of others are included. For
    a region it shows that region's changes, and below a directory or glob also new files that are
    not ignored.
    """

    op = "work"
    http = ("GET", "/v1/work")
    writes = False
    agent: Name | None = None  # only below leases of this agent
    resource: Name | None = None  # only below leases of this name
    after: Place = 0  # a lease's fencing token
    limit: Count = 50  # leases that are looked at


class WaitedFor(Reply):
    """How one agent waited for another."""

    agent: str  # who waited
    holder: str  # for whom; where several held it, each of them has a line
    times: int  # how often it was refused for what that one held
    waited_s: float  # seconds in the queue for it, or without a task because of it
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
    """The report of a time of work, by the log: who waited for whom and how long, which files were
    in demand, what was refused, what each agent did. Without bounds: all of the log."""

    op = "report"
    http = ("GET", "/v1/report")
    writes = False
    since: Name | None = None  # an instant, like 2026-11-21T14:32:00Z: from there on
    until: Name | None = None  # an instant: up to there; default: now
    limit: Count = 20  # how many lines of a list at most


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
    query: Words
    limit: Count = 10


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
    ref: Words


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
