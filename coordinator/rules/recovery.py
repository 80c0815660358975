"""What follows the outcome of an attempt to write: another attempt, or a person. Pure.

This is the default *recovery* of a task's blackboard (roles.py). Each outcome has one remedy, and
none is tried for ever.
"""

from __future__ import annotations

from typing import Literal

from coordinator.words.refusals import Code

#: `none`; `widen` the plan by everything that it met; lease the file as a whole (`escalate`); make
#: the change `afresh`, from the present text; `correct` the text; hand it to a `person`.
Remedy = Literal["none", "widen", "escalate", "afresh", "correct", "person"]
#: The consequence of an outcome, in words for after "so".
TOLD: dict[str, str] = {
    "widen": "more is leased", "escalate": "the whole file is leased",
    "afresh": "it is made afresh", "correct": "it is to be corrected",
    "person": "a person is next",
}
#: The outcome of a successful write.
COMMITTED = "COMMITTED"
REMEDIES: dict[str, Remedy] = {
    COMMITTED: "none",
    Code.REQUIRE_ADDITIONAL_LOCKS: "widen",
    Code.ESCALATION_REQUIRED: "escalate",
    Code.REGION_CHANGED: "afresh",
    Code.REGION_UNKNOWN: "afresh",
    Code.OUT_OF_SCOPE_EDIT: "correct",
    Code.PARSE_INVALID: "correct",
    Code.VERIFY_FAILED: "correct",
}


def remedy(outcome: str, rounds: int, rounds_max: int) -> Remedy:
    """The remedy for an outcome; `rounds`: attempts in a row, with this one, of which nothing was
    written."""
    choices = REMEDIES[outcome]
    return choices if choices == "none" or rounds < rounds_max else "person"


def describe_remedy(remedy: str) -> str:
    """The consequence of an outcome with this remedy, as the end of a sentence."""
    return "" if remedy == "none" else f", so {TOLD.get(remedy, remedy)}"
