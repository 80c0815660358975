"""A held lease: renewed while its body runs, given back at its end, lost if neither is possible.

The module decides which of these it is. `async_concurrency` decides what runs beside the body, and
when.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from coordinator.client.async_concurrency import AsyncChecked, AsyncRenewing
from coordinator.client.bodies import GONE, Branch, LeaseLost
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal

if TYPE_CHECKING:
    from coordinator.client.async_client import AsyncClient

#: How long (seconds) the coordinator has to tell whether a lease still lives.
CHECK_S = 2.0


class AsyncHeld(AsyncChecked):
    """Leases while a body runs.

    Attributes:
        leases: as they were granted, one a resource.
        agent: the holder.
    """

    def __init__(
        self, client: AsyncClient, got: rq.Acquired, ttl_s: float, stall_s: float | None,
        branch: Branch | None = None, runs: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client = client
        self.agent = branch.agent if branch is not None else str(client.agent)
        self.leases = got.leases
        #: The newest lease token of each copy. Bodies of one holder share them, because an inner
        #: one may change the outer one's.
        self._tokens = branch.tokens if branch is not None else {}
        self._alone = branch is not None and branch.private
        self._note_tokens(got.leases)
        self._ttl_s, self._stall_s = ttl_s, stall_s
        self._moved_at = self._confirmed_at = time.monotonic()
        self._lost: str | None = None
        self._over = False
        self._process = os.getpid()
        #: Whether its body runs still, as far as this can be seen from outside of it.
        self._runs = runs
        # An agent that may not be silent for long is heard of by its renewals.
        every_s = min(ttl_s, client.silence_s or ttl_s) / 3
        self._renewing = AsyncRenewing(self._renew, every_s)

    def __repr__(self) -> str:
        how = f"lost: {self._lost}" if self._lost else (
            "given back" if self._over else f"fencing token {self.fencing_token}")
        return f"<{type(self).__name__} {', '.join(self.resources)} ({how})>"

    @property
    def resources(self) -> list[str]:
        """The names of the leased resources."""
        return [lease.resource for lease in self.leases]

    @property
    def fencing_token(self) -> int:
        """The highest fencing token of the set: hand it to what you write to."""
        return max(lease.fencing_token for lease in self.leases)

    @property
    def lost(self) -> bool:
        """Whether the lease is known to have ended."""
        return self._lost is not None

    def progress(self) -> None:
        """The body moves. Raises if the lease was lost meanwhile."""
        self._moved_at = time.monotonic()
        self._check_known()

    async def confirm(self) -> None:
        """Ask the coordinator whether it is still held. Without a quick answer, its last renewal
        counts.

        Raises:
            LeaseLost: the lease has ended, or its renewal was not confirmed in time.
        """
        if self._lost is None and self._is_ours():
            with contextlib.suppress(Refusal):
                self._compare(await self._client._ask(
                    rq.Locks(agent=self.agent), timeout_s=CHECK_S))
        self._check_known()

    async def end(self, *, release: bool = True) -> None:
        """Stop the renewal and, with `release`, give back what its holder did not have before. What
        is not given back, also because the coordinator cannot be reached, stays until it expires.
        `confirm` tells whether all was held to the end."""
        if not self._is_ours():
            return
        self._over = True
        await self._renewing.stop()
        if release:
            await self._give_back()

    def _is_ours(self) -> bool:
        """Whether its body runs here: a forked child leaves the lease to its parent."""
        return not self._over and self._process == os.getpid()

    def _check_known(self) -> None:
        """Without asking anybody.

        Raises:
            LeaseLost: the lease is known to have ended, or was not confirmed in time.
        """
        if self._lost is None and self._is_ours() and self._is_late(time.monotonic()):
            self._lost = "it was not renewed in time"
        if self._lost is not None:
            raise LeaseLost(self.resources, self._lost)

    def _is_late(self, now: float) -> bool:
        return now - self._confirmed_at > self._ttl_s

    def _compare(self, locks: rq.LockList) -> None:
        """Note what is not held any longer. Leases are compared by name, as they are renewed,
        because a body within this one may have replaced a lease."""
        names = {(lease.resource, lease.worktree) for lease in locks.items}
        gone = [lease.resource for lease in self.leases
                if (lease.resource, lease.worktree) not in names]
        if gone and locks.next is None:
            self._lost = f"{self.agent} does not hold {', '.join(gone)} any more"

    async def _renew(self) -> bool:
        """Renew the lease. Returns whether to continue."""
        now = time.monotonic()
        if self._over or not self._runs() or self._stalls(now):
            return False
        try:
            await self._client.call(self._renewal(self.resources))
        except Refusal as refusal:
            if refusal.code in GONE:
                self._lost = refusal.message
            elif self._is_late(now):
                self._lost = f"it could not be renewed in time: {refusal.message}"
            return self._lost is None
        self._confirmed_at = now
        return True

    def _stalls(self, now: float) -> bool:
        """Whether the body has not moved for too long; then the lease is lost."""
        if self._stall_s is None or now - self._moved_at <= self._stall_s:
            return False
        self._lost = f"the body made no progress for {self._stall_s:g} s"
        return True

    def _renewal(self, resources: list[str]) -> rq.Renew:
        """Names are from the root here, wherever the program is: no `cwd`."""
        return rq.Renew(agent=self.agent, resources=resources, ttl_s=self._ttl_s)

    async def _give_back(self) -> None:
        """Give back what its holder did not have before, and learn whether all of it was held until
        now."""
        kept = [lease.resource for lease in self.leases if lease.reentrant]
        if kept and self._lost is None:  # its earlier holder continues with it
            await self._tell(self._renewal(kept))
        mine = [lease for lease in self.leases if not lease.reentrant]
        if await self._gives_back_together(mine):
            return
        for lease in mine:
            await self._tell(rq.Release(
                agent=self.agent, resources=[lease.resource],
                lease_token=self._tokens.get((lease.resource, lease.worktree)),
                keep_shared=lease.replaces is not None))

    async def _gives_back_together(self, leases: Sequence[rq.Lease]) -> bool:
        """Give back several by one request, if possible; returns whether that worked. If some are
        lost, each is given back by itself."""
        if not self._alone or len(leases) < 2 or any(
                lease.further or lease.replaces for lease in leases):
            return False
        await self._tell(rq.Release(
            agent=self.agent, resources=[lease.resource for lease in leases]))
        return self._lost is None

    async def _tell(self, request: rq.Request[Any]) -> None:
        """Ask this, and note what its answer says of the lease."""
        try:
            answer = await self._client.call(request)
        except Refusal as refusal:
            if refusal.code in GONE and self._lost is None:
                self._lost = refusal.message
            return
        if isinstance(answer, rq.Released):
            self._note_tokens(answer.released)  # a lease that is now for reading has a new token

    def _note_tokens(self, leases: Sequence[rq.Lease]) -> None:
        self._tokens.update({(lease.resource, lease.worktree): lease.lease_token
                             for lease in leases if lease.lease_token is not None})
