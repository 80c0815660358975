"""What a held lease tells its body, whoever renews it: whether it is lost, and its fencing token.

Owns the judgement; renews nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from coordinator.client.holdings import Asked, GivenBack, Holdings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: The lease has ended, whatever is tried (UNAUTHORIZED: with its agent's session).
GONE = (Code.STALE_TOKEN, Code.NOT_HOLDER, Code.UNKNOWN_LEASE, Code.UNAUTHORIZED)


class LeaseLost(Exception):
    """The lease ended while its body ran: what the body wrote since may collide with others."""

    def __init__(self, resources: Sequence[str], why: str) -> None:
        super().__init__(f"The lease on {', '.join(resources)} was lost: {why}")
        self.resources = list(resources)
        self._why = why

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.resources, self._why)


def as_first_told(now: rq.Acquired, first: rq.Acquired | None) -> rq.Acquired:
    """A grant as it is by now, with what is told of it only once: that it is new, or what it
    replaces."""
    told = {} if first is None else {one.fencing_token: one for one in first.leases}
    leases = [lease if (one := told.get(lease.fencing_token)) is None else msgspec.structs.replace(
        lease, reentrant=one.reentrant, replaces=one.replaces) for lease in now.leases]
    return msgspec.structs.replace(now, leases=leases)


class HeldLeases:
    """Leases while a body runs.

    Attributes:
        leases: as they were granted, one a resource.
    """

    def __init__(self, holdings: Holdings, got: rq.Acquired, ttl_s: float,
                 stall_s: float | None, silence_s: float | None = None,
                 mode: str | None = None, asked: Asked | None = None) -> None:
        self.leases = got.leases
        self._turns = holdings.turns.of_all(lease.resource for lease in got.leases)
        self._holdings, self._mode = holdings, mode
        holdings.begin(got.leases, mode, asked)
        self._ttl_s = ttl_s
        #: So often it is renewed: an agent that may not be silent for long is heard of by that.
        self._every_s = min(ttl_s, silence_s or ttl_s) / 3
        self._stall_s = stall_s
        self._moved_at = self._confirmed_at = time.monotonic()
        self._lost: str | None = None
        self._over = False
        self._process = os.getpid()

    def __repr__(self) -> str:
        how = f"lost: {self._lost}" if self._lost else (
            "given back" if self._over else f"fencing token {self.fencing_token}")
        return f"<{type(self).__name__} {', '.join(self.resources)} ({how})>"

    @property
    def resources(self) -> list[str]:
        """Names of what is held."""
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
        self.check()

    def check(self) -> None:
        """Raises:
        LeaseLost: the lease has ended, or its renewal was not confirmed in time.
        """
        late = time.monotonic() - self._confirmed_at > self._ttl_s
        ours = self._process == os.getpid() and not self._over  # a fork renews nothing
        if late and ours and self._lost is None:
            self._lost = "it was not renewed in time"
        if self._lost is not None:
            raise LeaseLost(self.resources, self._lost)

    def _stalls(self, now: float) -> bool:
        """Whether the body has not moved for too long; then it is lost."""
        if self._stall_s is None or now - self._moved_at <= self._stall_s:
            return False
        self._lost = f"the body made no progress for {self._stall_s:g} s"
        return True

    def _refused(self, refusal: Refusal, now: float) -> bool:
        """Note what a refused renewal means; whether it is lost."""
        if refusal.code in GONE:
            self._lost = refusal.message
        elif now - self._confirmed_at > self._ttl_s:
            self._lost = f"it could not be renewed in time: {refusal.message}"
        return self._lost is not None

    def _renewal(self, agent: str) -> rq.Renew:
        """Names are from the root here, wherever the program stands: no `cwd`."""
        return rq.Renew(agent=agent, resources=self.resources, ttl_s=self._ttl_s)

    def _ending(self, agent: str, release: bool) -> Generator[rq.Request[Any], Refusal | None]:
        """What is asked at the end, one after the other: yields it, and is sent the refusal, if
        that was one. It learns whether all was held so long, and gives back what is to be."""
        kept = self._holdings.stay(self.leases)
        if release and kept and self._lost is None:  # others of this client go on with it
            # It is seen that it is there while this body still counts: none gives it back.
            self._noted((yield rq.Renew(agent=agent, resources=kept, ttl_s=self._ttl_s)))
        mine, read = self._holdings.end(self.leases, self._mode)
        if release:
            yield from self._given_back(agent, mine)
            if self._lost is None:
                yield from self._given_back(agent, read, keep_shared=True)
            elif mine:  # some are lost: each of the others by itself
                for one in mine:
                    yield _release(agent, one)

    def _given_back(self, agent: str, what: Sequence[GivenBack], keep_shared: bool = False
                    ) -> Generator[rq.Request[Any], Refusal | None]:
        """At once what is named without doubt, each copy of the others by itself; until one of
        them is seen to be lost."""
        together = [one.resource for one in what if one.alone]
        if together and self._lost is None:
            self._noted((yield rq.Release(agent=agent, resources=together,
                                          keep_shared=keep_shared)))
        for one in what:
            if not one.alone and self._lost is None:
                self._noted((yield _release(agent, one, keep_shared)))

    def _noted(self, refusal: Refusal | None) -> None:
        if refusal is not None and refusal.code in GONE:
            self._lost = refusal.message


def _release(agent: str, one: GivenBack, keep_shared: bool = False) -> rq.Release:
    return rq.Release(agent=agent, resources=[one.resource], lease_token=one.token,
                      keep_shared=keep_shared)
