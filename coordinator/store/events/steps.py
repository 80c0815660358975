"""Steps that were blocked, and what becomes of them.

What belongs in the story and what was seen of files: no state of its own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.rules.retrying import CLOSED
from coordinator.store.events.base import Database, Event
from coordinator.store.statements import STATEMENTS as Q

_JSON = msgspec.json.Encoder()


class StepAdded(Event, tag="step_added"):
    """Something could not be done now, and is to be tried again. `content`: of what is to be done,
    by the name under which it is kept."""

    SENTENCE = "{step}, a {step_kind}, was put off: {name}"

    step: str
    n: int
    step_kind: str
    name: str
    state: str
    attempts: int
    attempts_max: int
    content: str
    agent: str | None = None
    resources: list[str] = []
    not_before: str | None = None
    why: str = ""
    event: int | None = None  # which event a webhook tells

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["step_put"],
            (
                self.step,
                self.n,
                self.step_kind,
                self.name,
                self.agent,
                _JSON.encode(self.resources).decode(),
                self.content,
                self.state,
                self.attempts,
                self.attempts_max,
                self.not_before,
                self.why,
                instant,
                instant if self.state in CLOSED else None,
                self.event,
            ),
        )


class StepMoved(Event, tag="step_moved"):
    """All that may change in a step, as it is afterwards."""

    SENTENCE = "{step} is {state}"

    step: str
    state: str
    attempts: int
    agent: str | None = None  # who did it
    not_before: str | None = None
    given_to: str | None = None
    given_until: str | None = None
    why: str = ""

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["step_move"],
            (
                self.step,
                self.state,
                self.attempts,
                self.not_before,
                self.given_to,
                self.given_until,
                self.why,
                instant if self.state in CLOSED else None,
            ),
        )


class StepsForgotten(Event, tag="steps_forgotten"):
    """Steps that were closed long ago."""

    SENTENCE = "steps that were done long ago are forgotten"

    steps: list[str]

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(Q["step_delete"], [(step,) for step in self.steps])


class VersionsSeen(Event, tag="versions_seen"):
    """Content that the watcher found; agent where a lease tells who wrote it."""

    SENTENCE = "new content was seen"

    versions: list[tuple[str, str | None, str | None]]  # (path, hash, agent)

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(
            Q["version_put"], [(path, dig, instant, agent) for path, dig, agent in self.versions]
        )


class Noted(Event, tag="noted"):
    """Something that changes no state but belongs in the story: a sweep, a start, a stop."""

    SENTENCE = "{what}"

    what: str
    facts: dict[str, Any]


class CountersRaised(Event, tag="counters_raised"):
    """After a restore from a backup, or where a coordinator was before: numbers that may have been
    given out must never come again. `above`: counter -> all that are skipped."""

    SENTENCE = "numbers go on above all that may have been given before"

    by: int = 0
    above: dict[str, int] = msgspec.field(default_factory=dict)
