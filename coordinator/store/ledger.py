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
live no longer than the transaction; the last sequence number and the counters go from one commit
to the next, and are read again after any failure.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from coordinator.store.database import DISK_ERRORS, storage_refusal
from coordinator.store.events import (
    AgentHooked,
    AgentRegistered,
    AgentSeen,
    AgentState,
    Event,
    kind_of,
)
from coordinator.store.projections import APPLY
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words.clock import iso
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.store")
T = TypeVar("T")
_encode = msgspec.json.Encoder().encode
_APPEND = Q["event_append"]
_PRESENCE = Q["presence"]
_PRESENT = ("waiters_any", "reviews_any_open", "parked_any")
_ABOUT_AGENTS = frozenset({AgentRegistered, AgentSeen, AgentState, AgentHooked})


class View:
    """Reading, at an instant. `now` is `now_ms` as ISO text."""

    def __init__(self, db: apsw.Connection, now_ms: int) -> None:
        self.db = db
        self.now_ms = now_ms
        self.now = iso(now_ms)

    def rows(self, name: str, *params: Any) -> list[tuple[Any, ...]]:
        """All rows of the statement called `name`."""
        return self.db.execute(Q[name], params).fetchall()

    def row(self, name: str, *params: Any) -> tuple[Any, ...] | None:
        """Its first row, or None."""
        row: tuple[Any, ...] | None = self.db.execute(Q[name], params).fetchone()
        return row

    def blob(self, digest: str | None) -> bytes | None:
        """The bytes that `digest` names, if they are kept."""
        if digest is None:
            return None
        row = self.db.execute(Q["blob_get"], (digest,)).fetchone()
        return zlib.decompress(row[0]) if row else None


class Tx(View):
    """A transaction at an instant: reading, and recording events."""

    def __init__(
        self, db: apsw.Connection, now_ms: int, seq: int | None = None,
        counters: dict[str, int] | None = None,
    ) -> None:
        super().__init__(db, now_ms)
        self.recorded = 0
        self._events: list[tuple[Any, ...]] = []
        self._counters = counters
        self._raised: set[str] = set()
        self._seq = seq
        #: Facts true for this transaction only ("are there any waiters?"), kept by who writes them.
        self.memo: dict[str, Any] = {}
        self._agents: dict[str, tuple[Any, ...]] = {}
        #: Directories that were looked at and are no links (`Tree.resolve`): an instant, a look.
        self.directories: set[str] = set()
        #: What to tell once this is on disk: (acquisition id, reply) of waiters that were granted.
        self.granted: list[tuple[str, Any]] = []
        #: Resources (name, kind, scope) that became free and whose waiters were not served yet.
        self.freed: list[tuple[str, str, str]] = []
        #: Something became free or ready: whoever waits for a task should look again.
        self.offers = False

    def record(self, event: Event) -> None:
        """Append the event and apply it: the only way to change state."""
        kind = type(event)
        APPLY[kind](self.db, self.now, event)
        if kind in _ABOUT_AGENTS:
            self._agents.clear()
        agent, task, resource = event.subject
        self._events.append(
            (self.next_seq(), self.now, kind_of(event), agent, task, resource,
             _encode(event).decode())
        )
        self.recorded += 1

    def agent(self, name: str) -> tuple[Any, ...] | None:
        """The agent's row as it is now, read once a transaction unless it changes."""
        row = self._agents.get(name)
        if row is None:
            row = self.row("agent_get", name)
            if row is not None:
                self._agents[name] = row
        return row

    def agent_of(self, token_hash: str) -> tuple[Any, ...] | None:
        """The row of the agent that a token speaks for."""
        row = self.row("agent_by_token", token_hash)
        if row is not None:
            self._agents[str(row[0])] = row
        return row

    def free(self, name: str, kind: str, scope: str) -> None:
        """A lease on this has ended: offer the best task parked on it, and note whom to serve."""
        self.freed.append((name, kind, scope))
        if self.any("parked_any"):
            self.db.execute(Q["ready_offer"], (scope,))

    def next_seq(self) -> int:
        """Take the next place in the log."""
        if self._seq is None:
            self._seq = int(self.db.execute(Q["event_last"]).get)
        self._seq += 1
        return self._seq

    def recorded_of(self, kinds: frozenset[str]) -> list[tuple[Any, ...]]:
        """(at, agent, resource, data) of this transaction's own events of these kinds, the latest
        first: they are in the table only after the commit."""
        return [(at, agent, resource, data)
                for _, at, kind, agent, _, resource, data in reversed(self._events)
                if kind in kinds]

    @property
    def last_seq(self) -> int:
        """The sequence number of the newest event, this transaction's included."""
        if self._seq is None:
            self._seq = int(self.db.execute(Q["event_last"]).get)
        return self._seq

    def number(self, counter: str) -> int:
        """The next value of a counter that only rises."""
        if self._counters is None:
            self._counters = {str(k): int(v) for k, v in self.db.execute(Q["counters_all"])}
        value = self._counters[counter] = self._counters.get(counter, 0) + 1
        self._raised.add(counter)
        return value

    def keep(self, digest: str, data: bytes) -> None:
        """Keep bytes under their name."""
        if not self.db.execute(Q["blob_has"], (digest,)).fetchone():
            self.db.execute(Q["blob_put"], (digest, len(data), zlib.compress(data, 1)))

    def any(self, what: str) -> bool:
        """Whether there are any `waiters_any`, `reviews_any_open` or `parked_any`: what is seldom
        there and often asked for, looked up for all three once a transaction; see `memo`."""
        known = self.memo.get(what)
        if known is None:
            found = self.db.execute(_PRESENCE).fetchone()
            assert found is not None
            self.memo.update(zip(_PRESENT, map(bool, found), strict=True))
            known = self.memo[what]
        return bool(known)

    @property
    def numbers(self) -> tuple[int | None, dict[str, int] | None]:
        """The sequence and the counters as this transaction leaves them."""
        return self._seq, self._counters

    def flush(self) -> None:
        """Write what was gathered in memory; called just before the commit."""
        if self._events:
            self.db.executemany(_APPEND, self._events)
        if self._counters:
            for name in self._raised:
                self.db.execute(Q["counter_put"], (name, self._counters[name]))

    def raise_counters(self, by: int) -> None:
        """Skip numbers that may have been given out after the backup this database came from."""
        for name, _ in self.db.execute(Q["counters_all"]).fetchall():
            self.number(str(name))
            assert self._counters is not None
            self._counters[str(name)] += by


Job = Callable[[Tx], Any]


class Ledger:
    """Runs jobs against the database, many to a transaction."""

    def __init__(self, db: apsw.Connection, path: Path) -> None:
        self.db = db
        self.path = path
        # What the last commit left, so that it need not be read again: nobody else writes. Any
        # failure drops it.
        self._seq: int | None = None
        self._counters: dict[str, int] | None = None
        #: Called with the transaction after each commit that recorded something.
        self.on_commit: Callable[[Tx], None] | None = None

    def run(self, job: Callable[[Tx], T], now_ms: int) -> T:
        """One job in a transaction of its own.

        Raises:
            Refusal: what the job refused, or STORAGE / INTERNAL.
        """
        answer = self.run_all([job], now_ms)[0]
        if isinstance(answer, Refusal):
            raise answer
        return answer  # type: ignore[no-any-return]

    def run_all(self, jobs: Sequence[Job], now_ms: int) -> list[Any]:
        """All jobs, in order, at one instant; a value or a `Refusal` for each."""
        tx = Tx(self.db, now_ms, self._seq, self._counters)
        self._seq = self._counters = None
        answers: list[Any] = []
        try:
            self.db.execute("BEGIN IMMEDIATE")
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
            self._seq, self._counters = tx.numbers
        except Exception as bad:
            self._rollback()
            if len(jobs) > 1:
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
