"""What each event does to the state tables. The only code that changes them.

Applying the whole log to an empty database gives the state, because the daemon itself makes its
state by no other way (`Tx.record`). Nothing here decides: no clock, no rule, no refusal.

The one derived table, `ready_tasks`, is kept here too, since it follows from the same events: a
ready task enters the queue, and a task that moves on leaves it. (What a freed scope offers is done
where it is freed, `Tx.free`: that may remember, within a transaction, that nothing is parked.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw
import msgspec

from coordinator.store import events as ev
from coordinator.store.statements import STATEMENTS as Q

#: A cursor that is used again and again costs less than the one that a connection makes each time;
#: so whatever is read here is read whole before anything else is run.
Database = apsw.Connection | apsw.Cursor
#: What an event of one class does: (database, instant as ISO text, event).
Apply = Callable[[Database, str, Any], None]

#: Of what is finished no blackboard is kept.
FINISHED = frozenset({"done", "cancelled"})
#: Candidates of a task that are kept on its blackboard; the log has them all.
CANDIDATES_KEPT = 20
#: What a task that was set aside is parked on; no resource has such a scope.
ASIDE = "!aside"


def at_review(review: str) -> str:
    """What a task is parked on that a review keeps back. Not the file's scope: tasks that wait for
    its lease are parked on that, and the task that the review was given back to may be one."""
    return f"!{review}"


_JSON = msgspec.json.Encoder()
_LEASE_INSERT, _LEASE_DELETE = Q["lease_insert"], Q["lease_delete"]
_READY_OFFER, _LEASE_AT = Q["ready_offer"], Q["lease_at_scope"]


def apply(db: Database, at: str, event: ev.Event) -> None:
    """Change the state tables as `event`, which happened at `at` (ISO text), says."""
    APPLY[type(event)](db, at, event)


def _agent_registered(db: Database, at: str, e: ev.AgentRegistered) -> None:
    if e.anew and db.execute(Q["agent_has_left"], (e.agent,)).fetchall():
        for forget in ("agent_delete", "reads_delete"):
            db.execute(Q[forget], (e.agent,))
        db.execute(Q["notices_delete"], (e.agent, 2**62))
    db.execute(
        Q["agent_put"],
        (e.agent, e.parent, e.profile, e.description, e.token_hash, at, e.silence_ms),
    )


def _agent_seen(db: Database, at: str, e: ev.AgentSeen) -> None:
    db.execute(Q["agent_touch"], (e.agent, at, e.progress, e.moved))


def _agent_state(db: Database, at: str, e: ev.AgentState) -> None:
    db.execute(Q["agent_state_set"], (e.agent, e.state))
    if e.state == "gone":
        db.execute(Q["reads_delete"], (e.agent,))


def _agent_hooked(db: Database, at: str, e: ev.AgentHooked) -> None:
    db.execute(Q["agent_hooked"], (e.agent, e.session, at))


def _lease_granted(db: Database, at: str, e: ev.LeaseGranted) -> None:
    db.execute(
        _LEASE_INSERT,
        (
            e.fencing_token, e.resource, e.agent, at, e.description, e.expires_at, e.lease_kind,
            e.mode, e.scope, e.slot, e.inode, e.worktree, e.content_hash, e.acquisition_id, e.task,
            e.ttl_ms, e.max_until,
        ),
    )
    if e.baselines:
        rows = [(e.fencing_token, path, digest) for path, digest in e.baselines]
        db.executemany(Q["baseline_insert"], rows)


def _lease_renewed(db: Database, at: str, e: ev.LeaseRenewed) -> None:
    db.executemany(Q["lease_extend"], e.until)


def _lease_warned(db: Database, at: str, e: ev.LeaseWarned) -> None:
    db.execute(Q["lease_warned"], (e.fencing_token,))


def _lease_ended(db: Database, at: str, e: ev.LeaseReleased | ev.LeaseLapsed) -> None:
    db.execute(_LEASE_DELETE, (e.fencing_token,))
    if e.lease_kind in ("dir", "glob"):  # only these have baselines, and most leases are on files
        db.execute(Q["baselines_delete"], (e.fencing_token,))


def _lease_placed(db: Database, at: str, e: ev.LeasePlaced) -> None:
    db.execute(Q["lease_place"], (e.fencing_token, e.worktree, e.content_hash))
    if e.baselines is not None:
        db.execute(Q["baselines_delete"], (e.fencing_token,))
        rows = [(e.fencing_token, path, digest) for path, digest in e.baselines]
        db.executemany(Q["baseline_insert"], rows)


def _lease_moved(db: Database, at: str, e: ev.LeaseMoved) -> None:
    db.execute(Q["lease_move"], (e.fencing_token, e.resource, e.scope, e.slot))
    if e.resource.endswith("/"):  # only directories have baselines, and a name of their own
        db.execute(Q["baselines_move"], (e.fencing_token, e.moved_from, e.resource))
    db.execute(_READY_OFFER, (e.old_scope,))


def _leases_shifted(db: Database, at: str, e: ev.LeasesShifted) -> None:
    db.executemany(Q["lease_shift"], e.tokens)
    db.executemany(Q["task_claim_shift"], e.claims)
    db.executemany(Q["waiter_shift"], e.waiters)


def _waiter_queued(db: Database, at: str, e: ev.WaiterQueued) -> None:
    db.execute(
        Q["waiter_put"],
        (
            e.acquisition_id, e.agent, e.mode, e.priority, e.asked_at, e.until, int(e.held),
            e.ttl_ms, e.task, e.description, e.met, e.gives_way_to,
        ),
    )
    rows = [(e.acquisition_id, *one, e.worktrees.get(one[0])) for one in e.resources]
    db.executemany(Q["waiter_resource_put"], rows)


def _waiter_changed(db: Database, at: str, e: ev.WaiterChanged) -> None:
    db.execute(Q["waiter_change"], (e.acquisition_id, int(e.held)))


def _gives_way(db: Database, at: str, e: ev.GivesWay) -> None:
    db.execute(Q["waiter_gives_way"], (e.acquisition_id, e.to))


def _waiter_left(db: Database, at: str, e: ev.WaiterLeft) -> None:
    scopes = db.execute(Q["waiter_resources_of"], (e.acquisition_id,)).fetchall()
    db.execute(Q["waiter_resources_delete"], (e.acquisition_id,))
    db.execute(Q["waiter_delete"], (e.acquisition_id,))
    db.execute(Q["aside_delete"], ("waiter", e.acquisition_id))
    for _, _, scope in scopes:
        _offer_if_free(db, str(scope))


def _unlock_asked(db: Database, at: str, e: ev.UnlockAsked) -> None:
    db.execute(
        Q["unlock_insert"],
        (
            e.request, e.n, e.agent, e.holder, e.resource, e.resource_kind, e.scope, e.mode,
            e.reason, at,
        ),
    )


def _unlock_passed(db: Database, at: str, e: ev.UnlockPassed) -> None:
    db.execute(Q["unlock_pass"], (e.request, e.holder))


def _unlock_answered(db: Database, at: str, e: ev.UnlockAnswered) -> None:
    db.execute(
        Q["unlock_answer"], (e.request, e.status, at, e.by, int(e.override), e.answer or None)
    )


def _task_added(db: Database, at: str, e: ev.TaskAdded) -> None:
    db.execute(
        Q["task_insert"], (e.task, e.n, e.title, e.prompt, e.priority, e.state, e.attempts_max, at)
    )
    db.executemany(Q["task_resource_insert"], [(e.task, *resource) for resource in e.resources])
    db.executemany(Q["task_after_insert"], [(e.task, after) for after in e.after])
    if e.state == "ready":
        db.execute(Q["ready_enter"], (e.task,))


def _task_changed(db: Database, at: str, e: ev.TaskChanged) -> None:
    before = db.execute(Q["task_partial"], (e.task,)).fetchall()
    db.execute(
        Q["task_update"],
        (
            e.task, e.state, e.attempts, e.not_before, e.claimed_by, e.claimed_at, e.claim_until,
            e.claim_max, e.ttl_ms, e.partial, e.result, at,
        ),
    )
    if e.state in FINISHED:
        for forget in ("candidates_trim", "candidate_regions_trim"):
            db.execute(Q[forget], (e.task, 2**62))
    if e.state == "ready":
        db.execute(Q["ready_enter"], (e.task,))
    else:
        db.execute(Q["aside_delete"], ("task", e.task))
        for _, offered_from in db.execute(Q["ready_get"], (e.task,)).fetchall():
            db.execute(Q["ready_leave"], (e.task,))
            if offered_from:
                _offer_if_free(db, str(offered_from))
    for partial in dict.fromkeys((e.partial, *(review for (review,) in before))):
        if partial is not None:  # it keeps others back, or not, as its task goes
            db.execute(_READY_OFFER, (at_review(str(partial)),))


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
            f.flagged_hash, f.inode,
        )
        for f in e.files
    ]
    db.executemany(Q["review_file_insert"], rows)


def _review_decided(db: Database, at: str, e: ev.ReviewDecided) -> None:
    db.execute(Q["review_set"], (e.review, e.state, at, e.by, e.note, e.task_before))
    rows = [(e.review, *file, e.modes.get(file[0])) for file in e.files]
    db.executemany(Q["review_file_set"], rows)
    db.execute(_READY_OFFER, (at_review(e.review),))


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


def _verdict_stepped(db: Database, at: str, e: ev.VerdictStepped) -> None:
    db.executemany(Q["verdict_step_done"], [(e.review, n, int(not e.back)) for n in e.steps])


def _verdict_ended(db: Database, at: str, e: ev.VerdictEnded) -> None:
    db.execute(Q["verdict_steps_delete"], (e.review,))
    db.execute(Q["verdict_delete"], (e.review,))
    db.executemany(Q["review_saved_insert"], [(e.review, *saved) for saved in e.saved])


def _notice_posted(db: Database, at: str, e: ev.NoticePosted) -> None:
    facts = _JSON.encode(e.facts).decode()
    db.execute(Q["notice_insert"], (e.notice, e.agent, at, e.about, e.text, facts))


def _notices_delivered(db: Database, at: str, e: ev.NoticesDelivered) -> None:
    db.execute(Q["notices_delete"], (e.agent, e.up_to))


def _versions_seen(db: Database, at: str, e: ev.VersionsSeen) -> None:
    db.executemany(Q["version_put"], [(path, dig, at, agent) for path, dig, agent in e.versions])


def _content_read(db: Database, at: str, e: ev.ContentRead) -> None:
    if e.partial:
        db.executemany(Q["read_put_partial"], [(e.agent, *read) for read in e.reads])
    else:
        db.executemany(Q["read_put"], [(e.agent, path, digest, at) for path, digest in e.reads])


def _nothing(db: Database, at: str, e: ev.Event) -> None:
    """Belongs in the story, changes no state (counters are kept by whoever takes a number)."""


def park(db: Database, task: str, scope: str) -> None:
    """The ready task met `scope` held: set it aside until that is free. Derived, so not evented."""
    queued = db.execute(Q["ready_get"], (task,)).fetchall()
    db.execute(Q["ready_park"], (task, scope))
    for _, offered_from in queued:
        if offered_from and offered_from != scope:
            _offer_if_free(db, str(offered_from))


def _offer_if_free(db: Database, scope: str) -> None:
    if not db.execute(_LEASE_AT, (scope,)).fetchall():
        db.execute(_READY_OFFER, (scope,))


APPLY: dict[type[ev.Event], Apply] = {
    ev.AgentRegistered: _agent_registered,
    ev.AgentSeen: _agent_seen,
    ev.AgentState: _agent_state,
    ev.AgentHooked: _agent_hooked,
    ev.LeaseGranted: _lease_granted,
    ev.LeaseRenewed: _lease_renewed,
    ev.LeaseWarned: _lease_warned,
    ev.LeaseReleased: _lease_ended,
    ev.LeaseLapsed: _lease_ended,
    ev.LeasePlaced: _lease_placed,
    ev.LeaseMoved: _lease_moved,
    ev.LeasesShifted: _leases_shifted,
    ev.AcquisitionRefused: _nothing,
    ev.WaiterQueued: _waiter_queued,
    ev.WaiterChanged: _waiter_changed,
    ev.GivesWay: _gives_way,
    ev.WaiterLeft: _waiter_left,
    ev.UnlockAsked: _unlock_asked,
    ev.UnlockPassed: _unlock_passed,
    ev.UnlockAnswered: _unlock_answered,
    ev.TaskAdded: _task_added,
    ev.TaskChanged: _task_changed,
    ev.TaskResourcesLearned: _task_learned,
    ev.CandidateJudged: _candidate_judged,
    ev.RippleLeft: _ripple_left,
    ev.SetAside: _set_aside,
    ev.TakenUp: _taken_up,
    ev.ClaimRenewed: _claim_renewed,
    ev.ReviewOpened: _review_opened,
    ev.ReviewDecided: _review_decided,
    ev.ReviewUndone: _review_undone,
    ev.VerdictBegun: _verdict_begun,
    ev.VerdictStepped: _verdict_stepped,
    ev.VerdictEnded: _verdict_ended,
    ev.NoticePosted: _notice_posted,
    ev.NoticesDelivered: _notices_delivered,
    ev.VersionsSeen: _versions_seen,
    ev.ContentRead: _content_read,
    ev.UnleasedWrite: _nothing,
    ev.TargetMoved: _nothing,
    ev.Noted: _nothing,
    ev.CountersRaised: _nothing,
}
