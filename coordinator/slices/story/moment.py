"""How things were at a moment, made again from the log: the state as `status` tells it, and in
sentences."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.kernel.blackboard import CandidateRow
from coordinator.kernel.core import Actor, Service, last_before
from coordinator.rules import recovery
from coordinator.rules.backlog import told_state
from coordinator.slices.story import status
from coordinator.slices.story.report import read_instant
from coordinator.store.ledger import View
from coordinator.store.rebuild import rebuild
from coordinator.store.rows import LeaseRow, ReviewRow, TaskRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import one_line, quoted

#: Leases and tasks that are told in sentences.
SENTENCES_MAX = 2000


def moment(svc: Service, view: View, actor: Actor, req: rq.Moment) -> rq.MomentReply:
    """See `requests.Moment`.

    Raises:
        Refusal: INVALID: an event and an instant, or no instant, or the log does not reach there.
    """
    first, last = (int(view.value(name) or 0) for name in ("snapshot_seq", "event_last"))
    event, now_ms = _find(view, req, last)
    if not first <= event <= last:
        raise Refusal(
            Code.INVALID, f"The log tells how things were after the events {first} to {last}, not "
            f"after {event}.", next="`coord events` lists them.",
        )
    db, _ = rebuild(view.db, event, view.rest, by_waypoint=True)
    try:
        then = View(db, now_ms)
        return rq.MomentReply(
            event=event, at=then.now, first=first, last=last,
            state=status.status(svc, then, actor, rq.Status(events=0)),
            sentences=list(_sentences(then)))
    finally:
        db.close()


def _find(view: View, req: rq.Moment, last: int) -> tuple[int, int]:
    """The last event before the moment that is asked about, and the moment itself (ms)."""
    if req.event is not None and req.at is not None:
        raise Refusal(Code.INVALID, "moment: `event` and `at` are both given. Nothing was told.",
                      next="Give one of them.", field="at")
    if req.event is not None:
        at = view.value("event_at", req.event)
        return req.event, from_iso(at) if at is not None else view.now_ms
    instant = read_instant("moment", "at", req.at)
    if instant is None or instant >= view.now:
        return last, view.now_ms
    now_ms = from_iso(instant)
    return last_before(view, iso(now_ms + 1)), now_ms


def _sentences(view: View) -> Iterator[str]:
    """How things are, in sentences: what nobody has closed."""
    for lease in view.each(LeaseRow, "leases_live", view.now, 0, None, SENTENCES_MAX):
        of = f" for {lease.task_id}" if lease.task_id else ""
        of += f" in {one_line(lease.worktree)}" if lease.worktree else ""
        yield (f"{lease.locked_by} holds {lease.file_path} ({lease.mode}){of} until "
               f"{lease.expires_at[:19]}Z")
    for waiter in view.each(WaiterRow, "waiters_all"):
        yield f"{waiter.agent} stands in line as {waiter.acquisition_id}"
    for task in view.each(TaskRow, "tasks_list", 0, SENTENCES_MAX, 0):
        by = f" by {task.claimed_by}" if task.claimed_by else ""
        yield f"{task.task_id} is {told_state(task.state)}{by}: {quoted(task.title)}"
        for tried in view.each(CandidateRow, "candidates_of", task.task_id):
            yield (f"{task.task_id}, attempt {tried.n} by {tried.agent}: {tried.outcome}"
                   f"{recovery.describe_remedy(tried.remedy)}")
    for review in view.each(ReviewRow, "reviews_list", "open", SENTENCES_MAX, None, None, 0, 0):
        yield f"{review.review_id} is open"
