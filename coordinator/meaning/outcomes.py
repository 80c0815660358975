"""The result of a judgement: its shapes, and the rule for its outcome. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

Verdict = Literal["ALLOW", "REQUIRE_ADDITIONAL_LOCKS", "ESCALATION_REQUIRED"]
BreakKind = Literal["name", "self", "receiver", "import", "override"]
#: More breaks are always escalated to a person, whichever leases the asker holds.
BREAKS_MAX = 200


class Break(msgspec.Struct, frozen=True):
    """A place that a change breaks.

    Attributes:
        resource: `path::Region`, the resource that a lease would need.
        kind: how it leads to the changed definition: by a bare `name` (or a module's), by `self`,
            `cls` or `super()`, by another `receiver`, as an `import`, or as an `override`.
        target: the changed definition, as `path::Name`.
        why: one sentence.
        sure: False where the receiver is not known, and only one class has such a name.
    """

    resource: str
    path: str
    region: str
    line: int
    kind: BreakKind
    target: str
    why: str
    sure: bool = True


class Unseen(msgspec.Struct, frozen=True):
    """A place that may use a changed definition in a way that cannot be followed."""

    resource: str
    path: str
    line: int
    why: str


class Outcome(msgspec.Struct):
    """The judgement of a change of one file.

    Attributes:
        outcome: ALLOW: no use breaks. REQUIRE_ADDITIONAL_LOCKS: these `required` regions break, and
            are not held. ESCALATION_REQUIRED: a person has to look; `unseen` and `note` say why.
        changed: definitions that accept or offer less than before: (`path::Name`, why).
        breaks: all broken places, held or not, by path and line.
    """

    outcome: Verdict
    path: str
    changed: list[tuple[str, str]] = []
    breaks: list[Break] = []
    required: list[str] = []
    unseen: list[Unseen] = []
    note: str = ""


class Versions(msgspec.Struct, frozen=True):
    """A file on both sides of a merge, at their base, and merged; None if missing."""

    path: str
    base: bytes | None
    ours: bytes | None
    theirs: bytes | None
    merged: bytes | None


def conclude(
    path: str, changed: Sequence[tuple[str, str]], breaks: Sequence[Break],
    unseen: Sequence[Unseen], held: Collection[str], note: str = "",
) -> Outcome:
    """Decide the outcome of these breaks.

    Args:
        held: resources that the asker has leases on: a file, `path::Region`, or one that contains
            it. A break there is the asker's own to mend, and asks for no further lock.
    """
    ordered = sorted(set(breaks), key=lambda breakage: (breakage.path, breakage.line,
                                                        breakage.target, breakage.why))
    required = sorted({breakage.resource for breakage in ordered
                       if not _is_held(breakage.resource, held)})
    verdict: Verdict = "REQUIRE_ADDITIONAL_LOCKS" if required else "ALLOW"
    if len(ordered) > BREAKS_MAX:
        note = note or f"it breaks {len(ordered)} places, more than {BREAKS_MAX}"
    if unseen or note:
        verdict = "ESCALATION_REQUIRED"
    return Outcome(
        verdict, path, sorted(changed), ordered, required,
        sorted(set(unseen), key=lambda unseen: (unseen.path, unseen.line, unseen.why)), note,
    )


def _is_held(resource: str, held: Collection[str]) -> bool:
    path, _, region = resource.partition("::")
    if path in held or resource in held:
        return True
    if region != "<header>":
        parts = region.split(".")
        if any(f"{path}::{'.'.join(parts[:end])}" in held for end in range(1, len(parts))):
            return True
    folders = path.split("/")[:-1]
    return any("/".join(folders[:end]) + "/" in held for end in range(1, len(folders) + 1)) or (
        "./" in held)
