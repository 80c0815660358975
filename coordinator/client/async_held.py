"""A lease of the asyncio client while its body runs, renewed by a task of the same loop.

Owns the renewing and the ending; what they mean is judged in `held`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from coordinator.client.bodies import Branch
from coordinator.client.held import HeldLeases
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal

if TYPE_CHECKING:
    from coordinator.client.async_client import AsyncClient

T = TypeVar("T")


class AsyncHeld(HeldLeases):
    """A lease while its body runs."""

    def __init__(self, client: AsyncClient, got: rq.Acquired, ttl_s: float,
                 stall_s: float | None, branch: Branch | None = None) -> None:
        agent = branch.agent if branch is not None else str(client.agent)
        super().__init__(agent, got, ttl_s, stall_s, client.silence_s, branch)
        self._client = client
        self._renewing = asyncio.create_task(self._renew(), name="coord-renew")

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            now = time.monotonic()
            if not self.runs() or self._stalls(now):
                return
            try:
                await self._client.call(self._renewal())
                self._confirmed_at = now
            except Refusal as refusal:
                if self._refused(refusal, now):
                    return

    def check(self) -> None:
        """By its last renewal; `confirm` asks.

        Raises:
            LeaseLost: the lease is known to have ended, or was not confirmed in time.
        """
        self._check_known()

    async def confirm(self) -> None:
        """Ask the coordinator whether it is held still; where that does not answer, as `check`.

        Raises:
            LeaseLost: it is not.
        """
        if self._may_ask():
            with contextlib.suppress(Refusal):
                self._compare(await self._client.call(rq.Locks(agent=self.agent)))
        self._check_known()

    async def end(self, *, release: bool = True) -> None:
        """Renew no more and, with `release`, give back what its holder did not have before, as
        `Held.end`."""
        if self._over or self._process != os.getpid():
            return  # a forked child leaves the body: the lease is its parent's
        self._over = True
        self._renewing.cancel()
        await asyncio.wait([self._renewing])
        ending = self._ending(release)
        answer: Any = None
        with contextlib.suppress(StopIteration):
            while True:
                request = ending.send(answer)
                try:
                    answer = await self._client.call(request)
                except Refusal as no:
                    answer = no


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """What this gives, done whole whoever is cancelled meanwhile; then the cancellation goes on."""
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
    return task.result()
