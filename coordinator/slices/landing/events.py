"""The events of landing."""

from __future__ import annotations

from coordinator.store.events.base import Database, Event
from coordinator.store.statements import STATEMENTS as Q


class TargetMoved(Event, tag="target_moved"):
    """A branch went from one commit to another with what an agent did; see `why`."""

    SENTENCE = "{target} went from {before:.12} to {after:.12}: {why}"

    agent: str
    task: str
    target: str
    before: str
    after: str
    why: str
    paths: list[str]
    fencing_tokens: list[int]


class LandingQueued(Event, tag="landing_queued"):
    """An agent's work waits to land on a branch."""

    SENTENCE = "the work of {agent} on {task} waits to land on {target}"

    agent: str
    task: str
    target: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["landing_queue"], (self.task, self.agent, self.target, instant))


class LandingBegun(Event, tag="landing_begun"):
    """It is its turn."""

    SENTENCE = "the work of {agent} on {task} lands on {target}"

    agent: str
    task: str
    target: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["landing_begin"], (self.task, self.agent, self.target, instant))
