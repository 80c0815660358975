"""Steps that were blocked, and what becomes of them."""

from __future__ import annotations

import msgspec

from coordinator.rules.steps import CLOSED
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

    def apply(self, db: Database, at: str) -> None:
        db.executemany(Q["step_delete"], [(step,) for step in self.steps])
