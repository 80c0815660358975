"""What a task leaves when it is done: the content of each file that it changed, at that instant.

Several agents write into one tree, so the tree never consists of whole tasks alone. Finished work
does: in a file of which others hold regions, their regions are taken as they were when the others
got them. The bytes are kept. `verifications` builds and verifies trees from them.

Two things are not seen: changes without a lease, and changes in a directory that the task gave back
before its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from coordinator.kernel import branches
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import partial_work
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.looking.facts import Bytes, Content, Rewound
from coordinator.rules.landing import STATE_DIR
from coordinator.slices.verify.events import WorkFinished
from coordinator.store.ledger import Tx
from coordinator.store.rows import ContentRow, LeaseRow, ReviewFileRow, ReviewRow, Row, TaskRow
from coordinator.words import resource_names
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import region_of, resource

#: The content of a file of which a part alone was looked at.
UNKNOWN = "unknown"


class Finished(NamedTuple):
    """What a task has left: path and content (None: deleted), the commits around it if it landed,
    and the commit that was checked out."""

    files: list[tuple[str, str | None]]
    head: str | None
    before: str | None = None
    after: str | None = None


class LeasedRow(Row, frozen=True):
    """A lease that a task was given, and what its file was then."""

    resource: str
    lease_kind: str
    content_hash: str | None


def look(svc: Service, tx: Tx, task: TaskRow, landed: str | None) -> Finished | None:
    """What it has left; None if nothing is verified, or it has changed nothing. The bytes are kept.
    Called before the first record.

    Raises:
        Unready: the files have to be looked at.
    """
    if not svc.settings.verify.command.strip():
        return None
    if landed is not None:
        before = tx.value("landed_last", task.task_id, landed) if landed else None
        between = (before, landed) if before is not None else (None, None)
        files: list[tuple[str, str | None]] = []
    else:
        between = None, None
        files = _changed(svc, tx, task)
    if not files and between[0] is None and not tx.has("work_open_of", task.task_id):
        return None
    head = tx.looked.after("the commit that is checked out", lambda: branches.head(svc))
    return Finished(files, head, *between)


def note(tx: Tx, task: str, agent: str, left: Finished) -> None:
    """Write it down."""
    tx.record(WorkFinished(n=tx.number("work"), task=task, agent=agent, files=left.files,
                           head=left.head, before=left.before, after=left.after))


def note_kept(tx: Tx, task: str, row: ReviewRow) -> None:
    """A person took partial work as it was for a task's whole work."""
    if not tx.has("verified_base"):
        return
    left: dict[str, str | None] = {
        part.path: part.hash
        for part in tx.each(ContentRow, "review_files_of_kept_parts", row.review_id)}
    files = tx.each(ReviewFileRow, "review_files_of", row.review_id)
    left |= {review_file.path: review_file.written_hash if review_file.is_written
             else review_file.flagged_hash
             for review_file in files if review_file.worktree is None}
    if left:
        note(tx, task, row.agent or "operator", Finished(sorted(left.items()), None))


def _rewind_parts(svc: Service, tx: Tx, task: TaskRow, rows: Sequence[LeaseRow]
                  ) -> dict[str, Rewound]:
    """Files of which the task had parts: each without what others have done in it."""
    in_parts = {partial_work.path_of(row) for row in rows if row.kind == "region"}
    return {path: rewound for path in in_parts
            if (rewound := _without_others(svc, tx, task, path)) is not None}


def _changed(svc: Service, tx: Tx, task: TaskRow) -> list[tuple[str, str | None]]:
    """The files that it changed in the shared tree, with their contents."""
    rows = [row for row in tx.each(LeaseRow, "leases_of_task", task.task_id)
            if row.worktree is None]
    begun = _of_partial_work(tx, task)
    beside = _rewind_parts(svc, tx, task, rows)
    before = _given_back(svc, tx, task, rows)
    contents = {path: Content(svc.where(None, path)) for path in (*begun, *before)}
    tx.looked.require([*partial_work.needed(svc, rows), *contents.values(), *beside.values()])
    left = {flagged_file.path: flagged_file.flagged_hash for flagged_file
            in partial_work.changed_since(svc, tx, rows)
            if flagged_file.worktree is None}
    for path, whole in contents.items():
        if path in left:
            continue
        content = tx.looked.content(whole.path)
        if path in begun or content.hash != before[path]:
            left[path] = _kept(tx, content)
    for path in left.keys() & beside.keys():
        with suppress(Refusal):  # if it cannot be divided: as it is
            left[path] = _kept(tx, tx.looked.made(beside[path]))
    return sorted((path, name) for path, name in left.items()
                  if not path.startswith(STATE_DIR + "/"))


def _kept(tx: Tx, content: Bytes) -> str | None:
    tx.keep_found(content)
    return content.hash


def _of_partial_work(tx: Tx, task: TaskRow) -> list[str]:
    """Files of the work that it was begun with: what it left as it was is not changed since."""
    if task.partial is None:
        return []
    files = tx.each(ReviewFileRow, "review_files_of", task.partial)
    return [review_file.path for review_file in files if review_file.worktree is None]


def _given_back(svc: Service, tx: Tx, task: TaskRow, rows: list[LeaseRow]) -> dict[str, str | None]:
    """Files that it leased and gave back before its end, with their contents then. A file that
    another holds now is left to that one: its content includes this task's changes."""
    held = {partial_work.path_of(row) for row in rows if row.kind in ("file", "region")}
    matches: dict[str, str | None] = {}
    for lease in tx.each(LeasedRow, "work_leased", task.task_id, task.claimed_at):
        path = resource_names.path_of(lease.resource, lease.lease_kind)
        if path not in held:
            matches.setdefault(path, lease.content_hash if lease.lease_kind == "file" else UNKNOWN)
    return {path: was for path, was in matches.items()
            if not leases_near(tx, resource(path, "file", fold_case=svc.fold_case))}


def _without_others(svc: Service, tx: Tx, task: TaskRow, path: str) -> Rewound | None:
    """The file with the regions of others as they were when the others got them; None if nobody
    holds one."""
    asked = resource(path, "file", fold_case=svc.fold_case)
    others = [row for row in leases_near(tx, asked) if row.kind == "region"
              and row.mode == "exclusive" and row.inode is not None and row.worktree is None
              and row.task_id != task.task_id
              and not (row.task_id is None and row.locked_by == task.claimed_by)]
    if not others:
        return None
    return Rewound(svc.where(None, path), tuple(sorted(
        (region_of(row.file_path), row.content_hash) for row in others)))
