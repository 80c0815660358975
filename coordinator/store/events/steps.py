"""Steps that were blocked, and what becomes of them."""

from __future__ import annotations

from coordinator.store.events.base import Event


class StepAdded(Event, tag="step_added"):
    """Something could not be done now, and is to be tried again. `content`: of what is to be done,
    by the name under which it is kept."""

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


class StepMoved(Event, tag="step_moved"):
    """All that may change in a step, as it is afterwards."""

    step: str
    state: str
    attempts: int
    agent: str | None = None  # who did it
    not_before: str | None = None
    given_to: str | None = None
    given_until: str | None = None
    why: str = ""


class StepsForgotten(Event, tag="steps_forgotten"):
    """Steps that were closed long ago."""

    steps: list[str]
