"""Asking a worker process: starts it with the first question, limits the wait, ends it.

Used from any thread, one question at a time. It blocks, so an event loop calls it from a thread.
Knows nothing of the questions.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from _signal import SIGKILL  # type: ignore[import-not-found]  # (`signal` takes ms to load)
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from threading import Lock, active_count
from typing import BinaryIO, NoReturn

from coordinator.workers.frames import HEAD, frame


class ForkedProcess:
    """A worker that is a fork of a command: as much of `subprocess.Popen` as its asker needs.

    A command that asks a worker once would pay for the start of an interpreter, and for importing
    all its own modules again, only so that the fault of a grammar ends another process. A fork is
    another process, too. Only for a command without other threads: the child never gets their
    locks.

    Args:
        command: the command for a start without a fork: `PYTHON … -m MODULE ARGUMENT…`. The
            module's `main` is called with these arguments in `sys.argv`.

    Attributes:
        stdin, stdout: its input to be written, its output to be read; not buffered.

    Raises:
        OSError: there are too many processes or files.
    """

    def __init__(self, command: Sequence[str]) -> None:
        theirs, ours = os.pipe()
        mine, its = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # waiting output must be written once
        self.pid = os.fork()
        if self.pid == 0:
            _become(command[command.index("-m") + 1:], theirs, its)
        os.close(theirs)
        os.close(its)
        self.stdin: BinaryIO = open(ours, "wb", buffering=0)  # noqa: PTH123, SIM115
        self.stdout: BinaryIO = open(mine, "rb", buffering=0)  # noqa: PTH123, SIM115
        self._ended: int | None = None

    def poll(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self._waited(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for its end, and return its exit code."""
        return self._waited(0)

    def kill(self) -> None:
        """End it at once, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, SIGKILL)

    def _waited(self, how: int) -> int | None:
        if self._ended is None:
            try:
                ended, status = os.waitpid(self.pid, how)
            except ChildProcessError:  # another waiter has collected it
                ended, status = self.pid, 0
            if ended:
                self._ended = os.waitstatus_to_exitcode(status)
        return self._ended


def _become(words: Sequence[str], source: int, sink: int) -> NoReturn:
    """Become the worker: with its own input and output, and nothing else of the parent's."""
    code = 1
    with suppress(BaseException):
        os.dup2(source, 0)
        os.dup2(sink, 1)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        sys.argv = list(words)
        import_module(words[0]).main()
        code = 0
    os._exit(code)


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
