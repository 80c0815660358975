"""What a held lease tells its body, whoever renews it: whether it is lost, and its fencing token.

Owns the judgement; renews nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: How often it is looked whether another body's giving back is over (seconds).
SETTLING_S = 0.002
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


class Holdings:
    """What the bodies of one client hold, in whatever order they begin and end. The last of those
    who hold a resource gives it back, the last of those who write it gives back that right: unless
    the client had it before the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at: dict[str, _At] = {}
        #: What is being given back just now.
        self._going: Counter[str] = Counter()
        self._turns: WeakValueDictionary[str, threading.RLock] = WeakValueDictionary()

    def turn(self, name: str) -> threading.RLock:
        """Of the threads of this client that ask for the same turn, one has it at a time."""
        with self._lock:
            known = self._turns.get(name)
            if known is None:
                known = self._turns[name] = threading.RLock()
            return known

    def begin(self, leases: Sequence[rq.Lease], mode: str | None) -> None:
        """A body holds these from now on, in the mode that it has asked for (None: as granted)."""
        with self._lock:
            for lease in leases:
                had = lease.mode if lease.reentrant else None
                at = self._at.setdefault(
                    lease.resource, _At("shared" if lease.was_shared else had))
                at.bodies[mode or lease.mode] += 1
                if not lease.reentrant or at.token is None:
                    at.token = lease.lease_token
                if not lease.reentrant and not lease.was_shared:
                    at.before = None  # what there was has ended

    def claimed(self, leases: Sequence[rq.Lease]) -> None:
        """A task of this client has these from now on, also where a body had them until now: they
        stay until the task's end."""
        with self._lock:
            for lease in leases:
                at = self._at.get(lease.resource)
                if at is not None and not lease.reentrant:
                    at.before = lease.mode

    def anew(self, leases: Sequence[rq.Lease]) -> None:
        """These were granted just now, to a question whose asker has gone: the bodies that took
        them for what the client had before give them back."""
        with self._lock:
            for lease in leases:
                if (at := self._at.get(lease.resource)) is not None:
                    at.before = "shared" if lease.was_shared else None

    def end(self, leases: Sequence[rq.Lease],
            mode: str | None) -> tuple[dict[str, str | None], list[str]]:
        """It holds them no more: what nobody holds now (with the token of the newest lease on it),
        and what is only read by now. That is to be given back; `given_back` is called when it is
        over."""
        unheld: dict[str, str | None] = {}
        read = []
        with self._lock:
            for lease in leases:
                at = self._at[lease.resource]
                asked = mode or lease.mode
                at.bodies[asked] -= 1
                needed = at.needed()
                if needed is None:
                    unheld[lease.resource] = at.token
                elif needed == "shared" and asked == "exclusive":
                    read.append(lease.resource)
                if not at.bodies.total():
                    del self._at[lease.resource]
            self._going.update([*unheld, *read])
        return unheld, read

    def stay(self, leases: Sequence[rq.Lease]) -> list[str]:
        """What is not to be given back when this body ends, as far as can be told before."""
        with self._lock:
            return [lease.resource for lease in leases if (at := self._at[lease.resource]).before
                    or at.bodies.total() > 1]

    def given_back(self, resources: Sequence[str]) -> None:
        """What `end` has told is given back, or will not be."""
        with self._lock:
            self._going.subtract(resources)

    def goes(self, leases: Sequence[rq.Lease]) -> bool:
        """Whether another body of this client, which ended before this one began, is just giving
        one of these back: then it may go though this one was granted it."""
        with self._lock:
            return any(self._going[lease.resource] > 0 for lease in leases)


class _At:
    """What is held of one resource.

    Attributes:
        before: the mode in which the client has it whatever its bodies do; None: not at all.
        bodies: how many hold it, by the mode that they have asked for.
        token: of the newest lease on it; another body's, where one has lost its own.
    """

    def __init__(self, before: str | None) -> None:
        self.before = before
        self.bodies: Counter[str] = Counter()
        self.token: str | None = None

    def needed(self) -> str | None:
        """The mode that it is still held in; None: in none."""
        for mode in ("exclusive", "shared"):
            if self.before == mode or self.bodies[mode]:
                return mode
        return None


class HeldLeases:
    """Leases while a body runs.

    Attributes:
        leases: as they were granted, one a resource.
    """

    def __init__(self, holdings: Holdings, got: rq.Acquired, ttl_s: float,
                 stall_s: float | None, silence_s: float | None = None,
                 mode: str | None = None) -> None:
        self.leases = got.leases
        self._holdings, self._mode = holdings, mode
        holdings.begin(got.leases, mode)
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
        try:
            if release:
                yield from self._given_back(agent, mine)
            if release and read and self._lost is None:
                self._noted((yield rq.Release(agent=agent, resources=read, keep_shared=True)))
        finally:
            self._holdings.given_back([*mine, *read])

    def _given_back(self, agent: str, mine: Mapping[str, str | None]
                    ) -> Generator[rq.Request[Any], Refusal | None]:
        if mine and self._lost is None:
            self._noted((yield rq.Release(agent=agent, resources=list(mine))))
            if self._lost is None:
                return
        for resource, token in mine.items():  # some are lost: each of the others by itself
            yield rq.Release(agent=agent, resources=[resource], lease_token=token)

    @property
    def _is_shared(self) -> bool:
        """Whether it was granted as what the agent had already, or had shared: then it has to be
        seen whether it stays (`Holdings.goes`)."""
        return any(lease.reentrant or lease.was_shared for lease in self.leases)

    def _is_as_asked(self, now: rq.Renewed) -> bool:
        """Whether it still is what was asked for: another body may just have given back the right
        to write."""
        return self._mode != "exclusive" or all(
            lease.mode == "exclusive" or lease.agreed_as is not None for lease in now.leases)

    def _noted(self, refusal: Refusal | None) -> None:
        if refusal is not None and refusal.code in GONE:
            self._lost = refusal.message
