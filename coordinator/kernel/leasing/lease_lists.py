"""Live leases as a list, by time of grant or by folder, one window at a time.

By folder, a viewer learns how many leases each folder has and asks only for the rows that it shows.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from coordinator.kernel.core import Actor, Service, split_page
from coordinator.kernel.leasing import waiting_line
from coordinator.kernel.leasing.grant import lease_reply
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words.resource_names import WHOLE, Resource

#: Leases that one list tells of at most.
ITEMS_MAX = 10_000
#: A name without an end: all leases.
_EVERY = 2**31
#: Files of the repository's root are in the first of these folders; what is no file is in the
#: second.
ROOT, NO_FOLDER = "./", ""
_FILE_KINDS = frozenset({"file", "dir", "glob", "region"})
_WILDCARD = re.compile(r"[*?[]")


class Window(NamedTuple):
    """Leases of a list, and what is known of the rest of it."""

    rows: list[LeaseRow]
    total: int
    next: int | None
    folders: list[rq.LeaseFolder]


def locks(svc: Service, view: View, actor: Actor, req: rq.Locks) -> rq.LockList:
    """See `requests.Locks`."""
    about = None
    if req.resource is not None:
        about = view.looked.place(req.resource, req.cwd).resource
    whole = about is None or about.name == WHOLE
    stands_so = whole and req.order == "grant" and not req.filter
    window = _granted(view, req, about) if stands_so else _chosen(
        req, _all_live(view, req, about) if whole else _near(view, req, about))
    return rq.LockList(
        resource=None if about is None else about.name,
        items=[lease_reply(row) for row in window.rows], total=window.total,
        waiters=waiting_line.listing(svc, view, about=about, agent=req.agent),
        next=window.next, folders=window.folders,
    )


def count(view: View, agent: str | None = None, without: str = "") -> int:
    """How many leases are live; not those of the kind `without`."""
    return int(view.value("leases_count", view.now, agent, without) or 0)


def folder_of(name: str, kind: str) -> str:
    """The folder of a resource. A folder's own lease is in the folder above it, a pattern's where
    its fixed part ends."""
    if kind not in _FILE_KINDS:
        return NO_FOLDER
    path = name.split("::", 1)[0]
    fixed = _WILDCARD.split(path, maxsplit=1)[0].removesuffix("/" if path.endswith("/") else "")
    return fixed[: fixed.rfind("/") + 1] or ROOT


def _granted(view: View, req: rq.Locks, about: Resource | None) -> Window:
    """A window in the order of the grants, as an index has it: there may be very many."""
    limit = min(req.limit, ITEMS_MAX)
    rows, more = split_page(view.each(
        LeaseRow, "leases_window", view.now, req.after, req.agent, limit + 1, req.skip), limit)
    following = rows[-1].fencing_token if more else None
    rows = [row for row in rows if about is None or row.kind != "key"]
    total = count(view, req.agent, without="" if about is None else "key")
    return Window(rows, total, following, [])


def _chosen(req: rq.Locks, rows: list[LeaseRow]) -> Window:
    """A window of the rows that pass a check of each."""
    text = req.filter.lower()
    rows = [row for row in rows if row.fencing_token > req.after and text in "\n".join(
        (row.file_path, row.locked_by, row.task_id or "", row.task_description)).lower()]
    end = req.skip + min(req.limit, ITEMS_MAX)
    if req.order == "folder":
        return _by_folder(rows, req.skip, end)
    rows.sort(key=lambda row: row.fencing_token)
    following = rows[end - 1].fencing_token if len(rows) > end else None
    return Window(rows[req.skip : end], len(rows), following, [])


def _by_folder(rows: list[LeaseRow], begin: int, end: int) -> Window:
    """A window of these in the order of their folders and names; what is no file comes last."""
    placed = sorted(
        (folder == NO_FOLDER, folder, row.file_path, row.fencing_token, row)
        for row in rows for folder in [folder_of(row.file_path, row.kind)])
    counts = Counter(folder for _, folder, *_ in placed)
    return Window(
        [row for *_, row in placed[begin:end]], len(placed), end if len(placed) > end else None,
        [rq.LeaseFolder(folder=folder, count=number) for folder, number in counts.items()],
    )


def _all_live(view: View, req: rq.Locks, about: Resource | None) -> list[LeaseRow]:
    rows = view.each(LeaseRow, "leases_live", view.now, 0, req.agent, _EVERY)
    return [row for row in rows if about is None or row.kind != "key"]


def _near(view: View, req: rq.Locks, about: Resource | None) -> list[LeaseRow]:
    """Live leases of what overlaps a resource."""
    assert about is not None
    return [
        row for row in leases_near(view, about)
        if row.expires_at > view.now and req.agent in (None, row.locked_by)
        and overlaps(about, rule.as_resource(row.file_path, row.kind, row.scope))
    ]
