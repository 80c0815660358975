"""Reviews: listing, showing, and a human's verdict: keep, revert, reassign; each can be undone.

Nothing is ever lost by a verdict: bytes at the grant, at flag time, and on disk just before a
revert are all kept. A revert writes only where nobody changed the file since it was flagged;
elsewhere it merges three ways, and refuses with the reason when that conflicts. Files are written
before the verdict is committed, and every step can be repeated: a crash in between leaves an open
review whose revert finds its work already done.
"""

from __future__ import annotations

import base64
import subprocess
import tempfile
from pathlib import Path

from coordinator.files.content import unified
from coordinator.rules import leases as lease_rule
from coordinator.rules.leases import as_resource
from coordinator.service import disk, log, notices, tasks
from coordinator.service.core import Actor, Service
from coordinator.service.rivals import near
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, LogRow, ReviewFileRow, ReviewRow, TaskRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: A diff longer than this (bytes) is cut in replies; the bytes themselves are all kept.
DIFF_BYTES_MAX = 200_000
TIMELINE_MAX = 60


def find(view: View, text: str) -> ReviewRow:
    """The review called `R-3`, `r-3` or `3`.

    Raises:
        Refusal: UNKNOWN_REVIEW.
    """
    name = text.strip()
    for candidate in (name, name.upper(), f"R-{name}"):
        row = view.row("review_get", candidate)
        if row is not None:
            return ReviewRow(*row)
    raise Refusal(Code.UNKNOWN_REVIEW, f"No review has the id {name[:60]!r}.")


def listing(svc: Service, view: View, actor: Actor, req: rq.Reviews) -> rq.ReviewList:
    """See `requests.Reviews`."""
    rows = view.rows("reviews_list", req.state, max(1, min(req.limit, 1000)))
    return rq.ReviewList(items=[_reply(view, ReviewRow(*row)) for row in rows])


def show_request(svc: Service, view: View, actor: Actor, req: rq.ReviewShow) -> rq.Review:
    """See `requests.ReviewShow`."""
    return show(svc, view, req.review, content=req.content)


def show(svc: Service, view: View, text: str, *, content: bool) -> rq.Review:
    """A review with its diffs, timeline and the agent's last lines."""
    row = find(view, text)
    reply = _reply(view, row)
    for shown, raw in zip(reply.files, view.rows("review_files_of", row.review_id), strict=True):
        file = ReviewFileRow(*raw)
        before, after = view.blob(file.baseline_hash), view.blob(file.flagged_hash)
        if file.kept:
            shown.diff = unified(file.path, before, after)[:DIFF_BYTES_MAX]
        if content:
            shown.baseline = _b64(before)
            shown.flagged = _b64(after)
    reply.log_tail = row.log_tail
    rows = view.rows("events_of_review", row.events_from, row.task_id, row.agent, TIMELINE_MAX)
    reply.timeline = [log.sentence(LogRow(*event)) for event in reversed(rows)]
    return reply


def _b64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _reply(view: View, row: ReviewRow) -> rq.Review:
    files = []
    for raw in view.rows("review_files_of", row.review_id):
        file = ReviewFileRow(*raw)
        note = "" if file.kept else _why_not_kept(view, file)
        files.append(
            rq.ReviewFile(
                path=file.path, change=file.change, kept=bool(file.kept), note=note,
                baseline_hash=file.baseline_hash, flagged_hash=file.flagged_hash,
                worktree=file.worktree,
            )
        )
    return rq.Review(
        review=row.review_id, state=row.state, reason=row.reason, agent=row.agent,
        task=row.task_id, summary=row.summary, leased_at=row.leased_at, opened_at=row.opened_at,
        decided_at=row.decided_at, decided_by=row.decided_by, note=row.note, files=files,
    )


def _why_not_kept(view: View, file: ReviewFileRow) -> str:
    if file.flagged_hash is not None and view.row("blob_has", file.flagged_hash) is None:
        return "over the size limit: hashes are kept, not the bytes"
    return "its bytes before the change are not known to coord"


def keep_current(svc: Service, tx: Tx, actor: Actor, req: rq.ReviewDecide | rq.ReviewUndo) -> None:
    """Before files are written: keep, in a commit of its own, the bytes that are on disk now."""
    row = find(tx, req.review)
    for raw in tx.rows("review_files_of", row.review_id):
        file = ReviewFileRow(*raw)
        content = disk.read(svc, disk.place(svc, file.worktree, file.path))
        if content.data is not None and content.hash is not None:
            tx.keep(content.hash, content.data)


def decide(svc: Service, tx: Tx, actor: Actor, req: rq.ReviewDecide) -> rq.Review:
    """See `requests.ReviewDecide`."""
    row = find(tx, req.review)
    if row.state != "open":
        raise Refusal(
            Code.BAD_TRANSITION, f"{row.review_id} was {row.state} already; it stays so.",
            next=f"`coord review undo {row.review_id}` takes that back first.", state=row.state,
        )
    task = _task_under(tx, row)
    if req.verdict == "reassign" and task is None:
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{row.review_id} belongs to no task that waits for it, so there is nothing to "
            "reassign; it stays open.",
            next=f"`coord review keep {row.review_id}` or `coord review revert {row.review_id}`.",
        )
    written: list[tuple[str, str | None, str | None]] = []
    if req.verdict == "revert":
        written = _revert(svc, tx, row)
    state = {"keep": "kept", "revert": "reverted", "reassign": "reassigned"}[req.verdict]
    tx.record(
        ev.ReviewDecided(
            review=row.review_id, agent=row.agent, task=row.task_id, state=state,
            by=req.by or "operator", note=req.note[:2000],
            task_before=task.state if task else None, files=written,
        )
    )
    if task is not None:
        _move_task(tx, task, req.verdict, row)
    for raw in tx.rows("review_files_of", row.review_id):
        tx.freed.append((raw[0], "file", raw[1]))
    if row.agent is not None:
        said = f"A human looked at your partial work {row.review_id} and chose to {req.verdict} it."
        if task is not None and req.verdict == "reassign":
            said += f" Who claims it next has it: do not go on with {task.task_id} without that."
        notices.post(tx, row.agent, "verdict", said, review=row.review_id, verdict=req.verdict)
    return show(svc, tx, row.review_id, content=False)


def _task_under(tx: Tx, row: ReviewRow) -> TaskRow | None:
    """The task that waits for this verdict, if one does."""
    if row.task_id is None:
        return None
    task = tasks.find(tx, row.task_id)
    return task if task.state == "review" and task.partial == row.review_id else None


def _move_task(tx: Tx, task: TaskRow, verdict: str, row: ReviewRow) -> None:
    why = f"{row.review_id}: {verdict}"
    if verdict == "keep":
        tasks.move(tx, task, "accept", why=why, result=f"kept as it was ({row.review_id})")
    elif verdict == "revert":
        tasks.move(tx, task, "restart", why=why, partial=None)
    else:
        tasks.move(tx, task, "restart", why=why, attempts=max(0, task.attempts - 1))


def _revert(
    svc: Service, tx: Tx, row: ReviewRow
) -> list[tuple[str, str | None, str | None]]:
    """Work out every file first, then write them all: a conflict leaves all files as they are."""
    plan: list[tuple[ReviewFileRow, str | None, bytes | None, bool]] = []
    for raw in tx.rows("review_files_of", row.review_id):
        file = ReviewFileRow(*raw)
        _nobody_holds(tx, row, file)
        current = disk.read(svc, disk.place(svc, file.worktree, file.path))
        if current.hash == file.baseline_hash:
            plan.append((file, current.hash, None, False))
            continue
        if not file.kept:
            raise Refusal(
                Code.INVALID,
                f"The earlier bytes of {file.path} were not kept ({_why_not_kept(tx, file)}), so "
                "coord cannot write them. Nothing was reverted.",
                next=f"Restore it from git (hash {file.baseline_hash}), then "
                f"`coord review keep {row.review_id}`.",
            )
        before = tx.blob(file.baseline_hash)
        if current.hash == file.flagged_hash:
            plan.append((file, current.hash, before, True))
            continue
        merged = _merge(before, tx.blob(file.flagged_hash), current.data)
        if merged is None:
            raise Refusal(
                Code.VERSION_CHANGED,
                f"{file.path} was changed after it was flagged, in the same lines: reverting it "
                "would destroy that. Nothing was reverted.",
                next=f"`coord review show {row.review_id}`, settle {file.path} by hand, then "
                f"`coord review keep {row.review_id}`.",
                path=file.path,
            )
        plan.append((file, current.hash, merged, True))
    out = []
    for file, current_hash, data, write in plan:
        written = current_hash
        if write:
            where = disk.place(svc, file.worktree, file.path)
            written = disk.write(where, file.baseline_hash, data)
            if data is not None and written is not None:
                tx.keep(written, data)
        out.append((file.path, current_hash, written))
    return out


def _nobody_holds(tx: Tx, row: ReviewRow, file: ReviewFileRow) -> None:
    asked = as_resource(file.path, "file", file.scope)
    for raw in near(tx, "rivals", asked):
        lease = LeaseRow(*raw)
        if lease.expires_at > tx.now and lease_rule.conflicts(asked, "exclusive", "", lease):
            raise Refusal(
                Code.LOCKED,
                f"{file.path} is leased by {lease.locked_by} until {lease.expires_at}; "
                "nothing was reverted.",
                next=f"Repeat when it is free, or `coord unlock {file.path} --agent "
                f"{lease.locked_by} --force`.",
                conflicts=[{"resource": lease.file_path, "holder": lease.locked_by}],
            )


def _merge(before: bytes | None, flagged: bytes | None, current: bytes | None) -> bytes | None:
    """Take the partial work (before -> flagged) out of `current`; None when that conflicts.

    A three-way merge with the flagged bytes as the common ancestor, by `git merge-file`.
    """
    if before is None or flagged is None or current is None:
        return None
    with tempfile.TemporaryDirectory(prefix="coord-merge-") as folder:
        names = []
        for name, data in (("current", current), ("flagged", flagged), ("before", before)):
            (Path(folder) / name).write_bytes(data)
            names.append(str(Path(folder) / name))
        try:
            done = subprocess.run(
                ["git", "merge-file", "-p", "-q", *names], capture_output=True, timeout=30,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    return done.stdout if done.returncode == 0 else None


def undo(svc: Service, tx: Tx, actor: Actor, req: rq.ReviewUndo) -> rq.Review:
    """See `requests.ReviewUndo`."""
    row = find(tx, req.review)
    if row.state == "open":
        raise Refusal(Code.BAD_TRANSITION, f"{row.review_id} is open: there is no verdict to undo.")
    task = tasks.find(tx, row.task_id) if row.task_id and row.task_before else None
    after = {"kept": "done", "reverted": "ready", "reassigned": "ready"}[row.state]
    if task is not None and task.state != after:
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{task.task_id} went on since that verdict (it is {task.state}); undoing it now "
            "would take work away. Nothing was changed.", state=task.state,
        )
    files = [ReviewFileRow(*raw) for raw in tx.rows("review_files_of", row.review_id)]
    if row.state == "reverted":
        for file in files:
            _nobody_holds(tx, row, file)
            current = disk.read(svc, disk.place(svc, file.worktree, file.path))
            if current.hash not in (file.written_hash, file.verdict_hash):
                raise Refusal(
                    Code.VERSION_CHANGED,
                    f"{file.path} was changed since it was reverted; nothing was undone.",
                    path=file.path,
                )
        for file in files:
            if file.verdict_hash != file.written_hash:
                where = disk.place(svc, file.worktree, file.path)
                disk.write(where, file.verdict_hash, tx.blob(file.verdict_hash))
    tx.record(
        ev.ReviewUndone(review=row.review_id, agent=row.agent, task=row.task_id,
                        by=req.by or "operator")
    )
    if task is not None:
        tasks.move(tx, task, "reopen", why=f"{row.review_id}: verdict undone",
                   partial=row.review_id)
    return show(svc, tx, row.review_id, content=False)
