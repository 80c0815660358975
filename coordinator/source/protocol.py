"""What goes between the worker that reads source code and who asks it: these questions and
answers. Loads neither parser nor index, so both ends import it."""

from __future__ import annotations

import msgspec

from coordinator.meaning.outcomes import Break, Outcome, Versions
from coordinator.regions.outline import Outline
from coordinator.regions.reading import Reading

# Of one file's bytes. `language` is a name of the table.


class DivideFile(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Which regions has it? `nested`: also the definitions inside of functions."""

    data: bytes
    language: str
    nested: bool = False


class ReadForMerge(msgspec.Struct, frozen=True, tag=True, gc=False):
    """What does a merge have to know of it?"""

    data: bytes
    language: str


class FindErrors(msgspec.Struct, frozen=True, tag=True, gc=False):
    """What is wrong with it that the grammar does not tell?"""

    data: bytes
    language: str


# Of the repository whose index the worker keeps.


class ListFiles(msgspec.Struct, frozen=True, tag=True):
    """Which files of the repository are to be in the index, and which are in it and gone?"""


class UpdateFiles(msgspec.Struct, frozen=True, tag=True):
    """Look at these files again.

    Attributes:
        failed: files that ended the worker, or that it came to no end with: noted as unreadable.
    """

    paths: list[str]
    failed: list[str] = []


class JudgeChange(msgspec.Struct, frozen=True, tag=True):
    """What does this change break? (`judging.judge`)

    Attributes:
        changed: files to be looked at again before.
    """

    path: str
    old: bytes | None
    new: bytes | None
    held: list[str] = []
    changed: list[str] = []


class FindMisfits(msgspec.Struct, frozen=True, tag=True):
    """What fits on both sides, and not in their merge? (`merged.misfits`)"""

    files: list[Versions]


FileQuestion = DivideFile | ReadForMerge | FindErrors
RepositoryQuestion = ListFiles | UpdateFiles | JudgeChange | FindMisfits
Question = FileQuestion | RepositoryQuestion


class Asked(msgspec.Struct, frozen=True):
    """A question, and how long (seconds) its answer may take, also when nobody waits any more."""

    question: Question
    seconds: float


class Divided(msgspec.Struct, frozen=True, tag=True, gc=False):
    """The regions."""

    outline: Outline


class ForMerge(msgspec.Struct, frozen=True, tag=True, gc=False):
    """What a merge has to know."""

    reading: Reading


class Errors(msgspec.Struct, frozen=True, tag=True, gc=False):
    """What is wrong, in words; empty: nothing, or it could not be told."""

    text: str


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
    """The disk refused, in words, or the worker keeps no index."""

    why: str


FileAnswer = Divided | ForMerge | Errors
RepositoryAnswer = Listed | Updated | Judged | Misfits | Failed
Answer = FileAnswer | RepositoryAnswer
