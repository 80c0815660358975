"""An exception for a step that could not begin because another agent holds what it writes.

It carries all that is needed to run the step later. `Postpones` is the interface of a keeper of
such steps. The module keeps no step and runs none again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypedDict, Unpack

from coordinator.words.pickled import Pickled
from coordinator.words.refusals import HELD, Refusal

#: When to try again, where the coordinator does not say (seconds).
RETRY_S = 15.0


class StepPostponed(Pickled, Exception):
    """Another agent holds what the step needs. Nothing of it was run.

    Attributes:
        step: the step's name, by which a later runner finds the code.
        arguments: what it was called with, as JSON has it; None if that is no JSON: then only its
            caller can run it again.
        resources: what it needs, as it was asked for.
        holder: the agent that holds the first of it; empty if only others in the queue block it.
        retry_after_s: when it is worth while to try again, in seconds.
        refusal: coord's own words, with conflicts, excerpts and the task offered meanwhile.
    """

    def __init__(
        self, refusal: Refusal, *, resources: Sequence[str], step: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{step + ': ' if step else ''}{refusal.message}")
        conflicts = refusal.facts.get("conflicts") or [{}]
        held = [conflict for conflict in conflicts if not conflict.get("waiting")] or conflicts
        self.step = step
        self.arguments = _as_json(arguments)
        self.resources = tuple(resources)
        self.holder = str(held[0].get("holder", ""))
        self.retry_after_s = float(refusal.facts.get("retry_after_s") or RETRY_S)
        self.refusal = refusal

    def body(self) -> dict[str, Any]:
        """Its content as JSON has it, for a queue or a graph's state."""
        return {
            "step": self.step, "arguments": self.arguments, "resources": list(self.resources),
            "holder": self.holder, "retry_after_s": self.retry_after_s,
            "refusal": self.refusal.body(),
        }


class Postpones(Protocol):
    """Keeps a postponed step, to be run again: a retry queue of any kind.

    Called once for each step, before `StepPostponed` is raised to its caller. If it raises, the
    caller gets that instead, because the step was not kept.
    """

    def __call__(self, step: StepPostponed, /) -> None:
        """Keep it."""
        ...


class Postponing(TypedDict, total=False):
    """What is to become of a step that has to be postponed.

    Attributes:
        step: how it is to be run again: the name by which a later runner finds its code.
        arguments: with what.
        on_blocked: gets the postponed step before it is raised.
    """

    step: str
    arguments: Mapping[str, Any] | None
    on_blocked: Postpones | None


def postponed(
    refusal: Refusal, *, resources: Sequence[str], **postponing: Unpack[Postponing],
) -> Exception:
    """The exception for a refusal: `StepPostponed`, which `on_blocked` gets first, if another agent
    holds the resources; the refusal itself, if time will not cure it."""
    if refusal.code not in HELD:
        return refusal
    step = StepPostponed(refusal, resources=resources, step=postponing.get("step", ""),
                         arguments=postponing.get("arguments"))
    on_blocked = postponing.get("on_blocked")
    if on_blocked is not None:
        on_blocked(step)
    return step


def _as_json(arguments: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if arguments is None:
        return None
    try:
        kept = json.loads(json.dumps(dict(arguments), allow_nan=False))
    except (TypeError, ValueError):
        return None
    return kept if isinstance(kept, dict) else None
