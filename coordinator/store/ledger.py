"""The one write path: jobs are gathered into one transaction, committed once, then answered.

Group commit: an fsync costs as much for thirty changes as for one, so whatever waits shares it. A
job is a function of a `Tx`; it reads, decides, and records events. It may

* return a value: its events are kept;
* return a `Refusal`: a no whose own event and place in line are kept;
* raise a `Refusal`: nothing of it is kept, and nothing was recorded before it was raised.

Jobs share a transaction without a savepoint each (about 4 µs saved): decisions come before the
first record, so a raised refusal leaves nothing behind. Should a job break that rule, or anything
else fail, the whole transaction is rolled back and each job is run again in one of its own: what
is slow is only the rare case. Nothing is told before it is on disk (invariant 4). Memoised facts
live no longer than the transaction. What goes from one commit to the next (`Carried`: the last
sequence number, the counters, agents' rows) is dropped after any failure, and whenever SQLite's own
version of the file says that anybody else has written to it.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from coordinator.store.database import DISK_ERRORS, storage_refusal
from coordinator.store.events import (
    KIND_OF,
    SUBJECT_OF,
    AgentHooked,
    AgentRegistered,
    AgentSeen,
    AgentState,
    Event,
    ReviewDecided,
    ReviewOpened,
    ReviewUndone,
    Subject,
    TaskChanged,
    WaiterLeft,
    WaiterQueued,
)
from coordinator.store.projections import APPLY, Apply, park
from coordinator.store.rows import AgentRow
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words.clock import iso
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.store")
T = TypeVar("T")
_encode_into = msgspec.json.Encoder().encode_into
_APPEND = Q["event_append"]
#: Events of a large transaction that one statement appends.
EVENTS_AT_ONCE = 16
_APPEND_SOME = _APPEND + ", (?, ?, ?, ?, ?, ?, ?)" * (EVENTS_AT_ONCE - 1)
_ABOUT_AGENTS = (AgentRegistered, AgentSeen, AgentState, AgentHooked)
_ABOUT_PRESENCE = (WaiterQueued, WaiterLeft, ReviewOpened, ReviewDecided, ReviewUndone, TaskChanged)
#: How events of a class are recorded: what applies them, what tells their subject, their name, and
#: whether something that is carried in memory is another after them.
_RECORDING: dict[type[Event], tuple[Apply, Callable[[Event], Subject], str, bool]] = {
    kind: (apply, SUBJECT_OF[kind], KIND_OF[kind], kind in _ABOUT_AGENTS + _ABOUT_PRESENCE)
    for kind, apply in APPLY.items()
}


#: All counters. Each number is given once, ever.
COUNTERS = ("fencing", "waiter", "task", "review", "notice", "unlock")
#: Numbers of a counter that are taken from the table at once: a commit then writes one page less.
#: Those that a stop leaves unused are skipped for ever; only fencing tokens are asked for so often.
COUNTER_BLOCKS = {"fencing": 64}
#: Agents whose rows are carried from commit to commit.
AGENTS_MAX = 4096


@dataclass(slots=True)
class Carried:
    """What a commit leaves for the next transaction, so that it need not be read again."""

    seq: int | None = None
    #: Counter -> the last number given; None until they are read.
    counters: dict[str, int] | None = None
    #: Counter -> what the table says: nothing above it was ever given.
    stored: dict[str, int] = field(default_factory=dict)
    agents: dict[str, AgentRow] = field(default_factory=dict)
    #: The same rows, by the hash of the agent's token.
    speakers: dict[str, AgentRow] = field(default_factory=dict)

    def learn(self, row: AgentRow) -> None:
        """Carry an agent's row."""
        if len(self.agents) >= AGENTS_MAX:
            self.agents.clear()
            self.speakers.clear()
        self.agents[row.agent] = row
        if row.token_hash is not None:
            self.speakers[row.token_hash] = row

    def forget(self, agent: str) -> None:
        """An agent's row has changed."""
        row = self.agents.pop(agent, None)
        if row is not None and row.token_hash is not None:
            self.speakers.pop(row.token_hash, None)


class View:
    """Reading, at an instant. `now` is `now_ms` as ISO text."""

    def __init__(self, db: apsw.Connection, now_ms: int) -> None:
        self.db = db
        self.cursor = db.cursor()  # for what is read whole, or not at all, before the next
        self.now_ms = now_ms
        self.now = iso(now_ms)
        self._instants: dict[int, str] = {}

    def later(self, ms: int) -> str:
        """The instant `ms` milliseconds from now, as ISO text."""
        text = self._instants.get(ms)
        if text is None:
            text = self._instants[ms] = iso(self.now_ms + ms)
        return text

    def rows(self, name: str, *params: Any) -> list[tuple[Any, ...]]:
        """All rows of the statement called `name`."""
        return self.cursor.execute(Q[name], params).fetchall()

    def row(self, name: str, *params: Any) -> tuple[Any, ...] | None:
        """Its first row, or None."""
        row: tuple[Any, ...] | None = self.db.execute(Q[name], params).fetchone()
        return row

    def agent_of(self, token_hash: str) -> AgentRow | None:
        """The row of the agent that a token speaks for; None if there is none, or it has left."""
        raw = self.row("agent_by_token", token_hash)
        return AgentRow(*raw) if raw is not None else None

    def blob(self, digest: str | None) -> bytes | None:
        """The bytes that `digest` names, if they are kept."""
        if digest is None:
            return None
        row = self.db.execute(Q["blob_get"], (digest,)).fetchone()
        return zlib.decompress(row[0]) if row else None


class Present(msgspec.Struct, frozen=True, gc=False):
    """What is seldom there and often asked for."""

    waiters: int
    """Somebody stands in line."""
    reviews: int
    """Partial work is not settled."""
    parked: int
    """A task is parked on what somebody holds."""


class Tx(View):
    """A transaction at an instant: reading, and recording events."""

    def __init__(
        self, db: apsw.Connection, now_ms: int, carried: Carried | None = None
    ) -> None:
        super().__init__(db, now_ms)
        self.recorded = 0
        self._events: list[tuple[Any, ...]] = []
        self._text = bytearray()  # where each event is encoded: one piece of memory for all
        self._carried = carried or Carried()
        self._raised: set[str] = set()
        self._present: Present | None = None
        #: Facts true for this transaction only, kept by who reads them.
        self.memo: dict[str, Any] = {}
        #: Directories that were looked at and are no links (`Tree.resolve`): an instant, a look.
        self.directories: set[str] = set()
        #: What to tell once this is on disk: (acquisition id, reply) of waiters that were granted.
        self.granted: list[tuple[str, Any]] = []
        #: Resources (name, kind, scope) that became free and whose waiters were not served yet.
        self.freed: list[tuple[str, str, str]] = []
        #: Something became free or ready: whoever waits for a task should look again.
        self.offers = False
        #: Where compaction wants to know what is kept while it works.
        self.kept: set[str] | None = None

    def record(self, event: Event) -> None:
        """Append the event and apply it: the only way to change state."""
        apply, subject, kind, forget = _RECORDING[type(event)]
        apply(self.cursor, self.now, event)
        agent, task, resource = subject(event)
        if forget:
            self._present = None
            if isinstance(event, _ABOUT_AGENTS):
                self._carried.forget(str(agent))
        known, text = self._carried, self._text
        known.seq = seq = (known.seq or self.last_seq) + 1
        _encode_into(event, text)
        self._events.append((seq, self.now, kind, agent, task, resource, text.decode()))
        self.recorded += 1

    def agent(self, name: str) -> AgentRow | None:
        """The agent's row as it is now, read again only after it changed."""
        row = self._carried.agents.get(name)
        return row if row is not None else self._learn(self.row("agent_get", name))

    def agent_of(self, token_hash: str) -> AgentRow | None:
        row = self._carried.speakers.get(token_hash)
        if row is None:
            return self._learn(self.row("agent_by_token", token_hash))
        return row if row.state != "gone" else None

    def _learn(self, raw: tuple[Any, ...] | None) -> AgentRow | None:
        if raw is None:
            return None
        row = AgentRow(*raw)
        self._carried.learn(row)
        return row

    def free(self, name: str, kind: str, scope: str) -> None:
        """A lease on this has ended: offer the best task parked on it, and note whom to serve."""
        self.freed.append((name, kind, scope))
        if self.present().parked:
            self.db.execute(Q["ready_offer"], (scope,))

    def recorded_of(self, kinds: frozenset[str]) -> list[tuple[Any, ...]]:
        """(at, agent, resource, data) of this transaction's own events of these kinds, the latest
        first: they are in the table only after the commit."""
        return [(at, agent, resource, data)
                for _, at, kind, agent, _, resource, data in reversed(self._events)
                if kind in kinds]

    @property
    def last_seq(self) -> int:
        """The sequence number of the newest event, this transaction's included."""
        seq = self._carried.seq
        if seq is None:
            seq = self._carried.seq = int(self.db.execute(Q["event_last"]).get)
        return seq

    def number(self, counter: str) -> int:
        """The next value of a counter that only rises."""
        counters = self._carried.counters or self._counters()
        value = counters[counter] = counters.get(counter, 0) + 1
        if value > self._carried.stored.get(counter, 0):
            self._raised.add(counter)
        return value

    def last_number(self, counter: str) -> int:
        """The last value that a counter gave, in this transaction or ever; 0 for none."""
        return (self._carried.counters or self._counters()).get(counter, 0)

    def _counters(self) -> dict[str, int]:
        known = self._carried
        if known.counters is None:
            known.stored = {str(k): int(v) for k, v in self.db.execute(Q["counters_all"])}
            known.counters = dict(known.stored)
        return known.counters

    def keep(self, digest: str, data: bytes) -> None:
        """Keep bytes under their name."""
        if self.kept is not None:
            self.kept.add(digest)
        if not self.cursor.execute(Q["blob_has"], (digest,)).fetchall():
            self.db.execute(Q["blob_put"], (digest, len(data), zlib.compress(data, 1)))

    def present(self) -> Present:
        """Whether anybody waits, and the like: looked up once a transaction, and again after an
        event that may have changed it."""
        found = self._present
        if found is None:
            row = self.row("presence")
            assert row is not None
            found = self._present = Present(*row)
        return found

    def park(self, task: str, scope: str) -> None:
        """The ready task met `scope` held: it is set aside until that is free."""
        park(self.db, task, scope)
        if self._present is not None and not self._present.parked:
            self._present = None

    def flush(self) -> None:
        """Write what was gathered in memory; called just before the commit."""
        events, whole = self._events, len(self._events) // EVENTS_AT_ONCE * EVENTS_AT_ONCE
        for at in range(0, whole, EVENTS_AT_ONCE):
            some = chain.from_iterable(events[at : at + EVENTS_AT_ONCE])
            self.cursor.execute(_APPEND_SOME, tuple(some))
        for event in events[whole:]:
            self.cursor.execute(_APPEND, event)
        for name in self._raised:
            stored = self._counters()[name] + COUNTER_BLOCKS.get(name, 1) - 1
            self._carried.stored[name] = stored
            self.db.execute(Q["counter_put"], (name, stored))

    def raise_counters(self, above: Mapping[str, int]) -> None:
        """Go on above these numbers: they may have been given out already."""
        counters = self._counters()
        for name, value in above.items():
            if counters.get(name, 0) < value:
                counters[name] = value
                self._raised.add(name)


Job = Callable[[Tx], Any]


class Ledger:
    """Runs jobs against the database, many to a transaction."""

    def __init__(self, db: apsw.Connection, path: Path) -> None:
        self.db = db
        self.path = path
        self._carried = Carried()
        self._version = -1  # of the file, as our last commit left it
        #: Called with the transaction after each commit that recorded something.
        self.on_commit: Callable[[Tx], None] | None = None
        #: While this is a set, the names of all contents that are kept are added to it.
        self.kept: set[str] | None = None

    def run(self, job: Callable[[Tx], T], now_ms: int) -> T:
        """One job in a transaction of its own.

        Raises:
            Refusal: what the job refused, or STORAGE / INTERNAL.
        """
        answer = self.run_all([job], now_ms)[0]
        if isinstance(answer, Refusal):
            raise answer
        served: T = answer
        return served

    def run_all(self, jobs: Sequence[Job], now_ms: int) -> list[Any]:
        """All jobs, in order, at one instant; a value or a `Refusal` for each."""
        answers: list[Any] = []
        try:
            self.db.execute("BEGIN IMMEDIATE")
            if self.db.data_version() != self._version:
                self._carried = Carried()  # nobody else should write; somebody did
            tx = Tx(self.db, now_ms, self._carried)
            tx.kept = self.kept
            for job in jobs:
                before = tx.recorded
                try:
                    answers.append(job(tx))
                except Refusal as refusal:
                    if tx.recorded != before:
                        raise
                    answers.append(refusal)
            tx.flush()
            self.db.execute("COMMIT")
            self._version = self.db.data_version()
        except Exception as bad:
            self._carried = Carried()
            self._rollback()
            if len(jobs) > 1:
                log.warning("a batch of %d failed (%s: %s); each is run again on its own",
                            len(jobs), type(bad).__name__, bad)
                return [self.run_all([job], now_ms)[0] for job in jobs]
            return [self._as_refusal(bad)]
        if tx.recorded and self.on_commit is not None:
            try:
                self.on_commit(tx)
            except Exception:  # what is on disk must still be answered
                log.exception("telling of a commit failed")
        return answers

    def _rollback(self) -> None:
        try:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
        except apsw.Error:
            log.exception("rollback failed")

    def _as_refusal(self, bad: Exception) -> Refusal:
        if isinstance(bad, Refusal):
            return bad
        if isinstance(bad, DISK_ERRORS):
            log.error("storage: %s", bad)
            return storage_refusal(self.path, bad)
        log.error("a job failed", exc_info=bad)
        return Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__}); nothing changed.")
