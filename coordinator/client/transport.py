"""The blocking side of the wire: one socket, for one thread at a time.

It has the names of `async_transport`. It imports the standard library and msgspec only, because the
start-up time of the command line counts.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Iterator
from time import sleep
from typing import Any

from coordinator.client.asking import decode
from coordinator.client.locating import peer
from coordinator.files.state import StateDir
from coordinator.words.refusals import Refusal

__all__ = ["Link", "Opening", "open_link", "sleep", "start"]

#: A connection is opened by one at a time: here a thread has it for itself.
Opening = contextlib.nullcontext
#: Connections that came with a fork: they are the parent's, and nothing of them is closed here
#: that the parent may be using.
_PARENTS: list[Any] = []


def start(state: StateDir) -> None:
    """Start it as `coordinator.client.starting.start` does, which is seldom loaded."""
    from coordinator.client import starting

    starting.start(state)


class Link:
    """One open connection. Any interruption before the whole answer closes it: an interrupted
    caller (Ctrl-C, a signal handler of the program's own) counts as gone, and gets no grant as if
    it listened."""

    def __init__(self, sock: socket.socket) -> None:
        self._file = sock.makefile("rb", buffering=1 << 16)
        self._process = os.getpid()
        self._sock: socket.socket | None = sock

    def is_usable(self) -> bool:
        """Whether this process can ask over it: a fork has to connect anew."""
        if self._process != os.getpid():
            self.close()
        return self._sock is not None

    def process(self) -> int:
        """The process at the other end; 0 if the system does not tell, or without a connection."""
        other = peer(self._sock) if self._sock is not None else None
        return other[0] if other is not None else 0

    def exchange(self, number: int, line: bytes, timeout_s: float) -> bytes:
        """The answer to this line.

        Raises:
            Refusal: what the daemon refused.
            ConnectionResetError: the daemon has ended before it had read all of this.
            OSError, EOFError: the connection broke. TimeoutError.
        """
        try:
            self._send(line, timeout_s)
            return self._receive(number)
        except Refusal:
            raise
        except BaseException:
            self.close()
            raise

    def _send(self, line: bytes, timeout_s: float | None) -> None:
        assert self._sock is not None
        self._sock.settimeout(timeout_s)
        try:
            self._sock.sendall(line)
        except TimeoutError:
            raise
        except OSError as bad:
            raise ConnectionResetError(bad.errno, bad.strerror) from None

    def _receive(self, number: int) -> bytes:
        while True:
            raw = self._file.readline()
            if not raw.endswith(b"\n"):
                raise EOFError
            line = decode(raw)
            if line.error is not None and line.id in (number, None):
                raise Refusal.from_body(line.error)
            if line.id == number and bytes(line.ok):
                return bytes(line.ok)

    def events(self, number: int, line: bytes) -> Iterator[bytes]:
        """Each event, when this line has asked for them, until the connection ends.

        Raises:
            Refusal: what the daemon refused. OSError: the connection broke.
        """
        self._send(line, None)
        while raw := self._file.readline():
            answered = decode(raw)
            if answered.error is not None:
                raise Refusal.from_body(answered.error)
            if event := bytes(answered.event):
                yield event

    def is_over(self) -> bool:
        """Whether the daemon has ended it. Only for a connection without a question, because any
        output counts as its end."""
        if self._sock is not None and select.select([self._sock], [], [], 0)[0]:
            self.close()
        return self._sock is None

    def leave(self) -> None:
        """The coordinator at the other end is about to end: the next question goes to another."""
        self.close()

    def close(self) -> None:
        """Hang up. A fork leaves its parent's connection alone."""
        sock, self._sock = self._sock, None
        if sock is None:
            return
        if self._process != os.getpid():
            _PARENTS.append(self._file)  # a thread that is not here may have been reading it
            os.close(sock.detach())
            return
        with contextlib.suppress(OSError):
            self._file.close()
            sock.close()

    def hang_up(self) -> None:
        """From another thread: end the waiting question now."""
        sock = self._sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def open_link(sock: socket.socket) -> Link:
    """Open the link over this connection."""
    return Link(sock)
