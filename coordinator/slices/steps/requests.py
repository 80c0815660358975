"""Steps that were blocked and are tried again later; and dead letters, of whatever kind."""

from __future__ import annotations

from typing import Literal

import msgspec

from coordinator.words.requests.base import Count, Number, Place, Reply, Request, Whole
from coordinator.words.requests.status import NULL, DeadLetter
from coordinator.words.texts import Line, Name

StepKind = Literal["call", "acquire", "propose", "webhook"]


class Step(Reply):
    step: str  # the step's id, like S-3
    kind: str  # call: a function of yours; acquire, propose: a request; webhook: a delivery
    name: str  # of the function, of what is asked for, or the address
    state: str  # waiting, given, done, dead, dropped
    agent: str | None  # who was blocked
    resources: list[str]
    content: msgspec.Raw  # JSON: its arguments, the request, the event; null in lists
    attempts: int
    attempts_max: int
    not_before: str | None
    given_to: str | None
    given_until: str | None
    why: str  # why the last attempt did not work
    asked_at: str
    closed_at: str | None


class StepList(Reply):
    items: list[Step]
    next: int | None = None


class StepAdd(Request[Step]):
    """Put a step that is blocked off: it is on disk before this is answered, and given to whoever
    asks for steps of its name (`step_next`) after a while, again and again until it is done, or
    dead."""

    op = "step_add"
    http = ("POST", "/v1/steps")
    agent: Name
    name: Name
    arguments: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)
    resources: list[Name] = []  # what it was refused for
    delay_s: Number | None = None  # seconds; default: `backlog.backoff_s`, longer each time
    attempts_max: Whole = 10
    why: Line = ""


class StepNext(Request[Step]):
    """The next step of one of these names whose time has come."""

    op = "step_next"
    http = ("POST", "/v1/steps/next")
    agent: Name
    names: list[Name]
    wait_s: Number = 0.0
    give_s: Number = 60.0  # so many seconds it has for it; then another attempt is due


class StepDone(Request[Step]):
    """A step that you were given is done."""

    op = "step_done"
    http = ("POST", "/v1/steps/{step}/done")
    agent: Name
    step: Name
    attempt: Whole


class StepFail(Request[Step]):
    """A step that you were given is still blocked, or failed: it is tried again later, at most
    `attempts_max` times; then it is a dead letter."""

    op = "step_fail"
    http = ("POST", "/v1/steps/{step}/fail")
    agent: Name
    step: Name
    attempt: Whole
    why: Line = ""


class Steps(Request[StepList]):
    """Steps in their order; without `state`, those that are not closed."""

    op = "steps"
    http = ("GET", "/v1/steps")
    writes = False
    state: Literal["open", "waiting", "given", "done", "dead", "dropped", "all"] = "open"
    kind: StepKind | None = None
    limit: Count = 200
    after: Place = 0


class DeadList(Reply):
    items: list[DeadLetter]
    next: str | None = None


class Dead(Request[DeadList]):
    """What was tried as often as it may be, and is given up until a person acts: tasks, changes of
    keys, steps; the newest first."""

    op = "dead"
    http = ("GET", "/v1/dead")
    writes = False
    kind: Name | None = None
    after: Name | None = None
    limit: Count = 200


class DeadShow(Request[DeadLetter]):
    """One dead letter, whole."""

    op = "dead_show"
    http = ("GET", "/v1/dead/{id}")
    writes = False
    id: Name


class DeadRetry(Request[DeadLetter]):
    """Let it be tried again, from its first attempt on."""

    op = "dead_retry"
    http = ("POST", "/v1/dead/{id}/retry")
    operator_only = True
    id: Name

    def for_people(self) -> bool:
        return True


class DeadDrop(Request[DeadLetter]):
    """Give it up for good. Whoever had asked is told."""

    op = "dead_drop"
    http = ("POST", "/v1/dead/{id}/drop")
    operator_only = True
    id: Name

    def for_people(self) -> bool:
        return True
