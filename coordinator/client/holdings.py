"""What the bodies of one client hold, copy by copy: which of them gives what back at its end.

Owns the counting, and the judgement of what was there before; asks nothing of anybody.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coordinator.client.turns import TurnTable
from coordinator.words import requests as rq
from coordinator.words.clock import iso

#: Where several bodies of a client ask: what was locked so long (ms) before the first of them did
#: was not granted to another of these.
MOMENT_MS = 100


class _Copy(NamedTuple):
    """What a lease is on: a resource, in one working tree (None: the main one)."""

    resource: str
    worktree: str | None


class GivenBack(NamedTuple):
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
                for copy in [one for one in self._at
                             if one in asked.heard or one.resource in names]:
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
            mode: str | None) -> tuple[list[GivenBack], list[GivenBack]]:
        """It holds them no more: what nobody holds now, and what is only read by now. That is to
        be given back, in the same turn."""
        unheld, read = [], []
        with self._lock:
            for lease in leases:
                at = self._at[_copy(lease)]
                asked = mode or lease.mode
                at.bodies[asked] -= 1
                needed = at.needed()
                one = GivenBack(lease.resource, at.token, lease.resource not in self._several)
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
        # (Whoever asks may hear of it late: what was granted to others is remembered until then.)
        if not (self._at[copy].asking or self._at[copy].bodies.total()
                or copy.resource in self._asking):
            del self._at[copy]


def _copy(lease: rq.Lease) -> _Copy:
    return _Copy(lease.resource, lease.worktree)


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
