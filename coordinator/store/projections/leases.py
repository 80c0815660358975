"""Leases and their baselines."""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words.resource_names import path_of

_LEASE_INSERT = Q["lease_insert"]
_LEASE_DELETE = Q["lease_delete"]
_READY_OFFER = Q["ready_offer"]


def _lease_granted(db: Database, at: str, e: ev.LeaseGranted) -> None:
    db.execute(
        _LEASE_INSERT,
        (
            e.fencing_token, e.resource, e.agent, at, e.description, e.expires_at, e.lease_kind,
            e.mode, e.scope, e.slot, e.inode, e.worktree, e.content_hash, e.acquisition_id, e.task,
            e.ttl_ms, e.max_until, e.agreed_as, e.goes_with, e.lent_by,
            e.began_at, e.purpose,
        ),
    )
    if e.baselines:
        rows = [(e.fencing_token, path, digest) for path, digest in e.baselines]
        db.executemany(Q["baseline_insert"], rows)


def _lease_agreed(db: Database, at: str, e: ev.LeaseAgreed) -> None:
    db.execute(Q["lease_agree"], (e.fencing_token, e.slot, e.agreed_as))


def _lease_renewed(db: Database, at: str, e: ev.LeaseRenewed) -> None:
    db.executemany(Q["lease_extend"], e.until)
    db.executemany(Q["lease_asked"], [(token,) for token in e.asked])


def _lease_warned(db: Database, at: str, e: ev.LeaseWarned) -> None:
    db.execute(Q["lease_warned"], (e.fencing_token,))


def _lease_ended(db: Database, at: str, e: ev.LeaseReleased | ev.LeaseLapsed) -> None:
    db.execute(_LEASE_DELETE, (e.fencing_token,))
    if e.lease_kind in ("dir", "glob", "region"):  # these have baselines; most leases are on files
        db.execute(Q["baselines_delete"], (e.fencing_token,))


def _lease_placed(db: Database, at: str, e: ev.LeasePlaced) -> None:
    db.execute(Q["lease_place"], (e.fencing_token, e.worktree, e.content_hash))
    if e.baselines is not None:
        db.execute(Q["baselines_delete"], (e.fencing_token,))
        rows = [(e.fencing_token, path, digest) for path, digest in e.baselines]
        db.executemany(Q["baseline_insert"], rows)


def _lease_moved(db: Database, at: str, e: ev.LeaseMoved) -> None:
    db.execute(Q["lease_move"], (e.fencing_token, e.resource, e.scope, e.slot))
    if e.resource.endswith("/"):
        db.execute(Q["baselines_move"], (e.fencing_token, e.moved_from, e.resource))
    elif "/::" in e.scope:  # the region's file
        old, new = path_of(e.moved_from, "region"), path_of(e.resource, "region")
        db.execute(Q["baselines_move"], (e.fencing_token, old, new))
    db.execute(_READY_OFFER, (e.old_scope,))


def _leases_shifted(db: Database, at: str, e: ev.LeasesShifted) -> None:
    db.executemany(Q["lease_shift"], e.tokens)
    db.executemany(Q["task_claim_shift"], e.claims)
    db.executemany(Q["waiter_shift"], e.waiters)


APPLY: dict[type[ev.Event], Apply] = {
    ev.LeaseGranted: _lease_granted,
    ev.LeaseAgreed: _lease_agreed,
    ev.LeaseRenewed: _lease_renewed,
    ev.LeaseWarned: _lease_warned,
    ev.LeaseReleased: _lease_ended,
    ev.LeaseLapsed: _lease_ended,
    ev.LeasePlaced: _lease_placed,
    ev.LeaseMoved: _lease_moved,
    ev.LeasesShifted: _leases_shifted,
}
