"""The questions to the worker that reads source code, and its answers. Loads neither parser nor
index, so both ends import it."""

from __future__ import annotations

import msgspec

from coordinator.meaning.outcomes import Break, Outcome, Versions
from coordinator.regions.outline import Outline
from coordinator.regions.reading import Reading

# Questions about one file's bytes. `language` is a name of the table.


class DivideFile(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Asks for its regions. `nested`: also for the definitions inside of functions."""

    data: bytes
    language: str
    nested: bool = False


class ReadForMerge(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Asks for its facts for a merge."""

    data: bytes
    language: str


class FindErrors(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Asks for an error that the grammar does not report."""

    data: bytes
    language: str


# Questions about the repository whose index the worker keeps.


class ListFiles(msgspec.Struct, frozen=True, tag=True):
    """Asks for the files that should be in the index, and for indexed files that are gone."""


class UpdateFiles(msgspec.Struct, frozen=True, tag=True):
    """Asks to look at these files again.

    Attributes:
        failed: files that ended the worker, or that it never finished: recorded as unreadable.
    """

    paths: list[str]
    failed: list[str] = []


class JudgeChange(msgspec.Struct, frozen=True, tag=True):
    """Asks for the places that this change breaks (`judging.judge`).

    Attributes:
        changed: files to look at again before.
    """

    path: str
    old: bytes | None
    new: bytes | None
    held: list[str] = []
    changed: list[str] = []


class FindMisfits(msgspec.Struct, frozen=True, tag=True):
    """Asks for uses that fit on both sides, and not in their merge (`merged.misfits`)."""

    files: list[Versions]


FileQuestion = DivideFile | ReadForMerge | FindErrors
RepositoryQuestion = ListFiles | UpdateFiles | JudgeChange | FindMisfits
Question = FileQuestion | RepositoryQuestion


class Asked(msgspec.Struct, frozen=True):
    """A question, and how long (seconds) its answer may take, even when the asker is gone."""

    question: Question
    seconds: float


class Divided(msgspec.Struct, frozen=True, tag=True, gc=False):
    """The regions."""

    outline: Outline


class ForMerge(msgspec.Struct, frozen=True, tag=True, gc=False):
    """The facts for a merge."""

    reading: Reading


class Errors(msgspec.Struct, frozen=True, tag=True, gc=False):
    """An error in words; empty if there is none, or if it could not be found."""

    text: str


class Listed(msgspec.Struct, frozen=True, tag=True):
    """`paths`: present files and indexed ones that are gone. `files`: how many are present."""

    paths: list[str]
    files: int


class Updated(msgspec.Struct, frozen=True, tag=True):
    """`read`: how many files were read anew. The others are unchanged."""

    read: int


class Judged(msgspec.Struct, frozen=True, tag=True):
    """The judgement."""

    outcome: Outcome


class Misfits(msgspec.Struct, frozen=True, tag=True):
    """The places that do not fit."""

    breaks: list[Break]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The error of the disk in words, or that the worker keeps no index."""

    why: str


FileAnswer = Divided | ForMerge | Errors
RepositoryAnswer = Listed | Updated | Judged | Misfits | Failed
Answer = FileAnswer | RepositoryAnswer
