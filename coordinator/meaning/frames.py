"""What goes between the meaning worker and who asks it: these
questions and answers. Loads neither parser nor index, so both may import it."""

from __future__ import annotations

import msgspec

from coordinator.meaning.outcomes import Break, Outcome


class Listing(msgspec.Struct, frozen=True, tag=True):
    """Which files of the repository are to be in the index, and which are in it and gone?"""


class Update(msgspec.Struct, frozen=True, tag=True):
    """Look at these files again.

    Attributes:
        failed: files that ended the worker, or that it came to no end with: noted as unreadable.
    """

    paths: list[str]
    failed: list[str] = []


class Judgement(msgspec.Struct, frozen=True, tag=True):
    """What does this change break? (`judging.judge`)

    Attributes:
        changed: files to be looked at again before.
    """

    path: str
    old: bytes | None
    new: bytes | None
    held: list[str] = []
    changed: list[str] = []


class Versions(msgspec.Struct, frozen=True):
    """A file on both sides of a merge, in what they began from, and merged; None: not there."""

    path: str
    base: bytes | None
    ours: bytes | None
    theirs: bytes | None
    merged: bytes | None


class Merge(msgspec.Struct, frozen=True, tag=True):
    """What fits on both sides, and not in their merge? (`merged.misfits`)"""

    files: list[Versions]


Question = Listing | Update | Judgement | Merge


class Asked(msgspec.Struct, frozen=True):
    """A question, and how long (seconds) its answer may take, also when nobody waits any more."""

    question: Question
    seconds: float


class Listed(msgspec.Struct, frozen=True, tag=True):
    """`paths`: what is there or was, by path. `files`: how many are there."""

    paths: list[str]
    files: int


class Updated(msgspec.Struct, frozen=True, tag=True):
    """`read`: how many were read anew; the others are as they were."""

    read: int


class Judged(msgspec.Struct, frozen=True, tag=True):
    """The judgement."""

    outcome: Outcome


class Misfits(msgspec.Struct, frozen=True, tag=True):
    """The places that do not fit."""

    breaks: list[Break]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The disk refused, in words."""

    why: str


Answer = Listed | Updated | Judged | Misfits | Failed
