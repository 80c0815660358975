"""Writes without a lease: those that came too late, and the one after that which stood."""

from __future__ import annotations

from coordinator.store.events.base import Database, Event
from coordinator.store.statements import STATEMENTS as Q


class WriteLost(Event, tag="write_lost"):
    """What an agent proposed was made on what somebody else has replaced since."""

    SENTENCE = "{agent} lost a write of {resource}: somebody had written before"

    agent: str
    resource: str
    scope: str
    wasted_ms: int = 0  # since it had read that, where it is known

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["lost_write_add"],
                   (self.agent, self.scope, self.resource, self.wasted_ms, instant))


class WriteStood(Event, tag="write_stood"):
    """An agent that had lost writes of this resource has written it."""

    SENTENCE = "{agent} has written {resource}"

    agent: str
    resource: str
    scope: str

    def apply(self, db: Database, at: str) -> None:
        db.execute(Q["lost_write_over"], (self.agent, self.scope))
