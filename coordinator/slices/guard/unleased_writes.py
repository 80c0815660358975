"""A write that nobody had leased: recorded, and flagged for a person where that is wanted
(`watch.unleased`).

What it was written to, and by whom, is told by the callers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from coordinator.kernel import repository_files
from coordinator.kernel.core import Service, listed
from coordinator.kernel.leasing import partial_work
from coordinator.slices.guard.ended_rights import LATE_MS
from coordinator.slices.guard.events import UnleasedWrite
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.words.resource_names import path_scope

if TYPE_CHECKING:
    from coordinator.slices.guard.seen_writes import Seen


def is_verdict(tx: Tx, change: Seen) -> bool:
    """Whether coord itself has written this: a review was decided so."""
    return change.hash in tx.values("review_written_last", change.path)


def note(svc: Service, tx: Tx, change: Seen, known: str | None,
         held: Mapping[str, Sequence[str]] | None = None) -> None:
    """Record it. `known`: what was there before, by its name; `held`: what it was written to of
    what agents hold, by holder."""
    if (change.hash is None and known is None and change.before.hash is None
            and not change.is_in_git):
        return  # it came and went: nothing was there, as far as is known
    tx.record(UnleasedWrite(resource=change.path, hash=change.hash))
    if svc.settings.watch.unleased != "review":
        return
    why = " ".join(f"{listed(names)}, which {holder} holds, was changed while no command of "
                   f"{holder} ran." for holder, names in (held or {}).items())
    why = why or f"{change.path} was changed while agents were active and nobody had leased it."
    if known is None:
        known = change.before.hash
        if known == change.hash:
            return  # back to what is committed
        repository_files.keep(tx, change.before)
    flag(svc, tx, change, known, why)


def keep_both(svc: Service, tx: Tx, change: Seen, known: str | None, seen_at: str | None, *,
              flagged: bool) -> None:
    """Commands of several agents write one file at the same time: what each left is kept, and shown
    to a person where one has overwritten the other."""
    repository_files.keep(tx, change.now)
    if (flagged or known is None or seen_at is None or seen_at < tx.later(-LATE_MS)
            or not tx.has("blob_has", known)):
        return
    flag(svc, tx, change, known, f"{change.path} was written twice while commands of several "
          "agents ran, and nobody had leased it: what the earlier write left is kept.")


def flag(svc: Service, tx: Tx, change: Seen, known: str | None, why: str) -> None:
    """Show it to a person, who can put back what was there before (`known`)."""
    repository_files.keep(tx, change.now)
    kept = change.now.kept and (known is None or tx.has("blob_has", known))
    kind = "created" if known is None else "deleted" if change.hash is None else "modified"
    file = ev.FlaggedFile(
        path=change.path, scope=path_scope(change.path, svc.fold_case), change=kind,
        kept=kept, baseline_hash=known, flagged_hash=change.hash,
    )
    partial_work.flag(
        tx, [file],
        partial_work.Occasion("unleased", why))
