"""Values of keys, and changes that their owners apply. No value ever stands in the log: an event
names content by a sealed digest, and the content is kept beside it."""

from __future__ import annotations

from coordinator.rules.retrying import CLOSED
from coordinator.rules.state import TRIM_EVERY, VERSIONS_KEPT
from coordinator.store.events.base import Database, Event
from coordinator.store.statements import STATEMENTS as Q


class KeyWritten(Event, tag="key_written"):
    """A key has a new version. `content` None: it was deleted."""

    SENTENCE = "{agent} wrote {resource}: version {version}"

    resource: str
    scope: str
    version: int
    content: str | None
    size: int
    agent: str
    fencing_token: int | None = None
    change: str | None = None  # what it was written for

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["state_put"],
            (
                self.scope,
                self.version,
                self.resource,
                self.content,
                self.size,
                self.agent,
                instant,
                self.fencing_token,
            ),
        )
        if self.version > VERSIONS_KEPT and self.version % TRIM_EVERY == 0:
            db.execute(Q["state_trim"], (self.scope, self.version - VERSIONS_KEPT))


class ChangeAsked(Event, tag="change_asked"):
    """A change of a key was queued for its owner."""

    SENTENCE = "{agent} asked for a change of {resource} ({change})"

    change: str
    n: int
    resource: str
    scope: str
    agent: str
    content: str
    attempts_max: int
    note: str = ""
    during: str | None = None

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["change_put"],
            (
                self.change,
                self.n,
                self.resource,
                self.scope,
                self.agent,
                self.content,
                self.note,
                self.during,
                self.attempts_max,
                instant,
            ),
        )


class ChangeMoved(Event, tag="change_moved"):
    """All that may change in a change, as it is afterwards."""

    SENTENCE = "{change}, of {resource}, is {state}"

    change: str
    resource: str
    state: str
    attempts: int
    agent: str | None = None  # who did it
    not_before: str | None = None
    given_to: str | None = None
    given_until: str | None = None
    version: int | None = None
    why: str = ""

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["change_move"],
            (
                self.change,
                self.state,
                self.attempts,
                self.not_before,
                self.given_to,
                self.given_until,
                self.version,
                self.why,
                instant if self.state in CLOSED else None,
            ),
        )


class ChangesForgotten(Event, tag="changes_forgotten"):
    """Changes that were closed long ago."""

    SENTENCE = "changes that were closed long ago are forgotten"

    changes: list[str]

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(Q["change_delete"], [(change,) for change in self.changes])
