"""What the file watcher saw, told to the coordinator: versions, renames, writes without a lease."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import msgspec

from coordinator.files.content import is_link
from coordinator.looking.facts import Lapsed, Looked, Unready
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource, conflicts, slot
from coordinator.service import repository_files
from coordinator.service.core import Service
from coordinator.service.enforcement.adoption import (
    Adopted,
    Foreign,
    Running,
    doubtful,
    is_foreign,
    late_writer,
    writer,
)
from coordinator.service.engine import Engine, decide
from coordinator.service.holders import notices
from coordinator.service.leasing import lapse, partial_work
from coordinator.service.leasing.conflicts import place
from coordinator.service.leasing.git_turn import GIT_INDEX
from coordinator.service.leasing.grant import end
from coordinator.service.leasing.overlapping import near
from coordinator.service.repository_files import NOTHING, Bytes
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words.clock import iso
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Resource, path_scope, resource, write_window

#: Versions in one event.
VERSIONS_MAX = 500
#: A write is seen a moment after it was made; its writer may have released the file meanwhile. So
#: far back (ms; and events) the log is searched for whoever had the right to write it then.
LATE_MS = 10_000
LATE_EVENTS = 5_000
_ENDINGS = frozenset({"lease_released", "lease_lapsed"})


@dataclass(frozen=True, slots=True)
class Seen:
    """One path that changed: its content now, and where it was moved from, if so. `is_new`: nothing
    was there before.

    `before` is what git has of it, for policies that want to show the difference. `calls` are those
    of agents that ran when it was written, as far as hooks have told.
    """

    path: str
    now: Bytes
    before: Bytes = NOTHING
    moved_from: str | None = None
    is_dir: bool = False
    is_new: bool = False
    calls: tuple[Running, ...] = ()
    lately: tuple[Running, ...] = ()
    """Those, and what had ended a moment before."""

    @property
    def hash(self) -> str | None:
        """The name of its content; None: it is gone."""
        return self.now.hash

    @property
    def changed_ms(self) -> int | None:
        """When it was written (the file's own time); None: unknown, as of a file that is gone."""
        return None if self.now.stamp is None else self.now.stamp[4] // 1_000_000

    @property
    def touched_ms(self) -> int | None:
        """When it was written or put there (the kernel's own note); None as above."""
        return None if self.now.stamp is None else self.now.stamp[5] // 1_000_000

    @property
    def link(self) -> bool:
        """Whether it is a symlink by now."""
        return self.hash is not None and is_link(self.hash)


class EndedRights:
    """Who had which rights that ended lately: of each resource, the last end of one.

    Read from the log, which only grows: what was read stays true, and only what is new is read
    again. For one run of changes; a new one begins anew.
    """

    def __init__(self) -> None:
        self._seq: int | None = None
        self._ends: dict[str, _End] = {}
        self._scopes: list[str] = []  # of `_ends`, sorted
        self._globs: dict[str, tuple[Resource, _End]] = {}

    def catch_up(self, tx: Tx) -> None:
        """Read what was added to the log since the last time."""
        newest = tx.last_seq - tx.recorded  # on disk: what is not may be given up
        after = max(0, newest - LATE_EVENTS) if self._seq is None else self._seq
        self._seq = newest
        for seq, at, agent, name, data in tx.rows("rights_ended_since", after, tx.later(-LATE_MS)):
            self.note(at, seq, agent, name, _what(data))

    def note(self, at: str, seq: int, agent: str, name: str, what: What) -> None:
        """This agent's right to this has ended; later ends are noted later."""
        end, scope = _End(at, seq, agent), what.scope
        if what.lease_kind == "glob":
            self._globs[name] = as_resource(name, "glob", scope), end
            return
        if scope not in self._ends:
            insort(self._scopes, scope)
        self._ends[scope] = end

    def last(self, asked: Resource) -> _End | None:
        """The last end of a right to what overlaps this file."""
        scope, found = asked.scope, list[_End]()
        at = scope.find("/") + 1
        while at:  # what contains it
            if (end := self._ends.get(scope[:at])) is not None:
                found.append(end)
            at = scope.find("/", at) + 1
        for below in self._scopes[bisect_right(self._scopes, scope):]:  # its regions, say
            if not below.startswith(scope):
                break
            found.append(self._ends[below])
        found += [end for glob, end in self._globs.values() if overlaps(asked, glob)]
        return max(found, key=lambda end: end.seq, default=None)


class _End(NamedTuple):
    at: str
    seq: int
    agent: str


class What(msgspec.Struct):
    """What of the end of a right is asked for here. (The kind is not told from the name: a file
    may be called `[id].tsx`.)"""

    scope: str
    lease_kind: str = "file"


_what = msgspec.json.Decoder(What).decode


def seen(
    svc: Service, tx: Tx, changes: Sequence[Seen], ended: EndedRights | None = None
) -> list[Adopted | Foreign]:
    """Record what the watcher saw; unleased writes are told apart. (Leases have followed the
    renames among these before: `follow`.) `ended` goes from one slice of a batch to the next.

    What is to be done about those whose writer is known is returned: it needs a look at the disk.
    """
    policy = svc.settings.watch.unleased
    active = bool((tx.row("agents_active") or (0,))[0])
    versions: list[tuple[str, str | None, str | None]] = []
    rights = _Rights(svc, tx, ended or EndedRights())
    out: list[Adopted | Foreign] = []
    for change in changes:
        if change.is_dir:
            continue
        known = tx.row("version_get", change.path)
        if known is not None and known[0] == change.hash:
            continue
        before = str(known[0]) if known and known[0] else None
        holder = rights.holder(change)
        if (holder is not None and rights.holds(change, known[1] if known else None)
                and is_foreign(tx, change, holder)):
            agent = writer(tx, change, but=holder) or late_writer(tx, change, holder)
            before = before or rights.baseline(change)
            out.append(Foreign(holder, agent, change, before))
            versions.append((change.path, change.hash, None))
            if agent is None and not _is_verdict(tx, change):
                _unleased(svc, tx, change, before, policy)
            continue
        if holder is None:
            holder = writer(tx, change) if svc.settings.hooks.adopt else None
            if holder is not None and change.hash is not None:
                out.append(Adopted(holder, change, before))
            elif (holder is None and active and change.moved_from is None
                  and not _is_verdict(tx, change)):
                if policy != "ignore":
                    _unleased(svc, tx, change, before, policy)
                if doubtful(tx, change):
                    _keep_both(svc, tx, change, before, str(known[1]) if known else None,
                               flagged=policy == "review")
        versions.append((change.path, change.hash, holder))
    for start in range(0, len(versions), VERSIONS_MAX):
        tx.record(ev.VersionsSeen(versions=versions[start : start + VERSIONS_MAX]))
    return out


class _Rights:
    """Who may write what in this transaction, and who might lately."""

    def __init__(self, svc: Service, tx: Tx, ended: EndedRights) -> None:
        self._svc = svc
        self._tx = tx
        self._ended = ended
        self._own: EndedRights | None = None
        self._live: LeaseRow | None = None

    def holds(self, change: Seen, seen_at: str | None) -> bool:
        """Whether the holder that was found last has the right still, and had it at the write.

        When a file was deleted no file tells. If it was not there when the lease began, nor was
        seen (`seen_at`) since, it was gone before.
        """
        lease, written = self._live, change.touched_ms
        if lease is None:
            return False
        if written is not None:
            return iso(written) >= lease.locked_at
        return ((seen_at is not None and seen_at >= lease.locked_at)
                or self.baseline(change) is not None)

    def baseline(self, change: Seen) -> str | None:
        """What the file held when the lease of its holder, who was found last, began."""
        lease = self._live
        if lease is None or lease.kind in ("file", "region"):
            return lease.content_hash if lease is not None else None
        row = self._tx.row("baseline_get", lease.fencing_token, change.path)
        return str(row[0]) if row is not None else None

    def holder(self, change: Seen) -> str | None:
        """Who had the right to write this path when it was written: the writer, as far as a lease
        can tell. Of a deletion the instant is not known: whoever has the right now, or had it just
        before."""
        tx, written = self._tx, None
        asked = resource(change.path, "file", fold_case=self._svc.fold_case)
        if change.changed_ms is not None:
            written = iso(change.changed_ms)
        holder = None
        self._live = None
        writing = self._writing(change, written)
        if writing is not None:
            return writing
        for raw in near(tx, "rivals", asked):
            lease = LeaseRow(*raw)
            if (
                lease.mode == "exclusive" and lease.expires_at > tx.now
                and overlaps(asked, as_resource(lease.file_path, lease.kind, lease.scope))
            ):
                holder, self._live = lease.locked_by, lease
                if written is None or written >= lease.locked_at:
                    return holder
        end = self._last_end(asked)
        if end is not None and end.at >= max(written or "", tx.later(-LATE_MS)):
            self._live = None
            return end.agent
        return holder or self._turn()

    def _writing(self, change: Seen, written: str | None) -> str | None:
        """Whose edit of this file was in the middle when it was written, or just before."""
        scope = write_window(change.path, self._svc.fold_case).scope
        for raw in self._tx.rows("leases_at_scope", scope):
            row = LeaseRow(*raw)
            if written is None or written >= row.locked_at:
                return row.locked_by
        end = self._last_end(Resource(change.path, "key", scope))
        late = end is not None and end.at >= max(written or "", self._tx.later(-LATE_MS))
        return end.agent if end is not None and late else None

    def _turn(self) -> str | None:
        """Whose git changes the tree just now, or did until a moment ago."""
        if self._tx.present().turns:
            for raw in self._tx.rows("leases_of_git"):
                lease = LeaseRow(*raw)
                if lease.worktree is None and lease.expires_at > self._tx.now:
                    return lease.locked_by
        end = self._last_end(resource(GIT_INDEX, "key"))
        return end.agent if end is not None and end.at >= self._tx.later(-LATE_MS) else None

    def _last_end(self, asked: Resource) -> _End | None:
        """The last end of a right to what overlaps this file, if it was lately."""
        if self._own is None:
            self._ended.catch_up(self._tx)
            self._own = EndedRights()  # what this transaction has ended: not in the log yet
            ends = self._tx.recorded_of(_ENDINGS)
            for number, (at, agent, name, data) in enumerate(reversed(ends)):
                self._own.note(at, number, agent, name, _what(data))
        return self._own.last(asked) or self._ended.last(asked)


def _is_verdict(tx: Tx, change: Seen) -> bool:
    """Whether coord itself has written this: a review was decided so."""
    decided = tx.row("review_written_last", change.path)
    return decided is not None and decided[0] == change.hash


def _unleased(svc: Service, tx: Tx, change: Seen, known: str | None, policy: str) -> None:
    if change.hash is None and known is None and change.before.hash is None:
        return  # it came and went: nothing was there, as far as is known
    tx.record(ev.UnleasedWrite(resource=change.path, hash=change.hash))
    if policy != "review":
        return
    why = f"{change.path} was changed while agents were active and nobody had leased it."
    if known is None:
        known = change.before.hash
        if known == change.hash:
            return  # back to what is committed
        repository_files.keep(tx, change.before)
    _flag(svc, tx, change, known, why)


def _keep_both(svc: Service, tx: Tx, change: Seen, known: str | None, seen_at: str | None, *,
               flagged: bool) -> None:
    """Commands of several agents write one file at the same time: what each left is kept, and shown
    to a person where one has overwritten the other."""
    repository_files.keep(tx, change.now)
    if (flagged or known is None or seen_at is None or seen_at < tx.later(-LATE_MS)
            or tx.row("blob_has", known) is None):
        return
    _flag(svc, tx, change, known, f"{change.path} was written twice while commands of several "
          "agents ran, and nobody had leased it: what the earlier write left is kept.")


def _flag(svc: Service, tx: Tx, change: Seen, known: str | None, why: str) -> None:
    repository_files.keep(tx, change.now)
    kept = change.now.kept and (known is None or tx.row("blob_has", known) is not None)
    kind = "created" if known is None else "deleted" if change.hash is None else "modified"
    file = ev.FlaggedFile(
        path=change.path, scope=path_scope(change.path, svc.fold_case), change=kind,
        kept=kept, baseline_hash=known, flagged_hash=change.hash,
    )
    partial_work.flag(
        tx, reason="unleased", agent=None, task=None, files=[file], leased_at=None, why=why,
    )


def follow(svc: Service, tx: Tx, old: str, new: str) -> None:
    """Leases on `old`, and on what lay below it, now mean `new` (invariant 10).

    Raises:
        Unready: lapsed leases there have to be closed before, or files to be looked at.
    """
    was, now = path_scope(old, svc.fold_case), path_scope(new, svc.fold_case)
    for raw in near(tx, "rivals", as_resource(old, "file", was)):
        lease = LeaseRow(*raw)
        below = lease.scope.startswith(was) and lease.worktree is None
        if below and lease.kind not in ("glob", "key"):
            _arrive(svc, tx, lease, new + lease.file_path[len(old):], now + lease.scope[len(was):])


def _arrive(svc: Service, tx: Tx, lease: LeaseRow, name: str, scope: str) -> None:
    """What this lease is on has another name now. The rule where that name lies within what another
    holds: who holds the place keeps it. The lease that came ends; what its holder had changed is
    flagged, and both are told."""
    kind = as_resource(lease.file_path, lease.kind, lease.scope).kind
    asked = as_resource(name, kind, scope)
    place = slot(kind, name, lease.mode, lease.locked_by)
    there = [row for row in (LeaseRow(*raw) for raw in near(tx, "rivals", asked))
             if row.fencing_token != lease.fencing_token]
    others = [row for row in there if conflicts(asked, lease.mode, lease.locked_by, row)]
    same = [row for row in there if row.scope == scope and row.slot == place]
    lapsed = [Lapsed(row.locked_by, row.task_id) for row in (*others, *same, lease)
              if row.expires_at <= tx.now]
    if lapsed:
        raise Unready(lapsed=dict.fromkeys(lapsed))
    if others:
        _give_way(svc, tx, lease, name, others[0])
        return
    if same:  # its holder has the other name, too: one lease of the two is enough
        end(tx, lease)
        return
    tx.record(
        ev.LeaseMoved(
            fencing_token=lease.fencing_token, agent=lease.locked_by, resource=name,
            old_scope=lease.scope, scope=scope, slot=place, moved_from=lease.file_path,
        )
    )
    tx.free(lease.file_path, lease.kind, lease.scope)
    notices.post(
        tx, lease.locked_by, "moved", f"{lease.file_path} was renamed to {name}; your lease "
        "followed.", resource=name,
    )


def _give_way(svc: Service, tx: Tx, lease: LeaseRow, name: str, kept: LeaseRow) -> None:
    path = name.rpartition("::")[0] if lease.kind == "region" else name
    flagged = lapse.end_alone(
        svc, tx, lease, "moved", f"{lease.locked_by} had changed {lease.file_path} when that was "
        f"moved to {name}, which {kept.locked_by} holds.",
        now_at=path,
    )
    said = flagged.told("What was changed is") if flagged else ""
    review = flagged.review if flagged else None
    notices.post(
        tx, lease.locked_by, "moved",
        f"{lease.file_path} is {name} now, which {kept.locked_by} has leased ({kept.file_path}). "
        f"So your lease on it has ended: do not write there.{said}", resource=name, review=review,
    )
    notices.post(
        tx, kept.locked_by, "moved",
        f"{lease.file_path}, which {lease.locked_by} held, was moved to {name}, within your lease "
        f"on {kept.file_path}. You keep it; read it before you write it.{said}", resource=name,
        review=review,
    )


#: Leases whose names are looked at together.
NAMES_AT_ONCE = 100


async def follow_names(engine: Engine, svc: Service) -> None:
    """Let live leases follow names that lead elsewhere by now: a directory became a link, say, and
    two names are one file. What no rename told, this finds."""
    after = 0
    while True:
        def some(view: View, after: int = after) -> list[LeaseRow]:
            rows = view.rows("leases_live", view.now, after, None, NAMES_AT_ONCE)
            return [LeaseRow(*raw) for raw in rows]

        leases = await engine.read(some)
        if not isinstance(leases, list) or not leases:
            return
        after = leases[-1].fencing_token
        looked = Looked()
        on_disk = [one for one in leases if one.kind in ("file", "dir") and one.worktree is None]
        await engine.look([place(one.file_path, one.kind) for one in on_disk], looked)
        for lease in on_disk:
            if _leads_to(looked, lease) is not None:
                job = partial(_follow_name, svc, token=lease.fencing_token)
                await decide(engine, svc, job, looked)


def _leads_to(looked: Looked, lease: LeaseRow) -> Resource | None:
    """What a lease's name means by now, if that is something else."""
    try:
        found = looked.located(place(lease.file_path, lease.kind)).resource
    except (Refusal, Unready):
        return None  # it leads outside: the lease stays on its name, and nothing is read there
    return found if found.scope != lease.scope else None


def _follow_name(svc: Service, tx: Tx, token: int) -> None:
    raw = tx.row("lease_by_token", token)
    if raw is None:
        return
    lease = LeaseRow(*raw)
    found = _leads_to(tx.looked, lease)
    if found is not None and lease.expires_at > tx.now:
        _arrive(svc, tx, lease, found.name, found.scope)
