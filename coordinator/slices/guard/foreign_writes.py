"""Writes to what an agent holds, which it did not make: told to it, and recorded.

Of a file that is held in parts, each part is asked about: who has which, and what was changed. Who
has no hooks, of whom nothing is known, is taken for the writer of what it holds, and of nothing
else.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from coordinator.kernel.core import Service, listed
from coordinator.kernel.holders import notices
from coordinator.kernel.holders.families import owner
from coordinator.kernel.leasing import changed_parts
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.slices.guard import unleased_writes
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import AgentRow
from coordinator.words.resource_names import resource

if TYPE_CHECKING:
    from coordinator.slices.guard.seen_writes import Seen


class Foreign(NamedTuple):
    """A write to what `holder` holds, which it did not make. `agent`: who did, if that is known."""

    holder: str
    agent: str | None
    change: Seen
    before: str | None
    since: str | None = None
    """Of a file that is held in parts: when it was as before (UTC). What its holder has done since
    is among what is different."""


def hears(view: View, holder: str) -> bool:
    """Whether hooks tell what this agent does."""
    agent_row = view.first(AgentRow, "agent_get", owner(view, holder))
    return agent_row is not None and agent_row.hooked_at is not None


def is_foreign(view: View, change: Seen, holder: str, fold_case: bool) -> bool:
    """Whether a write to what this agent holds was certainly not made by its session."""
    if not hears(view, holder):
        return False  # nothing is known of it
    return not any(call.may_have_written(change.path, fold_case)
                   and owner(view, call.holder) == owner(view, holder) for call in change.calls)


def tell_of(svc: Service, tx: Tx, foreign: Foreign, busy: Collection[str] = ()) -> None:
    """The holder is told of a write that nobody is known to have made; of a file that is held in
    parts, whoever has a part that it hit, and that is recorded. `busy`: agents of whom a call ran
    since the file was as before: it may be theirs.

    Raises:
        Unready: the file has to be looked at.
    """
    hit = {holder: names for holder, names in _hit(svc, tx, foreign).items() if holder not in busy}
    if hit and foreign.since is not None and not unleased_writes.is_verdict(tx, foreign.change):
        unleased_writes.note(svc, tx, foreign.change, foreign.before, hit)
    for holder, names in hit.items():
        notices.post(
            tx, holder, "violated",
            f"{listed(names)}, which you hold, was changed while no command of yours ran: by a "
            "person, or by a program in the background. Read it afresh before you write it.",
            resource=foreign.change.path,
        )


def _hit(svc: Service, tx: Tx, foreign: Foreign) -> dict[str, list[str]]:
    """What was written of what is held, by holder."""
    path = foreign.change.path
    if foreign.since is None:
        return {foreign.holder: [path]}
    file = resource(path, "file", fold_case=svc.fold_case)
    rows = [row for row in leases_near(tx, file) if row.kind == "region"
            and row.worktree is None and row.expires_at > tx.now
            and is_foreign(tx, foreign.change, row.locked_by, svc.fold_case)]
    if not rows:
        return {}
    parts = (None if foreign.change.hash is None else
             changed_parts.since(svc, tx, path, foreign.before))
    result: dict[str, list[str]] = {}
    for row in rows:
        held = as_resource(row.file_path, row.kind, row.scope)
        if parts is None or any(overlaps(held, part) for part in parts):
            result.setdefault(row.locked_by, []).append(row.file_path)
    return result
