"""Weighing: all that stands between a holder and a set of resources, at one instant.

Live leases of others, waiters that stand before it in the line, files under review. Leases that
have lapsed are closed (and their partial work flagged) on the way, in the same transaction, so
that no wrong grant and no forgotten work follows from a sweep that did not run (invariant 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from coordinator.files.canonical import Located
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.service import disk, lapse
from coordinator.service.core import Service, ms
from coordinator.service.rivals import near, one_by_one
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, NearWaiter
from coordinator.words.naming import Kind, Resource, path_in, resource
from coordinator.words.refusals import Code, Refusal

#: A resource and the mode it is wanted in.
Wanted = tuple[Located, str]


#: Blocking leases after which a refusal is certain enough, and long enough.
BLOCKERS_MAX = 50


class Weighing(msgspec.Struct):
    """What stands in the way of a set of resources for one holder."""

    leases: list[LeaseRow] = []
    waiters: list[NearWaiter] = []
    reviews: list[tuple[str, str, str]] = []  # (review, path, scope)
    mine: list[LeaseRow] = []  # its own live leases that overlap
    own: dict[str, LeaseRow] = {}  # its own leases at the same scope

    @property
    def blocked(self) -> bool:
        """Leases or the line forbid it."""
        return bool(self.leases or self.waiters)

    @property
    def first_scope(self) -> str:
        """The scope that a task blocked by this is parked on."""
        if self.leases:
            return self.leases[0].scope
        if self.waiters:
            return self.waiters[0].scope
        return self.reviews[0][2] if self.reviews else self.mine[0].scope


def locate(svc: Service, tx: Tx, texts: Sequence[str], cwd: str | None) -> list[Located]:
    """Resolve what was typed; the same resource twice counts once.

    Raises:
        Refusal: INVALID, OUTSIDE_REPO, LIMIT.
    """
    most = svc.settings.leases.resources_max
    if not texts:
        raise Refusal(Code.INVALID, "Name at least one resource.")
    if len(texts) > most:
        raise Refusal(
            Code.LIMIT, f"{len(texts)} resources in one request; the limit is {most} "
            "(leases.resources_max). Nothing was leased.", next="Lease the directory instead.",
        )
    if len(texts) == 1:
        return [svc.tree.resolve(texts[0], cwd, seen=tx.directories)]
    found: dict[tuple[str, str], Located] = {}
    for text in texts:
        located = svc.tree.resolve(text, cwd, seen=tx.directories)
        pattern = located.resource.name if located.resource.kind == "glob" else ""
        found.setdefault((located.resource.scope, pattern), located)
    return list(found.values())


def weigh(
    svc: Service, tx: Tx, holder: str, wanted: Iterable[Wanted], *, priority: int = 0,
    asked_at: str | None = None, acquisition: str | None = None, task: str | None = None,
    close: bool = True,
) -> Weighing:
    """All that stands in the way now. Lapsed leases that overlap are closed on the way.

    `acquisition` is the waiter that is being served, if it is one: it stands at its own place.
    `task` is the task that is being claimed: work that was reassigned waits for its own task, so
    that others do not begin on it. (One who is in the middle of a task and asks for such a file
    gets it: it may hold what that task waits for.)
    """
    out = Weighing()
    now = tx.now
    lapsed: list[LeaseRow] = []
    for located, mode in wanted:
        asked = located.resource
        for lease in _rivals(svc, tx, located):
            if len(out.leases) == BLOCKERS_MAX:
                return out  # no grant can follow; the rest of a large directory need not be read
            if lease.locked_by == holder:
                if lease.scope == asked.scope and lease.kind == asked.kind and (
                    lease.kind != "glob" or lease.file_path == asked.name
                ):
                    out.own[asked.scope + "\n" + asked.name] = lease
                if lease.expires_at <= now:
                    lapsed.append(lease)
                elif overlaps(asked, rule.as_resource(lease.file_path, lease.kind, lease.scope)):
                    out.mine.append(lease)
                continue
            if not rule.conflicts(asked, mode, holder, lease):
                continue
            (lapsed if rule.dead(lease.expires_at, now) else out.leases).append(lease)
        present = tx.present()
        if present.waiters:
            place = rule.standing(priority, asked_at or now, tx.now_ms,
                                  ms(svc.settings.leases.age_step_s))
            out.waiters += _ahead(svc, tx, holder, asked, mode, place, acquisition)
        if present.reviews:
            for review, path, scope, state, left_by in near(tx, "reviews_near", asked):
                if state == "reassigned" and task in (None, left_by):
                    continue
                out.reviews.append((str(review), str(path), str(scope)))
    if lapsed and close:
        lapse.close(svc, tx, lapsed, "expired")
        return weigh(
            svc, tx, holder, list(wanted), priority=priority, asked_at=asked_at,
            acquisition=acquisition, task=task, close=False,
        )
    return out


def _rivals(svc: Service, tx: Tx, located: Located) -> Iterable[LeaseRow]:
    """Leases that may overlap, by name and then by inode."""
    asked = located.resource
    if asked.kind in ("dir", "glob"):
        return (LeaseRow(*row) for row in one_by_one(tx, "rivals", asked))
    found = [LeaseRow(*row) for row in near(tx, "rivals", asked)]  # little lies below a file
    if located.inode is not None:
        known = {lease.fencing_token for lease in found}
        for row in tx.rows("rivals_by_inode", located.inode):
            lease = LeaseRow(*row)
            if lease.fencing_token not in known and _same_file(svc, lease, asked):
                found.append(_renamed(svc, lease, asked))
    return found


def _same_file(svc: Service, lease: LeaseRow, asked: Resource) -> bool:
    """Whether a lease with this inode is still on that very file.

    If the leased path is there and another file, the one we ask for is not the leased one; if it is
    gone, it was renamed. (Where the disk tells no births of files, a number that is used again
    after its file was deleted looks like that too.)
    """
    if lease.scope == asked.scope:
        return True
    now_there = disk.inode_at(svc, lease.file_path)
    return now_there is None or now_there == lease.inode


def _renamed(svc: Service, lease: LeaseRow, asked: Resource) -> LeaseRow:
    """A lease on the file that we ask for, taken under another name: as if under this one."""
    path = path_in(asked.scope) if asked.kind == "region" else asked.name
    region = lease.file_path.rpartition("::")[2] if lease.kind == "region" else None
    kind: Kind = "file" if region is None else "region"
    name = path if region is None else f"{path}::{region}"
    alias = resource(name, kind, fold_case=svc.tree.fold_case)
    return msgspec.structs.replace(lease, kind=kind, scope=alias.scope)


def _ahead(
    svc: Service, tx: Tx, holder: str, asked: Resource, mode: str, place: tuple[int, str],
    acquisition: str | None,
) -> list[NearWaiter]:
    """Waiters of others that overlap `asked`, stand before it, and do not wait for `holder`."""
    out = []
    step = ms(svc.settings.leases.age_step_s)
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
        resource = rule.as_resource(waiter.name, waiter.kind, waiter.scope)
        if overlaps(asked, resource) and not _waits_for(tx, waiter, holder):
            out.append(waiter)
    return out


def _waits_for(tx: Tx, waiter: NearWaiter, holder: str) -> bool:
    for name, kind, scope in tx.rows("waiter_resources_of", waiter.acquisition_id):
        asked = rule.as_resource(name, kind, scope)
        for raw in near(tx, "rivals", asked):
            lease = LeaseRow(*raw)
            if (
                lease.locked_by == holder
                and lease.expires_at > tx.now
                and rule.conflicts(asked, waiter.mode, waiter.agent, lease)
            ):
                return True
    return False


