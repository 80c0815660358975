"""Asking about single files: their outlines, their facts for a merge, and their errors.

There is always an answer. If the worker fails on a file, the answer is one region of kind `file`,
with the reason in its note.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from coordinator.regions.languages import languages
from coordinator.regions.outline import FILE_BYTES_MAX, Outline, whole
from coordinator.regions.reading import Reading, unread
from coordinator.source import protocol
from coordinator.source.reader_process import NoAnswerError, ReaderProcess, TooLongError

#: A file that takes longer (seconds) is not divided. A file of the largest size takes less.
SECONDS_MAX = 10.0
A = TypeVar("A")


class Outlines(ReaderProcess):
    """One worker for single files. It keeps nothing of any file."""

    def __init__(self, seconds: float = SECONDS_MAX, command: Sequence[str] | None = None, *,
                 forks: bool = False) -> None:
        super().__init__(seconds, command=command, forks=forks)

    def of(self, data: bytes, language: str | None, *, nested: bool = False) -> Outline:
        """Return the regions of these bytes (`reader.outline`). Never raises for the bytes.

        Args:
            language: a name of the table, or None: one region of kind `file`, without a question.
            nested: also the definitions inside of functions.
        """
        return self._answer(data, language, whole, lambda language: self.ask(
            protocol.DivideFile(data, language, nested), protocol.Divided).outline)

    def read(self, data: bytes, language: str | None) -> Reading:
        """Return these bytes' facts for a merge (`reader.read_for_merge`). Never raises."""
        return self._answer(data, language, unread, lambda language: self.ask(
            protocol.ReadForMerge(data, language), protocol.ForMerge).reading)

    def errors(self, data: bytes, language: str | None) -> str:
        """Return an error of these bytes that the grammar does not report, above all of Python's
        indentation. Empty if there is none, or if it could not be found."""
        return self._answer(data, language, lambda *_: "", lambda language: self.ask(
            protocol.FindErrors(data, language), protocol.Errors).text)

    def _answer(self, data: bytes, language: str | None,
                undivided: Callable[[bytes, str | None, str], A], ask: Callable[[str], A]) -> A:
        if language is None or language not in languages():
            return undivided(data, None, "no language of the table")
        if len(data) > FILE_BYTES_MAX:
            return undivided(data, language, f"larger than {FILE_BYTES_MAX:,} bytes")
        try:
            return ask(language)
        except TooLongError:
            return undivided(data, language, f"dividing it took over {self.seconds:g} s")
        except NoAnswerError:
            return undivided(data, language, f"the grammar for {language} failed on it")
