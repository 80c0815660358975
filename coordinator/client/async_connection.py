"""The wire to the daemon for asyncio: many questions at once over one connection, no threads.

The protocol is `connection`'s: one line out, one line in, told apart by their numbers. So a
question that waits holds up no other, a lease's renewal least of all. Starts a coordinator where
none runs, in a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from coordinator.client.connection import (
    PROTOCOL,
    RECONNECT_S,
    REPLY_TIMEOUT_S,
    STARTS,
    Answered,
    decode,
    ends_before,
    head,
)
from coordinator.client.locating import check_peer, unix_socket, unreachable
from coordinator.files.state import StateDir, check_socket
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import REQUEST_BYTES_MAX

_encode = msgspec.json.Encoder().encode
#: How long a connection may take (seconds): the daemon is there and takes no more for now.
CONNECT_S = 5.0


class _Conversation(asyncio.Protocol):
    """One connection: answers go to whoever asked."""

    def __init__(self) -> None:
        self.waiting: dict[int, asyncio.Future[bytes]] = {}
        self.events: asyncio.Queue[bytes | None] | None = None
        self.transport: asyncio.Transport | None = None
        self.over = asyncio.get_running_loop().create_future()
        self._pieces: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # uvloop's are no subclass

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(self._pieces).split(b"\n")
            self._pieces = [rest]
            for line in lines:
                self._take(decode(line))

    def _take(self, line: Answered) -> None:
        if (event := bytes(line.event)) and self.events is not None:
            self.events.put_nowait(event)
        asked: Iterator[asyncio.Future[bytes]] = iter(())
        if isinstance(line.id, int):
            asked = filter(None, [self.waiting.pop(line.id, None)])
        elif line.error is not None:  # a line that it could not read: whose, it does not know
            asked, self.waiting = iter([*self.waiting.values()]), {}
        for one in asked:
            if one.done():
                continue  # whoever asked has gone
            if line.error is not None:
                one.set_exception(Refusal.from_body(line.error))
            elif bytes(line.ok):
                one.set_result(bytes(line.ok))

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.events is not None:
            self.events.put_nowait(None)
        waiting, self.waiting = self.waiting, {}
        for one in waiting.values():
            if not one.done():
                one.set_exception(EOFError())
        if not self.over.done():
            self.over.set_result(None)


class AsyncWire:
    """One connection, made anew when it breaks. For one event loop."""

    def __init__(self, state: StateDir, *, token: str | None = None,
                 autostart: bool = True) -> None:
        self.state = state
        self.token = token
        self.autostart = autostart
        self._talk: _Conversation | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._number = 0
        self._closed = False

    def another(self) -> AsyncWire:
        """A connection of its own, for the same agent."""
        return AsyncWire(self.state, token=self.token, autostart=self.autostart)

    async def open(self) -> _Conversation:
        """Connect, starting the daemon when there is none.

        Raises:
            Refusal: DAEMON_DOWN, or why it could not start.
            RuntimeError: in another event loop than before: what it waits for comes to that one.
        """
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise RuntimeError("This AsyncClient was used in another event loop; make one for each "
                               "event loop (each `asyncio.run`).")
        self._loop = loop
        async with self._opening:
            self._check_open()
            if self._talk is None or self._talk.transport is None:
                sock = await _connect(self.state.socket())
                if sock is None:
                    if not self.autostart:
                        raise Refusal(Code.DAEMON_DOWN,
                                      f"No coordinator is running for {self.state.root}.")
                    for _ in range(STARTS):  # (one may be killed in the moment after)
                        await _start(self.state)
                        sock = await _connect(self.state.socket())
                        if sock is not None:
                            break
                if sock is None:
                    raise Refusal(Code.DAEMON_DOWN, "The coordinator went away again.")
                _, self._talk = await loop.create_unix_connection(
                    _Conversation, sock=sock)
                self._check_open()  # not in that very moment
            return self._talk

    def _check_open(self) -> None:
        if self._closed:
            self.abort()
            raise Refusal(Code.DAEMON_DOWN, "This client was closed.", next="Make another.")

    async def close(self) -> None:
        """Hang up, and wait until the coordinator knows: what it had answered by then has come."""
        self._closed = True
        talk = self._talk
        if talk is not None and talk.transport is not None:
            await self._hang_up(talk)

    def abort(self) -> None:
        """Hang up at once."""
        self._closed = True
        if self._talk is not None and self._talk.transport is not None:
            self._talk.transport.abort()

    async def _hang_up(self, talk: _Conversation) -> None:
        assert talk.transport is not None
        with contextlib.suppress(OSError, RuntimeError):
            talk.transport.write_eof()
        await asyncio.wait([talk.over], timeout=CONNECT_S)
        with contextlib.suppress(RuntimeError):  # its event loop has ended, and it with that
            if talk.transport is not None:
                talk.transport.abort()

    async def ask(self, op: str, params: bytes, timeout_s: float = REPLY_TIMEOUT_S, *,
                  again: bool, key: str | None = None) -> bytes:
        """The reply's JSON; `again`: it may be sent once more when the connection breaks.

        Raises:
            Refusal: what the daemon refused; DAEMON_DOWN (with `begun` False: it was closed before
                anything was asked); LIMIT: it is too long to be sent.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RECONNECT_S
        sent = False
        while True:
            try:
                talk = await self.open()
            except Refusal as refusal:
                if self._closed and not sent:
                    refusal.facts["begun"] = False
                raise
            self._number += 1
            fields: dict[str, Any] = {"id": self._number, "op": op, "v": PROTOCOL}
            if self.token is not None:
                fields["token"] = self.token
            if key is not None:
                fields["key"] = key
            line = head(fields) + b',"params":' + params + b"}\n"
            if len(line) > REQUEST_BYTES_MAX:
                raise Refusal(Code.LIMIT, f"A request over {REQUEST_BYTES_MAX:,} bytes. "
                              "Nothing was done.")
            answer: asyncio.Future[bytes] = loop.create_future()
            answer.add_done_callback(lambda one: one.cancelled() or one.exception())  # looked at
            talk.waiting[self._number] = answer
            if talk.transport is None:
                continue
            talk.transport.write(line)
            sent = True
            try:
                async with asyncio.timeout(timeout_s):
                    return await answer
            except Refusal as refusal:
                # A coordinator that ends; the next one will do it, or knows that it was done.
                if not ends_before(refusal, again) or not self.autostart or (
                        loop.time() > deadline):
                    raise
                await asyncio.sleep(0.05)
            except TimeoutError:
                raise Refusal(
                    Code.DAEMON_DOWN, f"The coordinator gave no answer within {timeout_s:g} s.",
                    next="`coord doctor`",
                ) from None
            except EOFError:
                if self._closed or not again or loop.time() > deadline:
                    raise Refusal(
                        Code.DAEMON_DOWN,
                        f"The coordinator went away during `{op}`; whether it was done is not "
                        "known.", next="`coord status` shows what is so.",
                    ) from None
                await asyncio.sleep(0.02)  # a daemon that was killed takes a moment to be gone

    async def events(self, after: int | None) -> AsyncIterator[bytes]:
        """Events from `after` on (default: now), as they happen.

        Raises:
            Refusal: DAEMON_DOWN when the daemon goes.
        """
        talk = await self.open()
        talk.events = asyncio.Queue()
        await self.ask("subscribe", _encode({"after": after}), again=False)
        while (event := await talk.events.get()) is not None:
            yield event
        raise Refusal(Code.DAEMON_DOWN, "The coordinator stopped.")


async def _connect(path: Path) -> socket.socket | None:
    """A connection to the running daemon; None: there is none.

    Raises:
        Refusal: FOREIGN; SANDBOXED; DAEMON_DOWN.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CONNECT_S
    while True:
        sock = unix_socket()
        sock.setblocking(False)
        try:
            check_socket(path)
            sock.connect(str(path))
            check_peer(sock, path)
            return sock
        except BlockingIOError as bad:  # so many want to connect that it takes no more for now
            sock.close()
            if loop.time() > deadline:
                raise Refusal(Code.DAEMON_DOWN, f"{path}: {bad.strerror}.") from None
            await asyncio.sleep(0.01)
        except (OSError, Refusal) as bad:
            sock.close()
            if (why := unreachable(path, bad)) is None:
                return None
            raise why from None


async def _start(state: StateDir) -> None:
    """Start the coordinator by a process of its own, for that waits and takes locks.

    Raises:
        Refusal: what kept it from starting.
    """
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "coordinator.client.starting", str(state.root)],
            stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    finally:
        os.close(writing)
    stream = asyncio.StreamReader()
    pipe, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb", buffering=0))
    try:
        said = await stream.read()
    finally:
        pipe.close()
        while process.poll() is None:  # its end of the pipe is closed: it is about to be gone
            await asyncio.sleep(0.005)
    if said:
        raise Refusal.from_body(json.loads(said))
