"""Granting: writing the leases of a set that nothing blocks, and keeping the bytes that the holder
starts from.

`blockers` decides whether something blocks the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import NamedTuple

import msgspec

from coordinator.kernel.core import Service, listed, ms
from coordinator.kernel.leasing import deadlocks, pending_unlocks
from coordinator.kernel.leasing.blockers import Blockers, below
from coordinator.kernel.leasing.located import Wanted, own_key
from coordinator.kernel.leasing.other_names import with_other_names
from coordinator.kernel.leasing.typed_names import warn_of_name
from coordinator.looking.facts import Bytes
from coordinator.rules import leases as rule
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import ContentRow, LeaseRow, Row, WaiterRow
from coordinator.words import file_names, purposes
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, Resource, path_of, region_of
from coordinator.words.texts import figures

#: What a lease begins with: a content's name, or the names of all contents, by path.
_Beginning = tuple[str | None, list[tuple[str, str]] | None]
#: For a lease whose start nobody looked at: everything seen is later.
EARLIER = ""


class Before(NamedTuple):
    """What a resource held before its new holder changed it, kept already: a file's content; or a
    region's, and its whole file's by path."""

    content_hash: str | None
    baselines: list[tuple[str, str]] | None = None


class Agreed(NamedTuple):
    """One thing that is granted to be written together with others, as its holder agreed.

    Attributes:
        name: of the agreement.
        content_hash, baselines: what was there when the work of all of them began.
    """

    name: str
    content_hash: str | None
    baselines: list[tuple[str, str]] | None


class Terms(msgspec.Struct, frozen=True, gc=False):
    """The terms of a grant.

    Attributes:
        ttl_ms, first_ttl_ms: how long it lasts (ms); the first time, if that is another.
        no_longer_than: it ends then (ISO text), whatever its TTL and however often it is renewed.
        before: what the one thing that is granted held.
        agreed: the one thing that is granted is written by others, too.
    """

    ttl_ms: int
    task: str | None
    description: str
    purpose: str = purposes.ASKED
    first_ttl_ms: int | None = None
    no_longer_than: str | None = None
    before: Before | None = None
    agreed: Agreed | None = None


def grant(svc: Service, tx: Tx, holder: str, wanted: Sequence[Wanted], blockers: Blockers,
          terms: Terms) -> rq.Acquired:
    """Write the leases of a set that nothing blocks.

    The caller has asked `check_looked` before it recorded anything.
    """
    assert blockers.looked, "nothing is granted that was not looked at"
    expires = tx.later(terms.first_ttl_ms or terms.ttl_ms)
    max_until = tx.later(max(terms.ttl_ms, ms(svc.settings.leases.max_hold_s)))
    if terms.no_longer_than is not None or blockers.no_longer_than is not None:
        for bound in filter(None, (terms.no_longer_than, blockers.no_longer_than)):
            expires, max_until = min(expires, bound), min(max_until, bound)
    copies = bool(blockers.elsewhere) or (len(wanted) > 1 and len(
        {located.resource.scope for located, _ in wanted}) < len(wanted))
    granting = _Granting(svc, tx, holder, blockers, terms, expires, max_until, copies)
    leases, of_names = [], list[str]()
    for located, mode in wanted:
        leases.append(granting.give(located, mode))
        of_names += warn_of_name(svc, located)
    warnings = [
        f"{path} holds partial work under review {review}; see `coord review show {review}`."
        for review, path, _ in dict.fromkeys(blockers.reviews)
    ] if blockers.reviews else []
    if granting.unkept:
        warnings.append(
            f"{listed(granting.unkept)} cannot be kept as now (over review.kept_bytes_max, or not "
            "readable): coord could not bring that back after a change."
        )
    warnings += of_names
    deadlocks.look_for_deadlock(svc, tx, holder)
    acquisition = granting.acquisition or leases[0].acquisition_id  # all of it was held already
    return rq.Acquired(acquisition_id=acquisition, leases=leases, warnings=warnings)


class _Granting(msgspec.Struct):
    """One set that is being granted. `copies`: two of the leases, or one and an older one, are on
    copies of one file."""

    svc: Service
    tx: Tx
    holder: str
    blockers: Blockers
    terms: Terms
    expires: str
    max_until: str
    copies: bool
    acquisition: str = ""
    unkept: list[str] = []

    def give(self, located: Located, mode: str) -> rq.Lease:
        """The lease on one of them: the one that the holder has, or a new one."""
        asked, tx, terms = located.resource, self.tx, self.terms
        own = self.blockers.own.get(own_key(asked)) if self.blockers.own else None
        replaced = own if own is not None and own.expires_at > tx.now else None
        beginning: _Beginning | None = None
        if replaced is not None:
            if self._is_enough(replaced, mode):
                return _again(self.svc, tx, replaced, terms.first_ttl_ms or terms.ttl_ms,
                              terms.purpose)
            if replaced.agreed_as is not None:
                beginning = replaced.content_hash, baselines(tx, replaced)
            tx.record(
                ev.LeaseReleased(
                    fencing_token=replaced.fencing_token, resource=replaced.file_path,
                    scope=replaced.scope, agent=self.holder, lease_kind=replaced.kind,
                )
            )
        event = self._make_event(located, mode, own)
        if replaced is not None and beginning is not None and (
                terms.agreed is None and terms.before is None):
            # It had written there already: that is judged from where it began.
            event.content_hash, event.baselines = beginning
            event.goes_with, event.began_at = replaced.goes_with, replaced.began
        else:
            self._set_beginning(event, located)
        tx.record(event)
        lease = self._make_lease(event, located)
        if replaced is not None and replaced.agreed_as is None:
            lease.replaces = rq.Replaced(replaced.fencing_token, replaced.locked_at)
        return lease

    def _is_enough(self, own: LeaseRow, mode: str) -> bool:
        """Whether the holder has what it asks for by this lease already."""
        agreed = self.terms.agreed
        return own.mode == "exclusive" or (
            own.mode == mode and (agreed is None or own.agreed_as == agreed.name)) or (
            self.blockers.shares and own.agreed_as is not None and agreed is None)

    def _make_event(self, located: Located, mode: str, own: LeaseRow | None) -> ev.LeaseGranted:
        asked, tx, terms = located.resource, self.tx, self.terms
        token = tx.number("fencing")
        self.acquisition = self.acquisition or f"A-{token}"
        # A reader that becomes a writer keeps the later end of the two.
        ends = self.expires if own is None else min(max(self.expires, own.expires_at),
                                                    self.max_until)
        # Fifteen names: CPython gathers more in a dict first, which doubles the cost of the whole.
        event = ev.LeaseGranted(
            fencing_token=token, resource=asked.name, agent=self.holder, expires_at=ends,
            lease_kind=asked.kind, mode=mode, scope=asked.scope, acquisition_id=self.acquisition,
            ttl_ms=terms.ttl_ms, max_until=self.max_until, description=terms.description,
            slot=rule.slot(asked.kind, asked.name, mode, self.holder), inode=located.inode,
            task=terms.task,
        )
        event.worktree = located.worktree
        # A lease that its holder asked for, for reading, ends no sooner because it is written now.
        event.purpose = purposes.ASKED if (
            own is not None and own.purpose == purposes.ASKED) else terms.purpose
        if self.copies or located.worktree is not None:
            event.slot = free_slot(tx, self.holder, asked, mode, located.worktree, event.purpose)
        return event

    def _set_beginning(self, event: ev.LeaseGranted, located: Located) -> None:
        """Set what the holder starts from: the present bytes, or those that an earlier right began
        with."""
        terms = self.terms
        if terms.agreed is not None:
            event.agreed_as, event.content_hash, event.baselines = terms.agreed
            event.began_at = EARLIER
        elif terms.before is not None:
            event.content_hash, event.baselines = terms.before
            event.began_at = EARLIER
        elif event.lease_kind != "file" or located.has_content:
            event.content_hash, event.baselines, lost = _baseline(self.svc, self.tx, located)
            self.unkept += lost

    def _make_lease(self, event: ev.LeaseGranted, located: Located) -> rq.Lease:
        # Fifteen names: see `_make_event`.
        lease = rq.Lease(
            resource=event.resource, kind=event.lease_kind, mode=event.mode, locked_by=self.holder,
            locked_at=self.tx.now, expires_at=event.expires_at,
            fencing_token=event.fencing_token, content_hash=event.content_hash,
            acquisition_id=self.acquisition, task=event.task, description=event.description,
            lease_token=self.svc.seal(event.fencing_token), agreed_as=event.agreed_as,
            worktree=located.worktree, purpose=event.purpose,
        )
        if self.blockers.elsewhere:
            lease.further = any((own.scope, own.file_path) == (event.scope, event.resource)
                                for own in self.blockers.elsewhere)
        return lease


def had_already(got: rq.Acquired) -> rq.Acquired:
    """A grant as it is told to another request of the same agent, which has it already."""
    return msgspec.structs.replace(got, leases=[
        msgspec.structs.replace(lease, reentrant=True) for lease in got.leases])


def _again(svc: Service, tx: Tx, own: LeaseRow, ttl_ms: int, purpose: str) -> rq.Lease:
    """The holder asks for what it has: renew the lease with its other names. A lease that a hook
    took no longer ends by itself once its holder asks for it."""
    current = from_iso(own.expires_at)
    until = rule.renewed_until(tx.now_ms, ttl_ms, from_iso(own.max_until), current)
    stays = purposes.ends_by_itself(own.purpose) and not purposes.ends_by_itself(purpose)
    if until > current or stays:
        rows = with_other_names(svc, tx, [own])
        tx.record(ev.LeaseRenewed(
            agent=own.locked_by, asked=[row.fencing_token for row in rows] if stays else [],
            until=[(row.fencing_token, iso(until)) for row in rows
                   if from_iso(row.expires_at) < until]))
    if stays:
        own = msgspec.structs.replace(own, purpose=purposes.ASKED)
    return lease_reply(own, expires_at=iso(until), token=svc.seal(own.fencing_token), again=True)


def check_looked(svc: Service, tx: Tx, wanted: Sequence[Wanted], blockers: Blockers) -> None:
    """Whether all that a grant keeps was looked at since the last right to it ended.

    Raises:
        Unready: not all of it. Refusal: what the look met.
    """
    for located, _ in wanted:
        asked = located.resource
        if blockers.own and own_key(asked) in blockers.own:
            continue
        ended = tx.ended_since(asked.kind, asked.scope)
        if ended:
            tx.looked.fresh(ended)
        if asked.kind in ("dir", "glob"):
            tx.looked.below(below(svc, located))
        elif located.has_content:
            _content_of(tx, located)
            if asked.kind == "region":
                assert located.path is not None, "it lies somewhere"
                tx.looked.content(located.path)
    blockers.looked = True


def _baseline(
    svc: Service, tx: Tx, located: Located
) -> tuple[str | None, list[tuple[str, str]] | None, list[str]]:
    """Keep the bytes that the holder starts from (invariant 6); also what could not be kept."""
    asked = located.resource
    if asked.kind in ("file", "region"):
        if not located.has_content:
            return None, None, []
        content = _content_of(tx, located)
        kept = tx.keep_found(content) or content.hash is None
        lost = [] if kept else [asked.name]
        if asked.kind == "file":
            return content.hash, None, lost
        assert located.path is not None, "it lies somewhere"
        whole = tx.looked.content(located.path)
        tx.keep_found(whole)
        return content.hash, _around(asked, whole), lost
    if asked.kind not in ("dir", "glob"):
        return None, None, []
    listing = tx.looked.below(below(svc, located))
    lost = [file_names.shown(path) for path in listing.unkept]
    return None, list(listing.files.items()), lost


def _around(region: Resource, whole: Bytes) -> list[tuple[str, str]]:
    """The surroundings of a region: its whole file, which may be gone when the work is looked at.
    """
    return [] if whole.hash is None else [(path_of(region.name, "region"), whole.hash)]


def _content_of(tx: Tx, located: Located) -> Bytes:
    """The present content of a file, or of a region of one.

    Raises:
        Unready; Refusal: what the look met.
    """
    assert located.path is not None, "it lies somewhere"
    if located.resource.kind == "region":
        return tx.looked.part(located.path, region_of(located.resource.name))
    return tx.looked.content(located.path)


def checked_ttl(svc: Service, ttl_s: float | None) -> int:
    """The TTL in ms, checked.

    Raises:
        Refusal: INVALID.
    """
    limits = svc.settings.leases
    if ttl_s is None:
        return ms(limits.ttl_s)
    if not 0.001 <= ttl_s <= limits.ttl_max_s:
        raise Refusal(
            Code.INVALID,
            f"A TTL of {figures(ttl_s)} s is not possible: more than 0, at most "
            f"{figures(limits.ttl_max_s)} s (leases.ttl_max_s). Nothing was changed.",
            next="Repeat with a TTL in that range.",
        )
    return ms(ttl_s)


def quarantined(blockers: Blockers) -> Refusal:
    """REVIEW_OPEN for a set with files under review that nobody may have."""
    review, path, _ = blockers.closed[0]
    text = file_names.shown(path)
    if blockers.unkept:
        message = (
            f"{text} holds partial work ({review}) that coord could not keep (over "
            "review.kept_bytes_max, or not readable): it lies there and nowhere else, and a write "
            "would destroy it before a person has seen it. Nothing was leased."
        )
        following = (f"A person looks with `coord review show {review}`, copies what is wanted, "
                     f"then `coord review keep {review}`.")
    else:
        message = (f"{text} holds partial work ({review}) that waits for a human's verdict, or for "
                   "its task to go on with it; nothing was leased.")
        following = (f"`coord review show {review}`, then keep or revert it; or reassign it, if "
                     "its task waits for that.")
    return Refusal(Code.REVIEW_OPEN, message, next=following,
                   reviews=sorted({r for r, _, _ in blockers.closed}))


def end(tx: Tx, row: LeaseRow, by: str | None = None) -> None:
    """Record the release of one lease."""
    tx.free(row.file_path, row.kind, row.scope)
    tx.record(
        ev.LeaseReleased(
            fencing_token=row.fencing_token, resource=row.file_path, scope=row.scope,
            agent=row.locked_by, lease_kind=row.kind, task=row.task_id, by=by,
        )
    )


def lend(tx: Tx, row: LeaseRow, agent: str) -> None:
    """Hand a lease over between a session and a sub-agent of it; who had it first has it back."""
    hand_over(tx, row, agent, None if row.lent_by == agent else row.locked_by)


def hand_over(tx: Tx, row: LeaseRow, agent: str, lent_by: str | None = None) -> None:
    """Give the lease to another holder under a new token. It was never free between, so no waiter
    is passed. This happens between a session and its sub-agents, and where a task is handed over.
    """
    contents = baselines(tx, row)
    tx.record(
        ev.LeaseReleased(
            fencing_token=row.fencing_token, resource=row.file_path, scope=row.scope,
            agent=row.locked_by, lease_kind=row.kind, task=row.task_id, by=agent,
        )
    )
    in_its_place(tx, msgspec.structs.replace(row, locked_by=agent, lent_by=lent_by), contents)
    pending_unlocks.follow(tx, row, agent)
    # It may be queued for this very resource.
    tx.effects.wake.update({
        waiter.acquisition_id: None for waiter in tx.each(WaiterRow, "waiters_of_agent", agent)})


class NeedingClaimRow(Row, frozen=True):
    """A claimed task, and how it needs what was asked about."""

    task_id: str
    mode: str
    claim_until: str
    claim_max: str
    ttl_ms: int


def take_over(
    tx: Tx, row: LeaseRow, contents: list[tuple[str, str]] | None
) -> int | None:
    """An agent gives back a lease that it had before it claimed a task that needs the same. The
    task continues with a lease of its own, which starts from the same contents as the former one.
    `contents`: what was below it, as `baselines` gave it before that lease ended. Returns the
    token; None if there is no such task."""
    need = tx.first(NeedingClaimRow, "claim_that_needs", row.locked_by, row.file_path, row.kind,
                    tx.now)
    if need is None:
        return None
    if any(other.locked_by == row.locked_by and other.task_id == need.task_id
           and other.file_path == row.file_path
           for other in tx.each(LeaseRow, "leases_at_scope", row.scope)):
        return None  # it has one, on the copy in another working tree
    return in_its_place(tx, msgspec.structs.replace(
        row, mode=row.mode if row.agreed_as is not None else need.mode,
        expires_at=need.claim_until, max_until=need.claim_max, ttl_ms=need.ttl_ms,
        task_id=need.task_id), contents)


def make_shared(
    svc: Service, tx: Tx, row: LeaseRow, contents: list[tuple[str, str]] | None
) -> rq.Lease:
    """The holder gives back the right to write and only reads from now on. Its finished work is
    treated as by a release. A right that a task of its own needs stays. `contents`: as in
    `take_over`. Returns the lease as it is then."""
    end(tx, row)
    token = take_over(tx, row, contents) if row.task_id is None else None
    if token is None:
        token = in_its_place(
            tx, msgspec.structs.replace(
                row, mode="shared", content_hash=None, goes_with=None), None)
    lease = tx.first(LeaseRow, "lease_by_token", token)
    assert lease is not None
    return lease_reply(lease, token=svc.seal(token))


def in_its_place(
    tx: Tx, row: LeaseRow, contents: list[tuple[str, str]] | None, acquisition: str | None = None
) -> int:
    """Record this lease, made of one that has just ended, under a token of its own: that.

    Args:
        contents: what lay below it when its work began, as `baselines` gives it.
        acquisition: that it belongs to; None: one of its own.
    """
    token = tx.number("fencing")
    asked = rule.as_resource(row.file_path, row.kind, row.scope)
    tx.record(
        ev.LeaseGranted(
            fencing_token=token, resource=row.file_path, agent=row.locked_by,
            description=row.task_description, expires_at=row.expires_at, lease_kind=row.kind,
            mode=row.mode, scope=row.scope, inode=row.inode, worktree=row.worktree,
            slot=free_slot(tx, row.locked_by, asked, row.mode, row.worktree,
                           row.purpose), task=row.task_id,
            acquisition_id=acquisition or f"A-{token}", ttl_ms=row.ttl_ms,
            max_until=row.max_until, content_hash=row.content_hash, baselines=contents,
            agreed_as=row.agreed_as, goes_with=row.goes_with, lent_by=row.lent_by,
            began_at=row.began, purpose=intern(row.purpose),
        )
    )
    return token


def free_slot(
    tx: Tx, holder: str, asked: Resource, mode: str, worktree: str | None, purpose: str
) -> str:
    """The slot of a new lease. If its holder has the same resource in another working tree, the
    slot is a second one. A lease that counts in a linked tree alone has that tree's slot. If
    another holder is in the slot, the schema refuses it."""
    slot = rule.slot(asked.kind, asked.name, mode, holder)
    if worktree is not None and rule.reach(asked.kind, purpose, worktree) == worktree:
        slot = rule.slot_of_tree(slot, worktree)
    taken = {row.slot for row in tx.each(LeaseRow, "leases_at_scope", asked.scope)
        if row.locked_by == holder}
    further = rule.slot_of_tree(slot, worktree)
    while slot in taken:  # (work may have been moved from the tree that a slot is called by)
        slot, further = further, f"{further}\n"
    return slot


def baselines(tx: Tx, row: LeaseRow) -> list[tuple[str, str]] | None:
    """What was below a leased directory or glob at its grant, and the whole file of a region; None
    for anything else."""
    if row.kind not in ("dir", "glob", "region"):
        return None
    return [(file.path, str(file.hash))
            for file in tx.each(ContentRow, "baselines_of", row.fencing_token)]


def lease_reply(
    row: LeaseRow, *, expires_at: str | None = None, token: str | None = None, again: bool = False
) -> rq.Lease:
    """A lease as a reply. Only its holder gets the lease token, with the grant."""
    lease = rq.Lease(
        resource=row.file_path, kind=row.kind, mode=row.mode, locked_by=row.locked_by,
        locked_at=row.locked_at, expires_at=expires_at or row.expires_at,
        fencing_token=row.fencing_token, content_hash=row.content_hash,
        acquisition_id=row.acquisition_id, task=row.task_id, description=row.task_description,
        lease_token=token, agreed_as=row.agreed_as, worktree=row.worktree, purpose=row.purpose,
    )
    if again:
        lease.reentrant = True
    return lease
