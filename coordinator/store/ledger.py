"""The one write path: jobs are gathered into one transaction, committed once, then answered.

Group commit: an fsync costs as much for thirty changes as for one, so all waiting jobs share it. A
job is a function of a `Tx` that reads, decides, and records events. It may

* return a value: its events are kept;
* return a `Refusal`: a no whose own event and place in the queue are kept;
* raise a `Refusal`: nothing of it is kept, and nothing was recorded before it was raised;
* raise `Unready`: something has to be looked at before it can decide; nothing of it is kept.

No job touches a disk, other than SQLite's own, or starts a process. What it needs to know of files
was looked at before and is in `Tx.looked`.

Jobs share a transaction without a savepoint each, which saves about 4 µs. Decisions come before the
first record, so a raised refusal leaves nothing behind. If a job breaks that rule, or fails in
another way, the transaction is rolled back. Then the others run again together, and the job runs
alone. Only this rare case is slow. Nothing is answered before it is on disk (invariant 4). Memoised
facts live no longer than the transaction. What one commit passes to the next (`Carried`: the last
sequence number, the counters, agents' rows) is dropped after any failure, and whenever SQLite's
version of the file says that another connection has written to it.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from coordinator.files.blobs import BlobFolder
from coordinator.looking.facts import Bytes, Ends, Looked, Unready
from coordinator.rules.pools import list_freed
from coordinator.store import events as ev
from coordinator.store.database import DISK_ERRORS, storage_refusal
from coordinator.store.parking import park
from coordinator.store.rows import AgentRow, BlobRow, CountRow, KeptBlobRow, LogRow
from coordinator.store.statements import STATEMENTS as Q
from coordinator.store.statements import packed
from coordinator.store.writer_cache import COUNTER_BLOCKS, NOBODY, Effects, Present, WriterCache
from coordinator.words.clock import iso
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.store")
T = TypeVar("T")
R = TypeVar("R")
_encode_into = msgspec.json.Encoder().encode_into
_APPEND = Q["event_append"]
#: Events of a large transaction that one statement appends.
EVENTS_AT_ONCE = 16
_APPEND_SOME = _APPEND + ", (?, ?, ?, ?, ?, ?, ?)" * (EVENTS_AT_ONCE - 1)
_ABOUT_AGENTS = (ev.AcquisitionRefused, ev.AgentRegistered, ev.AgentSeen, ev.AgentState,
                 ev.AgentHooked, ev.AgentRests)
_ABOUT_PRESENCE = (ev.WaiterQueued, ev.WaiterLeft, ev.ReviewOpened, ev.ReviewDecided,
                   ev.ReviewUndone, ev.ReviewSplit, ev.TaskChanged)
#: How events of a class are recorded: what tells their subject, their name, and
#: whether something that is carried in memory may be another after them.
_RECORDING: dict[type[ev.Event], tuple[Callable[[ev.Event], ev.Subject], str, bool]] = {
    kind: (ev.SUBJECT_OF[kind], tag, kind in (*_ABOUT_AGENTS, *_ABOUT_PRESENCE, ev.LeaseGranted))
    for kind, tag in ev.KIND_OF.items()
}


#: The folder of large contents, beside the database; and how much of one is read at once (bytes).
BLOBS, LOADED_MAX = "blobs", 8 * 1024 * 1024


class _Instants(dict[int, str]):
    """Milliseconds from now -> ISO text. A dict: each request asks, mostly for the same ones."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def __missing__(self, ms: int) -> str:
        text = self[ms] = iso(self._now_ms + ms)
        return text


class View:
    """Reading, at an instant. `now` is `now_ms` as ISO text."""

    #: Called now and then by a long reading (`store.rebuild`).
    rest: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, db: apsw.Connection, now_ms: int,
                 cursor: apsw.Cursor | None = None) -> None:
        self.db = db
        #: For what is read whole, or not at all, before the next.
        self.cursor = db.cursor() if cursor is None else cursor
        self.now_ms = now_ms
        self.now = iso(now_ms)
        #: The instant so many milliseconds from now, as ISO text.
        self.later: Callable[[int], str] = _Instants(now_ms).__getitem__
        #: What was looked at on the disk for the request that is being served.
        self.looked = Looked()

    def values(self, name: str, *params: Any) -> list[Any]:
        """The values of the statement called `name`, which has one column."""
        return [value for (value,) in self.cursor.execute(Q[name], params)]

    def value(self, name: str, *params: Any) -> Any:
        """Its first value; None if it has none."""
        row = self.db.execute(Q[name], params).fetchone()
        if row is None:
            return None
        (value,) = row
        return value

    def has(self, name: str, *params: Any) -> bool:
        """Whether the statement called `name` gives any row."""
        return self.db.execute(Q[name], params).fetchone() is not None

    def each(self, shape: type[R], name: str, *params: Any) -> list[R]:
        """All rows of the statement called `name`, as rows of this shape."""
        return [shape(*row) for row in self.cursor.execute(Q[name], params)]

    def first(self, shape: type[R], name: str, *params: Any) -> R | None:
        """Its first row, in this shape; None if it has none."""
        row = self.db.execute(Q[name], params).fetchone()
        return None if row is None else shape(*row)

    def counts(self, name: str, *params: Any) -> dict[str, int]:
        """The counts of the statement called `name`, by name."""
        return {row.name: row.count for row in self.each(CountRow, name, *params)}

    def each_of(self, shape: type[R], name: str, keys: Iterable[Any]) -> list[R]:
        """The rows that there are of these keys, by a statement that gives one row for a key."""
        return [row for key in keys if (row := self.first(shape, name, key)) is not None]

    def agent_of(self, token_hash: str) -> AgentRow | None:
        """The row of the agent that a token speaks for; None if there is none, or it has left."""
        return self.first(AgentRow, "agent_by_token", token_hash)

    def agent(self, name: str) -> AgentRow | None:
        """The agent's row."""
        return self.first(AgentRow, "agent_get", name)

    def present(self) -> Present:
        """Whether anybody waits, and the like."""
        (present,) = self.each(Present, "presence")
        return NOBODY if present == NOBODY else present

    def blob(self, digest: str | None, most: int = LOADED_MAX) -> bytes | None:
        """The bytes that `digest` names, if they are kept and no more than `most`."""
        path = self.source(digest)
        if not isinstance(path, Path):
            return path
        try:
            return path.read_bytes() if path.stat().st_size <= most else None
        except OSError:
            return None

    def source(self, digest: str | None) -> bytes | Path | None:
        """The bytes that `digest` names, or the file that has them; None if they are not kept."""
        if digest is None:
            return None
        row = self.first(BlobRow, "blob_get", digest)
        if row is None:
            return None
        if row.data:
            return zlib.decompress(row.data)
        kept = self.blobs
        return kept.place(digest) if kept.has(digest) else None

    def blob_mode(self, digest: str) -> int | None:
        """Permission bits that all files of this content had; None if unknown."""
        row = self.first(BlobRow, "blob_get", digest)
        return None if row is None else row.mode

    @property
    def blobs(self) -> BlobFolder:
        """The folder of large contents, beside the database."""
        return BlobFolder(Path(self.db.filename).parent / BLOBS)


class Tx(View):
    """A transaction at an instant: reading, and recording events."""

    def __init__(self, cursor: apsw.Cursor, now_ms: int, cache: WriterCache, ends: Ends) -> None:
        super().__init__(cursor.connection, now_ms, cursor)
        self._cache, self._ends = cache, ends
        #: Rights that the job which runs has ended: (name, kind, scope) of what they were to.
        self.ended: list[tuple[str, str, str]] = []
        self._events: list[tuple[Any, ...]] = []
        self._text = bytearray()  # where each event is encoded: one piece of memory for all
        self._raised: set[str] = set()
        #: Facts true for this transaction only, kept by who reads them.
        self.memo: dict[str, Any] = {}
        #: What is to be done once this is on disk.
        self.effects = Effects(self._events)
        #: Resources (name, kind, scope) that became free and whose waiters were not served yet.
        self.freed: list[tuple[str, str, str]] = []
        #: The idempotency key of the request that is being served.
        self.once: str | None = None
        #: What is kept while compaction works, if compaction wants to know.
        self.kept: set[str] | None = None

    def record(self, event: ev.Event) -> None:
        """Append the event and apply it: the only way to change state."""
        subject, kind, forget = _RECORDING[type(event)]
        event.apply(self.cursor, self.now)
        if forget:
            self._forget(event)
        cache, text = self._cache, self._text
        cache.seq = seq = (cache.seq or self.last_seq) + 1
        _encode_into(event, text)
        self._events.append((seq, self.now, kind, *subject(event), text.decode()))

    def _forget(self, event: ev.Event) -> None:
        """Drop what is carried in memory and another after this event."""
        if isinstance(event, ev.LeaseGranted):
            if event.lease_kind == "key" or event.goes_with is not None:
                self._cache.present = None  # it may be git's turn
            return
        self._cache.present = None
        if isinstance(event, _ABOUT_AGENTS):
            self._cache.forget(event.agent)

    @property
    def recorded(self) -> int:
        """How many events the transaction has recorded."""
        return len(self._events)

    def agent(self, name: str) -> AgentRow | None:
        """The agent's row as it is now, read again only after it changed."""
        row = self._cache.agents.get(name)
        return row if row is not None else self._learn(self.first(AgentRow, "agent_get", name))

    def agent_of(self, token_hash: str) -> AgentRow | None:
        row = self._cache.speakers.get(token_hash)
        return row if row is not None else self._learn(
            self.first(AgentRow, "agent_by_token", token_hash))

    def _learn(self, row: AgentRow | None) -> AgentRow | None:
        if row is not None:
            self._cache.learn(row)
        return row

    def free(self, name: str, kind: str, scope: str) -> None:
        """A lease on this has ended: offer the best task parked on it, and note whom to serve."""
        freed_lease = name, kind, scope
        self.ended.append(freed_lease)
        self.freed.append(freed_lease)
        if self.present().parked:
            for freed in list_freed(scope):
                self.db.execute(Q["ready_offer"], (freed,))

    def ended_since(self, kind: str, scope: str) -> int:
        """How young (a sequence number of the log) a look at this has to be, if it has to be
        younger than the present one; otherwise 0. A former holder may have written meanwhile."""
        return self._ends.since(kind, scope, self.looked.oldest)

    def note_ends(self) -> None:
        """A job is over. What it has ended may have been written until then, and looked at before.
        What a job ends itself, it ends after its look."""
        for _, kind, scope in self.ended:
            self._ends.note(kind, scope, self.last_seq)
        self.ended.clear()

    def recorded_of(self, kinds: frozenset[str]) -> list[LogRow]:
        """Its own events of these kinds, the latest first."""
        events = (LogRow(*event) for event in reversed(self._events))
        return [event for event in events if event.kind in kinds]

    @property
    def last_seq(self) -> int:
        """The sequence number of the newest event, this transaction's included."""
        seq = self._cache.seq
        if seq is None:
            seq = self._cache.seq = int(self.db.execute(Q["event_last"]).get)
        return seq

    def number(self, counter: str) -> int:
        """The next value of a counter that only rises."""
        counters = self._cache.counters or self._counters()
        value = counters[counter] = counters.get(counter, 0) + 1
        if value > self._cache.stored.get(counter, 0):
            self._raised.add(counter)
        return value

    def last_number(self, counter: str) -> int:
        """The last value that a counter gave, in this transaction or ever; 0 for none."""
        return (self._cache.counters or self._counters()).get(counter, 0)

    def _counters(self) -> dict[str, int]:
        writer_cache = self._cache
        if writer_cache.counters is None:
            writer_cache.stored = self.counts("counters_all")
            writer_cache.counters = dict(writer_cache.stored)
        return writer_cache.counters

    def keep(self, digest: str, data: bytes, mode: int | None = None) -> None:
        """Keep bytes under their name. `mode`: permission bits of the file that has them."""
        self._note_kept(digest)
        kept_blob = self.first(KeptBlobRow, "blob_has", digest)
        if kept_blob is None or (kept_blob.size == 0 and not self.blobs.has(digest)):
            self.db.execute(Q["blob_put"], (digest, len(data), packed(data), mode))
        elif mode is not None:
            self._narrow(digest, kept_blob.mode, mode)

    def keep_text(self, name: str, text: bytes) -> None:
        """Keep a short text that is new, most likely, under a name that is made of it."""
        self._note_kept(name)
        self.cursor.execute(Q["blob_put"], (name, len(text), packed(text), None))

    def keep_stored(self, digest: str, size: int, mode: int | None = None) -> None:
        """Note that a content is kept as a file (`files.blobs`): it is there, and on the disk."""
        self.keep_packed(digest, size, b"", mode)

    def _note_kept(self, digest: str) -> None:
        if self.kept is not None:
            self.kept.add(digest)

    def _narrow(self, digest: str, mode_before: int | None, mode: int) -> None:
        """One content, several files: what is put back is open to no more people than any was."""
        both = mode if mode_before is None else mode_before & mode
        if both != mode_before:
            self.db.execute(Q["blob_mode"], (digest, both))

    def keep_found(self, content: Bytes) -> bool:
        """Keep what a look has found, if its bytes came along; whether they are kept then."""
        if content.hash is None or content.kept or content.data is None:
            return self.has("blob_has", content.hash)  # (nothing has no name)
        self.keep(content.hash, content.data, content.mode)
        return True

    def keep_packed(self, digest: str, size: int, packed: bytes, mode: int | None) -> None:
        """Keep bytes that are deflated already (`size`: before that), or note, without any, that
        they are kept and who may read them."""
        self._note_kept(digest)
        kept_blob = self.first(KeptBlobRow, "blob_has", digest)
        if kept_blob is None:
            self.db.execute(Q["blob_put"], (digest, size, packed, mode))
        elif mode is not None:
            self._narrow(digest, kept_blob.mode, mode)

    def write_beside(self, query: str, *values: str | int | bytes) -> None:
        """Write what is about the conversation, and not the state: no event tells of it."""
        self.cursor.execute(Q[query], values)

    def present(self) -> Present:
        present = self._cache.present
        if present is None:
            present = self._cache.present = super().present()
        return present

    def park(self, task: str, scope: str) -> None:
        """The ready task met `scope` held: it is set aside until that is free."""
        park(self.db, task, scope)
        self._cache.present = None

    def offer_parked_on_nothing(self) -> None:
        """Offer tasks whose scope nobody holds, waits for or has under review. What parked them is
        gone, and would not wake them."""
        for scope in self.values("parked_on_nothing", 1000):
            while self.has("parked_best", scope):
                self.db.execute(Q["ready_offer"], (scope,))
                self.effects.offers = True

    def flush(self) -> None:
        """Write what was gathered in memory; called just before the commit."""
        events, whole = self._events, len(self._events) // EVENTS_AT_ONCE * EVENTS_AT_ONCE
        for position in range(0, whole, EVENTS_AT_ONCE):
            some = chain.from_iterable(events[position : position + EVENTS_AT_ONCE])
            self.cursor.execute(_APPEND_SOME, tuple(some))
        for event in events[whole:]:
            self.cursor.execute(_APPEND, event)
        for name in self._raised:
            stored = self._counters()[name] + COUNTER_BLOCKS.get(name, 1) - 1
            self._cache.stored[name] = stored
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
        self._cursor = db.cursor()
        self.path = path
        self._cache = WriterCache()
        self._version = -1  # of the file, as our last commit left it
        self.ends = Ends()
        #: Called with what a commit that recorded something leaves to be done.
        self.on_commit: Callable[[Effects], None] | None = None
        #: Called within the transaction, after a job that freed something: it notes whom to
        #: serve.
        self.wake: Callable[[Tx], None] = lambda tx: None
        #: While this is a set, the names of all contents that are kept are added to it.
        self.kept: set[str] | None = None

    def run(self, job: Callable[[Tx], T], now_ms: int) -> T:
        """One job in a transaction of its own.

        Raises:
            Refusal: what the job refused, or STORAGE / INTERNAL.
            Unready: it needs to know more of the disk.
        """
        answer = self.run_all([job], now_ms)[0]
        if isinstance(answer, Refusal | Unready):
            raise answer
        served: T = answer
        return served

    def run_all(self, jobs: Sequence[Job], now_ms: int) -> list[Any]:
        """All jobs, in order, at one instant; a value, a `Refusal` or an `Unready` for each."""
        answers: list[Any] = []
        position = -1  # of the job that runs
        ended = self.ends.last
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
            if self.db.data_version() != self._version:
                self._cache = WriterCache()  # nobody else should write; somebody did
            tx = Tx(self._cursor, now_ms, self._cache, self.ends)
            tx.kept = self.kept
            for position, job in enumerate(jobs):  # noqa: B007 - it tells which one failed
                answers.append(self._answer(job, tx))
            position = -1
            tx.flush()
            self._cursor.execute("COMMIT")
            if self._cache.present is not NOBODY:
                self._cache.present = None  # somebody who was there may have gone
            self._version = self.db.data_version()
        except Exception as bad:
            self._cache = WriterCache()
            self.ends = Ends(ended)  # numbers that were not committed will be given anew
            self._rollback()
            if len(jobs) == 1:
                return [self._as_refusal(bad)]
            if position < 0:  # the disk refused all of them together
                log.warning("a batch of %d failed (%s: %s); each is run again on its own",
                            len(jobs), type(bad).__name__, bad)
                return [self.run_all([job], now_ms)[0] for job in jobs]
            if not isinstance(bad, Refusal | Unready):
                log.warning("a job failed (%s: %s); it is run again by itself",
                            type(bad).__name__, bad)
            rest = self.run_all([*jobs[:position], *jobs[position + 1 :]], now_ms)
            alone = bad if isinstance(bad, Unready) else self.run_all([jobs[position]], now_ms)[0]
            return [*rest[:position], alone, *rest[position:]]
        if tx.recorded and self.on_commit is not None:
            try:
                self.on_commit(tx.effects)
            except Exception:  # what is on disk must still be answered
                log.exception("telling of a commit failed")
        return answers

    def _answer(self, job: Job, tx: Tx) -> Any:
        """A job's value, `Refusal` or `Unready`, and whom to serve where it freed something."""
        before = len(tx._events)
        try:
            value = job(tx)
            if tx.freed:
                self.wake(tx)
        except (Refusal, Unready) as no:
            if tx.recorded != before:
                raise
            value = no
        if tx.ended:
            tx.note_ends()
        return value

    @property
    def seq(self) -> int:
        """The newest event's number on disk, or one before: a look that begins now is so young."""
        if self._cache.seq is None:
            return int(self.db.execute(Q["event_last"]).get)
        return self._cache.seq

    def _rollback(self) -> None:
        try:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
        except apsw.Error:
            log.exception("rollback failed")

    def _as_refusal(self, bad: Exception) -> Exception:
        if isinstance(bad, Refusal | Unready):
            return bad
        if isinstance(bad, DISK_ERRORS):
            log.error("storage: %s", bad)
            return storage_refusal(self.path, bad)
        log.error("a job failed", exc_info=bad)
        return Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__}); nothing changed.")
