"""Closed-loop clients that ask the same over and over, and time each request: for a lease and its
end, or for a value to be stored.

One process, one event loop, N connections: a client sends its next request when the answer to the
last one is there. Lines are spoken directly, without the Python client, so that what is measured
is the daemon and not whoever asks it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from benchmarks.measuring.samples import Slice

_encode = msgspec.json.Encoder().encode
T = TypeVar("T")


class LineClient(asyncio.Protocol):
    """One agent: acquire, release, acquire, … on the local door."""

    #: Requests that are one thing done.
    steps = 2

    def __init__(self, agent: str, token: str, resource: str, mine: Slice) -> None:
        held = {"agent": agent, "resources": [resource]}
        self._lines = (
            _encode({"id": 1, "op": "acquire", "params": held, "token": token}) + b"\n",
            _encode({"id": 1, "op": "release", "params": held, "token": token}) + b"\n",
        )
        self._mine = mine
        self._turn = 0
        self._until = 0.0
        self._sent = 0.0
        self._rest = b""
        self._over: asyncio.Future[None] | None = None
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def start(self, until: float) -> asyncio.Future[None]:
        """Go on until `until` (perf_counter seconds); done when nothing is held any more."""
        self._until = until
        self._over = asyncio.get_running_loop().create_future()
        self._send()
        return self._over

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(self.line(self._turn))

    def line(self, turn: int) -> bytes:
        """The request of this turn."""
        return self._lines[turn]

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        if not data.endswith(b"\n"):
            self._rest = data
            return
        self._rest = b""
        now = time.perf_counter()
        assert self._over is not None
        if not data.startswith(b'{"id":1,"ok"'):
            if not self._over.done():
                self._over.set_exception(RuntimeError(data.decode("utf-8", "replace")[:500]))
            return
        if now <= self._until:
            self._mine.took.append(now - self._sent)
            self._mine.done += self._turn == self.steps - 1
        self._turn = (self._turn + 1) % self.steps
        if now > self._until and self._turn == 0:
            self._over.set_result(None)
            return
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_exception(exc or ConnectionError("the daemon hung up"))


class PutClient(LineClient):
    """One agent that stores one value after the other under a key of its own. `keyed`: each request
    has an idempotency key, as the Python client gives it one."""

    steps = 1

    def __init__(self, agent: str, token: str, key: str, mine: Slice, *, versions: dict[str, int],
                 keyed: bool) -> None:
        super().__init__(agent, token, key, mine)
        self._agent, self._token, self._key = agent, token, key
        self._versions, self._keyed = versions, keyed

    def line(self, turn: int) -> bytes:
        """Store what the key's next version is to be. (It counts what is stored by itself: an
        answer that is none ends the run.)"""
        version = self._versions.get(self._key, 0)
        self._versions[self._key] = version + 1
        asked = {"id": 1, "op": "state_put", "token": self._token, "params": {
            "agent": self._agent, "key": self._key, "version": version,
            "value": value(version, self._agent)}}
        if self._keyed:
            asked["key"] = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"
        return _encode(asked) + b"\n"


def value(number: int, whose: str) -> dict[str, Any]:
    """A small value, another for each number and each owner."""
    return {"owed": number, "currency": "EUR", "customer": whose, "fees": [5, 10, 15]}


async def lines(socket: str, clients: Sequence[tuple[str, str, str]], seconds: float,
                make: Callable[..., LineClient] = LineClient) -> Slice:
    """A slice of pairs by (agent, token, resource) clients over the local door; or of whatever the
    clients do that `make` makes."""
    mine = Slice(0, seconds, [])
    loop = asyncio.get_running_loop()
    made = []
    for agent, token, resource in clients:
        _, client = await loop.create_unix_connection(
            partial(make, agent, token, resource, mine), socket
        )
        made.append(client)
    until = time.perf_counter() + seconds
    await asyncio.gather(*[client.start(until) for client in made])
    for client in made:
        client._transport.close()
    return mine


#: One client of a peer: takes and gives back once; returns how long each request took (seconds).
Pair = Callable[[], Awaitable[tuple[float, ...]]]


async def pairs(clients: Sequence[Pair], seconds: float) -> Slice:
    """A slice of pairs by clients that are coroutines.

    Whoever has begun a pair when `seconds` are over ends it: all are counted, over the time that
    all of them took, so that a slow peer is not cut off.
    """
    mine = Slice(0, seconds, [])
    started = time.perf_counter()

    async def one(pair: Pair) -> None:
        while time.perf_counter() - started < seconds:
            mine.took.extend(await pair())
            mine.done += 1

    await asyncio.gather(*[one(pair) for pair in clients])
    mine.seconds = time.perf_counter() - started
    return mine


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns, in an event loop of its own (uvloop where there is one)."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)
