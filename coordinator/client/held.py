"""What a held lease tells its body, whoever renews it: whether it is lost, and its fencing token.

Owns the judgement; renews nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: The lease has ended, whatever is tried.
GONE = (Code.STALE_TOKEN, Code.NOT_HOLDER, Code.UNKNOWN_LEASE)


class LeaseLost(Exception):
    """The lease ended while its body ran: what the body wrote since may collide with others."""

    def __init__(self, resources: Sequence[str], why: str) -> None:
        super().__init__(f"The lease on {', '.join(resources)} was lost: {why}")
        self.resources = list(resources)
        self._why = why

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.resources, self._why)


class HeldLeases:
    """Leases while a body runs.

    Attributes:
        leases: as they were granted, one a resource.
    """

    def __init__(self, got: rq.Acquired, ttl_s: float, stall_s: float | None) -> None:
        self.leases = got.leases
        self._ttl_s = ttl_s
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

    def _to_release(self) -> list[str]:
        """What is to be given back: not what was held before, nothing of what is lost."""
        return [] if self._lost is not None else [
            lease.resource for lease in self.leases if not lease.reentrant]
