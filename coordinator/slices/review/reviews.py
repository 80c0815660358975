"""Reviews: listing, showing, and what a human's verdict (keep, revert, reassign) means for the
rows; each can be undone.

Nothing is ever lost by a verdict: bytes at the grant, at flag time, and on disk just before a
revert are all kept. No file is read or written here: a verdict that writes files is planned in
`verdict_plan` and carried out by `verdicts`, which calls what is here at its end.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from coordinator.files.content import is_executable, is_link, unified
from coordinator.files.long_lines import shorten_difference
from coordinator.kernel import event_sentences, tasks
from coordinator.kernel.core import Actor, Service, listed, split_page
from coordinator.kernel.holders import notices
from coordinator.kernel.unknown_ids import find_by_id
from coordinator.rules.backlog import told_state
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import (
    ContentRow,
    InStateRow,
    LogRow,
    ReviewFileRow,
    ReviewRow,
    StepRow,
    TaskRow,
    VerdictRow,
)
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import quoted

TIMELINE_MAX = 60
#: A person's note on a verdict is cut to so many signs.
NOTE_MAX = 2000
#: Said of a renamed file that has no other difference.
UNCHANGED = ", unchanged"
#: Reviews that are listed at once.
LISTED_MAX = 1000
#: Tasks that a refusal names.
NAMED_MAX = 5


def find(view: View, text: str) -> ReviewRow:
    """The review called `R-3`, `r-3`, `3` or `R3`.

    Raises:
        Refusal: UNKNOWN_REVIEW.
    """
    return find_by_id(lambda name: view.first(ReviewRow, "review_get", name), text, "R", "review",
                      Code.UNKNOWN_REVIEW)


def listing(svc: Service, view: View, actor: Actor, req: rq.Reviews) -> rq.ReviewList:
    """See `requests.Reviews`."""
    task = tasks.named(view, req.task)
    limit = min(req.limit, LISTED_MAX)
    if req.state == "decided":
        reviews = view.each(ReviewRow, "reviews_decided", limit + 1, req.skip, req.agent, task)
    else:
        reviews = view.each(ReviewRow, "reviews_list", req.state, limit + 1, req.agent, task,
                            req.after, req.skip)
    rows, more = split_page(reviews, limit)
    after = req.skip + limit if req.state == "decided" else rows[-1].n if rows else None
    return rq.ReviewList(
        items=[_reply(view, row) for row in rows], next=after if more else None,
        counts=view.counts("reviews_count", req.agent, task))


def show_request(svc: Service, view: View, actor: Actor, req: rq.ReviewShow) -> rq.Review:
    """See `requests.ReviewShow`."""
    return show(svc, view, req.review, content=req.content)


def show(svc: Service, view: View, text: str, *, content: bool) -> rq.Review:
    """A review with its diffs, timeline and the agent's last lines."""
    row = find(view, text)
    reply = _reply(view, row)
    most = svc.settings.review.file_bytes_max
    files = view.each(ReviewFileRow, "review_files_of", row.review_id)
    for shown, file in zip(reply.files, files, strict=True):
        if file.kept and not shown.note.endswith(UNCHANGED):
            diff = _difference(view, file, most)
            shown.hunks = ("\n" + diff).count("\n@@ ")
            shown.diff, is_cut = shorten_difference(diff)
            shown.cut = True if is_cut else None
        if content:
            shown.baseline, shown.baseline_at = _encode_content(view, file.baseline_hash, most)
            shown.flagged, shown.flagged_at = _encode_content(view, file.flagged_hash, most)
    reply.log_tail = row.log_tail
    events = view.each(LogRow, "events_of_review", row.events_from, row.task_id, row.agent,
                       TIMELINE_MAX)
    reply.timeline = [event_sentences.tell_event(event) for event in reversed(events)]
    return reply


def _difference(view: View, file: ReviewFileRow, most: int) -> str:
    """The change as a unified diff; type and mode in git's words."""
    path = file_names.shown(file.path)
    modes = [_git_mode(name) for name in (file.baseline_hash, file.flagged_hash)]
    head = ""
    if None not in modes and modes[0] != modes[1]:
        head = f"old mode {modes[0]}\nnew mode {modes[1]}\n"
    before, after = (view.blob(name, most) for name in (file.baseline_hash, file.flagged_hash))
    for name, data in ((file.baseline_hash, before), (file.flagged_hash, after)):
        if name is not None and data is None:
            return f"{head}Large files a/{path} and b/{path} differ\n"
    return head + unified(path, before, after)


def _git_mode(name: str | None) -> str | None:
    if name is None:
        return None
    return "120000" if is_link(name) else "100755" if is_executable(name) else "100644"


def _encode_content(view: View, name: str | None, most: int) -> tuple[str | None, str | None]:
    """A content in base64; of one that is too large for that, the file that has it."""
    source = view.source(name)
    if isinstance(source, Path):
        data = view.blob(name, most)
        return (None, str(source)) if data is None else (base64.b64encode(data).decode(), None)
    return (None if source is None else base64.b64encode(source).decode()), None


def _reply(view: View, row: ReviewRow) -> rq.Review:
    files = []
    rows = view.each(ReviewFileRow, "review_files_of", row.review_id)
    renames = _renames([file for file in rows if file.kept])
    for file in rows:
        files.append(rq.ReviewFile(
            path=file.path, change=file.change, kept=bool(file.kept),
            note=renames.get(file.path, "") if file.kept else why_not_kept(view, file),
            baseline_hash=file.baseline_hash, flagged_hash=file.flagged_hash,
            worktree=file.worktree,
        ))
    verdict = view.first(VerdictRow, "verdict_get", row.review_id)
    saved = [f"somebody saved {file_names.shown(kept.path)} in the middle of a verdict: that is "
             f"kept as {view.blobs.place(str(kept.hash))}"
             for kept in view.each(ContentRow, "review_saved_of", row.review_id)]
    return rq.Review(
        review=row.review_id, state=row.state, reason=row.reason, agent=row.agent,
        task=row.task_id, summary=row.summary, leased_at=row.leased_at, opened_at=row.opened_at,
        decided_at=row.decided_at, decided_by=row.decided_by, note=row.note, files=files,
        part_of=row.part_of, under_way=None if verdict is None else verdict.what, saved=saved,
        may=[] if verdict is not None else _may(view, row, rows),
    )


def _may(view: View, row: ReviewRow, files: Sequence[ReviewFileRow]) -> list[str]:
    """What a person can do with a review as it is. Its files on disk are looked at when that is
    done."""
    if row.state == "open":
        return ["keep", "revert", *(["reassign"] if _task_under(view, row) is not None else [])]
    try:
        may_undo(view, row)
    except Refusal:
        return []
    gone = any(file.is_written and file.verdict_hash is not None
               and view.source(file.verdict_hash) is None for file in files)
    return [] if gone else ["undo"]


def _renames(files: Sequence[ReviewFileRow]) -> dict[str, str]:
    """Files that got another name, as far as is known: the same leased file, or the same content
    under the same last name. This is told to people; a verdict goes by the files."""
    gone: dict[tuple[str | None, str | None, str], ReviewFileRow] = {}
    for file in files:
        if file.change == "deleted":
            gone.setdefault((file.worktree, file.baseline_hash, _last(file.path)), file)
            if file.inode is not None:
                gone.setdefault((file.worktree, file.inode, ""), file)
    notes: dict[str, str] = {}
    for file in files:
        if file.change == "modified" and file.inode is not None:
            old = gone.get((file.worktree, file.inode, ""))
            if old is not None and old.path not in notes and (
                    old.baseline_hash != file.baseline_hash):  # else they were one file before
                notes[old.path] = f"moved over {file_names.shown(file.path)}"
                notes[file.path] = (f"{file_names.shown(old.path)} was moved over it; what stood "
                                    "here is as coord last saw it, else as git has it")
        if file.change != "created":
            continue
        old = gone.get((file.worktree, file.inode or "", "")) or gone.get(
            (file.worktree, file.flagged_hash, _last(file.path)))
        if old is None or old.path in notes:
            continue
        same = UNCHANGED * (old.baseline_hash == file.flagged_hash)
        notes[old.path] = f"renamed to {file_names.shown(file.path)}{same}"
        notes[file.path] = f"renamed from {file_names.shown(old.path)}{same}"
    return notes


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def why_not_kept(view: View, file: ReviewFileRow) -> str:
    """Why a side of a file is not kept, in words."""
    if file.flagged_hash == "unreadable":
        return "it could not be read when it was flagged"
    if file.flagged_hash is not None and view.source(file.flagged_hash) is None:
        return "over the budget (review.kept_bytes_max): hashes are kept, not the bytes"
    return "its bytes before the change are not known to coord"


# ------------------------------------------------------------ what a verdict needs


def may_decide(view: View, row: ReviewRow, verdict: str) -> TaskRow | None:
    """Whether a verdict is possible now; the task that waits for it.

    Raises:
        Refusal: BAD_TRANSITION.
    """
    if row.state != "open":
        text = f"{row.review_id} was {row.state} already; it stays so."
        step: str | None = f"`coord review undo {row.review_id}` takes that back first."
        try:
            may_undo(view, row)
        except Refusal as no:
            text, step = f"{text} {no.message}", no.next
        raise Refusal(Code.BAD_TRANSITION, text, next=step, state=row.state)
    task = _task_under(view, row)
    if verdict == "reassign" and task is None:
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{row.review_id} belongs to no task that waits for it, so there is nothing to "
            "reassign; it stays open.",
            next=f"`coord review keep {row.review_id}` or `coord review revert {row.review_id}`.",
        )
    return task


def may_undo(view: View, row: ReviewRow) -> TaskRow | None:
    """Whether a verdict can be undone now; the task that it moved.

    Raises:
        Refusal: BAD_TRANSITION: nothing was decided, or its task, or one that comes after it, went
            on since.
    """
    if row.state == "open":
        parts = view.each(InStateRow, "parts_decided", row.review_id, NAMED_MAX)
        have = [f"{part.name} ({part.state})" for part in parts]
        text = f": {listed(have)} {'is a part' if len(parts) == 1 else 'are parts'} of it" if (
            parts) else ""
        raise Refusal(
            Code.BAD_TRANSITION, f"{row.review_id} is open: there is no verdict to undo{text}.",
            next=f"`coord review undo {parts[0].name}` takes that one back." if parts else
            f"`coord review show {row.review_id}` shows what waits for one.")
    task = tasks.find(view, row.task_id) if row.task_id and row.task_before else None
    if task is None:
        return None
    after = {"kept": "done", "reverted": "ready", "reassigned": "ready"}[row.state]
    if task.state != after:
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{task.task_id} went on since that verdict (it is {told_state(task.state)}); undoing "
            "it now would take work away. Nothing was changed.", state=task.state,
            next=f"`coord task show {task.task_id}` tells more of it.",
        )
    if row.state == "kept":
        _check_none_begun(view, task)
    return task


def _check_none_begun(view: View, task: TaskRow) -> None:
    """Whether nothing that comes after this task has begun."""
    begun = [after for after in view.each(InStateRow, "task_dependents_begun", task.task_id)
             if after.state != "ready"]
    if begun:
        names = ", ".join(f"{after.name} (it is {told_state(after.state)})"
                          for after in begun[:NAMED_MAX])
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{task.task_id} was done with that verdict, and what comes after it has begun "
            f"since: {names}. Undoing it now would take the ground from that. Nothing was "
            "changed.", next=f"`coord task show {begun[0].name}`",
            tasks=[after.name for after in begun],
        )


def show_partial(svc: Service, view: View, name: str) -> rq.Partial:
    """What the next agent of a task is told of the partial work on it."""
    review = show(svc, view, name, content=False)
    return rq.Partial(
        review=review.review, summary=review.summary,
        files=[{"path": f.path, "change": f.change, "worktree": f.worktree} for f in review.files],
        diff="\n".join(f.diff for f in review.files),
        note=(review.note or "") if review.state == "reassigned" else "",
    )


# ------------------------------------------------------------ what a verdict does to the rows


def decide(svc: Service, tx: Tx, request: rq.ReviewDecide | rq.ReviewUndo, row: ReviewRow,
           parts: Sequence[ev.ReviewPart]) -> rq.Review:
    """Note a verdict, or its end, for which no file has to be written. `parts`: what it is about,
    where that is not all."""
    by = request.by or "operator"
    if isinstance(request, rq.ReviewUndo):
        return undone(tx, row, by, reopened=False)
    if parts:
        row = split(tx, row, parts)
    return decided(svc, tx, row, request.verdict, by, request.note[:NOTE_MAX], ())


def decided(svc: Service, tx: Tx, row: ReviewRow, what: str, by: str, note: str,
            steps: Sequence[StepRow]) -> rq.Review:
    """Note a verdict; `steps` are the files that were written for it."""
    task = _task_under(tx, row)
    state = {"keep": "kept", "revert": "reverted", "reassign": "reassigned"}[what]
    written = {step.path for step in steps}
    # This verdict does not write what an earlier verdict wrote and took back.
    earlier = [file.path for file in tx.each(ReviewFileRow, "review_files_of", row.review_id)
               if file.is_written and file.path not in written]
    tx.record(ev.ReviewDecided(
        review=row.review_id, agent=row.agent, task=row.task_id, state=state, by=by,
        note=note, task_before=task.state if task else None,
        files=[*((step.path, step.old_hash, step.new_hash) for step in steps),
               *((path, None, None) for path in earlier)],
        modes={step.path: step.old_mode for step in steps if step.old_hash is not None},
    ))
    if task is not None:
        _move_task(svc, tx, task, what, row)
    for file in tx.each(ReviewFileRow, "review_files_of", row.review_id):
        tx.freed.append((file.path, "file", file.scope))
    if row.agent is not None:
        text = _describe_verdict(row, what, note, task, edited=bool(steps))
        notices.post(tx, row.agent, "verdict", text, review=row.review_id, verdict=what)
    return _reply(tx, find(tx, row.review_id))  # without differences: those take their time


def _describe_verdict(row: ReviewRow, what: str, note: str, task: TaskRow | None, *,
                      edited: bool) -> str:
    """What the agent is told whose work it was."""
    edit = ", as they have edited it" if what == "keep" and edited else ""
    text = f"A human looked at your partial work {row.review_id} and chose to {what} it{edit}."
    if note:
        text += f" They say: {quoted(note)}."
    if task is not None and what == "reassign":
        text += f" Who claims it next has it: do not go on with {task.task_id} without that."
    return text


def undone(tx: Tx, row: ReviewRow, by: str, *, reopened: bool) -> rq.Review:
    """Note that a verdict was taken back. `reopened`: its task waits for one again already."""
    if not reopened:
        reopen_task(tx, row)
    tx.record(ev.ReviewUndone(review=row.review_id, agent=row.agent, task=row.task_id, by=by))
    if row.agent is not None:
        notices.post(tx, row.agent, "verdict", f"The verdict on your partial work {row.review_id} "
                     "was taken back: it waits for a person again.", review=row.review_id,
                     verdict="undone")
    return _reply(tx, find(tx, row.review_id))


def reopen_task(tx: Tx, row: ReviewRow) -> None:
    """The task waits for a verdict again; what comes after it waits for it again."""
    task = may_undo(tx, row)
    if task is None:
        return
    why = f"{row.review_id}: verdict undone"
    counted = task.attempts + 1 if row.state == "reassigned" else task.attempts
    tasks.move(tx, task, "reopen", why=why, partial=row.review_id, attempts=counted, result=None)


def close_task_again(svc: Service, tx: Tx, row: ReviewRow) -> None:
    """An undo was taken back itself: the task is done, or starts over, as after the verdict."""
    task = _task_under(tx, row)
    if task is not None and row.state == "kept":
        _move_task(svc, tx, task, "keep", row)
    elif task is not None:
        tasks.move(tx, task, "restart", why=f"{row.review_id}: stays reverted", partial=None)


def split(tx: Tx, row: ReviewRow, files: Sequence[ev.ReviewPart]) -> ReviewRow:
    """Take these files and hunks out of a review, into one of their own: that one. Its verdict
    leaves the task alone, which waits for the rest."""
    n = tx.number("review")
    tx.record(ev.ReviewSplit(review=row.review_id, part=f"R-{n}", n=n, agent=row.agent,
                             task=row.task_id, files=list(files)))
    return find(tx, f"R-{n}")


def sides(file: ReviewFileRow) -> tuple[str, str | None, str | None]:
    """A file, and from which content to which it went."""
    return file.path, file.baseline_hash, file.flagged_hash


def _task_under(view: View, row: ReviewRow) -> TaskRow | None:
    """The task that waits for this verdict, if one does."""
    if row.task_id is None:
        return None
    task = tasks.find(view, row.task_id)
    return task if task.state == "review" and task.partial == row.review_id else None


def _move_task(svc: Service, tx: Tx, task: TaskRow, verdict: str, row: ReviewRow) -> None:
    why = f"{row.review_id}: {verdict}"
    if verdict == "keep":
        tasks.move(tx, task, "accept", why=why, result=f"kept as it was ({row.review_id})")
        for part in svc.slices:
            part.kept_as_done(tx, task, row)
    elif verdict == "revert":
        tasks.move(tx, task, "restart", why=why, partial=None)
    else:
        tasks.move(tx, task, "restart", why=why, attempts=max(0, task.attempts - 1))
