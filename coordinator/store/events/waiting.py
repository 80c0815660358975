"""Who is refused, stands in line, gives way, and asks a holder to let go."""

from __future__ import annotations

from coordinator.store.events.base import Event


class AcquisitionRefused(Event, tag="acquisition_refused"):
    agent: str
    resources: list[str]
    holders: list[str]
    task: str | None = None
    redirect: str | None = None
    explained: str | None = None  # a section of the archive that it was shown
    before: list[str] = []  # of `holders` those that only stand in line before it


class WaiterQueued(Event, tag="waiter_queued"):
    acquisition_id: str
    agent: str
    mode: str
    priority: int
    asked_at: str  # earlier than the event when it asked again and kept its place
    until: str
    held: bool
    ttl_ms: int
    task: str | None
    description: str
    resources: list[tuple[str, str, str]]  # (name, kind, scope)
    met: str = ""  # scope of the lease that is in its way
    worktrees: dict[str, str] = {}  # of the names that were asked for in a linked worktree
    contents: dict[str, str] = {}  # what was in the files of these names then
    gives_way_to: str | None = None  # it asked again, and was told before to give way to this one
    purpose: str = "asked"  # of the lease that it waits for


class WaiterChanged(Event, tag="waiter_changed"):
    """Whether a request is still held open for it."""

    acquisition_id: str
    agent: str
    held: bool


class GivesWay(Event, tag="gives_way"):
    """Of a circle of agents that wait for each other one was chosen, and told to give way."""

    agent: str
    acquisition_id: str  # by which it is in the circle
    to: str  # one of those that wait for what it holds
    circle: list[str]  # itself first; not all, where they are many
    size: int


class WaiterLeft(Event, tag="waiter_left"):
    """Granted, withdrawn, timed out or its agent is gone: see `reason`."""

    acquisition_id: str
    agent: str
    reason: str


class UnlockAsked(Event, tag="unlock_asked"):
    """A holder is asked to release a resource; the asker stands in line under `request`."""

    request: str
    n: int
    agent: str  # who asks
    holder: str
    resource: str
    resource_kind: str
    scope: str
    mode: str
    reason: str


class UnlockPassed(Event, tag="unlock_passed"):
    """What is asked for went to a sub-agent, or back: its holder answers now."""

    request: str
    agent: str
    holder: str
    resource: str


class UnlockAnswered(Event, tag="unlock_answered"):
    """approved, rejected or withdrawn, by whom and with which words."""

    request: str
    agent: str  # who had asked
    resource: str
    status: str
    by: str
    override: bool
    answer: str
