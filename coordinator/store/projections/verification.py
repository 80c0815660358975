"""Finished work, and what verifications have told of it."""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.statements import STATEMENTS as Q

#: Verifications that are kept; the log has them all.
KEPT = 200


def _work_finished(db: Database, at: str, e: ev.WorkFinished) -> None:
    db.execute(Q["work_insert"], (e.n, e.task, e.agent, at, e.head, e.before, e.after))
    db.executemany(Q["work_file_insert"], [(e.n, path, name) for path, name in e.files])


def _verification_begun(db: Database, at: str, e: ev.VerificationBegun) -> None:
    db.execute(Q["verification_insert"], (e.verification, e.n, e.by, at, e.command, e.upto))
    db.execute(Q["verifications_trim"], (e.n - KEPT,))


def _verification_ended(db: Database, at: str, e: ev.VerificationEnded) -> None:
    db.execute(
        Q["verification_end"],
        (e.verification, e.outcome, at, e.runs, " ".join(e.tasks), e.said, e.tail),
    )
    db.executemany(Q["work_set"], e.works)
    if e.base is not None:
        _begin_with(db, at, e.base, e.head, e.since)


def _verified_from(db: Database, at: str, e: ev.VerifiedFrom) -> None:
    db.execute(Q["work_all_good"])
    _begin_with(db, at, e.base, e.base, e.since)
    if not e.base:
        db.execute(Q["verified_base_delete"])


def _begin_with(db: Database, at: str, base: str, head: str, since: int) -> None:
    db.execute(Q["verified_base_put"], (base, head, since, at))
    for forget in ("work_forget_files", "work_forget"):
        db.execute(Q[forget], (since,))


APPLY: dict[type[ev.Event], Apply] = {
    ev.WorkFinished: _work_finished,
    ev.VerificationBegun: _verification_begun,
    ev.VerificationEnded: _verification_ended,
    ev.VerifiedFrom: _verified_from,
}
