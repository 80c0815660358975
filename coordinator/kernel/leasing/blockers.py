"""Finding everything that blocks a holder from a set of resources at one instant.

Blockers are live leases of others, waiters that are earlier in the queue, and files under review.
Expired leases are named by `Unready` and closed first, each group by itself. So no wrong grant and
no forgotten work follows when a sweep did not run (invariant 5). The search reads the database and
the facts of the look, nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from coordinator.kernel import tasks, unserved
from coordinator.kernel.core import Service, ms
from coordinator.kernel.leasing import git_turn, renamed_regions
from coordinator.kernel.leasing.located import Wanted, own_key
from coordinator.kernel.leasing.overlapping import NearReviewRow, each_lease_near, leases_near, near
from coordinator.looking.facts import Below, Lapsed, Unready
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.rules.negotiation import within
from coordinator.store.ledger import Tx
from coordinator.store.parking import at_review
from coordinator.store.rows import LeaseRow, NearWaiter, PlaceRow, WaiterRow, Wanting
from coordinator.store.writer_cache import NOBODY, Present
from coordinator.words import purposes
from coordinator.words.resource_names import (
    Kind,
    Located,
    Resource,
    file_scope,
    is_task,
    path_in,
    path_scope,
    resource,
)

#: A place in the queue. No two waiters have the same.
Standing = tuple[int, str, str]


#: Blocking leases after which a refusal is certain enough, and long enough.
BLOCKERS_MAX = 50


class Blockers(msgspec.Struct):
    """Everything that blocks one holder from a set of resources."""

    leases: list[LeaseRow] = []
    waiters: list[NearWaiter] = []
    reviews: list[tuple[str, str, str]] = []  # (review, path, scope)
    closed: list[tuple[str, str, str]] = []  # those of them that forbid it
    unkept: bool = False  # the partial work of the first of these is kept nowhere
    mine: list[LeaseRow] = []  # its own live leases that overlap, in the same working tree
    own: dict[str, LeaseRow] = {}  # its own leases on the same things, in the same working tree
    elsewhere: list[LeaseRow] = []  # its own leases at the same scope, in others
    apart: list[LeaseRow] = []  # live leases of others on the same, which count in other trees
    shares: bool = False  # it has some of it already by an agreement with others, who have it, too
    #: The scope of the first blocking lease, as the database has it.
    held_at: str = ""
    #: Waiters were passed because they wait for this holder itself. This is the latest end (ISO
    #: text) of what they wait for. The new grant ends no later.
    no_longer_than: str | None = None
    looked: bool = False  # all that a grant keeps was looked at (`grant.check_looked`)

    @property
    def blocked(self) -> bool:
        """Whether leases or the queue forbid it."""
        return bool(self.leases or self.waiters)

    @property
    def first_scope(self) -> str:
        """What a blocked task is parked on: a scope, or a review."""
        if self.leases:
            return self.held_at
        if self.waiters:
            return self.waiters[0].scope
        return at_review(self.closed[0][0]) if self.closed else self.mine[0].scope


class Asking(msgspec.Struct, frozen=True, gc=False):
    """How something is asked for.

    Attributes:
        acquisition: the waiter that is being served, if it is one: it stands at its own place.
        task: the task that is being claimed: work that was reassigned waits for its own task, so
            that others do not begin on it. An agent in the middle of a task that asks for such a
            file gets it, for it may hold what that task waits for.
        agreed: the agreement by which it is wanted.
        lent: leases of its parent, which go over to it with the grant.
        purpose: its purpose: what a hook takes unasked counts in its own working tree.
    """

    priority: int = 0
    asked_at: str | None = None
    acquisition: str | None = None
    task: str | None = None
    agreed: str | None = None
    lent: Collection[LeaseRow] = ()
    purpose: str = purposes.ASKED


PLAINLY = Asking()


def find_blockers(svc: Service, tx: Tx, holder: str, wanted: Sequence[Wanted],
                  asking: Asking = PLAINLY) -> Blockers:
    """Find everything that blocks the holder now.

    Raises:
        Unready: lapsed leases have to be closed before, or files to be looked at.
    """
    search = _Search(svc, tx, holder, asking)
    if asking.lent:
        search.passed = {lease.fencing_token for lease in asking.lent}
    blockers, present = search.blockers, tx.present()
    for located, mode in wanted:
        if not search.add_leases(located, mode):
            return blockers
        if present is not NOBODY or located.resource.kind == "key":
            search.add_others(located, mode, present)
    if search.lapsed:
        raise Unready(lapsed=dict.fromkeys(search.lapsed))
    for located, mode in wanted:
        if (located.resource.kind in ("dir", "glob") and not blockers.blocked
                and not _own(blockers, located)):
            _linked_rivals(svc, tx, blockers, holder, located, mode, asking.agreed)
    return blockers


class _Search(msgspec.Struct):
    """The search for the blockers of one holder, resource by resource. `passed`: tokens of leases
    that do not block, for they go over to the holder."""

    svc: Service
    tx: Tx
    holder: str
    asking: Asking
    passed: Collection[int] = ()
    blockers: Blockers = msgspec.field(default_factory=Blockers)
    lapsed: list[Lapsed] = []

    def add_leases(self, located: Located, mode: str) -> bool:
        """Leases of others; and what the holder has. False: there are so many that no grant can
        follow, and the rest of a large directory need not be read."""
        rivals = _rivals(self.svc, self.tx, self.holder, located)
        if not rivals:
            return True
        sharing: set[str | None] = set()
        if located.resource.kind in ("file", "region"):
            rivals = list(rivals)
            sharing = self._find_agreements(located.resource, rivals)
        for lease, scope in rivals:
            if len(self.blockers.leases) == BLOCKERS_MAX:
                return False
            if lease.locked_by == self.holder:
                self._add_own(located, lease, scope)
            elif self._blocks(located, mode, lease, sharing):
                self.blockers.held_at = self.blockers.held_at or scope
                self.blockers.leases.append(lease)
        return True

    def add_others(self, located: Located, mode: str, present: Present) -> None:
        """All that is in the way beside leases."""
        asked = located.resource
        if asked.kind == "key" and is_task(asked):
            self.add_claim(asked)
        if present.turns or asked.kind == "key":
            self.add_turns(located, mode)
        # A waiter on the old name of a file does not block its holder from the new one.
        if present.waiters and not renamed_regions.is_own(self.svc, self.tx, self.holder, located):
            self.add_waiters(located, mode)
        if present.reviews:
            self.add_reviews(asked)

    def _find_agreements(self, asked: Resource,
                         rivals: Iterable[tuple[LeaseRow, str]]) -> set[str | None]:
        """The agreements by which the holder has it already."""
        return {lease.agreed_as for lease, _ in rivals if lease.agreed_as is not None
                and (lease.locked_by, lease.scope) == (self.holder, asked.scope)
                and lease.expires_at > self.tx.now}

    def _add_own(self, located: Located, lease: LeaseRow, scope: str) -> None:
        """A lease of the holder's own: on the same thing, here or in another working tree."""
        asked, blockers = located.resource, self.blockers
        here = lease.worktree == located.worktree or asked.kind == "key"
        if _is_on(lease, scope, asked):
            if here:
                blockers.own[own_key(asked)] = lease
            else:
                blockers.elsewhere.append(lease)
        if lease.expires_at <= self.tx.now:
            self.lapsed.append(Lapsed(self.holder, lease.task_id))
        elif here and overlaps(asked, rule.as_resource(lease.file_path, lease.kind, lease.scope)):
            blockers.mine.append(lease)

    def _reach(self, located: Located) -> str:
        return rule.reach(located.resource.kind, self.asking.purpose, located.worktree)

    def _blocks(self, located: Located, mode: str, lease: LeaseRow,
                sharing: Collection[str | None]) -> bool:
        """Whether another's lease blocks it. An expired lease has to be closed first."""
        one_inode = located.inode is not None and lease.inode == located.inode
        if not rule.conflicts(located.resource, mode, self.holder, lease, self.asking.agreed,
                              rule.EVERYWHERE if one_inode else self._reach(located)):
            if lease.worktree != located.worktree and lease.expires_at > self.tx.now and (
                    rule.conflicts(located.resource, mode, self.holder, lease)):
                self.blockers.apart.append(lease)
            return False
        if lease.fencing_token in self.passed:
            return False
        if lease.agreed_as is not None and lease.agreed_as in sharing:
            self.blockers.shares = self.blockers.shares or lease.expires_at > self.tx.now
            return False
        if rule.dead(lease.expires_at, self.tx.now):
            self.lapsed.append(Lapsed(lease.locked_by, lease.task_id))
            return False
        return True

    def add_claim(self, asked: Resource) -> None:
        """A claimed task is held by the agent that claimed it."""
        claim = tasks.as_lease(self.tx, asked.scope)
        if claim is None or claim.locked_by == self.holder:
            return
        if any((lease.scope, lease.locked_by) == (asked.scope, claim.locked_by)
               for lease in self.blockers.leases):
            return  # its claim is a lease already
        if rule.dead(claim.expires_at, self.tx.now):
            self.lapsed.append(Lapsed(claim.locked_by, claim.task_id))
            return
        self.blockers.held_at = self.blockers.held_at or claim.scope
        self.blockers.leases.append(claim)

    def add_turns(self, located: Located, mode: str) -> None:
        """Others' git at work."""
        blockers = self.blockers
        for lease in git_turn.in_the_way(self.svc, self.tx, self.holder, located, mode,
                                         BLOCKERS_MAX - len(blockers.leases)):
            blockers.held_at = blockers.held_at or lease.scope
            blockers.leases.append(lease)

    def add_waiters(self, located: Located, mode: str) -> None:
        """Add others' waiters that overlap the resource and are earlier in the queue. A waiter that
        waits for the holder itself, or for what the holder has lent, is passed and limits the
        grant. So is a waiter behind such a one, or all three would wait for each other. An agent
        that asked for this before, among more, keeps its place."""
        before = self._find_waiters_before(located, mode)
        passed: list[tuple[NearWaiter, str]] = []
        for _, waiter in sorted(before, key=lambda place: (place[0], place[1].acquisition_id)):
            until = _waits_for(self.tx, waiter, self.holder, self.passed) or next(
                (its for other, its in passed if _stands_behind(waiter, other)), None)
            if until is None:
                self.blockers.waiters.append(waiter)
            else:
                passed.append((waiter, until))
                self.blockers.no_longer_than = min(until, self.blockers.no_longer_than or until)

    def _find_waiters_before(self, located: Located,
                             mode: str) -> list[tuple[tuple[int, str], NearWaiter]]:
        tx, asking, asked = self.tx, self.asking, located.resource
        step = ms(self.svc.settings.leases.age_step_s)
        place = rule.standing(asking.priority, asking.asked_at or tx.now, tx.now_ms, step)
        before: list[tuple[tuple[int, str], NearWaiter]] = []
        for waiter in near(tx, NearWaiter, "waiters_near", asked):
            theirs = rule.standing(waiter.priority, waiter.asked_at, tx.now_ms, step)
            if (self._is_in_the_queue(waiter, located, mode)
                    and (theirs, waiter.acquisition_id) <= (place, asking.acquisition or "~")
                    and not unserved.rests(tx, "waiter", waiter.acquisition_id)):
                before.append((theirs, waiter))
        mine = min(_places(tx, self.holder, asked, mode, step), default=None) if before else None
        if mine is not None:
            before = [(asked_at, waiter) for asked_at,
                      waiter in before if (*asked_at, waiter.acquisition_id) < mine]
        return before

    def _is_in_the_queue(self, waiter: NearWaiter, located: Located, mode: str) -> bool:
        """Whether this is another's, for what overlaps it, and its time is not over."""
        return not (
            waiter.agent == self.holder or waiter.acquisition_id == self.asking.acquisition
            or rule.dead(waiter.until, self.tx.now)  # whether or not anybody has tidied it away
            or (mode == "shared" and waiter.mode == "shared")
            or not overlaps(located.resource,
                            rule.as_resource(waiter.name, waiter.kind, waiter.scope))
            or not rule.meet(self._reach(located), waiter_reach(waiter)))

    def add_reviews(self, asked: Resource) -> None:
        """Add partial work under review. A holder that shares a file may continue, although another
        holder left the file half done."""
        blockers, task = self.blockers, self.asking.task
        if any(lease.agreed_as is not None and overlaps(
                asked, rule.as_resource(lease.file_path, lease.kind, lease.scope))
                for lease in blockers.mine):
            return
        for row in near(self.tx, NearReviewRow, "reviews_near", asked):
            if row.state == "reassigned" and task in (None, row.task_id):
                continue
            if not overlaps(asked, rule.as_resource(row.path, "file", row.scope)):
                continue  # a glob is near to more than it means
            file = row.review_id, row.path, row.scope
            blockers.reviews.append(file)
            # Nobody gets partial work that exists only in its place. A new writer would destroy it
            # before a person has seen it.
            if row.unkept or self.svc.settings.review.quarantine:
                blockers.unkept = blockers.unkept or (bool(row.unkept) and not blockers.closed)
                blockers.closed.append(file)


def _is_on(lease: LeaseRow, scope: str, asked: Resource) -> bool:
    """Whether a lease is on this very thing."""
    return lease.scope == asked.scope and (
        lease.kind == asked.kind or scope == asked.scope) and own_key(asked) == own_key(
        rule.as_resource(lease.file_path, lease.kind, scope))


def below(svc: Service, located: Located) -> Below:
    """What has to be looked at before a directory or glob is granted."""
    asked = located.resource
    return Below(located.worktree or svc.root, asked.name, asked.kind, asked.scope,
                 svc.settings.review.files_max)


def _rivals(svc: Service, tx: Tx, holder: str, located: Located) -> Iterable[tuple[LeaseRow, str]]:
    """Leases that may overlap, by name, then by inode, each with its scope in the database."""
    asked = located.resource
    if asked.kind in ("dir", "glob"):
        return ((lease, lease.scope) for lease in each_lease_near(tx, asked))
    if asked.kind == "key" and not tx.present().keys:
        return ()
    leases = leases_near(tx, asked)  # little lies below a file
    if located.inode is None:
        return [(lease, lease.scope) for lease in leases] if leases else ()
    result = [(lease, lease.scope) for lease in leases]
    result += _find_by_inode(svc, tx, located, located.inode, result)
    if asked.kind == "region":
        result += renamed_regions.rivals(svc, tx, holder, located)
    return result


def _find_by_inode(svc: Service, tx: Tx, located: Located, inode: str,
                   by_name: list[tuple[LeaseRow, str]]) -> list[tuple[LeaseRow, str]]:
    """The leases on other names of this file that are not among those which its name has led to."""
    asked, result = located.resource, list[tuple[LeaseRow, str]]()
    fencing_tokens = {lease.fencing_token for lease, _ in by_name}
    file = file_scope(asked.scope)
    for lease in tx.each(LeaseRow, "rivals_by_inode", inode):
        if lease.scope.startswith(file) and lease.worktree == located.worktree:
            continue  # under this very name: those that overlap were found by it
        if lease.fencing_token not in fencing_tokens and _same_file(svc, tx, lease):
            result.append((_renamed(svc, lease, asked), lease.scope))
            fencing_tokens.add(lease.fencing_token)
    if located.links > 1 and located.path is not None:
        # A glob is near every file that it matches, so another name of the file may match it.
        apart = {lease.fencing_token for lease, _ in by_name if not (
            overlaps(asked, rule.as_resource(lease.file_path, lease.kind, lease.scope)))}
        result += _twins_rivals(svc, tx, located, fencing_tokens - apart)
    return result


def _twins_rivals(
    svc: Service, tx: Tx, located: Located, tokens: Collection[int]
) -> list[tuple[LeaseRow, str]]:
    """Leases on what contains another name of the same file: a directory that it is linked into."""
    assert located.path is not None
    matches = {lease.fencing_token: lease for lease in _of_names(
        svc, tx, tx.looked.twins(located.path)) if lease.fencing_token not in tokens}
    return [(_renamed(svc, lease, located.resource), lease.scope) for lease in matches.values()]


def _linked_rivals(
    svc: Service, tx: Tx, blockers: Blockers, holder: str, located: Located, mode: str,
    agreed: str | None,
) -> None:
    """Files below the directory that is asked for, which others hold under another name, or with a
    directory in which their other name is."""
    for file in tx.looked.below(below(svc, located)).linked:
        matches = {lease.fencing_token: lease for lease in (
            *tx.each(LeaseRow, "rivals_by_inode", file.inode),
            *_of_names(svc, tx, file.others))}
        for lease in matches.values():
            if lease.locked_by == holder or rule.both_shared(mode, lease, agreed):
                continue
            if rule.dead(lease.expires_at, tx.now):
                raise Unready(lapsed=[Lapsed(lease.locked_by, lease.task_id)])
            if len(blockers.leases) == BLOCKERS_MAX:
                return
            blockers.held_at = blockers.held_at or lease.scope
            scope = path_scope(file.path, svc.fold_case)
            blockers.leases.append(msgspec.structs.replace(lease, kind="file", scope=scope))


def _of_names(svc: Service, tx: Tx, names: Iterable[str]) -> Iterable[LeaseRow]:
    """Leases on files of these names, and on directories and globs that one of them is in."""
    for name in names:
        file = resource(name, "file", fold_case=svc.fold_case)
        for lease in leases_near(tx, file):
            if lease.kind != "region" and overlaps(
                    file, rule.as_resource(lease.file_path, lease.kind, lease.scope)):
                yield lease


def _own(blockers: Blockers, located: Located) -> bool:
    return own_key(located.resource) in blockers.own


def _same_file(svc: Service, tx: Tx, lease: LeaseRow) -> bool:
    """Whether a lease with this inode is still on that very file.

    If the leased path is now another file, the requested file is not the leased one. If the leased
    path is gone, the file was renamed. Where the disk tells no births of files, a number that is
    used again after a deletion looks like a rename, too.
    """
    path = lease.file_path.rpartition("::")[0] if lease.kind == "region" else lease.file_path
    now_there = tx.looked.identity(svc.where(lease.worktree, path))
    return now_there is None or now_there == lease.inode


def _renamed(svc: Service, lease: LeaseRow, asked: Resource) -> LeaseRow:
    """A lease on the requested file under another name, as if it were under this name. A directory
    that contains the other name counts as if it contained this one."""
    path = path_in(asked.scope) if asked.kind == "region" else asked.name
    region = lease.file_path.rpartition("::")[2] if lease.kind == "region" else None
    kind: Kind = "file" if region is None else "region"
    name = path if region is None else f"{path}::{region}"
    alias = resource(name, kind, fold_case=svc.fold_case)
    contains = lease.kind in ("dir", "glob")
    return msgspec.structs.replace(lease, kind="dir" if contains else kind, scope=alias.scope,
                                   purpose=purposes.ASKED)  # one file, in whatever tree


def _places(tx: Tx, holder: str, asked: Resource, mode: str, step: int) -> list[Standing]:
    """The places in the queue that an agent already has for this and more."""
    rows = tx.each(WaiterRow, "waiters_of_agent", holder)
    return [
        (*rule.standing(row.priority, row.asked_at, tx.now_ms, step), row.acquisition_id)
        for row in rows if row.mode in ("exclusive", mode) and not rule.dead(row.until, tx.now)
        and not unserved.rests(tx, "waiter", row.acquisition_id)
        and any(within(other_resource, asked) for other_resource
                in _wanted(tx, row.acquisition_id))]


def _wanted(tx: Tx, acquisition: str) -> list[Resource]:
    return [rule.as_resource(row.name, row.kind, row.scope)
            for row in tx.each(PlaceRow, "waiter_places_of", acquisition)]


def waiter_reach(waiter: NearWaiter | Wanting) -> str:
    """The working tree in which the right counts that a waiter waits for."""
    return rule.reach(waiter.kind, waiter.purpose, waiter.worktree)


def _stands_behind(waiter: NearWaiter, other: NearWaiter) -> bool:
    """Whether it cannot be served before this one, who came first."""
    return "exclusive" in (waiter.mode, other.mode) and rule.meet(
        waiter_reach(waiter), waiter_reach(other)) and overlaps(
        rule.as_resource(waiter.name, waiter.kind, waiter.scope),
        rule.as_resource(other.name, other.kind, other.scope))


def _waits_for(tx: Tx, waiter: NearWaiter, holder: str, lent: Collection[int]) -> str | None:
    """The latest time until which `holder` has what this waiter waits for; None if it has none of
    it."""
    latest: str | None = None
    for asked in _wanted(tx, waiter.acquisition_id):
        for lease in leases_near(tx, asked):
            if (
                (lease.locked_by == holder or lease.fencing_token in lent)
                and lease.expires_at > tx.now
                and rule.conflicts(asked, waiter.mode, waiter.agent, lease,
                                   within=waiter_reach(waiter))
            ):
                latest = max(latest or lease.max_until, lease.max_until)
    return latest
