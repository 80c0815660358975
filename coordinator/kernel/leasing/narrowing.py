"""What a holder keeps when it gives up a part: a directory becomes files, a file becomes regions.

The module decides which parts may be kept. Each part starts from what was there when its former
lease began, so half-done work stays half-done work. `unlock_answers` decides who gets the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from coordinator.kernel.core import Service, listed
from coordinator.kernel.leasing import earlier_content
from coordinator.kernel.leasing.grant import in_its_place, lease_reply
from coordinator.kernel.leasing.located import locate, place
from coordinator.kernel.leasing.regions import check_known
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.rules.negotiation import within
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, UnlockRow
from coordinator.words import requests as rq
from coordinator.words.file_names import shown
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, is_task, path_of, region_of, resource


class Kept(NamedTuple):
    """One part that the holder keeps, of which of its leases, and what was there when it began."""

    part: Located
    of: LeaseRow
    was: earlier_content.Was


def kept(
    svc: Service, tx: Tx, row: UnlockRow, leases: Sequence[LeaseRow], names: Sequence[str],
    cwd: str | None, me: str,
) -> list[Kept]:
    """The named parts, checked: each lies in one of these leases, and none in what is asked for.
    `me`: the name of the answering agent in a command.

    Raises:
        Refusal: INVALID, LIMIT, OUTSIDE_REPO, REGION_UNKNOWN, BAD_TRANSITION.
        Unready: they were not looked at.
    """
    if is_task(rule.as_resource(row.resource, row.kind, row.scope)):
        raise _no(row, me, "a task is given up as a whole")
    if not names:
        whole = listed([lease.file_path for lease in leases])
        raise _no(row, me, f"narrowing {whole} keeps a part of it, and none is named")
    trees = {lease.worktree for lease in leases}
    parts = locate(svc, tx, names, cwd or (next(iter(trees)) if len(trees) == 1 else None))
    there = tx.looked.located(place(row.resource, row.kind)) if row.kind in ("file", "region") \
        else None
    check_known(svc, tx, parts, row.holder, cwd)
    return [_keep_part(svc, tx, row, leases, located, there, me) for located in parts]


def _keep_part(svc: Service, tx: Tx, row: UnlockRow, leases: Sequence[LeaseRow], located: Located,
               there: Located | None, me: str) -> Kept:
    """One part, checked. `there`: what is asked, where that is a file or in one."""
    part, asked = located.resource, rule.as_resource(row.resource, row.kind, row.scope)
    around = [lease for lease in leases if lease.worktree == located.worktree and within(
        rule.as_resource(lease.file_path, lease.kind, lease.scope), part)]
    # What it has exclusively stays exclusive.
    lease = min(around, key=lambda lease: (lease.mode != "exclusive", lease.fencing_token),
                default=None)
    if lease is None:
        whole = listed([lease.file_path for lease in leases])
        raise _no(row, me, f"{shown(part.name)} is no part of {whole}, which {row.holder} holds")
    same_file = there is not None and there.inode is not None and there.inode == located.inode
    if overlaps(part, asked) or (same_file and "region" not in (part.kind, asked.kind)):
        raise _no(row, me, f"{shown(part.name)} is what {row.requested_by} asks for, or has a "
                  "part of it")
    if lease.kind == "region" and part.scope != lease.scope:
        _check_unchanged(svc, tx, row, lease, me)
    return Kept(located, lease, earlier_content.was_there(svc, tx, lease, located))


def gives_up(parts: Sequence[Kept], row: UnlockRow, path: str, fold_case: bool) -> bool:
    """Whether a file, or a part of it, is out of the holder's hands when it keeps no more."""
    file = resource(path, "file", fold_case=fold_case)
    return overlaps(rule.as_resource(row.resource, row.kind, row.scope), file) or not any(
        overlaps(part.part.resource, file) for part in parts)


def hold(svc: Service, tx: Tx, parts: Sequence[Kept]) -> list[rq.Lease]:
    """Record the leases on what is kept, in place of those that have just ended."""
    leases = []
    first: str | None = None
    for kept_item in parts:
        part, kept_lease = kept_item.part.resource, kept_item.of
        if any(row.locked_by == kept_lease.locked_by and row.kind == part.kind
               and row.file_path == part.name and row.worktree == kept_item.part.worktree
               for row in tx.each(LeaseRow, "leases_at_scope", part.scope)):
            continue  # it has a lease of its own on that, which stays
        content_hash, baselines = kept_item.was
        token = in_its_place(tx, msgspec.structs.replace(
            kept_lease, file_path=part.name, kind=part.kind, scope=part.scope,
            inode=kept_item.part.inode,
            content_hash=content_hash,
            goes_with=kept_lease.goes_with if part.name == kept_lease.file_path else None),
            baselines, first)
        first = first or f"A-{token}"
        lease = tx.first(LeaseRow, "lease_by_token", token)
        assert lease is not None
        leases.append(lease_reply(lease))
    return leases


def _check_unchanged(svc: Service, tx: Tx, row: UnlockRow, lease: LeaseRow, me: str) -> None:
    """Check that the former content of a region's part is unchanged. Only then it may be kept.

    Raises:
        Refusal: BAD_TRANSITION. Unready: it was not looked at.
    """
    path = svc.where(lease.worktree, path_of(lease.file_path, "region"))
    if tx.looked.part(path, region_of(lease.file_path)).hash != lease.content_hash:
        raise Refusal(
            Code.BAD_TRANSITION, f"{shown(lease.file_path)} was changed since it was leased, and "
            f"what its parts were then is not known. {row.request_id} stays open, and nothing was "
            "changed.", next=f"Finish it, then `coord request approve {row.request_id} {me}`.",
        )


def _no(row: UnlockRow, me: str, why: str) -> Refusal:
    return Refusal(
        Code.INVALID, f"{row.request_id} cannot be answered so: {why}. It stays open, and nothing "
        "was changed.",
        next=f"`coord request narrow {row.request_id} {me} --keep PART`, with what lies beside "
        f"{shown(row.resource)}; or approve, or reject it.",
    )
