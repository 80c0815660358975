"""The process that grammars run in: reads files' bytes, answers their outlines.

Started as `python -P -m coordinator.regions.worker` by `process`. A grammar is native code; a fault
in one, or a text that it never comes to an end with, ends this process and no other. It opens no
file and keeps nothing from one question to the next.

One `Question` in, one `Outline` or `Reading` out (`frames`), until the input ends.
"""

from __future__ import annotations

import contextlib
import gc
import resource
import signal
import sys
from typing import BinaryIO

import msgspec

from coordinator.regions.frames import HEAD, Question
from coordinator.regions.grammar import outline
from coordinator.regions.reader import read

#: Memory that it may take (bytes): a tree takes some hundred times its text at worst.
MEMORY_BYTES_MAX = 3 << 30


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer questions until there are no more."""
    while True:
        head = source.read(HEAD.size)
        if len(head) < HEAD.size:
            return
        asked = msgspec.msgpack.decode(source.read(HEAD.unpack(head)[0]), type=Question)
        signal.setitimer(signal.ITIMER_REAL, asked.seconds)
        answer = msgspec.msgpack.encode(
            read(asked.data, asked.language) if asked.merging
            else outline(asked.data, asked.language, nested=asked.nested)
        )
        signal.setitimer(signal.ITIMER_REAL, 0)
        sink.write(HEAD.pack(len(answer)) + answer)
        sink.flush()


def main() -> None:
    """What `process` starts."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: for the command, not for this
    for what, most in ((resource.RLIMIT_AS, MEMORY_BYTES_MAX), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)  # an outline makes many objects, and no circles of them
    with contextlib.suppress(BrokenPipeError):
        serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
