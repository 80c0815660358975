"""What holders have changed under their leases and not finished. It is read and never kept.

The reading runs in a worker on a connection of its own, because it reads the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from coordinator.files.content import unified
from coordinator.files.long_lines import shorten_difference
from coordinator.kernel import repository_files
from coordinator.kernel.core import Actor, Service, split_page
from coordinator.kernel.leasing.earlier_content import is_part, whole_of
from coordinator.kernel.leasing.partial_work import is_written
from coordinator.looking.rewound_regions import Then, rewound
from coordinator.rules.leases import as_resource
from coordinator.store.ledger import View
from coordinator.store.rows import ContentRow, LeaseRow
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.resource_names import path_of, region_of

#: Leases that are looked at for one answer, files below one of them, and changed ones of these.
LEASES_MAX, LOOKED_MAX, FILES_MAX = 200, 5_000, 200


class _Change(NamedTuple):
    """A changed file: its name, its former and its present content (None: it is not there)."""

    path: str
    before: bytes | None
    now: bytes | None
    #: Bytes that are too many to be compared.
    is_large: bool = False


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
    reply = rq.WorkList(items=[], next=rows[-1].fencing_token if more else None)
    for row in rows:
        if is_written(row):
            _tell(svc, view, row, reply)
    return reply


def _tell(svc: Service, view: View, lease: LeaseRow, reply: rq.WorkList) -> None:
    """Add what is changed below one lease to the answer."""
    if is_part(lease):
        changes, more = _changed_part(svc, view, lease), False
    else:
        files, more = _begun_with(svc, view, lease)
        changes = _changed(svc, view, lease, files)
    rows = list(islice(changes, FILES_MAX + 1))
    reply.items += [_file(lease, change) for change in rows[:FILES_MAX]]
    if more or len(rows) > FILES_MAX:
        reply.cut.append(lease.file_path)


def _file(lease: LeaseRow, change: _Change) -> rq.WorkFile:
    shown = file_names.shown(change.path)
    whole = (f"Large files a/{shown} and b/{shown} differ\n" if change.is_large
             else unified(shown, change.before, change.now))
    diff, cut = shorten_difference(whole)
    return rq.WorkFile(
        agent=lease.locked_by, resource=lease.file_path, task=lease.task_id, path=change.path,
        worktree=lease.worktree, diff=diff, cut=cut,
        change="new" if change.before is None and not change.is_large
        else "deleted" if change.now is None and not change.is_large else "modified")


def _begun_with(svc: Service, view: View, lease: LeaseRow
                ) -> tuple[dict[str, str | None], bool]:
    """Each file below a lease, and its content when the lease was granted (None: it was not there);
    and whether there are more of them."""
    if lease.kind in ("file", "region"):  # of a file that was not there, a region is all of it
        return {path_of(lease.file_path, lease.kind): lease.content_hash}, False
    files: dict[str, str | None] = {
        row.path: row.hash for row in view.each(ContentRow, "baselines_of", lease.fencing_token)}
    there = repository_files.list_below(
        svc, lease.worktree, as_resource(lease.file_path, lease.kind, lease.scope))
    for path in there or ():
        files.setdefault(path, None)
    return dict(sorted(files.items())[:LOOKED_MAX]), there is None or len(files) > LOOKED_MAX


def _changed(svc: Service, view: View, lease: LeaseRow, files: Mapping[str, str | None]
             ) -> Iterator[_Change]:
    """Those of these files that are not as they were."""
    most = svc.settings.review.file_bytes_max
    for path, before in files.items():
        now = repository_files.look(svc, lease.worktree, path)
        if now.hash != before:
            earlier = view.blob(before, most)
            is_large = ((before is not None and earlier is None)
                        or (now.hash is not None and now.data is None))
            yield _Change(path, earlier, now.data, is_large)


def _changed_part(svc: Service, view: View, lease: LeaseRow) -> Iterator[_Change]:
    """The file of a leased region, with nothing changed but that region; if it is not as it was."""
    path, name = path_of(lease.file_path, lease.kind), region_of(lease.file_path)
    now = repository_files.look(svc, lease.worktree, path)
    was = view.blob(lease.content_hash, svc.settings.review.file_bytes_max)
    if now.hash is None and was is not None:
        yield _Change(path, was, None)
    elif now.data is not None and (was is not None or lease.content_hash is None):
        whole = whole_of(view, lease)
        before = rewound(svc.regions, path, now.data, [
            Then(name, was, view.blob(whole, svc.settings.review.file_bytes_max))])
        if before is None:  # it cannot be told apart from work beside it: the region alone
            yield _Change(path, was, svc.regions.part(path, now.data, name))
        elif before != now.data:
            yield _Change(path, before, now.data)
