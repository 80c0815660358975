"""Writes without a right, recorded and told: to what nobody had leased, and to what another holds.

A person sees them as reviews where `watch.unleased` says so. `attribution` decides whose write it
was. Of a file that is held in parts, each holder is told only of the parts that were changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from coordinator.kernel import repository_files
from coordinator.kernel.core import Service, listed
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing import changed_parts, partial_work
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.slices.guard.attribution import is_foreign
from coordinator.slices.guard.ended_rights import LATE_MS
from coordinator.slices.guard.events import UnleasedWrite
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.words.resource_names import path_scope, resource

if TYPE_CHECKING:
    from coordinator.slices.guard.seen_writes import Seen


def is_verdict(tx: Tx, change: Seen) -> bool:
    """Whether coord itself has written this: a review was decided so."""
    return change.hash in tx.values("review_written_last", change.path)


def note(svc: Service, tx: Tx, change: Seen, before: str | None,
         held: Mapping[str, Sequence[str]] | None = None) -> None:
    """Record it. `before`: what was there before, by its name; `held`: what it was written to of
    what agents hold, by holder."""
    if (change.hash is None and before is None and change.before.hash is None
            and not change.is_in_git):
        return  # it came and went: nothing was there, as far as is known
    tx.record(UnleasedWrite(resource=change.path, hash=change.hash))
    if svc.settings.watch.unleased != "review":
        return
    why = " ".join(f"{listed(names)}, which {holder} holds, was changed while no command of "
                   f"{holder} ran." for holder, names in (held or {}).items())
    why = why or f"{change.path} was changed while agents were active and nobody had leased it."
    if before is None:
        before = change.before.hash
        if before == change.hash:
            return  # back to what is committed
        repository_files.keep(tx, change.before)
    flag(svc, tx, change, before, why)


def keep_both(svc: Service, tx: Tx, change: Seen, before: str | None, seen_at: str | None, *,
              flagged: bool) -> None:
    """Commands of several agents write one file at the same time: what each left is kept, and shown
    to a person where one has overwritten the other."""
    repository_files.keep(tx, change.now)
    if (flagged or before is None or seen_at is None or seen_at < tx.later(-LATE_MS)
            or before == change.before.hash or not tx.has("blob_has", before)):
        return  # nothing of it is lost, or git has it
    flag(svc, tx, change, before, f"{change.path} was written twice while commands of several "
          "agents ran, and nobody had leased it: what the earlier write left is kept.")


def flag(svc: Service, tx: Tx, change: Seen, before: str | None, why: str) -> None:
    """Show it to a person, who can put back what was there before (`before`)."""
    repository_files.keep(tx, change.now)
    kept = change.now.kept and (before is None or tx.has("blob_has", before))
    kind = "created" if before is None else "deleted" if change.hash is None else "modified"
    file = ev.FlaggedFile(
        path=change.path, scope=path_scope(change.path, svc.fold_case), change=kind,
        kept=kept, baseline_hash=before, flagged_hash=change.hash,
    )
    partial_work.flag(
        tx, [file],
        partial_work.Occasion("unleased", why))


class Foreign(NamedTuple):
    """A write to what `holder` holds, which it did not make. `agent`: who did, if that is known."""

    holder: str
    agent: str | None
    change: Seen
    before: str | None
    since: str | None = None
    """For a file that is held in parts: when it had its former content (UTC). The holder's own
    later work is part of the difference."""


def tell_of(svc: Service, tx: Tx, foreign: Foreign, busy: Collection[str] = ()) -> None:
    """Tell the holder of a write without a known writer. In a file that is held in parts, tell the
    holders of the changed parts, and record it. `busy`: agents with a call since the file had its
    former content. The write may be theirs.

    Raises:
        Unready: the file has to be looked at.
    """
    hit = {holder: names for holder, names in _hit(svc, tx, foreign).items() if holder not in busy}
    if hit and foreign.since is not None and not is_verdict(tx, foreign.change):
        note(svc, tx, foreign.change, foreign.before, hit)
    for holder, names in hit.items():
        notices.post(
            tx, holder, "violated",
            f"{listed(names)}, which you hold, was changed while no command of yours ran: by a "
            "person, or by a program in the background. Read it afresh before you write it.",
            resource=foreign.change.path,
        )


def _hit(svc: Service, tx: Tx, foreign: Foreign) -> dict[str, list[str]]:
    """The leased parts that were changed, by holder."""
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
