"""Recording what the file watcher saw: versions, renames, and writes without a lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from coordinator.kernel import repository_files
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import git_turn
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.kernel.repository_files import NOTHING, Bytes
from coordinator.looking.facts import Between
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.slices.guard.adoption import Adopted, adopt_part, doubtful
from coordinator.slices.guard.attribution import (
    Running,
    find_late_writer,
    find_writer,
    has_hooks,
    is_foreign,
)
from coordinator.slices.guard.ended_rights import LATE_MS, End, EndedRights, read_lease
from coordinator.slices.guard.events import UnleasedWrite
from coordinator.slices.guard.unleased_writes import Foreign, flag, is_verdict, keep_both, note
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, VersionRow
from coordinator.words.clock import iso
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import HEADER, Resource, region_of, resource, write_window

#: Regions of one change that are recorded.
BEYOND_MAX = 8
#: Versions in one event.
VERSIONS_MAX = 500
#: So long before (ms) it was heard of a file may have been deleted.
HEARD_LATE_MS = 1_000
_ENDINGS = frozenset({"lease_released", "lease_lapsed"})


@dataclass(frozen=True, slots=True)
class Seen:
    """One changed path: its present content, and the name that it was moved from, if so. `is_new`:
    nothing was there before.

    `before` is what git has of it, for policies that show the difference; `before_there` is what
    git has of the name that it was moved from. `calls` are the agents' calls that ran when it was
    written, as far as hooks have reported. For a missing file, `is_in_git` says whether git has it,
    and `gone_ms` when its end was heard of. `looked_ms` is the moment before it was looked at; None
    if it is taken to be as it is now.
    """

    path: str
    now: Bytes
    before: Bytes = NOTHING
    moved_from: str | None = None
    before_there: Bytes = NOTHING
    is_new: bool = False
    calls: tuple[Running, ...] = ()
    lately: tuple[Running, ...] = ()
    """Those, and what had ended a moment before."""
    is_in_git: bool = False
    gone_ms: int | None = None
    looked_ms: int | None = None

    @property
    def hash(self) -> str | None:
        """The name of its content; None if it is gone."""
        return self.now.hash

    @property
    def changed_ms(self) -> int | None:
        """When it was written (the file's own time); None if unknown, as for a file that is gone.
        """
        return None if self.now.stamp is None else self.now.stamp[4] // 1_000_000

    @property
    def touched_ms(self) -> int | None:
        """When it was written or put there (the kernel's own time); None as above."""
        return None if self.now.stamp is None else self.now.stamp[5] // 1_000_000


@dataclass(frozen=True, slots=True)
class Divided:
    """A change of a file that is held by its regions; `before`: what it was, kept."""

    change: Seen
    before: str


@dataclass(frozen=True, slots=True)
class Outdated:
    """A change that was looked at before something newer was recorded of its file: a hook, say, was
    faster. It has to be looked at again, else what is newer would be forgotten."""

    change: Seen


def seen(
    svc: Service, tx: Tx, changes: Sequence[Seen], ended: EndedRights | None = None
) -> list[Adopted | Foreign | Divided | Outdated]:
    """Record what the watcher saw, and distinguish unleased writes. Leases have followed these
    renames before (`follow`). `ended` goes from one slice of a batch to the next.

    Returns the changes that need a further look at the disk: those with a known writer, and those
    that may exceed their holders' rights.
    """
    recording = _Recording(svc, tx, ended or EndedRights())
    for change in changes:
        recording.add(change)
    versions = recording.versions
    for start in range(0, len(versions), VERSIONS_MAX):
        tx.record(ev.VersionsSeen(versions=versions[start : start + VERSIONS_MAX]))
    return recording.out


def _is_seen_later(version: VersionRow | None, change: Seen) -> bool:
    return (version is not None and change.looked_ms is not None
            and version.seen_at > iso(change.looked_ms))


class _Recording:
    """Recording the watcher's changes one by one, each with its writer.

    Attributes:
        versions: (path, content, its writer if that is known) of what is recorded.
        out: what is to be looked at.
    """

    def __init__(self, svc: Service, tx: Tx, ended: EndedRights) -> None:
        self._svc, self._tx = svc, tx
        self._policy, self._adopts = svc.settings.watch.unleased, svc.settings.hooks.adopt
        self._active = bool(tx.value("agents_active"))
        self._rights = _Rights(svc, tx, ended)
        self.versions: list[tuple[str, str | None, str | None]] = []
        self.out: list[Adopted | Foreign | Divided | Outdated] = []

    def add(self, change: Seen) -> None:
        """Record one change."""
        tx, rights = self._tx, self._rights
        version = tx.first(VersionRow, "version_get", change.path)
        same = version is not None and version.hash == change.hash
        if same and not self._active:
            return
        if not same and _is_seen_later(version, change):
            self.out.append(Outdated(change))
            return
        holder = rights.holder(change)
        before = rights.before(change, version)
        if same and before == change.hash:
            return
        if rights.is_divided():  # a revert needs the surroundings of the regions
            repository_files.keep(tx, change.now)
        if (holder is not None and rights.holds(change, version.seen_at if version else None)
                and is_foreign(tx, change, holder, self._svc.fold_case)):
            self._add_foreign(change, holder, before, version)
            return
        if holder is None:
            holder = self._add_unleased(change, before, version)
        elif change.hash is not None:
            self._add_leased(change, holder, before, version)
        self.versions.append((change.path, change.hash, holder))

    def _add_leased(self, change: Seen, holder: str, before: str | None,
                    version: VersionRow | None) -> None:
        """A holder's write of its copy elsewhere, or of parts, may be more than it has."""
        if self._rights.is_elsewhere() and self._adopts and find_writer(self._tx, change) == holder:
            self.out.append(Adopted(holder, change, version.hash if version else None))
        elif self._rights.is_divided():
            self._add_divided(change, holder, before, version)

    def _add_foreign(self, change: Seen, holder: str, before: str | None,
                     version: VersionRow | None) -> None:
        """It is not its holder's writing."""
        tx, rights = self._tx, self._rights
        agent = find_writer(tx, change, but=holder) or find_late_writer(tx, change, holder)
        self.out.append(Foreign(holder, agent, change, before, rights.since(version)))
        if rights.is_divided() and before is not None and tx.has("blob_has", before):
            self.out.append(Divided(change, before))
        self.versions.append((change.path, change.hash, None))
        if agent is None and not rights.is_divided() and not is_verdict(tx, change):
            note(self._svc, tx, change, before, {holder: [change.path]})

    def _add_unleased(self, change: Seen, before: str | None,
                      version: VersionRow | None) -> str | None:
        """Nobody holds it: its writer, if that is known."""
        tx = self._tx
        agent = find_writer(tx, change) if self._adopts else None
        if agent is not None and change.hash is not None:
            there = (None if change.moved_from is None
                     else tx.first(VersionRow, "version_get", change.moved_from))
            self.out.append(Adopted(agent, change, before, there.hash if there else None))
        elif agent is None and self._active and not is_verdict(tx, change):
            if self._policy != "ignore":
                note(self._svc, tx, change, before)
            if doubtful(tx, change):
                keep_both(self._svc, tx, change, before, version.seen_at if version else None,
                          flagged=self._policy == "review")
        return agent

    def _add_divided(self, change: Seen, holder: str, before: str | None,
                     version: VersionRow | None) -> None:
        """Its holder has regions of it."""
        was = before or self._rights.baseline(change)
        if was is None or not self._tx.has("blob_has", was):
            return
        if self._policy != "ignore":
            self.out.append(Divided(change, was))
        if not has_hooks(self._tx, holder):  # it may have written another's part, too
            self.out.append(Foreign(holder, None, change, was, self._rights.since(version)))


def _list_free(svc: Service, tx: Tx, path: str, names: Sequence[str]) -> list[str]:
    """Those of these regions that nobody holds."""
    file = resource(path, "file", fold_case=svc.fold_case)
    held = [as_resource(row.file_path, row.kind, row.scope)
            for row in leases_near(tx, file) if row.expires_at > tx.now]
    if any(lease.kind != "region" or region_of(lease.name) == HEADER for lease in held):
        return []
    rights = _Rights(svc, tx, EndedRights())
    return [name for name in (f"{path}::{name}" for name in names)
            if not rights.covers(resource(name, "region", fold_case=svc.fold_case), held)]


def beyond(svc: Service, tx: Tx, divided: Divided) -> None:
    """Of a file that is held by its regions, lease the changed regions that nobody holds to the
    agent whose command changed them. If that agent is unknown, record them, or no list would have
    them.

    Raises:
        Unready: the file has to be looked at.
    """
    path = divided.change.path
    try:
        parts = tx.looked.parts(Between(svc.where(None, path), divided.before))
    except Refusal:
        return
    if parts.names is None or parts.hash != divided.change.hash:
        return  # (changed again: that is seen, too)
    free = _list_free(svc, tx, path, parts.names)
    agent = find_writer(tx, divided.change) if svc.settings.hooks.adopt else None
    if agent is not None:
        free = [name for n, name in enumerate(free) if n >= BEYOND_MAX or not adopt_part(
            svc, tx, agent, name, divided.before)]
    for name in free[:BEYOND_MAX]:
        tx.record(UnleasedWrite(resource=name, hash=None))
    if free and svc.settings.watch.unleased == "review":
        flag(svc, tx, divided.change, divided.before, f"{', '.join(free[:BEYOND_MAX])} was changed "
             "while agents were active and nobody had leased it.")


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

    def before(self, change: Seen, version: VersionRow | None) -> str | None:
        """The former content: the last seen one, or the one at the start of the holder's lease if
        that began later. Another may have put the file back meanwhile, and the watcher reports only
        the present content. `version`: the last seen content, and when."""
        last = version.hash if version else None
        lease = self._live
        if lease is None or (version is not None and version.seen_at >= lease.began):
            return last
        return self.baseline(change)

    def since(self, version: VersionRow | None) -> str | None:
        """If the right is to a part of the file: since when the whole had its former content (UTC).
        """
        if self._live is None or not self.is_divided():
            return None
        return max(self._live.began, version.seen_at) if version else self._live.began

    def baseline(self, change: Seen) -> str | None:
        """The content of the file when its holder's lease began."""
        lease = self._live
        if lease is None or lease.kind == "file":
            return lease.content_hash if lease is not None else None
        return cast(str | None, self._tx.value("baseline_get", lease.fencing_token, change.path))

    def holder(self, change: Seen) -> str | None:
        """The agent with the right to write this path when it was written. A lease cannot tell more
        about the writer. The time of a deletion is hardly known: then it is the agent that has the
        right now, or had it just before the deletion was heard of."""
        tx, written = self._tx, None
        asked = resource(change.path, "file", fold_case=self._svc.fold_case)
        if change.changed_ms is not None:
            written = iso(change.changed_ms)
        gone = None if change.gone_ms is None else iso(change.gone_ms - HEARD_LATE_MS)
        since = max(written or gone or "", tx.later(-LATE_MS))
        holder = None
        self._live = None
        writing = self._writing(change, written, since)
        if writing is not None:
            return writing
        # The watcher sees the main tree, so a holder's lease there counts first.
        rows = sorted(leases_near(tx, asked), key=lambda lease: lease.worktree is not None)
        for lease in rows:
            if (
                lease.mode == "exclusive" and lease.expires_at > tx.now
                and overlaps(asked, as_resource(lease.file_path, lease.kind, lease.scope))
            ):
                holder, self._live = lease.locked_by, lease
                if written is None or written >= lease.locked_at:
                    return holder
        end = self._last_end(asked)
        if end is not None and end.at >= since:
            self._live = None
            return end.agent
        return holder or self._turn(change, since)

    def covers(self, region: Resource, held: Sequence[Resource]) -> bool:
        """Whether somebody has a region, or a part of it, or had it just before."""
        if any(overlaps(region, other_resource) for other_resource in held):
            return True
        end = self._last_end(region)
        return end is not None and end.at >= self._tx.later(-LATE_MS)

    def is_divided(self) -> bool:
        """Whether the right that was found is to a region of the file."""
        return self._live is not None and self._live.kind == "region"

    def is_elsewhere(self) -> bool:
        """Whether the right that was found is to the copy in another working tree alone: the holder
        has yet to get one to this."""
        return self._live is not None and self._live.worktree is not None

    def _writing(self, change: Seen, written: str | None, since: str) -> str | None:
        """The agent whose edit of this file was in progress when it was written, or just before."""
        scope = write_window(change.path, self._svc.fold_case).scope
        for row in self._tx.each(LeaseRow, "leases_at_scope", scope):
            if written is None or written >= row.locked_at:
                return row.locked_by
        end = self._last_end(Resource(change.path, "key", scope))
        return end.agent if end is not None and end.at >= since else None

    def _turn(self, change: Seen, since: str) -> str | None:
        """The agent whose git changes the tree now, or did when this was written."""
        if self._tx.present().turns:
            asked = resource(change.path, "file", fold_case=self._svc.fold_case)
            for lease in self._tx.each(LeaseRow, "leases_of_git"):
                if lease.expires_at > self._tx.now and git_turn.changes(
                        self._svc, lease.worktree, None, asked):
                    return lease.locked_by
        if self._last_end(git_turn.turn_in(None).resource) is None:
            return None  # nor of any other tree
        parts = change.path.split("/")
        trees = [None, *(self._svc.where(None, "/".join(parts[:count]))
                         for count in range(1, len(parts)))]
        ends = (self._last_end(git_turn.turn_in(tree).resource, itself=True) for tree in trees)
        return next((end.agent for end in ends if end is not None and end.at >= since), None)

    def _last_end(self, asked: Resource, *, itself: bool = False) -> End | None:
        """The last end of a right to what overlaps this file, if it was lately; or to it `itself`.
        """
        if self._own is None:
            self._ended.catch_up(self._tx)
            self._own = EndedRights()  # what this transaction has ended: not in the log yet
            ends = self._tx.recorded_of(_ENDINGS)
            for number, end in enumerate(reversed(ends)):
                self._own.note(end.at, number, str(end.agent), str(end.resource),
                               read_lease(end.data))
        if itself:
            return self._own.last_exact(asked) or self._ended.last_exact(asked)
        return self._own.last_overlapping(asked) or self._ended.last_overlapping(asked)
