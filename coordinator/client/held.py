"""What a held lease tells its body, whoever renews it: whether it is lost, and its fencing token.

Owns the judgement; renews nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

from coordinator.client.bodies import Branch
from coordinator.words import requests as rq
from coordinator.words.pickled import Pickled
from coordinator.words.refusals import Code, Refusal

#: The lease has ended, whatever is tried (UNAUTHORIZED: with its agent's session).
GONE = (Code.STALE_TOKEN, Code.NOT_HOLDER, Code.UNKNOWN_LEASE, Code.UNAUTHORIZED)


class LeaseLost(Pickled, Exception):
    """The lease ended while its body ran: what the body wrote since may collide with others."""

    def __init__(self, resources: Sequence[str], why: str) -> None:
        super().__init__(f"The lease on {', '.join(resources)} was lost: {why}")
        self.resources = list(resources)


class HeldLeases:
    """Leases while a body runs.

    Attributes:
        leases: as they were granted, one a resource.
        agent: who holds them.
    """

    def __init__(self, agent: str, got: rq.Acquired, ttl_s: float, stall_s: float | None,
                 silence_s: float | None = None, branch: Branch | None = None) -> None:
        self.agent = agent
        self.leases = got.leases
        #: The newest lease token of each copy. Bodies of one holder have them together, for one
        #: within another may change what that has.
        self._tokens = branch.tokens if branch is not None else {}
        self._alone = branch is not None and branch.private
        self._had(got.leases)
        self._ttl_s = ttl_s
        #: So often it is renewed: an agent that may not be silent for long is heard of by that.
        self._every_s = min(ttl_s, silence_s or ttl_s) / 3
        self._stall_s = stall_s
        self._moved_at = self._confirmed_at = time.monotonic()
        self._lost: str | None = None
        self._over = False
        self._process = os.getpid()
        #: Whether its body runs still, as far as this can be seen from outside of it.
        self.runs: Callable[[], bool] = lambda: True

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
        self._check_known()

    def _check_known(self) -> None:
        """Without asking anybody.

        Raises:
            LeaseLost: the lease is known to have ended, or was not confirmed in time.
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

    def _may_ask(self) -> bool:
        """Whether asking the coordinator can tell anything: a fork holds nothing."""
        return self._lost is None and not self._over and self._process == os.getpid()

    def _compare(self, held: rq.LockList) -> None:
        """Note what is not held any more. (By name, as it is renewed: a body within this one may
        have made another lease of it.)"""
        names = {(lease.resource, lease.worktree) for lease in held.items}
        gone = [lease.resource for lease in self.leases
                if (lease.resource, lease.worktree) not in names]
        if gone and held.next is None:
            self._lost = f"{self.agent} does not hold {', '.join(gone)} any more"

    def _renewal(self) -> rq.Renew:
        """Names are from the root here, wherever the program stands: no `cwd`."""
        return rq.Renew(agent=self.agent, resources=self.resources, ttl_s=self._ttl_s)

    def _ending(self, release: bool) -> Generator[rq.Request[Any], Any]:
        """What is asked at the end, one after the other: yields it, and is sent the answer, or the
        refusal. It learns whether all was held so long, and gives back what is to be: not
        what its holder had before."""
        if not release:
            return
        kept = [lease.resource for lease in self.leases if lease.reentrant]
        if kept and self._lost is None:  # who has it goes on with it
            self._noted((yield rq.Renew(agent=self.agent, resources=kept, ttl_s=self._ttl_s)))
        mine = [lease for lease in self.leases if not lease.reentrant]
        if self._alone and len(mine) > 1 and not any(
                lease.further or lease.replaces for lease in mine):
            self._noted((yield rq.Release(
                agent=self.agent, resources=[lease.resource for lease in mine])))
            mine = [] if self._lost is None else mine  # some are lost: each of them by itself
        for lease in mine:
            self._noted((yield rq.Release(
                agent=self.agent, resources=[lease.resource],
                lease_token=self._tokens.get((lease.resource, lease.worktree)),
                keep_shared=lease.replaces is not None)))

    def _had(self, leases: Sequence[rq.Lease]) -> None:
        self._tokens.update({(lease.resource, lease.worktree): lease.lease_token
                             for lease in leases if lease.lease_token is not None})

    def _noted(self, answer: Any) -> None:
        if isinstance(answer, rq.Released):
            self._had(answer.released)  # what is only read from now on has another token
        elif isinstance(answer, Refusal) and answer.code in GONE and self._lost is None:
            self._lost = answer.message
