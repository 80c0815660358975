"""Tasks, claims, the blackboard, and what is set aside."""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.projections.parking import ASIDE, at_review, offer_next, park, places_of
from coordinator.store.statements import STATEMENTS as Q

_READY_OFFER = Q["ready_offer"]
#: Of what is finished no blackboard is kept.
FINISHED = frozenset({"done", "cancelled"})
#: Candidates of a task that are kept on its blackboard; the log has them all.
CANDIDATES_KEPT = 20


def _task_added(db: Database, at: str, e: ev.TaskAdded) -> None:
    db.execute(
        Q["task_insert"], (e.task, e.n, e.title, e.prompt, e.priority, e.state, e.attempts_max, at)
    )
    db.executemany(Q["task_resource_insert"], [(e.task, *resource) for resource in e.resources])
    db.executemany(Q["task_after_insert"], [(e.task, after) for after in e.after])
    if e.state == "ready":
        db.execute(Q["ready_enter"], (e.task,))


def _task_edited(db: Database, at: str, e: ev.TaskEdited) -> None:
    db.execute(Q["task_edit"], (e.task, e.title, e.prompt, e.priority, e.attempts_max, at))
    for forget in ("task_resources_forget", "task_after_forget"):
        db.execute(Q[forget], (e.task,))
    db.executemany(Q["task_resource_insert"], [(e.task, *resource) for resource in e.resources])
    db.executemany(Q["task_after_insert"], [(e.task, after) for after in e.after])
    for place in places_of(db, e.task):
        # It stands where its priority puts it, and what kept it back may be none of its any more.
        db.execute(Q["ready_leave"], (e.task,))
        db.execute(Q["ready_enter"], (e.task,))
        offer_next(db, place)


def _task_changed(db: Database, at: str, e: ev.TaskChanged) -> None:
    before = db.execute(Q["task_partial"], (e.task,)).fetchall()
    db.execute(
        Q["task_update"],
        (
            e.task, e.state, e.attempts, e.not_before, e.claimed_by, e.claimed_at, e.claim_until,
            e.claim_max, e.ttl_ms, e.partial, e.result, at,
        ),
    )
    db.execute(Q["landing_over"], (e.task,))
    if e.state in FINISHED:
        for forget in ("candidates_trim", "candidate_regions_trim"):
            db.execute(Q[forget], (e.task, 2**62))
    if e.state == "ready":
        db.execute(Q["ready_enter"], (e.task,))
    else:
        db.execute(Q["aside_delete"], ("task", e.task))
        for place in places_of(db, e.task):
            db.execute(Q["ready_leave"], (e.task,))
            offer_next(db, place)
    for partial in dict.fromkeys((e.partial, *(review for (review,) in before))):
        if partial is not None:  # it keeps others back, or not, as its task goes
            db.execute(_READY_OFFER, (at_review(str(partial)),))


def _task_avoids(db: Database, at: str, e: ev.TaskAvoids) -> None:
    db.execute(Q["task_avoid"], (e.task, e.profile, e.until))


def _task_learned(db: Database, at: str, e: ev.TaskResourcesLearned) -> None:
    db.executemany(Q["task_resource_insert"], [(e.task, *resource) for resource in e.resources])


def _candidate_judged(db: Database, at: str, e: ev.CandidateJudged) -> None:
    db.execute(Q["candidate_insert"], (e.task, e.n, e.agent, at, e.outcome, e.remedy, e.note))
    db.executemany(Q["candidate_region_insert"], [(e.task, e.n, *one) for one in e.regions])
    for forget in ("candidates_trim", "candidate_regions_trim"):
        db.execute(Q[forget], (e.task, e.n - CANDIDATES_KEPT))


def _ripple_left(db: Database, at: str, e: ev.RippleLeft) -> None:
    if e.after is None:
        db.execute(Q["ripple_delete"], (e.task,))
    else:
        db.execute(Q["ripple_put"], (e.task, e.after))


def _set_aside(db: Database, at: str, e: ev.SetAside) -> None:
    db.execute(Q["aside_put"], (e.what, e.subject, e.reason, at, e.tries, e.retry_at))
    if e.what == "task":
        park(db, e.subject, ASIDE)


def _taken_up(db: Database, at: str, e: ev.TakenUp) -> None:
    db.execute(Q["aside_delete"], (e.what, e.subject))
    if e.what == "task":
        db.execute(Q["ready_unpark"], (e.subject, ASIDE))


def _claim_renewed(db: Database, at: str, e: ev.ClaimRenewed) -> None:
    db.executemany(Q["task_claim_extend"], e.until)


APPLY: dict[type[ev.Event], Apply] = {
    ev.TaskAdded: _task_added,
    ev.TaskEdited: _task_edited,
    ev.TaskChanged: _task_changed,
    ev.TaskAvoids: _task_avoids,
    ev.TaskResourcesLearned: _task_learned,
    ev.CandidateJudged: _candidate_judged,
    ev.RippleLeft: _ripple_left,
    ev.SetAside: _set_aside,
    ev.TakenUp: _taken_up,
    ev.ClaimRenewed: _claim_renewed,
}
