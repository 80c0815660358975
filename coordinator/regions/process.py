"""Asking for outlines: starts the worker, waits for it no longer than it may take, ends it.

`Outlines.of` always answers. Where the worker ended on a file, it is asked once more, anew (they
have been seen to fault now and then on what they read well a moment later); then, and where it does
not come to an end in time, the file is one region of kind `file`, with the reason in its note. Used
from any thread, one question at a time; blocking, so from a thread where a loop runs.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from threading import Lock
from types import TracebackType
from typing import TypeVar

import msgspec

from coordinator.regions.frames import FILE_BYTES_MAX, HEAD, Question
from coordinator.regions.languages import languages
from coordinator.regions.outline import Outline, whole
from coordinator.regions.reading import Reading, unread

#: A file that takes longer (seconds) is not divided. A file of the largest size takes less.
SECONDS_MAX = 10.0
TRIES = 2
A = TypeVar("A", Outline, Reading)
_COMMAND = (sys.executable, "-P", "-m", "coordinator.regions.worker")


class Outlines:
    """One worker process, started with the first question, ended with `close` or the `with`."""

    def __init__(self, seconds: float = SECONDS_MAX, command: Sequence[str] = _COMMAND) -> None:
        self._seconds = seconds
        self._command = command
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

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
        return self._ask(data, language, nested, Outline, whole)

    def read(self, data: bytes, language: str | None) -> Reading:
        """What a merge asks of these bytes (`reader.read`); never raises for what they are."""
        return self._ask(data, language, False, Reading, unread)

    def _ask(
        self, data: bytes, language: str | None, nested: bool, kind: type[A],
        undivided: Callable[[bytes, str | None, str], A],
    ) -> A:
        if language not in languages():
            return undivided(data, None, "no language of the table")
        assert language is not None
        if len(data) > FILE_BYTES_MAX:
            return undivided(data, language, f"larger than {FILE_BYTES_MAX:,} bytes")
        body = msgspec.msgpack.encode(
            Question(data, language, nested, self._seconds + 1, kind is Reading)
        )
        frame = HEAD.pack(len(body)) + body
        with self._lock:
            for _ in range(TRIES):
                try:
                    return msgspec.msgpack.decode(self._answer(frame), type=kind)
                except TimeoutError:
                    self._end()
                    return undivided(data, language, f"dividing it took over {self._seconds:g} s")
                except (OSError, EOFError, msgspec.MsgspecError):
                    self._end()
                except BaseException:
                    self._end()  # half an answer may still be in the pipe
                    raise
        return undivided(data, language, f"the grammar for {language} failed on it")

    def close(self) -> None:
        """End the worker, if there is one."""
        with self._lock:
            self._end()

    def _answer(self, frame: bytes) -> bytes:
        """Send a question and read its answer.

        Raises:
            TimeoutError; EOFError: the worker ended; OSError.
        """
        until = time.monotonic() + self._seconds
        process = self._process
        if process is None or process.poll() is not None:
            self._end()
            process = self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, bufsize=0,
            )
        return exchange(process, frame, until)

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


def exchange(process: subprocess.Popen[bytes], frame: bytes, until: float) -> bytes:
    """Send a frame to a worker, and read the one that it answers with, without its head.

    Args:
        until: on the monotonic clock.

    Raises:
        TimeoutError; EOFError: the worker ended; OSError.
    """
    assert process.stdin is not None and process.stdout is not None
    os.set_blocking(process.stdin.fileno(), False)
    _send(process.stdin.fileno(), frame, until)
    (length,) = HEAD.unpack(_receive(process.stdout.fileno(), HEAD.size, until))
    return _receive(process.stdout.fileno(), length, until)


def _send(descriptor: int, frame: bytes, until: float) -> None:
    left = memoryview(frame)
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
