"""Weighing: all that stands between a holder and a set of resources, at one instant.

Live leases of others, waiters that stand before it in the line, files under review. Leases that
have lapsed are named (`Unready`) and closed first, each group by itself, so that no wrong grant and
no forgotten work follows from a sweep that did not run (invariant 5). Reads the database and the
facts of the look, nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from coordinator.kernel import unserved
from coordinator.kernel.core import Service, ms
from coordinator.kernel.leasing import git_turn, renamed_regions, task_claims
from coordinator.kernel.leasing.overlapping import each_lease_near, leases_near, near
from coordinator.looking.facts import Below, Lapsed, Place, Unready
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.rules.negotiation import within
from coordinator.store.ledger import Tx, View
from coordinator.store.projections import at_review
from coordinator.store.rows import LeaseRow, NearWaiter, WaiterRow
from coordinator.words import resource_names
from coordinator.words.file_names import shown
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import (
    Kind,
    Link,
    Located,
    Resource,
    file_scope,
    is_task,
    path_in,
    path_scope,
    resource,
)

#: A resource and the mode it is wanted in.
Wanted = tuple[Located, str]
#: A place in line, which no two have.
Standing = tuple[int, str, str]


#: Blocking leases after which a refusal is certain enough, and long enough.
BLOCKERS_MAX = 50


class Obstacles(msgspec.Struct):
    """What stands in the way of a set of resources for one holder."""

    leases: list[LeaseRow] = []
    waiters: list[NearWaiter] = []
    reviews: list[tuple[str, str, str]] = []  # (review, path, scope)
    closed: list[tuple[str, str, str]] = []  # those of them that forbid it
    unkept: bool = False  # the partial work of the first of these is kept nowhere
    mine: list[LeaseRow] = []  # its own live leases that overlap, in the same working tree
    own: dict[str, LeaseRow] = {}  # its own leases on the same things, in the same working tree
    elsewhere: list[LeaseRow] = []  # its own leases at the same scope, in others
    shares: bool = False  # it has some of it already by an agreement with others, who have it, too
    #: The scope, as it stands in the database, of the first lease in the way.
    held_at: str = ""
    #: Waiters were passed, for they wait for this holder itself: until when, at the latest (ISO
    #: text), what they wait for is held. What is granted now ends no later.
    no_longer_than: str | None = None
    looked: bool = False  # all that a grant keeps was looked at (`grant.check_looked`)

    @property
    def blocked(self) -> bool:
        """Leases or the line forbid it."""
        return bool(self.leases or self.waiters)

    @property
    def first_scope(self) -> str:
        """What a task blocked by this is parked on: a scope, or a review."""
        if self.leases:
            return self.held_at
        if self.waiters:
            return self.waiters[0].scope
        return at_review(self.closed[0][0]) if self.closed else self.mine[0].scope


def check_count(svc: Service, count: int) -> None:
    """Whether one request may be for so many resources.

    Raises:
        Refusal: LIMIT.
    """
    most = svc.settings.leases.resources_max
    if count > most:
        raise Refusal(
            Code.LIMIT, f"{count} resources in one request; the limit is {most} "
            "(leases.resources_max). Nothing was leased.", next="Lease the directory instead.",
        )


def locate(svc: Service, view: View, texts: Sequence[str], cwd: str | None) -> list[Located]:
    """What was typed, as it was looked at; the same resource twice counts once.

    Raises:
        Refusal: INVALID, OUTSIDE_REPO, LIMIT.
        Unready: one of them was not looked at yet.
    """
    if not texts:
        raise Refusal(Code.INVALID, "Name at least one resource.")
    check_count(svc, len(texts))
    if len(texts) == 1:
        text = texts[0]
        key = _key(text) if ":" in text else None
        return [key or view.looked.located(Place(text, cwd))]
    keys = {text: _key(text) for text in texts}
    view.looked.require(Place(text, cwd) for text, key in keys.items() if key is None)
    places = [keys[text] or view.looked.place(text, cwd) for text in texts]
    found = once(places)
    trees = {one.resource.scope: one.worktree for one in found}
    twice = next((one for one in places if one.worktree != trees[one.resource.scope]
                  and one.resource.name in {other.resource.name for other in found}), None)
    if twice is not None:
        raise Refusal(
            Code.INVALID, f"{shown(twice.resource.name)} is named in two working trees: one "
            "request means one of its copies. Nothing was changed.",
            next="Name each in a request of its own.", resource=twice.resource.name)
    return found


def _key(text: str) -> Located | None:
    """A semantic key, which lies nowhere: nothing has to be looked at."""
    if ":" not in text or resource_names.kind_of(text) != "key":
        return None
    resource_names.parse(text)  # whether it is well formed
    return Located(resource(text, "key"), None, None)


def place(name: str, kind: str, worktree: str | None = None, link: Link = "itself") -> Place:
    """Where a resource of this canonical name lies now: what to look at. (Where a link stands at a
    file's name, that is it: else the name would have been another from the first.)"""
    return Place(name, worktree, kind in ("file", "dir"), link if kind == "file" else "followed")


def lies(
    view: View, name: str, kind: str, scope: str, worktree: str | None = None,
    link: Link = "itself",
) -> Located:
    """Where a resource of this canonical name lies now. Where a file stands in place of a directory
    above it, it is the name alone: work that changes the one into the other leases both.

    Raises:
        Refusal: OUTSIDE_REPO, LIMIT, STORAGE.
        Unready: it was not looked at.
    """
    try:
        return view.looked.located(place(name, kind, worktree, link))
    except Refusal as refusal:
        if refusal.code is not Code.INVALID:
            raise
        return Located(rule.as_resource(name, kind, scope), None, None, worktree)


def once(places: Iterable[Located]) -> list[Located]:
    """Each resource once, however many of the names given mean it."""
    found: dict[str, Located] = {}
    for located in places:
        found.setdefault(own_key(located.resource), located)
    return list(found.values())


def once_wanted(wanted: Iterable[Wanted]) -> list[Wanted]:
    """The same for resources with their modes: wanted in both, it is wanted exclusively."""
    found: dict[str, Wanted] = {}
    for located, mode in wanted:
        key = own_key(located.resource)
        if key not in found or mode == "exclusive":
            found[key] = (located, mode)
    return list(found.values())


def weigh(
    svc: Service, tx: Tx, holder: str, wanted: Sequence[Wanted], *, priority: int = 0,
    asked_at: str | None = None, acquisition: str | None = None, task: str | None = None,
    agreed: str | None = None, lent: Collection[LeaseRow] = (),
) -> Obstacles:
    """All that stands in the way now.

    `acquisition` is the waiter that is being served, if it is one: it stands at its own place.
    `task` is the task that is being claimed: work that was reassigned waits for its own task, so
    that others do not begin on it. (One who is in the middle of a task and asks for such a file
    gets it: it may hold what that task waits for.) `agreed`: it is wanted by this agreement.
    `lent`: leases of its parent, which go over to it with the grant.

    Raises:
        Unready: lapsed leases have to be closed before, or files to be looked at.
    """
    out = Obstacles()
    now = tx.now
    lapsed: list[Lapsed] = []
    passed = {lease.fencing_token for lease in lent}
    for located, mode in wanted:
        asked = located.resource
        rivals = _rivals(svc, tx, located)
        sharing: set[str | None] = set()
        if asked.kind in ("file", "region"):
            rivals = [*rivals, *renamed_regions.rivals(svc, tx, holder, located)]
            sharing = {lease.agreed_as for lease, _ in rivals if lease.agreed_as is not None
                       and (lease.locked_by, lease.scope) == (holder, asked.scope)
                       and lease.expires_at > now}
        for lease, scope in rivals:
            if len(out.leases) == BLOCKERS_MAX:
                return out  # no grant can follow; the rest of a large directory need not be read
            if lease.locked_by == holder:
                here = lease.worktree == located.worktree or asked.kind == "key"
                if lease.scope == asked.scope and (
                        lease.kind == asked.kind or scope == asked.scope) and own_key(
                        asked) == own_key(rule.as_resource(lease.file_path, lease.kind, scope)):
                    if here:
                        out.own[own_key(asked)] = lease
                    else:
                        out.elsewhere.append(lease)
                if lease.expires_at <= now:
                    lapsed.append(Lapsed(holder, lease.task_id))
                elif here and overlaps(
                        asked, rule.as_resource(lease.file_path, lease.kind, lease.scope)):
                    out.mine.append(lease)
                continue
            if not rule.conflicts(asked, mode, holder, lease, agreed):
                continue
            if lease.fencing_token in passed:
                continue
            if lease.agreed_as is not None and lease.agreed_as in sharing:
                out.shares = out.shares or lease.expires_at > now  # it has it already, with these
                continue
            if rule.dead(lease.expires_at, now):
                lapsed.append(Lapsed(lease.locked_by, lease.task_id))
                continue
            out.held_at = out.held_at or scope
            out.leases.append(lease)
        if asked.kind == "key" and is_task(asked):
            _claim_in_the_way(tx, out, holder, asked, lapsed)
        present = tx.present()
        if present.turns or asked.kind == "key":
            for lease in git_turn.in_the_way(svc, tx, holder, located, mode,
                                             BLOCKERS_MAX - len(out.leases)):
                out.held_at = out.held_at or lease.scope
                out.leases.append(lease)
        # (Who stands in line for what its holder has renamed does not keep that from it.)
        if present.waiters and not renamed_regions.is_own(svc, tx, holder, located):
            place = rule.standing(priority, asked_at or now, tx.now_ms,
                                  ms(svc.settings.leases.age_step_s))
            _ahead(svc, tx, out, holder, asked, mode, place, acquisition, passed)
        # (What it shares it goes on with, though another has left that half done.)
        if present.reviews and not any(one.agreed_as is not None and overlaps(
                asked, rule.as_resource(one.file_path, one.kind, one.scope)) for one in out.mine):
            for review, path, scope, state, left_by, unkept in near(tx, "reviews_near", asked):
                if state == "reassigned" and task in (None, left_by):
                    continue
                if not overlaps(asked, rule.as_resource(str(path), "file", str(scope))):
                    continue  # a glob is near to more than it means
                found = str(review), str(path), str(scope)
                out.reviews.append(found)
                # Partial work that lies only where it was done is given to nobody: who writes there
                # would destroy it before a person has seen it.
                if unkept or svc.settings.review.quarantine:
                    out.unkept = out.unkept or (bool(unkept) and not out.closed)
                    out.closed.append(found)
    if lapsed:
        raise Unready(lapsed=dict.fromkeys(lapsed))
    if not (out.leases or out.waiters):
        for located, mode in wanted:
            if located.resource.kind in ("dir", "glob") and not _own(out, located):
                _linked_rivals(svc, tx, out, holder, located, mode, agreed)
    return out


def below(svc: Service, located: Located) -> Below:
    """What has to be looked at for a directory or glob that is to be granted."""
    asked = located.resource
    return Below(located.worktree or svc.root, asked.name, asked.kind, asked.scope,
                 svc.settings.review.files_max)


def own_key(asked: Resource) -> str:
    """What a holder has once: a thing is the same before it is made, as a file and as a directory.
    (Globs of one directory share its scope.)"""
    return asked.scope + "\n" + (asked.name if asked.kind == "glob" else "")


def _rivals(svc: Service, tx: Tx, located: Located) -> Iterable[tuple[LeaseRow, str]]:
    """Leases that may overlap, by name, then by inode, each with its scope in the database."""
    asked = located.resource
    if asked.kind in ("dir", "glob"):
        return ((lease, lease.scope)
                for lease in each_lease_near(tx, asked))
    if asked.kind == "key" and not tx.present().keys:
        return ()
    leases = leases_near(tx, asked)  # little lies below a file
    if not leases and located.inode is None:
        return ()
    out = [(lease, lease.scope) for lease in leases]
    if located.inode is not None:
        known = {lease.fencing_token for lease, _ in out}
        # (A glob is near whatever it matches: another name of the file may be what it does.)
        apart = set() if located.links < 2 else {lease.fencing_token for lease, _ in out if not (
            overlaps(asked, rule.as_resource(lease.file_path, lease.kind, lease.scope)))}
        file = file_scope(asked.scope)
        for lease in tx.each(LeaseRow, "rivals_by_inode", located.inode):
            if lease.scope.startswith(file) and lease.worktree == located.worktree:
                continue  # under this very name: those that overlap were found by it
            if lease.fencing_token not in known and _same_file(svc, tx, lease):
                out.append((_renamed(svc, lease, asked), lease.scope))
                known.add(lease.fencing_token)
        if located.links > 1 and located.path is not None:
            out += _twins_rivals(svc, tx, located, known - apart)
    return out


def _claim_in_the_way(tx: Tx, out: Obstacles, holder: str, asked: Resource,
                      lapsed: list[Lapsed]) -> None:
    """A task is held by whoever has claimed it."""
    claim = task_claims.as_lease(tx, asked.scope)
    if claim is None or claim.locked_by == holder:
        return
    if any(one.scope == asked.scope and one.locked_by == claim.locked_by for one in out.leases):
        return  # its claim is a lease already
    if rule.dead(claim.expires_at, tx.now):
        lapsed.append(Lapsed(claim.locked_by, claim.task_id))
        return
    out.held_at = out.held_at or claim.scope
    out.leases.append(claim)


def _twins_rivals(
    svc: Service, tx: Tx, located: Located, known: Collection[int]
) -> list[tuple[LeaseRow, str]]:
    """Leases on what contains another name of the same file: a directory that it is linked into."""
    assert located.path is not None
    found = {lease.fencing_token: lease for lease in _of_names(
        svc, tx, tx.looked.twins(located.path)) if lease.fencing_token not in known}
    return [(_renamed(svc, lease, located.resource), lease.scope) for lease in found.values()]


def _linked_rivals(
    svc: Service, tx: Tx, out: Obstacles, holder: str, located: Located, mode: str,
    agreed: str | None,
) -> None:
    """Files below the directory that is asked for, which others hold under another name, or with a
    directory in which their other name is."""
    for file in tx.looked.below(below(svc, located)).linked:
        found = {lease.fencing_token: lease for lease in (
            *tx.each(LeaseRow, "rivals_by_inode", file.inode),
            *_of_names(svc, tx, file.others))}
        for lease in found.values():
            if lease.locked_by == holder or rule.both_shared(mode, lease, agreed):
                continue
            if rule.dead(lease.expires_at, tx.now):
                raise Unready(lapsed=[Lapsed(lease.locked_by, lease.task_id)])
            if len(out.leases) == BLOCKERS_MAX:
                return
            out.held_at = out.held_at or lease.scope
            scope = path_scope(file.path, svc.fold_case)
            out.leases.append(msgspec.structs.replace(lease, kind="file", scope=scope))


def _of_names(svc: Service, tx: Tx, names: Iterable[str]) -> Iterable[LeaseRow]:
    """Leases on files of these names, and on directories and globs that one of them is in."""
    for name in names:
        file = resource(name, "file", fold_case=svc.fold_case)
        for lease in leases_near(tx, file):
            if lease.kind != "region" and overlaps(
                    file, rule.as_resource(lease.file_path, lease.kind, lease.scope)):
                yield lease


def _own(out: Obstacles, located: Located) -> bool:
    return own_key(located.resource) in out.own


def _same_file(svc: Service, tx: Tx, lease: LeaseRow) -> bool:
    """Whether a lease with this inode is still on that very file.

    If the leased path is there and another file, the one we ask for is not the leased one; if it is
    gone, it was renamed. (Where the disk tells no births of files, a number that is used again
    after its file was deleted looks like that too.)
    """
    path = lease.file_path.rpartition("::")[0] if lease.kind == "region" else lease.file_path
    now_there = tx.looked.identity(svc.where(lease.worktree, path))
    return now_there is None or now_there == lease.inode


def _renamed(svc: Service, lease: LeaseRow, asked: Resource) -> LeaseRow:
    """A lease on the file that we ask for, taken under another name: as if under this one. What
    contains that other name (a directory) is as if it contained this one."""
    path = path_in(asked.scope) if asked.kind == "region" else asked.name
    region = lease.file_path.rpartition("::")[2] if lease.kind == "region" else None
    kind: Kind = "file" if region is None else "region"
    name = path if region is None else f"{path}::{region}"
    alias = resource(name, kind, fold_case=svc.fold_case)
    contains = lease.kind in ("dir", "glob")
    return msgspec.structs.replace(lease, kind="dir" if contains else kind, scope=alias.scope)


def _ahead(
    svc: Service, tx: Tx, out: Obstacles, holder: str, asked: Resource, mode: str,
    place: tuple[int, str], acquisition: str | None, lent: Collection[int],
) -> None:
    """Waiters of others that overlap `asked` and stand before it. One that waits for `holder`
    itself, or for what is `lent` to it, is passed, and bounds what is granted; so is one that
    stands behind such a one, or all three would wait for each other. One that is set aside is
    passed, too. Who has asked for it before, among more, stands where it stood then."""
    step = ms(svc.settings.leases.age_step_s)
    before: list[tuple[tuple[int, str], NearWaiter]] = []
    for raw in near(tx, "waiters_near", asked):
        waiter = NearWaiter(*raw)
        if waiter.agent == holder or waiter.acquisition_id == acquisition:
            continue
        if rule.dead(waiter.until, tx.now):
            continue  # its time in line is over, whether or not anybody has tidied it away
        if mode == "shared" and waiter.mode == "shared":
            continue
        theirs = rule.standing(waiter.priority, waiter.asked_at, tx.now_ms, step)
        if (theirs, waiter.acquisition_id) > (place, acquisition or "~"):
            continue
        if not overlaps(asked, rule.as_resource(waiter.name, waiter.kind, waiter.scope)):
            continue
        if unserved.rests(tx, "waiter", waiter.acquisition_id):
            continue
        before.append((theirs, waiter))
    mine = min(_places(tx, holder, asked, mode, step), default=None) if before else None
    if mine is not None:
        before = [(at, one) for at, one in before if (*at, one.acquisition_id) < mine]
    passed: list[tuple[NearWaiter, str]] = []
    for _, waiter in sorted(before, key=lambda one: (one[0], one[1].acquisition_id)):
        until = _waits_for(tx, waiter, holder, lent) or next(
            (its for other, its in passed if _stands_behind(waiter, other)), None)
        if until is None:
            out.waiters.append(waiter)
        else:
            passed.append((waiter, until))
            out.no_longer_than = min(until, out.no_longer_than or until)


def _places(tx: Tx, holder: str, asked: Resource, mode: str, step: int) -> list[Standing]:
    """Where an agent stands in line already for this, and more."""
    rows = tx.each(WaiterRow, "waiters_of_agent", holder)
    return [
        (*rule.standing(row.priority, row.asked_at, tx.now_ms, step), row.acquisition_id)
        for row in rows if row.mode in ("exclusive", mode) and not rule.dead(row.until, tx.now)
        and not unserved.rests(tx, "waiter", row.acquisition_id)
        and any(within(one, asked) for one in _wanted(tx, row.acquisition_id))]


def _wanted(tx: Tx, acquisition: str) -> list[Resource]:
    return [rule.as_resource(*raw) for raw in tx.rows("waiter_resources_of", acquisition)]


def _stands_behind(waiter: NearWaiter, other: NearWaiter) -> bool:
    """Whether it cannot be served before this one, who came first."""
    return "exclusive" in (waiter.mode, other.mode) and overlaps(
        rule.as_resource(waiter.name, waiter.kind, waiter.scope),
        rule.as_resource(other.name, other.kind, other.scope))


def _waits_for(tx: Tx, waiter: NearWaiter, holder: str, lent: Collection[int]) -> str | None:
    """Until when, at the latest, `holder` has what this waiter waits for; None if it has none of
    it."""
    latest: str | None = None
    for asked in _wanted(tx, waiter.acquisition_id):
        for lease in leases_near(tx, asked):
            if (
                (lease.locked_by == holder or lease.fencing_token in lent)
                and lease.expires_at > tx.now
                and rule.conflicts(asked, waiter.mode, waiter.agent, lease)
            ):
                latest = max(latest or lease.max_until, lease.max_until)
    return latest
