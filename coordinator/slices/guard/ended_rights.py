"""`EndedRights` tells which agent lately lost or gave back the right to write a resource.

The watcher sees a write a moment after the writer made it. The writer may have released the file by
then. `EndedRights` reads the ended rights from the log, and decides nothing.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import NamedTuple

import msgspec

from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store.ledger import Tx
from coordinator.store.rows import LogRow
from coordinator.words.resource_names import Resource

#: A search of the log goes back so many milliseconds, and so many events.
LATE_MS = 10_000
LATE_EVENTS = 5_000


class EndedRights:
    """For each resource, the last end of a right to it.

    The log only grows, so what was read stays true, and `catch_up` reads only new events. One
    object serves one batch of changes that the watcher saw; the next batch gets a new one.
    """

    def __init__(self) -> None:
        self._read_up_to: int | None = None
        self._ends: dict[str, End] = {}
        self._scopes: list[str] = []  # the keys of `_ends`, sorted
        self._globs: dict[str, tuple[Resource, End]] = {}

    def catch_up(self, tx: Tx) -> None:
        """Read the events that the log has got since the last call."""
        newest = tx.last_seq - tx.recorded  # later events may be rolled back
        after = max(0, newest - LATE_EVENTS) if self._read_up_to is None else self._read_up_to
        self._read_up_to = newest
        for row in tx.each(LogRow, "rights_ended_since", after, tx.later(-LATE_MS)):
            self.note(row.at, row.seq, str(row.agent), str(row.resource), read_lease(row.data))

    def note(self, instant: str, seq: int, agent: str, name: str, lease: EndedLease) -> None:
        """Note the end of an agent's right to a resource. Callers note the older ends first."""
        end, scope = End(instant, seq, agent), lease.scope
        if lease.lease_kind == "glob":
            self._globs[name] = as_resource(name, "glob", scope), end
            return
        if scope not in self._ends:
            insort(self._scopes, scope)
        self._ends[scope] = end

    def last_exact(self, asked: Resource) -> End | None:
        """Return the last end of a right to exactly this resource."""
        return self._ends.get(asked.scope)

    def last_overlapping(self, asked: Resource) -> End | None:
        """Return the last end of a right to any resource that overlaps this file."""
        scope, ends = asked.scope, list[End]()
        position = scope.find("/") + 1
        while position:  # the file, and what contains it
            if (end := self._ends.get(scope[:position])) is not None:
                ends.append(end)
            position = scope.find("/", position) + 1
        for below in self._scopes[bisect_right(self._scopes, scope):]:  # its regions
            if not below.startswith(scope):
                break
            ends.append(self._ends[below])
        ends += [end for glob, end in self._globs.values() if overlaps(asked, glob)]
        return max(ends, key=lambda end: end.seq, default=None)


class End(NamedTuple):
    """The end of one right: its instant, a number that rises with each end, and who had it."""

    at: str
    seq: int
    agent: str


class EndedLease(msgspec.Struct):
    """The fields that this module reads of the event that ends a lease. `lease_kind` tells a glob,
    since a name cannot: a file may be called `[id].tsx`."""

    scope: str
    lease_kind: str = "file"


read_lease = msgspec.json.Decoder(EndedLease).decode
