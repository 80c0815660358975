"""Who had the right to write what a moment ago: rights that have ended lately, by name.

A write is seen a moment after it was made; its writer may have released the file meanwhile. Read
from the log; decides nothing.
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

#: So far back (ms; and events) the log is searched for whoever had the right to write then.
LATE_MS = 10_000
LATE_EVENTS = 5_000


class EndedRights:
    """Who had which rights that ended lately: of each resource, the last end of one.

    Read from the log, which only grows: what was read stays true, and only what is new is read
    again. For one run of changes; a new one begins anew.
    """

    def __init__(self) -> None:
        self._seq: int | None = None
        self._ends: dict[str, End] = {}
        self._scopes: list[str] = []  # of `_ends`, sorted
        self._globs: dict[str, tuple[Resource, End]] = {}

    def catch_up(self, tx: Tx) -> None:
        """Read what was added to the log since the last time."""
        newest = tx.last_seq - tx.recorded  # on disk: what is not may be given up
        after = max(0, newest - LATE_EVENTS) if self._seq is None else self._seq
        self._seq = newest
        for row in tx.each(LogRow, "rights_ended_since", after, tx.later(-LATE_MS)):
            self.note(row.at, row.seq, str(row.agent), str(row.resource), what_of(row.data))

    def note(self, instant: str, seq: int, agent: str, name: str, what: What) -> None:
        """This agent's right to this has ended; later ends are noted later."""
        end, scope = End(instant, seq, agent), what.scope
        if what.lease_kind == "glob":
            self._globs[name] = as_resource(name, "glob", scope), end
            return
        if scope not in self._ends:
            insort(self._scopes, scope)
        self._ends[scope] = end

    def last_of(self, asked: Resource) -> End | None:
        """The last end of a right to this very thing."""
        return self._ends.get(asked.scope)

    def last(self, asked: Resource) -> End | None:
        """The last end of a right to what overlaps this file."""
        scope, ends = asked.scope, list[End]()
        position = scope.find("/") + 1
        while position:  # what contains it
            if (end := self._ends.get(scope[:position])) is not None:
                ends.append(end)
            position = scope.find("/", position) + 1
        for below in self._scopes[bisect_right(self._scopes, scope):]:  # its regions, say
            if not below.startswith(scope):
                break
            ends.append(self._ends[below])
        ends += [end for glob, end in self._globs.values() if overlaps(asked, glob)]
        return max(ends, key=lambda end: end.seq, default=None)


class End(NamedTuple):
    at: str
    seq: int
    agent: str


class What(msgspec.Struct):
    """What of the end of a right is asked for here. (The kind is not told from the name: a file
    may be called `[id].tsx`.)"""

    scope: str
    lease_kind: str = "file"


what_of = msgspec.json.Decoder(What).decode
