"""Work that an agent did on a branch and did not land: it is looked at, kept, and flagged."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel import branches
from coordinator.kernel.core import Service
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import path_scope


def look_at_unlanded(svc: Service, tx: Tx, work: rq.Unlanded) -> list[branches.Unlanded]:
    """What a branch changed and did not land, as it was looked at before.

    Raises:
        Unready: it was not. Refusal: INVALID: no launch made this worktree; what git said.
    """
    if not svc.is_launched_worktree(work.worktree):
        raise Refusal(Code.INVALID, f"{work.worktree} is no launch's worktree. Nothing was done.")
    return tx.looked.after(f"unlanded {work.worktree} {work.began} {work.commit}",
                           lambda: branches.look_at_unlanded(svc, work))


def keep_unlanded(svc: Service, tx: Tx, work: rq.Unlanded,
                  files: Sequence[branches.Unlanded]) -> list[ev.FlaggedFile]:
    """These files, to be flagged; their bytes are kept."""
    flagged_files = []
    for path, was, now in files:
        branches.keep(tx, was)
        branches.keep(tx, now)
        flagged_files.append(
            ev.FlaggedFile(
                path=path, scope=path_scope(path, svc.fold_case), worktree=work.worktree,
                change="created" if was.hash is None else
                "deleted" if now.hash is None else "modified",
                kept=was.kept and now.kept, baseline_hash=was.hash, flagged_hash=now.hash,
            )
        )
    return flagged_files
