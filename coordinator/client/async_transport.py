"""The asynchronous connection: many questions at once over one socket, without threads.

`transport` has the same names for threads. A number ties each answer to its question. So a question
that waits never delays another one, such as the renewal of a lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from asyncio import sleep
from collections.abc import AsyncIterator

from coordinator.client.asking import REPLY_TIMEOUT_S, Answered, decode
from coordinator.client.locating import peer
from coordinator.files.state import StateDir
from coordinator.words.refusals import Refusal

__all__ = ["AsyncLink", "Opening", "open_link", "sleep", "start"]

#: A connection is opened by one at a time; the others then have it, too.
Opening = asyncio.Lock
#: How long the daemon may take (seconds) to see that a client hangs up.
CLOSE_S = 5.0


class AsyncLink(asyncio.Protocol):
    """One open connection, for one event loop. It hands each answer to its asker."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._events: asyncio.Queue[bytes | None] | None = None
        self._transport: asyncio.Transport | None = None
        self._over = self._loop.create_future()
        self._pieces: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # uvloop's are no subclass

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(self._pieces).split(b"\n")
            self._pieces = [rest]
            for line in lines:
                self._take(decode(line))

    def _take(self, line: Answered) -> None:
        if (event := bytes(line.event)) and self._events is not None:
            self._events.put_nowait(event)
        if isinstance(line.id, int):
            asked = [self._waiting[line.id]] if line.id in self._waiting else []
        else:  # a line that it could not read: whose, it does not know
            asked = [*self._waiting.values()] if line.error is not None else []
        for answer in asked:
            if answer.done():
                continue  # the asker has gone
            if line.error is not None:
                answer.set_exception(Refusal.from_body(line.error))
            elif bytes(line.ok):
                answer.set_result(bytes(line.ok))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._events is not None:
            self._events.put_nowait(None)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(EOFError())
        if not self._over.done():
            self._over.set_result(None)

    def is_usable(self) -> bool:
        """Whether it can be asked over.

        Raises:
            RuntimeError: in another event loop than before: what it waits for comes to that one.
        """
        if self._loop is not asyncio.get_running_loop():
            raise RuntimeError("This AsyncClient was used in another event loop; make one for each "
                               "event loop (each `asyncio.run`).")
        return self._transport is not None

    def process(self) -> int:
        """The process at the other end; 0 if the system does not tell, or without a connection."""
        sock = self._transport.get_extra_info("socket") if self._transport is not None else None
        other = peer(sock) if sock is not None else None
        return other[0] if other is not None else 0

    async def exchange(self, number: int, line: bytes, timeout_s: float) -> bytes:
        """The answer to this line.

        Raises:
            Refusal: what the daemon refused.
            ConnectionResetError: the connection had ended before.
            EOFError: the connection broke. TimeoutError.
        """
        if self._transport is None:
            raise ConnectionResetError
        answer: asyncio.Future[bytes] = self._loop.create_future()
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # looked at
        self._waiting[number] = answer
        try:
            self._transport.write(line)
            async with asyncio.timeout(timeout_s):
                return await answer
        finally:
            del self._waiting[number]

    async def events(self, number: int, line: bytes) -> AsyncIterator[bytes]:
        """Each event, when this line has asked for them, until the connection ends.

        Raises:
            Refusal: what the daemon refused. EOFError: the connection broke. TimeoutError.
        """
        events = self._events = asyncio.Queue()
        await self.exchange(number, line, REPLY_TIMEOUT_S)
        while (event := await events.get()) is not None:
            yield event

    def is_over(self) -> bool:
        """Whether the daemon has ended it."""
        return self._transport is None

    def leave(self) -> None:
        """The coordinator at the other end is about to end: send the next question to another,
        unless an answer is still expected here."""
        if not self._waiting and self._events is None:
            self.hang_up()

    async def close(self) -> None:
        """Hang up, and wait until the coordinator has seen it: its earlier answers have arrived
        then."""
        if self._transport is not None and self._loop is asyncio.get_running_loop():
            with contextlib.suppress(OSError, RuntimeError):
                self._transport.write_eof()
            await asyncio.wait([self._over], timeout=CLOSE_S)
        self.hang_up()

    def hang_up(self) -> None:
        """End at once what waits here now."""
        transport, self._transport = self._transport, None
        if transport is not None:
            with contextlib.suppress(RuntimeError):  # its event loop has ended, and it with that
                transport.abort()


async def open_link(sock: socket.socket) -> AsyncLink:
    """Open the link over this connection."""
    _, link = await asyncio.get_running_loop().create_unix_connection(AsyncLink, sock=sock)
    return link


async def start(state: StateDir) -> None:
    """Start the coordinator by a process of its own, because that waits and takes locks.

    Raises:
        Refusal: what kept it from starting.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "coordinator.client.starting", str(state.root),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True)
    refused, _ = await process.communicate()
    if refused:
        raise Refusal.from_body(json.loads(refused))
