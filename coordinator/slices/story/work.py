"""What holders have changed below their leases and not finished: read, and never kept.

Runs in a worker on a connection of its own, for it reads the files.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.files.content import unified
from coordinator.kernel import repository_files
from coordinator.kernel.core import Actor, Service, split_page
from coordinator.kernel.leasing.partial_work import is_written
from coordinator.slices.review.reviews import shorten_difference
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow
from coordinator.words import file_names
from coordinator.words import requests as rq

#: Leases that are looked at for one answer, and files below one of them.
LEASES_MAX, FILES_MAX = 200, 200


def work(svc: Service, view: View, actor: Actor, req: rq.Work) -> rq.WorkList:
    """See `requests.Work`."""
    limit = min(req.limit, LEASES_MAX)
    if req.resource is None:
        rows = view.each(
            LeaseRow, "leases_live", view.now, req.after, req.agent, limit + 1)
    else:
        rows = [row for row in view.each(LeaseRow, "leases_named", req.resource)
                if row.expires_at > view.now
                and row.fencing_token > req.after and req.agent in (None, row.locked_by)]
    rows, more = split_page(rows, limit)
    items = [file for row in rows if is_written(row) for file in _changed(svc, view, row)]
    return rq.WorkList(items=items, next=rows[-1].fencing_token if more else None)


def _changed(svc: Service, view: View, lease: LeaseRow) -> Iterator[rq.WorkFile]:
    """The changed files below one lease."""
    for path, before in _begun_with(view, lease):
        now = repository_files.look(svc, lease.worktree, path)
        if now.hash == before:
            continue
        diff, cut = shorten_difference(_difference(svc, view, path, before, now))
        yield rq.WorkFile(
            agent=lease.locked_by, resource=lease.file_path, task=lease.task_id, path=path,
            worktree=lease.worktree, diff=diff, cut=cut,
            change="new" if before is None else "deleted" if now.hash is None else "modified")


def _begun_with(view: View, lease: LeaseRow) -> list[tuple[str, str | None]]:
    """Each file below a lease, and its content when the lease was granted."""
    if lease.kind == "file":
        return [(lease.file_path, lease.content_hash)]
    if lease.kind == "region":
        return []
    return [(str(path), digest) for path, digest
            in view.rows("baselines_of", lease.fencing_token)[:FILES_MAX]]


def _difference(svc: Service, view: View, path: str, before: str | None,
                now: repository_files.Bytes) -> str:
    shown = file_names.shown(path)
    earlier = view.blob(before, svc.settings.review.file_bytes_max)
    if (before is not None and earlier is None) or (now.hash is not None and now.data is None):
        return f"Large files a/{shown} and b/{shown} differ\n"
    return unified(shown, earlier, now.data)
