"""The Python client for asyncio: every operation, awaited; a lease as `async with`.

    from coordinator import AsyncClient

    async with AsyncClient(agent="importer") as client:
        async with client.lease("key:account:12345", ttl=45):
            …                      # renewed meanwhile; raises LeaseLost if it was lost

A client is one agent, for one event loop. It uses no threads: a body that blocks the loop for
longer than the lease lasts keeps its renewal from being sent, and `check` then says so. Questions
that wait go over connections of their own, so that who is cancelled leaves the line at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from coordinator.client.asking import encoded, how_asked
from coordinator.client.async_connection import AsyncWire
from coordinator.client.asynchronous import Operations
from coordinator.client.connection import REPLY_TIMEOUT_S
from coordinator.client.held import SETTLING_S, HeldLeases, Holdings
from coordinator.client.locating import locate_root
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from coordinator.words.refusals import Refusal

__all__ = ["AsyncClient", "AsyncHeld"]

R = TypeVar("R")


class AsyncClient(Operations):
    """One agent's (or, with `agent=None`, the operator's) view of the coordinator.

    Args:
        root: a path in the repository; default: `COORD_ROOT` or the working directory.
        agent: name of the agent to be; default `COORD_AGENT`. Registered at first use.
        token: its token, when it is registered already; default `COORD_AGENT_TOKEN`.
        autostart: start the coordinator when none is running.
    """

    def __init__(
        self, root: Path | str | None = None, agent: str | None = None, token: str | None = None,
        *, autostart: bool = True, profile: str = "python",
    ) -> None:
        self.root = locate_root(Path(root) if root is not None else None)
        self.agent = agent or os.environ.get("COORD_AGENT")
        given = token or (os.environ.get("COORD_AGENT_TOKEN") if agent is None else None)
        self._profile = profile
        self._wire = AsyncWire(StateDir(self.root), token=given, autostart=autostart)
        self._naming = asyncio.Lock()
        self.silence_s: float | None = None
        self.holdings = Holdings()
        #: Acquisitions that were answered here.
        self._known: set[str] = set()
        #: How many of its requests wait at one place in line (agent, mode, resources), or for else.
        self._in_line: Counter[tuple[str, str, tuple[str, ...]] | None] = Counter()

    def __repr__(self) -> str:
        return f"<AsyncClient {self.agent or 'nobody yet'} at {self.root}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up. Leases stay until they are released, or lapse."""
        await self._wire.close()

    @property
    def token(self) -> str | None:
        """The agent's token, once it is registered."""
        return self._wire.token

    async def call(self, request: rq.Request[R], *, key: str | None = None) -> R:
        """Ask anything that the coordinator can be asked.

        Args:
            key: an idempotency key, as of `Client.call`.

        Raises:
            Refusal: with its code and facts.

        Who is cancelled while it acquires, or claims a task, leaves the line, and has given back
        what it was granted in that moment, before the cancellation goes on.
        """
        params = encoded(request)
        wait_s, repeatable, key = how_asked(request, key)
        asked = (type(request).op, params, REPLY_TIMEOUT_S + wait_s)
        again = repeatable or key is not None
        at = iso(time.time_ns() // 1_000_000)
        if wait_s > 0:
            wire = self._wire.another()
            line = (request.agent, request.mode, tuple(sorted(request.resources))) if isinstance(
                request, rq.Acquire) else None
            self._in_line[line] += 1
            try:
                raw = await wire.ask(*asked, again=again, key=key)
            except asyncio.CancelledError:
                if line is None or self._in_line[line] == 1:  # (others go on at this place)
                    await _to_the_end(self._call_off(wire, request, at, key))
                raise
            finally:
                self._in_line[line] -= 1
                if not self._in_line[line]:
                    del self._in_line[line]
                wire.abort()  # nothing is awaited here: who is cancelled now would lose a grant
        elif isinstance(request, (rq.Acquire, rq.TaskClaim)):
            asking = asyncio.ensure_future(self._wire.ask(*asked, again=again, key=key))
            try:
                raw = await asyncio.shield(asking)
            except asyncio.CancelledError:
                await _to_the_end(self._give_back(request, asking, at))
                raise
        else:
            raw = await self._wire.ask(*asked, again=again, key=key)
        answer = msgspec.json.decode(raw, type=request.reply_shape())
        if isinstance(answer, rq.Acquired):
            self._known.add(answer.acquisition_id)
            self._known.update(lease.acquisition_id for lease in answer.leases)
        elif isinstance(answer, rq.Claimed):
            self._known.add(_claim(answer))
            self.holdings.claimed(answer.leases)
        elif isinstance(request, rq.Leave) and request.agent == self.agent:
            self._wire.token = None  # it is nobody's any more: whoever asks next registers
        return answer

    async def _call_off(self, wire: AsyncWire, request: rq.Request[Any], at: str,
                        key: str | None) -> None:
        """Nobody waits for this any more: it leaves the line, and nothing of it is held."""
        late = await wire.close()
        if isinstance(request, rq.TaskClaim):
            # Asked again without waiting, under the key that it had: the answer that was on its
            # way, or a claim of now.
            again = msgspec.structs.replace(request, wait_s=0.0)
            params = encoded(again)
            await self._give_back(again, asyncio.ensure_future(self._wire.ask(
                type(request).op, params, again=True, key=key)), at)
        if not isinstance(request, rq.Acquire):
            return
        known = set(self._known)  # the answer to what follows adds to it
        with contextlib.suppress(Refusal):
            got = (msgspec.json.decode(late[0], type=rq.Acquired) if late
                   else await self._left_line(request))
            await self._release_new(request.agent, got, lambda lease: (
                lease.acquisition_id not in known and lease.locked_at >= at))

    async def _left_line(self, request: rq.Acquire) -> rq.Acquired:
        """It stands in line no more; or what it is granted now, or was when nobody listened.

        Raises:
            Refusal: it has left.
        """
        while True:
            try:
                return await self.call(msgspec.structs.replace(request, wait_s=0.0, retry=False))
            except Refusal as refusal:
                if (line := refusal.facts.get("acquisition_id")) is None:
                    raise
            with contextlib.suppress(Refusal):  # it was granted, or has left, a moment ago
                await self.call(rq.Withdraw(agent=request.agent, acquisition_id=line))

    async def _give_back(self, request: rq.Acquire | rq.TaskClaim, asking: asyncio.Future[bytes],
                         at: str) -> None:
        """What comes of a question that nobody waits for any more, and that is answered at once."""
        if isinstance(request, rq.TaskClaim):
            with contextlib.suppress(Refusal):
                claim = msgspec.json.decode(await asking, type=rq.Claimed)
                if _claim(claim) not in self._known and (claim.task.claimed_at or "") >= at:
                    await self.call(rq.TaskFail(
                        agent=request.agent, task=claim.task.task, model_error=True,
                        reason="whoever asked for it was cancelled in that moment"))
            return
        try:
            got = msgspec.json.decode(await asking, type=rq.Acquired)
            await self._release_new(request.agent, got, lambda lease: False)
        except Refusal as refusal:
            if (line := refusal.facts.get("acquisition_id")) is not None and request.retry:
                with contextlib.suppress(Refusal):
                    await self.call(rq.Withdraw(agent=request.agent, acquisition_id=line))

    async def _release_new(self, agent: str, got: rq.Acquired,
                           also: Callable[[rq.Lease], bool]) -> None:
        """Give back what was not held before; of the rest, what `also` says."""
        if read := [lease.resource for lease in got.leases if lease.was_shared]:
            await self.call(rq.Release(agent=agent, resources=read, keep_shared=True))
        for one in sorted({lease.acquisition_id for lease in got.leases
                           if not lease.was_shared and (not lease.reentrant or also(lease))}):
            await self.call(rq.Release(agent=agent, acquisition_id=one))

    async def register(self, *, unique: bool = True, silence_s: float | None = None,
                       description: str = "", parent: str | None = None) -> str:
        """Become a registered agent, as `Client.register`; its name.

        Raises:
            Refusal: NAME_TAKEN, with `unique=False`.
        """
        wanted = self.agent or f"{self._profile}-{os.getpid()}-{secrets.token_hex(2)}"
        known = await self.call(rq.Register(
            agent=wanted, profile=self._profile, unique=unique, silence_s=silence_s,
            description=description, parent=parent))
        self.agent, self._wire.token = known.agent, known.token
        self.silence_s = silence_s
        return known.agent

    async def name(self) -> str:
        """The name that all its requests bear; it is registered if it was not."""
        async with self._naming:
            if self.agent is None or self._wire.token is None:
                await self.register()
        assert self.agent is not None
        return self.agent

    async def commit_region(self, resource: str, text: str, *, content_hash: str | None = None,
                            lease_token: str | None = None) -> rq.RegionsCommitted:
        """Write the new text of a leased region, as `Client.commit_region`.

        Raises:
            Refusal: REGION_CHANGED with the fresh text, PARSE_INVALID, and others.
        """
        return await self.commit_regions([rq.RegionText(
            resource=resource, text=text, content_hash=content_hash, lease_token=lease_token)])

    async def follow(self, after: int | None = None) -> AsyncIterator[rq.EventRow]:
        """What happens from now on (or after the event of that number), as it happens, on a
        connection of its own.

        Raises:
            Refusal: DAEMON_DOWN: the coordinator stopped.
        """
        wire = self._wire.another()
        try:
            async for raw in wire.events(after):
                yield msgspec.json.decode(raw, type=rq.EventRow)
        finally:
            await _to_the_end(wire.close())

    @contextlib.asynccontextmanager
    async def lease(
        self, *resources: str, ttl: float = 60.0, mode: rq.Mode = "exclusive", wait: float = 0.0,
        description: str = "", stall: float | None = None,
    ) -> AsyncIterator[AsyncHeld]:
        """Hold `resources` while the body runs, renewed every third of `ttl` (seconds), as
        `Client.lease` does. A cancelled body has given them back before its cancellation goes on.

        Raises:
            Refusal: LOCKED and others, before the body runs.
            LeaseLost: it ended while the body ran, or at the body's end.
        """
        while True:
            got = await self.acquire(*resources, ttl=ttl, mode=mode, wait=wait,
                                     description=description, retry=False)
            held = AsyncHeld(self, got, ttl, stall, mode)
            try:
                stands = await held._stands()
            except BaseException:
                await _to_the_end(held.end())
                raise
            if stands:
                break
            await _to_the_end(held.end())
        try:
            yield held
        finally:
            await _to_the_end(held.end())
        held.check()


class AsyncHeld(HeldLeases):
    """A lease while its body runs, renewed by a task of the same loop."""

    def __init__(self, client: AsyncClient, got: rq.Acquired, ttl_s: float,
                 stall_s: float | None, mode: rq.Mode) -> None:
        super().__init__(client.holdings, got, ttl_s, stall_s, client.silence_s, mode)
        self._client = client
        self._renewing = asyncio.create_task(self._renew(), name="coord-renew")

    async def _stands(self) -> bool:
        """Whether it is still there, once no other body of this client gives it back."""
        if not self._is_shared:
            return True
        while self._holdings.goes(self.leases):
            await asyncio.sleep(SETTLING_S)
        try:
            now = await self._client.call(self._renewal(str(self._client.agent)))
        except Refusal as refusal:
            self._noted(refusal)
            return not self.lost
        return self._is_as_asked(now)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            now = time.monotonic()
            if self._stalls(now):
                return
            try:
                await self._client.call(self._renewal(str(self._client.agent)))
                self._confirmed_at = now
            except Refusal as refusal:
                if self._refused(refusal, now):
                    return

    async def end(self, *, release: bool = True) -> None:
        """Renew no more and, with `release`, give back what was not held before, as `Held.end`."""
        if self._over or self._process != os.getpid():
            return  # a forked child leaves the body: the lease is its parent's
        self._over = True
        self._renewing.cancel()
        await asyncio.wait([self._renewing])
        ending, refused = self._ending(str(self._client.agent), release), None
        with contextlib.suppress(StopIteration):
            while True:
                request = ending.send(refused)
                try:
                    await self._client.call(request)
                    refused = None
                except Refusal as no:
                    refused = no


def _claim(got: rq.Claimed) -> str:
    """What tells a claim from a later one on the same task."""
    return f"{got.task.task} {got.task.claimed_at}"


async def _to_the_end(work: Coroutine[Any, Any, Any]) -> None:
    """Do this whole, whoever is cancelled meanwhile; then the cancellation goes on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as now:
            cancelled = now
    if cancelled is not None:
        task.exception()
        raise cancelled
    task.result()
