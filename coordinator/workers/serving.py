"""Being a worker process: its limits, and its loop of a frame in, a frame out, until the input
ends. A timer ends a hanging process, even when its asker is gone."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # (`signal` takes ms to load)
import contextlib
import gc
import resource
import sys
from collections.abc import Callable
from typing import BinaryIO

from coordinator.workers.frames import HEAD, frame


def limit(memory_bytes: int) -> None:
    """Limit this process: its memory, no core file. Its timer ends it, Ctrl-C does not."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command
    for what, most in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)  # an answer makes many objects, and few cycles


def within(seconds: float) -> None:
    """End this process unless it answers within so many seconds."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def serve(answer: Callable[[bytes], bytes], source: BinaryIO | None = None,
          sink: BinaryIO | None = None) -> None:
    """Answer questions until there are no more. Default: of the standard input, on the output."""
    source, sink = source or sys.stdin.buffer, sink or sys.stdout.buffer
    with contextlib.suppress(BrokenPipeError):
        while len(head := source.read(HEAD.size)) == HEAD.size:
            body = answer(source.read(HEAD.unpack(head)[0]))
            within(0)
            sink.write(frame(body))
            sink.flush()
