"""Reviews and the journal of verdicts."""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.projections.parking import at_review
from coordinator.store.statements import STATEMENTS as Q

_READY_OFFER = Q["ready_offer"]


def _review_opened(db: Database, at: str, e: ev.ReviewOpened) -> None:
    db.execute(
        Q["review_insert"],
        (
            e.review, e.n, e.reason, e.agent, e.task, e.summary, e.log_tail, e.leased_at, at,
            e.events_from,
        ),
    )
    rows = [
        (
            e.review, f.path, f.scope, f.worktree, f.change, int(f.kept), f.baseline_hash,
            f.flagged_hash, f.inode, f.last_hash,
        )
        for f in e.files
    ]
    db.executemany(Q["review_file_insert"], rows)


def _review_decided(db: Database, at: str, e: ev.ReviewDecided) -> None:
    db.execute(Q["review_set"], (e.review, e.state, at, e.by, e.note, e.task_before))
    rows = [(e.review, *file, e.modes.get(file[0])) for file in e.files]
    db.executemany(Q["review_file_set"], rows)
    db.execute(_READY_OFFER, (at_review(e.review),))


def _review_split(db: Database, at: str, e: ev.ReviewSplit) -> None:
    db.execute(Q["review_part_insert"], (e.review, e.part, e.n))
    for f in e.files:
        if not f.hunks:
            db.execute(Q["review_file_taken_out"], (e.review, f.path, e.part))
            continue
        db.execute(Q["review_file_divided"],
                   (e.review, f.path, e.part, f.part_before, f.part_after))
        db.execute(Q["review_file_rest"], (e.review, f.path, f.rest_before, f.rest_after))


def _review_undone(db: Database, at: str, e: ev.ReviewUndone) -> None:
    db.execute(Q["review_set"], (e.review, "open", None, None, None, None))


def _verdict_begun(db: Database, at: str, e: ev.VerdictBegun) -> None:
    db.execute(Q["verdict_insert"], (e.review, e.what, e.by, e.note, at))
    rows = [
        (
            e.review, n, s.path, s.scope, s.worktree, s.old, s.old_mode, s.new, s.new_mode,
            s.aside, int(s.in_place),
        )
        for n, s in enumerate(e.steps)
    ]
    db.executemany(Q["verdict_step_insert"], rows)
    db.executemany(Q["verdict_part_insert"], [
        (
            e.review, p.path, ",".join(map(str, p.hunks)), p.part_before, p.part_after,
            p.rest_before, p.rest_after,
        )
        for p in e.parts
    ])


def _verdict_stepped(db: Database, at: str, e: ev.VerdictStepped) -> None:
    db.executemany(Q["verdict_step_done"], [(e.review, n, int(not e.back)) for n in e.steps])


def _verdict_ended(db: Database, at: str, e: ev.VerdictEnded) -> None:
    db.execute(Q["verdict_steps_delete"], (e.review,))
    db.execute(Q["verdict_parts_delete"], (e.review,))
    db.execute(Q["verdict_delete"], (e.review,))
    db.executemany(Q["review_saved_insert"], [(e.review, *saved) for saved in e.saved])


APPLY: dict[type[ev.Event], Apply] = {
    ev.ReviewOpened: _review_opened,
    ev.ReviewDecided: _review_decided,
    ev.ReviewSplit: _review_split,
    ev.ReviewUndone: _review_undone,
    ev.VerdictBegun: _verdict_begun,
    ev.VerdictStepped: _verdict_stepped,
    ev.VerdictEnded: _verdict_ended,
}
