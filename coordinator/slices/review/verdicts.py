"""A verdict that writes files in steps, so that a crash never leaves half of it.

`plan` looks at the files and works out what each is to become; it changes nothing. `begin` is a
transaction. It notes the whole plan in the journal, keeps every byte that will be overwritten, and
leases the files, so that nobody else gets them meanwhile. Then the files are written
(`kernel.writing`). `conclude` is a transaction that records the result. `carry_out` does all of it
in order.
"""

from __future__ import annotations

from functools import partial

import msgspec

from coordinator.kernel import repository_files
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import free_windows
from coordinator.kernel.use_cases import OnDisk, Pause, Steps, decide
from coordinator.kernel.writing.carrying_out import finish
from coordinator.kernel.writing.journal import HOLD_MS, Journal, holder, journal_of
from coordinator.kernel.writing.performing import Performed
from coordinator.kernel.writing.words import stuck, taken_back, warnings
from coordinator.rules.leases import as_resource
from coordinator.slices.review import parts, reviews, verdict_plan
from coordinator.slices.review.verdict_plan import Plan
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, ReviewFileRow, ReviewRow
from coordinator.words import file_names, purposes
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import write_window

#: While somebody writes a file of which others hold parts it is waited: so often, and so long each
#: time (seconds).
TRIES, AGAIN_S = 500, 0.02


Asked = rq.ReviewDecide | rq.ReviewUndo


# ------------------------------------------------------------ the whole, in order


def carry_out(svc: Service, request: Asked) -> Steps:
    """See `requests.ReviewDecide`, `requests.ReviewUndo`."""
    tries = 0
    while True:
        refusal = yield OnDisk(lambda worker: _journal_or_plan(svc, worker.view, request))
        if isinstance(refusal, Refusal):
            return refusal
        if isinstance(refusal, Plan):
            begun = yield decide(partial(begin, svc, request, refusal))
            if begun is None:
                continue  # a part of the review was decided meanwhile
            if free_windows.is_busy(begun) and tries < TRIES:
                tries += 1  # somebody writes one of the files: in a moment it is another text
                yield Pause(AGAIN_S)
                continue
            if not isinstance(begun, Journal):
                return begun  # refused, or nothing had to be written
            return (yield from finish(svc, begun, after_crash=False))
        if refusal.review in svc.at_work:
            return _at_work(refusal)
        answer = yield from finish(svc, refusal, after_crash=True)
        if isinstance(answer, Refusal) or _is_asked(refusal, request):
            return answer


def _journal_or_plan(svc: Service, view: View, request: Asked) -> Journal | Plan:
    row = reviews.find(view, request.review)
    return journal_of(view, row.review_id) or verdict_plan.plan(svc, view, request, row)


def _is_asked(journal: Journal, request: Asked) -> bool:
    """Whether what was begun is what is asked for."""
    if isinstance(request, rq.ReviewUndo):
        return journal.verdict.what == "undo"
    names = () if request.edited is None else parts.edited_names(request.edited)
    if journal.verdict.what == "keep" and journal.steps[0].new_hash not in names:
        return False
    if journal.verdict.what != request.verdict or bool(journal.parts) != bool(
            request.files or request.hunks):
        return False
    begun = {part.path: part.hunks for part in journal.parts}
    return begun == {path: sorted(set(request.hunks)) for path in request.files}


def _at_work(journal: Journal) -> Refusal:
    return Refusal(
        Code.BAD_TRANSITION,
        f"The {journal.verdict.what} of {journal.review} is being carried out just now.",
        next=f"`coord review show {journal.review}` in a moment.",
    )


# ------------------------------------------------------------ its parts


def begin(svc: Service, request: Asked, plan: Plan, tx: Tx) -> Journal | rq.Review | None:
    """Note the plan and hold its files; or, where no file has to be written, the verdict itself.
    None: the review has other files than the plan was made for.

    Raises:
        Refusal: what has come in between.
    """
    row = reviews.find(tx, plan.review)
    going = journal_of(tx, plan.review)
    if going is not None:
        raise _at_work(going)
    verdict_plan.may(tx, request, row)
    if not parts.still_so(tx, plan.review, plan.seen):
        return None
    if plan.steps:
        verdict_plan.free_to_write(svc, tx, row, plan)
    for content in plan.keeps:
        repository_files.keep(tx, content)
    if not plan.steps:
        return reviews.decide(svc, tx, request, row, plan.parts)
    by, note = request.by or "operator", getattr(request, "note", "")[:reviews.NOTE_MAX]
    tx.record(ev.VerdictBegun(review=plan.review, agent=row.agent, task=row.task_id,
                              what=plan.what, by=by, note=note, steps=plan.steps,
                              parts=plan.parts))
    _hold_files(svc, tx, plan)
    if plan.what == "undo":
        reviews.reopen_task(tx, row)  # nobody may claim it while its files change
    begun = journal_of(tx, plan.review)
    assert begun is not None  # it was recorded a moment ago
    return begun


def _hold_files(svc: Service, tx: Tx, plan: Plan) -> None:
    name, acquisition = holder(plan.review), ""
    until = tx.later(HOLD_MS)
    # Two spellings of one name (NFC, NFD) are one resource.
    for step in {step.scope: step for step in plan.steps}.values():
        file = as_resource(step.path, "file", step.scope)
        parts = plan.beside.get(step.path)
        # In a file of which others hold parts, the rest is written by turns with them.
        for resource in (file,) if parts is None else (*parts,
                                                       write_window(step.path, svc.fold_case)):
            token = tx.number("fencing")
            acquisition = acquisition or f"A-{token}"
            tx.record(ev.LeaseGranted(
                fencing_token=token, resource=resource.name, agent=name, expires_at=until,
                lease_kind=resource.kind, mode="exclusive", scope=resource.scope,
                acquisition_id=acquisition,
                ttl_ms=HOLD_MS, max_until=until, description=f"{plan.what} of {plan.review}",
                purpose=purposes.of_writing(plan.review),
                inode=None if resource.kind == "key" else plan.inodes.get(step.path),
                worktree=None if resource.kind == "key" else step.worktree,
                content_hash=step.old if resource is file else None,
            ))


def conclude(svc: Service, tx: Tx, journal: Journal, done: Performed) -> rq.Review | Refusal:
    """Record the result. A returned refusal is on disk, too."""
    row = reviews.find(tx, journal.review)
    for saved in done.saved:
        tx.keep_stored(saved.name, saved.size)
    if done.state == "stuck":
        if done.undone:
            tx.record(ev.VerdictStepped(review=journal.review, steps=done.undone, back=True))
        return stuck(journal, done)
    for lease in tx.each(LeaseRow, "leases_of_holder", holder(journal.review)):
        tx.free(lease.file_path, lease.kind, lease.scope)
        tx.record(ev.LeaseReleased(
            fencing_token=lease.fencing_token, resource=lease.file_path, scope=lease.scope,
            agent=lease.locked_by, lease_kind=lease.kind,
        ))
    sentences = warnings(svc, done)
    if journal.verdict.what == "keep":
        sentences += _stayed(tx, journal)
    refusal = taken_back(svc, journal, done) if done.state == "back" else None
    tx.record(ev.VerdictEnded(
        review=journal.review, agent=row.agent, task=row.task_id, what=journal.verdict.what,
        outcome="taken back" if refusal is not None else "done",
        why=refusal.message if refusal is not None else " ".join(sentences),
        saved=[(saved.path, saved.name) for saved in done.saved],
    ))
    if refusal is not None:
        if journal.verdict.what == "undo":
            reviews.close_task_again(svc, tx, row)
        return refusal
    if journal.verdict.what == "undo":
        reply = reviews.undone(tx, row, journal.verdict.by, reopened=True)
    else:
        verdict = journal.verdict
        if journal.parts:
            row = reviews.split(tx, row, journal.parts)
        reply = reviews.decided(svc, tx, row, verdict.what, verdict.by, verdict.note,
                                journal.steps)
    return msgspec.structs.replace(reply, warnings=sentences)


def _stayed(view: View, journal: Journal) -> list[str]:
    """What was saved in a file since it was flagged, and stays beside the written text."""
    flagged = {file.path: file.flagged_hash
               for file in view.each(ReviewFileRow, "review_files_of", journal.review)}
    return [f"{file_names.shown(step.path)} was saved since it was flagged: what was saved stays, "
            "beside the edited text." for step in journal.steps
            if step.old_hash != flagged[step.path]]


def describe(view: View, row: ReviewRow) -> str:
    """What is being done about a review now, in words; empty if nothing is."""
    journal = journal_of(view, row.review_id)
    if journal is None:
        return ""
    done = sum(step.done for step in journal.steps)
    return f"its {journal.verdict.what} is being carried out ({done} of {len(journal.steps)} files)"
