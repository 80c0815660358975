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
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from coordinator.client import bodies
from coordinator.client.asking import (
    check_body,
    check_seconds,
    encoded,
    here,
    how_asked,
    listed,
)
from coordinator.client.async_connection import AsyncWire
from coordinator.client.async_grants import AsyncGrants
from coordinator.client.async_held import AsyncHeld, to_the_end
from coordinator.client.asynchronous import Operations
from coordinator.client.held import GONE
from coordinator.client.locating import locate_root
from coordinator.client.wire_format import REPLY_TIMEOUT_S
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.shapes import read

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
        self._branches = bodies.Branches()
        #: Whose agent this is: a fork of that process is another one.
        self._process = os.getpid()
        self._grants = AsyncGrants(self)

    def __repr__(self) -> str:
        return f"<AsyncClient {self.agent or 'nobody yet'} at {self.root}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up; what other tasks wait for they still get, and `follow` goes on: cancel them
        before. Leases stay until they are released, or lapse."""
        starts, self._wire.autostart = self._wire.autostart, False
        for branch in self._branches.drain() if self._process == os.getpid() else ():
            with contextlib.suppress(Refusal):  # where nobody serves any more, it is silent soon
                await self._ask(rq.Leave(agent=branch.agent, reason="its client was closed"), None)
        self._wire.autostart = starts
        await self._wire.close(for_good=True)

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

        Who is cancelled while it acquires, claims a task, or waits for a step or a change, leaves
        the line, and has given back what it was granted in that moment, before the cancellation
        goes on. (A step or change that was given then is tried again, as after a failure.)
        """
        if (wait_s := getattr(request, "wait_s", None)) is not None:
            check_seconds("wait_s", wait_s)  # it is reckoned with before it is asked
        if isinstance(request, rq.Acquire):
            check_body(request.resources, 0)
            answer: Any = await self._grants.acquire(request, key)
        elif isinstance(request, rq.TaskClaim):
            answer = await self._grants.claim(request, key)
        elif getattr(request, "wait_s", 0.0) > 0:
            answer = await self._grants.waited(request, key)
        else:
            answer = await self._asked(request, key)
        if isinstance(request, rq.Leave) and request.agent == self.agent:
            self._wire.token = None  # it is nobody's any more: whoever asks next registers
            self._branches.drain()  # and these have left with it
        return cast(R, answer)

    async def _asked(self, request: rq.Request[Any], key: str | None) -> Any:
        """Ask as the holder around this code, if that is what it is for."""
        holder = bodies.as_holder(self, request, self.agent)
        if holder is not None:
            try:
                return await self._ask(msgspec.structs.replace(request, agent=holder), key)
            except Refusal as refusal:
                if not bodies.is_of(refusal, self.agent):
                    raise
        return await self._ask(request, key)

    async def _ask(self, request: rq.Request[R], key: str | None,
                   wire: AsyncWire | None = None) -> R:
        """Ask over this connection (the common one), and read the answer.

        Raises:
            Refusal: with its code and facts.
        """
        params = encoded(request)
        wait_s, repeatable, key = how_asked(request, key)
        raw = await (wire or self._wire).ask(
            type(request).op, params, REPLY_TIMEOUT_S + wait_s,
            repeatable=repeatable, key=key)
        return read(raw, request.reply_shape())

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
        if self._process != os.getpid():
            await self._be_another()
        async with self._naming:
            if self.agent is None or self._wire.token is None:
                await self.register()
        assert self.agent is not None
        return self.agent

    async def _be_another(self) -> None:
        """This process was forked from the one whose agent this is, as `Client._be_another`."""
        self._process, self._naming, self._branches = os.getpid(), asyncio.Lock(), bodies.Branches()
        parent = self.agent
        if parent is None or self.token is None:
            return
        try:
            known = await self._ask(rq.Register(
                agent=f"{parent}.1", parent=parent, profile=self._profile, unique=True,
                silence_s=self.silence_s, description=f"a process of {parent}"), None)
        except Refusal as refusal:
            self._wire.token = None
            if refusal.code not in GONE and refusal.code is not Code.UNKNOWN_AGENT:
                raise
            return
        self.agent, self._wire.token = known.agent, known.token

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
                yield read(raw, rq.EventRow)
        finally:
            await to_the_end(wire.close(for_good=True))

    @contextlib.asynccontextmanager
    async def lease(
        self, *resources: str, ttl: float = 60.0, mode: rq.Mode = "exclusive", wait: float = 0.0,
        description: str = "", stall: float | None = None, reentrant: bool = False,
    ) -> AsyncIterator[AsyncHeld]:
        """Hold `resources` while the body runs, renewed every third of `ttl` (seconds), as
        `Client.lease` does: each body is a holder of its own, and a task that is started within it
        is another. A cancelled body has given them back before its cancellation goes on.

        Raises:
            Refusal: LOCKED and others, before the body runs.
            LeaseLost: it ended while the body ran, or at the body's end.
        """
        check_body(resources, ttl, wait, stall)
        around = bodies.around(self)
        branch = around or (bodies.Branch(await self.name(), private=False) if reentrant
                            else await self._take())
        before, branch.spent = branch.spent, True  # until it is known what it holds
        try:
            try:
                got = await self._grants.acquire(rq.Acquire(
                    agent=branch.agent, resources=listed(resources), ttl_s=ttl, mode=mode,
                    wait_s=wait, description=description, retry=False, cwd=here(),
                    reentrant=reentrant), None)
            except Refusal as refusal:
                branch.spent = before or not bodies.is_plain(refusal)
                raise
            held = AsyncHeld(self, got, ttl, stall, branch)
            with bodies.entered(self, branch):
                try:
                    yield held
                finally:
                    await to_the_end(held.end())
                    branch.spent = before or held.lost
            held._check_known()
        finally:
            if around is None:
                await to_the_end(self._part(branch))

    async def _take(self) -> bodies.Branch:
        """A holder that nobody else is.

        Raises:
            Refusal: this client's agent cannot register one.
        """
        parent = await self.name()
        idle = self._branches.take()
        if idle is not None:
            return idle
        request = bodies.registration(parent, self._profile, bodies.SILENCE_S)
        try:
            made = await self._ask(request, None)
        except Refusal as refusal:
            if refusal.code is not Code.INVALID:
                raise
            request.silence_s = None  # so long a silence is not possible here
            made = await self._ask(request, None)
        return bodies.Branch(made.agent)

    async def _part(self, branch: bodies.Branch) -> None:
        """Its body is over."""
        if self._process != os.getpid() or not branch.private:
            return
        if not branch.spent:
            self._branches.give_back(branch)
            return
        with contextlib.suppress(Refusal):  # it cannot be reached: what is held lapses
            await self._ask(rq.Leave(agent=branch.agent, reason="its body has ended"), None)
