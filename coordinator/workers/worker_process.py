"""Asking a worker process: starts it with the first question, limits the wait, ends it.

Used from any thread, one question at a time. It blocks, so an event loop calls it from a thread.
Knows nothing of the questions.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from threading import Lock, active_count

from coordinator.workers.forked_process import ForkedProcess
from coordinator.workers.frames import HEAD, frame


class WorkerEndedError(Exception):
    """The worker ended on the question, could not be started, or was closed meanwhile."""


class WorkerProcess:
    """One process at a time.

    Args:
        command: the command of the process, which reads frames from its input and answers each
            with a frame.
        forks: fork this process if no other thread runs, which saves the start of an
            interpreter. Only for a `command` of `python -m MODULE …` (`ForkedProcess`).
    """

    def __init__(self, command: Sequence[str], *, forks: bool = False) -> None:
        self._command, self._forks = command, forks
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process id; None while there is none."""
        process = self._process
        return process.pid if process is not None else None

    def ask(self, body: bytes, seconds: float, *, in_turn: bool = True) -> bytes:
        """Ask, and return the body of the answer.

        Args:
            in_turn: wait for the questions of others, however long these take. Otherwise the wait
                is part of the time, and after it the worker continues with theirs.

        Raises:
            TimeoutError: there was no answer in time. The worker was ended if it worked on this.
            WorkerEndedError
        """
        until = time.monotonic() + seconds
        if not self._lock.acquire(timeout=-1 if in_turn else seconds):
            raise TimeoutError
        with contextlib.ExitStack() as turn:
            turn.callback(self._lock.release)
            if in_turn:
                until = time.monotonic() + seconds
            try:
                return _exchange(self._started(), frame(body), until)
            except TimeoutError:
                self._end()
                raise
            except (OSError, EOFError) as bad:
                self._end()
                raise WorkerEndedError(str(bad)) from None
            except BaseException:
                self._end()  # half an answer may still be in the pipe
                raise

    def begin(self) -> None:
        """Start the process, if there is none. If it cannot start, the first question fails."""
        with self._lock, contextlib.suppress(OSError, EOFError):
            self._started()

    def end(self) -> None:
        """End the process, once it has answered. The next question starts another."""
        with self._lock:
            self._end()

    def close(self) -> None:
        """End the process at once, for good. A waiting question gets no answer."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[bytes] | ForkedProcess:
        process = self._process
        if process is None or process.poll() is not None:
            self._end()
            process = self._process = (
                ForkedProcess(self._command) if self._forks and active_count() == 1 else
                subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, bufsize=0))
        if self._closed:  # checked last: `close` ends a process that it finds
            raise EOFError("it was closed")
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _exchange(
    process: subprocess.Popen[bytes] | ForkedProcess, question: bytes, until: float
) -> bytes:
    assert process.stdin is not None and process.stdout is not None
    os.set_blocking(process.stdin.fileno(), False)
    _send(process.stdin.fileno(), question, until)
    (length,) = HEAD.unpack(_receive(process.stdout.fileno(), HEAD.size, until))
    return _receive(process.stdout.fileno(), length, until)


def _send(descriptor: int, question: bytes, until: float) -> None:
    left = memoryview(question)
    while left:
        _wait(descriptor, selectors.EVENT_WRITE, until)
        left = left[os.write(descriptor, left):]


def _receive(descriptor: int, size: int, until: float) -> bytes:
    pieces = bytearray()
    while len(pieces) < size:
        _wait(descriptor, selectors.EVENT_READ, until)
        piece = os.read(descriptor, min(size - len(pieces), 1 << 20))
        if not piece:
            raise EOFError("the worker ended")
        pieces += piece
    return bytes(pieces)


def _wait(descriptor: int, event: int, until: float) -> None:
    with selectors.DefaultSelector() as ready:
        ready.register(descriptor, event)
        if not ready.select(max(0.0, until - time.monotonic())):
            raise TimeoutError
