"""Asking the worker that reads source code: start it, limit the wait, ask again, end it.

Used from any thread, one question at a time. It blocks, so an event loop calls it from a thread.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from coordinator.source import protocol
from coordinator.workers.worker_process import WorkerEndedError, WorkerProcess

#: How often a question is asked that ends the worker. It may succeed a moment later.
TRIES = 2
#: How much longer (seconds) than the asker waits the worker may take.
GRACE_S = 1
A = TypeVar("A", bound=protocol.Answer)


class NoAnswerError(Exception):
    """The worker could not answer, for example because of the disk."""


class WorkerFailedError(NoAnswerError):
    """It ended on the question, or was closed meanwhile."""


class TooLongError(WorkerFailedError):
    """It took too long, and was ended."""


class ReaderProcess:
    """One worker, started with the first question, ended with `close` or the `with`.

    Args:
        seconds: how long an answer is waited for.
        repository: the real path of a working tree, and where its index is kept; None for
            questions about files alone.
        command: another command that starts the worker.
        forks: `WorkerProcess.forks`.
    """

    def __init__(self, seconds: float, repository: tuple[str, str] | None = None,
                 command: Sequence[str] | None = None, *, forks: bool = False) -> None:
        self.seconds = seconds
        self._worker = WorkerProcess(command or (
            sys.executable, "-P", "-m", "coordinator.source.worker", *(repository or ()),
        ), forks=forks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def begin(self) -> None:
        """Start the process, if it does not run, so that the first question need not wait."""
        self._worker.begin()

    def worker_id(self) -> int | None:
        """Return the process id of the worker; None while there is none."""
        return self._worker.pid

    def close(self) -> None:
        """End the worker at once, for good: present and later questions get no answer."""
        self._worker.close()

    def ask(self, question: protocol.Question, kind: type[A],
            seconds: float | None = None, *, in_turn: bool = True, tries: int = TRIES) -> A:
        """Ask, and return an answer of this kind.

        Args:
            seconds: how long to wait, if not as usual.
            in_turn: `WorkerProcess.ask`.
            tries: how often to ask if the question ends the worker.

        Raises:
            NoAnswerError
        """
        most = seconds or self.seconds
        body = msgspec.msgpack.encode(protocol.Asked(question, most + GRACE_S))
        for _ in range(tries):
            try:
                data = self._worker.ask(body, most, in_turn=in_turn)
                answer: A | protocol.Failed = msgspec.msgpack.decode(
                    data, type=kind | protocol.Failed)
            except TimeoutError:
                raise TooLongError(f"it took over {most:g} s") from None
            except msgspec.MsgspecError:
                self._worker.end()
            except WorkerEndedError:
                continue
            else:
                if isinstance(answer, protocol.Failed):
                    raise NoAnswerError(answer.why)
                return answer
        raise WorkerFailedError("the process that reads source code failed on it")
