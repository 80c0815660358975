"""Events of waiting: refusals, the queue, giving way, and unlock requests."""

from __future__ import annotations

from coordinator.store.events.base import Database, Event
from coordinator.store.parking import offer_if_free
from coordinator.store.statements import STATEMENTS as Q


class AcquisitionRefused(Event, tag="acquisition_refused"):
    SENTENCE = "{agent} was refused {resources} (held by {holders})"

    agent: str
    resources: list[str]
    holders: list[str]
    task: str | None = None
    redirect: str | None = None
    explained: str | None = None  # a section of the archive that it was shown
    before: list[str] = []  # those of `holders` that are only earlier in the queue

    def apply(self, db: Database, instant: str) -> None:
        if self.explained is not None:
            db.execute(Q["agent_explained"], (self.agent, f"{instant} {self.explained}"))


class WaiterQueued(Event, tag="waiter_queued"):
    SENTENCE = "{agent} stands in line as {acquisition_id}"

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

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["waiter_put"],
            (
                self.acquisition_id,
                self.agent,
                self.mode,
                self.priority,
                self.asked_at,
                self.until,
                int(self.held),
                self.ttl_ms,
                self.task,
                self.description,
                self.met,
                self.gives_way_to,
                self.purpose,
            ),
        )
        rows = [
            (self.acquisition_id, *resource, self.worktrees.get(resource[0]),
             self.contents.get(resource[0]))
            for resource in self.resources
        ]
        db.executemany(Q["waiter_resource_put"], rows)


class WaiterChanged(Event, tag="waiter_changed"):
    """Whether a request is still held open for it."""

    SENTENCE = "{agent} goes on standing in line as {acquisition_id}"

    acquisition_id: str
    agent: str
    held: bool

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["waiter_change"], (self.acquisition_id, int(self.held)))


class GivesWay(Event, tag="gives_way"):
    """One agent of a deadlock was chosen, and told to give way."""

    SENTENCE = "{size} agents wait for each other ({circle}); {agent} was told to give way"

    agent: str
    acquisition_id: str  # the queued request by which it is in the deadlock
    to: str  # one of those that wait for what it holds
    circle: list[str]  # itself first; not all, where they are many
    size: int

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["waiter_gives_way"], (self.acquisition_id, self.to))


class WaiterLeft(Event, tag="waiter_left"):
    """Granted, withdrawn, timed out or its agent is gone: see `reason`."""

    SENTENCE = "{agent} left the line ({acquisition_id}): {reason}"

    acquisition_id: str
    agent: str
    reason: str

    def apply(self, db: Database, instant: str) -> None:
        scopes = db.execute(Q["waiter_scopes_of"], (self.acquisition_id,)).fetchall()
        db.execute(Q["waiter_resources_delete"], (self.acquisition_id,))
        db.execute(Q["waiter_delete"], (self.acquisition_id,))
        db.execute(Q["aside_delete"], ("waiter", self.acquisition_id))
        for (scope,) in scopes:
            offer_if_free(db, str(scope))


class UnlockAsked(Event, tag="unlock_asked"):
    """A holder is asked to release a resource; the asker is queued under `request`."""

    SENTENCE = "{agent} asked {holder} to release {resource} ({request}): {reason}"

    request: str
    n: int
    agent: str  # who asks
    holder: str
    resource: str
    resource_kind: str
    scope: str
    mode: str
    reason: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["unlock_insert"],
            (
                self.request,
                self.n,
                self.agent,
                self.holder,
                self.resource,
                self.resource_kind,
                self.scope,
                self.mode,
                self.reason,
                instant,
            ),
        )


class UnlockPassed(Event, tag="unlock_passed"):
    """What is asked for went to a sub-agent, or back: its holder answers now."""

    SENTENCE = "{request}, on {resource}, is {holder}'s to answer now"

    request: str
    agent: str
    holder: str
    resource: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["unlock_pass"], (self.request, self.holder))


class UnlockAnswered(Event, tag="unlock_answered"):
    """approved, rejected or withdrawn, by whom and with which words."""

    SENTENCE = "{request} of {agent} on {resource} was {status} by {by}"

    request: str
    agent: str  # who had asked
    resource: str
    status: str
    by: str
    override: bool
    answer: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["unlock_answer"],
            (self.request, self.status, instant, self.by, int(self.override), self.answer or None),
        )
