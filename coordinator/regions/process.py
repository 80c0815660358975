"""Asking for outlines, of a process of their own (`worker`).

`Outlines.of` always answers. Where the worker ended on a file, it is asked once more, anew (they
have been seen to fault now and then on what they read well a moment later); then, and where it does
not come to an end in time, the file is one region of kind `file`, with the reason in its note. Used
from any thread, one question at a time; blocking, so from a thread where a loop runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar

import msgspec

from coordinator.regions.languages import languages
from coordinator.regions.outline import Outline, whole
from coordinator.regions.questions import FILE_BYTES_MAX, Kind, Question
from coordinator.regions.reading import Reading, unread
from coordinator.workers.worker_process import WorkerEndedError, WorkerProcess

#: A file that takes longer (seconds) is not divided. A file of the largest size takes less.
SECONDS_MAX = 10.0
TRIES = 2
A = TypeVar("A", Outline, Reading, str)
_COMMAND = (sys.executable, "-P", "-m", "coordinator.regions.worker")


class Outlines:
    """One worker process, started with the first question, ended with `close` or the `with`.

    Args:
        seconds: an answer is waited for so long.
        forks: `WorkerProcess.forks`.
    """

    def __init__(self, seconds: float = SECONDS_MAX, command: Sequence[str] = _COMMAND, *,
                 forks: bool = False) -> None:
        self._seconds = seconds
        self._worker = WorkerProcess(command, forks=forks)

    def __enter__(self) -> Outlines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def of(self, data: bytes, language: str | None, *, nested: bool = False) -> Outline:
        """The regions of these bytes (`grammar.outline`); never raises for what they are.

        Args:
            language: a name of the table, or None: one region of kind `file`, and nobody is asked.
            nested: also the definitions inside of functions.
        """
        return self._ask(data, language, "outline", Outline, whole, nested=nested)

    def read(self, data: bytes, language: str | None) -> Reading:
        """What a merge asks of these bytes (`reader.read`); never raises for what they are."""
        return self._ask(data, language, "reading", Reading, unread)

    def errors(self, data: bytes, language: str | None) -> str:
        """What is wrong with these bytes that the grammar does not tell (in Python how they are
        indented, above all); empty: nothing, or it could not be told."""
        return self._ask(data, language, "errors", str, lambda *_: "")

    def worker_id(self) -> int | None:
        """The process id of the worker; None while there is none."""
        return self._worker.pid

    def close(self) -> None:
        """End the worker at once, for good: what is asked now or later is one region."""
        self._worker.close()

    def _ask(
        self, data: bytes, language: str | None, kind: Kind, answer: type[A],
        undivided: Callable[[bytes, str | None, str], A], *, nested: bool = False,
    ) -> A:
        if language not in languages():
            return undivided(data, None, "no language of the table")
        assert language is not None
        if len(data) > FILE_BYTES_MAX:
            return undivided(data, language, f"larger than {FILE_BYTES_MAX:,} bytes")
        body = msgspec.msgpack.encode(
            Question(data, language, nested, self._seconds + 1, kind)
        )
        for _ in range(TRIES):
            try:
                return msgspec.msgpack.decode(self._worker.ask(body, self._seconds), type=answer)
            except TimeoutError:
                return undivided(data, language, f"dividing it took over {self._seconds:g} s")
            except msgspec.MsgspecError:
                self._worker.end()
            except WorkerEndedError:
                continue
        return undivided(data, language, f"the grammar for {language} failed on it")
