"""Files that several hold and write, because their holders agreed (`coexist`).

All of their leases are shared and bear the agreement's name, the unlock request that it began
with. Owns who may enter one, and what an agreement lets its holders do: write without an exclusive
lease, one after the other (`enforcement/write_windows`). Nobody else gets what they hold; where one
leaves, the others keep it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coordinator.kernel.core import Service, family, listed
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing import earlier_content
from coordinator.kernel.leasing.blockers import Asking, find_blockers
from coordinator.kernel.leasing.grant import Agreed, check_looked, free_slot
from coordinator.kernel.leasing.located import place
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.rules.negotiation import no_longer_than, same_for_both, within
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, UnlockRow, WaiterRow
from coordinator.words.file_names import shown
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource


class Entry(NamedTuple):
    """What a new party to an agreement is granted, and its latest end (ISO text)."""

    grant: Agreed
    no_longer_than: str | None


def entry(
    svc: Service, tx: Tx, row: UnlockRow, leases: Sequence[LeaseRow], waiter: WaiterRow,
    me: str,
) -> Entry:
    """Work out the agreement that would let the asker share these leases of the holder. All of it
    was looked at. `me`: the name of the answering agent in a command.

    Raises:
        Refusal: INVALID, BAD_TRANSITION: they cannot be shared so. Unready.
    """
    asked = rule.as_resource(row.resource, row.kind, row.scope)
    _check_same_files(row, asked, leases, me)
    located = tx.looked.located(place(row.resource, row.kind))
    if located.worktree is not None or any(lease.worktree is not None for lease in leases):
        raise _cannot(row, me, "in a worktree of one's own nobody is in the way of anybody: what "
                      "both write is merged when it lands", "reject")
    name = _name_it(row, leases, me)
    wanted = [(located, "shared")]
    blockers = find_blockers(svc, tx, row.requested_by, wanted, Asking(priority=waiter.priority,
                      asked_at=waiter.asked_at, acquisition=row.request_id, agreed=name))
    _check_held_by_them(tx, row, leases, name, blockers.leases, me)
    if blockers.closed:
        raise _cannot(row, me, f"{shown(blockers.closed[0][1])} holds partial work that waits for "
                      "a human's verdict")
    bound = no_longer_than([(lease, lease.max_until) for lease in leases], asked, "shared")
    if blockers.waiters and bound is None:
        raise _cannot(row, me, f"{blockers.waiters[0].agent} stands in line for a part of it "
                      f"before {row.requested_by}")
    passes = bool(blockers.waiters)
    check_looked(svc, tx, wanted, blockers)
    content_hash, below = earlier_content.was_there(svc, tx, leases[0], located)
    return Entry(Agreed(name, content_hash, below), bound if passes else None)


def _name_it(row: UnlockRow, leases: Sequence[LeaseRow], me: str) -> str:
    """The name of the agreement: that by which they are shared already, else the question's."""
    names = sorted({lease.agreed_as for lease in leases if lease.agreed_as is not None})
    if len(names) > 1:
        raise _cannot(row, me, f"parts of it are shared by several agreements ({listed(names)})")
    return names[0] if names else row.request_id


def _check_held_by_them(tx: Tx, row: UnlockRow, leases: Sequence[LeaseRow], name: str,
                        in_the_way: Sequence[LeaseRow], me: str) -> None:
    """Check that every other holder of a part has agreed, and that the asker holds no part for
    reading."""
    asked = rule.as_resource(row.resource, row.kind, row.scope)
    shared = {lease.fencing_token for lease in leases}
    others = [lease for lease in in_the_way if lease.fencing_token not in shared]
    beside = [other_lease for lease in leases for other_lease in _beside(tx, lease, name)]
    own = [lease for lease in beside
           if lease.locked_by == row.requested_by
           and not _is(lease, asked)]  # (that one is replaced)
    if own:
        raise _cannot(row, me, f"{row.requested_by} also holds {shown(own[0].file_path)} to read, "
                      "which nobody else may write meanwhile; it gives that back first")
    others += [lease for lease in beside if lease.locked_by != row.requested_by]
    if others:
        who = listed(sorted({lease.locked_by for lease in others}))
        raise _cannot(row, me, f"{who} holds a part of it, too, and has not agreed")


def share(tx: Tx, leases: Sequence[LeaseRow], name: str) -> None:
    """The holder's leases are shared by this agreement from now on: the same leases, with their
    tokens."""
    for lease in leases:
        resource = rule.as_resource(lease.file_path, lease.kind, lease.scope)
        tx.record(ev.LeaseAgreed(
            fencing_token=lease.fencing_token, agent=lease.locked_by, resource=lease.file_path,
            slot=free_slot(tx, lease.locked_by, resource, "shared", lease.worktree,
                           lease.purpose),
            agreed_as=name,
        ))


def party(tx: View, name: str, agent: str) -> list[str]:
    """The other agents that share by this agreement."""
    mine = family(tx, agent)
    rows = tx.each(LeaseRow, "leases_agreed", name, tx.now)
    return sorted({row.locked_by for row in rows if row.locked_by not in mine})


def by_which(tx: View, agent: str, wanted: Resource) -> LeaseRow | None:
    """The lease by which the agent, or its parent, writes this together with a present holder; None
    if it needs a lease of its own."""
    mine = family(tx, agent)
    rows = leases_near(tx, wanted)
    rows = [row for row in rows if row.agreed_as is not None and row.expires_at > tx.now]
    for row in rows:
        if row.locked_by in mine and within(_resource(row), wanted) and any(
            other.agreed_as == row.agreed_as and other.locked_by not in mine
            and overlaps(_resource(other), wanted) for other in rows
        ):
            return row
    return None


def names_of(rows: Iterable[LeaseRow], agents: set[str]) -> set[str]:
    """The agreements by which one of these agents shares, of these leases."""
    return {row.agreed_as for row in rows if row.locked_by in agents and row.agreed_as is not None}


def tell_of_write(
    tx: Tx, agent: str, path: str, asked: Resource, regions: list[str] | None
) -> None:
    """Tell the other parties of an agreement that the agent has written the file, with its regions
    where they are known."""
    mine = family(tx, agent)
    rows = leases_near(tx, asked)
    rows = [row for row in rows if row.expires_at > tx.now and overlaps(_resource(row), asked)]
    names = names_of(rows, mine)
    fields: dict[str, str] = {}
    for row in rows:
        if row.agreed_as in names and row.locked_by not in mine:
            fields.setdefault(row.locked_by, str(row.agreed_as))
    what = f" ({listed(regions, 8)})" if regions else ""
    for other, name in fields.items():
        notices.post(
            tx, other, "written",
            f"{agent} has written {shown(path)}{what}, which you share ({name}). Read it again "
            "before you write it.", resource=path, by=agent, regions=regions or [], agreed_as=name,
        )


# ------------------------------------------------------------ parts


def _beside(tx: Tx, lease: LeaseRow, name: str) -> list[LeaseRow]:
    """Live leases of others that this one could not go beside, were it shared by this agreement."""
    resource = _resource(lease)
    rows = leases_near(tx, resource)
    return [row for row in rows if row.expires_at > tx.now and rule.conflicts(
        resource, "shared", lease.locked_by, row, name)]


def _check_same_files(row: UnlockRow, asked: Resource, leases: Sequence[LeaseRow], me: str) -> None:
    """Check that both sides share the same files.

    Raises:
        Refusal: BAD_TRANSITION.
    """
    if asked.kind == "key":
        raise _cannot(row, me, "what is no file has one owner at a time")
    for lease in leases:
        if not same_for_both(_resource(lease), asked):
            raise _cannot(
                row, me, f"{row.holder} holds {shown(lease.file_path)}, and {row.requested_by} "
                f"asks for {shown(asked.name)}: what two share is the same for both")


def _cannot(row: UnlockRow, me: str, why: str, instead: str = "approve") -> Refusal:
    return Refusal(
        Code.BAD_TRANSITION, f"{shown(row.resource)} cannot be shared as {row.request_id} asks: "
        f"{why}. {row.request_id} stays open, and nothing was changed.",
        next=f"`coord request {instead} {row.request_id} {me}`, or reject it with a reason.",
    )


def _is(row: LeaseRow, asked: Resource) -> bool:
    return (row.kind, row.scope, row.file_path) == (asked.kind, asked.scope, asked.name)


def _resource(row: LeaseRow) -> Resource:
    return rule.as_resource(row.file_path, row.kind, row.scope)
