"""Telling agents that edit one file in two working trees. Nobody is stopped: two trees hold two
files, and the two are merged later."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from coordinator.kernel.core import Service, owner
from coordinator.kernel.holders import notices
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, short
from coordinator.words.texts import quoted


def tell(svc: Service, tx: Tx, agent: str, granted: rq.Acquired,
         apart: Sequence[LeaseRow]) -> None:
    """Tell both sides, once for each new lease, that others have the same in other trees.

    Args:
        apart: live leases of others on the same, which count in other trees.
    """
    new = [lease for lease in granted.leases if not lease.reentrant]
    if not new or svc.settings.worktrees.overlap != "tell":
        return
    told: set[tuple[str, str]] = set()
    for row in apart:
        if owner(tx, row.locked_by) == owner(tx, agent) or (row.locked_by, row.file_path) in told:
            continue
        told.add((row.locked_by, row.file_path))
        mine = new[0]
        text = _describe(svc, agent, mine.resource, mine.worktree, tx.now)
        notices.post(tx, row.locked_by, "overlap", text + _explain(mine.description),
                     resource=row.file_path, other=agent)
        text = _describe(svc, row.locked_by, row.file_path, row.worktree, row.locked_at)
        notices.post(tx, agent, "overlap", text + _explain(row.task_description),
                     resource=mine.resource, other=row.locked_by)


def _describe(svc: Service, agent: str, name: str, worktree: str | None, since: str) -> str:
    place = "the main working tree" if worktree is None else (
        f"the working tree {posixpath.relpath(worktree, svc.root)}")
    return f"{agent} edits {name} in {place}, too, since {short(from_iso(since))}"


def _explain(description: str) -> str:
    purpose = f" ({quoted(description)})" if description else ""
    return f"{purpose}. Nobody is stopped; the two are merged when they land."
