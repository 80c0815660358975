"""What a held lease tells its body, whoever renews it: whether it is lost, and its fencing token.

Owns the judgement; renews nothing.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from coordinator.client.turns import TurnTable
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from coordinator.words.refusals import Code, Refusal

#: Where several bodies of a client ask: what was locked so long (ms) before the first of them did
#: was not granted to another of these.
MOMENT_MS = 100
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


class _Copy(NamedTuple):
    """What a lease is on: a resource, in one working tree (None: the main one)."""

    resource: str
    worktree: str | None


class _GivenBack(NamedTuple):
    """What a body gives back at its end.

    Attributes:
        token: of the newest lease on it.
        alone: whether the client has no copy of it in another working tree, as far as it was told:
            else its name means that one, too.
    """

    resource: str
    token: str | None
    alone: bool


class Holdings:
    """What the bodies of one client hold, in whatever order they begin and end. The last of those
    who hold a copy gives it back, the last of those who write it gives back that right: unless
    the client had it before the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at: dict[_Copy, _At] = {}
        #: How many bodies ask for a name, and what was so when the first of them did.
        self._asking: dict[str, _Asking] = {}
        #: Names of which this client had more than one copy.
        self._several: set[str] = set()
        #: The highest fencing token that this client has heard of.
        self._newest = 0
        self.turns = TurnTable()

    @contextlib.contextmanager
    def asked_for(self, names: Sequence[str]) -> Iterator[Asked]:
        """A body asks for these, until it has begun. (What it is granted may be called otherwise:
        in a working tree that lies in another, say.)"""
        with self._lock:
            asked = Asked([self._asking.setdefault(name, _Asking(self._newest)) for name in names])
            for one in asked.of:
                one.bodies += 1
                one.most = max(one.most, one.bodies)
        try:
            yield asked
        finally:
            with self._lock:
                for name in names:
                    self._asking[name].bodies -= 1
                    if not self._asking[name].bodies:
                        del self._asking[name]
                for copy in asked.heard:
                    self._at[copy].asking -= 1
                    self._forget(copy)

    def begin(self, leases: Sequence[rq.Lease], mode: str | None, asked: Asked | None) -> None:
        """A body holds these from now on, in the mode that it has asked for (None: as granted).
        `asked`: as what it has asked for them, if that is the last that was done to them."""
        with self._lock:
            for lease in leases:
                at = self._heard_of(lease, asked, in_turn=True)
                at.bodies[mode or lease.mode] += 1
                self._newest = max(self._newest, lease.fencing_token)

    def heard(self, leases: Sequence[rq.Lease], asked: Asked) -> None:
        """A question for a body was granted these, while others may give them back."""
        with self._lock:
            for lease in leases:
                self._heard_of(lease, asked, in_turn=False)

    def _heard_of(self, lease: rq.Lease, asked: Asked | None, in_turn: bool) -> _At:
        at = self._at.get(copy := _copy(lease))
        if at is None:
            asking = self._asking.get(lease.resource) or (
                min(asked.of, key=lambda one: one.newest) if asked is not None else None)
            at = self._at[copy] = _At(asking or _Asking(self._newest))
        if asked is not None and copy not in asked.heard:
            asked.heard.add(copy)
            at.asking += 1
        at.heard_of(lease, alone=asked is not None and in_turn and not at.bodies.total() and all(
            one.most == 1 for one in asked.of))
        if lease.further:
            self._several.add(lease.resource)
        return at

    def acquired(self, leases: Sequence[rq.Lease]) -> None:
        """The client has these, without a body so far."""
        with self._lock:
            for lease in leases:
                self._newest = max(self._newest, lease.fencing_token)
                if lease.further:
                    self._several.add(lease.resource)
                if (at := self._at.get(_copy(lease))) is not None:
                    at.told_of(lease)

    def claimed(self, leases: Sequence[rq.Lease]) -> None:
        """A task of this client has these from now on, also where a body had them until now: they
        stay until the task's end."""
        with self._lock:
            for lease in leases:
                self._newest = max(self._newest, lease.fencing_token)
                at = self._at.get(_copy(lease))
                if at is not None and not lease.reentrant:
                    at.before, at.since = lease.mode, lease.fencing_token

    def end(self, leases: Sequence[rq.Lease],
            mode: str | None) -> tuple[list[_GivenBack], list[_GivenBack]]:
        """It holds them no more: what nobody holds now, and what is only read by now. That is to
        be given back, in the same turn."""
        unheld, read = [], []
        with self._lock:
            for lease in leases:
                at = self._at[_copy(lease)]
                asked = mode or lease.mode
                at.bodies[asked] -= 1
                needed = at.needed()
                one = _GivenBack(lease.resource, at.token, lease.resource not in self._several)
                if needed is None:
                    unheld.append(one)
                elif needed == "shared" and asked == "exclusive":
                    read.append(one)
                self._forget(_copy(lease))
        return unheld, read

    def stay(self, leases: Sequence[rq.Lease]) -> list[str]:
        """What is not to be given back when this body ends, as far as can be told before."""
        with self._lock:
            return [lease.resource for lease in leases if (at := self._at[_copy(lease)]).before
                    or at.bodies.total() > 1]

    def _forget(self, copy: _Copy) -> None:
        if not (self._at[copy].asking or self._at[copy].bodies.total()):
            del self._at[copy]


def _copy(lease: rq.Lease) -> _Copy:
    return _Copy(lease.resource, lease.worktree)


def as_first_told(now: rq.Acquired, first: rq.Acquired | None) -> rq.Acquired:
    """A grant as it is by now, with what is told of it only once: that it is new, or what it
    replaces."""
    told = {} if first is None else {one.fencing_token: one for one in first.leases}
    leases = [lease if (one := told.get(lease.fencing_token)) is None else msgspec.structs.replace(
        lease, reentrant=one.reentrant, replaces=one.replaces) for lease in now.leases]
    return msgspec.structs.replace(now, leases=leases)


class _Asking:
    """That bodies ask for a name, and when the first of them did.

    Attributes:
        bodies: how many ask for it.
        most: how many did at once.
        newest: the highest fencing token that the client had heard of by then.
        began: that moment, and a little before.
    """

    def __init__(self, newest: int) -> None:
        self.bodies = self.most = 0
        self.newest, self.began = newest, iso(time.time_ns() // 1_000_000 - MOMENT_MS)


class Asked:
    """What one body asks for.

    Attributes:
        of: each name that it has said.
        heard: what it was told of.
    """

    def __init__(self, of: Sequence[_Asking]) -> None:
        self.of = of
        self.heard: set[_Copy] = set()


class _At:
    """What is held of one copy, from the first body that asks for it to the end of the last.

    Attributes:
        before: the mode in which the client has it whatever its bodies do; None: not at all.
        bodies: how many hold it, by the mode that they have asked for.
        asking: how many were told of it, and may hold it in a moment.
        token: of the newest lease on it; another body's, where one has lost its own.
        since: the fencing token of what a task of the client has got meanwhile.
    """

    def __init__(self, asking: _Asking) -> None:
        self.before: str | None = None
        self.since = 0
        self.bodies: Counter[str] = Counter()
        self.asking = 0
        self.token: str | None = None
        self._fencing = 0
        self._newest, self._began = asking.newest, asking.began
        #: What questions for bodies were granted (fencing tokens).
        self._granted: set[int] = set()

    def heard_of(self, lease: rq.Lease, alone: bool) -> None:
        """What is told of a lease on it: whether that is older than all that its bodies did. What
        one question was granted another is told of as of something that it had before. `alone`: no
        other has it, or has asked meanwhile."""
        self.told_of(lease)
        if lease.replaces is not None:
            if self.before is not None or self._is_older(lease.replaces, alone):
                self.before = "shared"
            self._granted.add(lease.fencing_token)
        elif not lease.reentrant:
            if lease.fencing_token > self.since:
                self.before = None  # what there was has ended
            self._granted.add(lease.fencing_token)
        elif self._is_older(lease, alone):
            self.before = lease.mode

    def told_of(self, lease: rq.Lease) -> None:
        """What lease there is on it now, if this is one: who gave one back is told no token."""
        if lease.fencing_token > self._fencing and lease.lease_token is not None:
            self._fencing, self.token = lease.fencing_token, lease.lease_token

    def _is_older(self, lease: rq.Lease | rq.Replaced, alone: bool) -> bool:
        """Whether a lease was there before any body asked."""
        return lease.fencing_token not in self._granted and (
            alone or lease.fencing_token <= self._newest or lease.locked_at < self._began)

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

    def _given_back(self, agent: str, what: Sequence[_GivenBack], keep_shared: bool = False
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


def _release(agent: str, one: _GivenBack, keep_shared: bool = False) -> rq.Release:
    return rq.Release(agent=agent, resources=[one.resource], lease_token=one.token,
                      keep_shared=keep_shared)
