"""Leases that move between a session and its sub-agents.

A sub-agent is a holder of its own. When it wants to write a file that its parent holds, the lease
moves down to it, unless another holder or an unfinished edit of the parent blocks that. The lease
moves up again when the sub-agent commits or ends. A lease of a directory or a glob stays with the
parent. The sub-agent then writes in its parent's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel.leasing import grant
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store.ledger import Tx
from coordinator.store.rows import AgentRow, LeaseRow
from coordinator.words.resource_names import Located

#: Kinds of the leases that move between a session and its sub-agents.
MOVING = frozenset({"file", "region"})


def find_parent(tx: Tx, agent: str) -> str | None:
    """The parent of a sub-agent; None if it is none."""
    row = tx.agent(agent)
    return row.parent if row is not None else None


def choose_holder(tx: Tx, agent: str, located: Sequence[Located]) -> tuple[str, list[LeaseRow]]:
    """The agent in whose name `agent` writes these files, and the parent's leases that move down to
    it. A sub-agent writes in its parent's name if the parent holds a directory or a glob around the
    files. The leases move with the grant (`leases.acquire_located`), so a refusal leaves them where
    they are."""
    parent = find_parent(tx, agent)
    if parent is None:
        return agent, []
    moving: dict[int, LeaseRow] = {}
    for file in located:
        for lease in leases_near(tx, file.resource):
            if (lease.locked_by == parent and lease.kind in MOVING and lease.expires_at > tx.now
                    and overlaps(as_resource(lease.file_path, lease.kind, lease.scope),
                                 file.resource)):
                moving[lease.fencing_token] = lease
    held = {lease.scope for lease in moving.values()}
    for lease in tx.each(LeaseRow, "leases_of_holder", parent):
        if lease.kind in ("dir", "glob") and lease.expires_at > tx.now and any(
            overlaps(as_resource(lease.file_path, lease.kind, lease.scope), file.resource)
            for file in located if file.resource.scope not in held
        ):
            return parent, []
    return agent, list(moving.values())


def pass_leases_up(tx: Tx, agent: str) -> None:
    """Pass a sub-agent's leases to its parent, whose process is about to commit. They move down
    again when the sub-agent writes the files again."""
    parent = _find_present_parent(tx, agent)
    if parent is not None:
        for lease in tx.each(LeaseRow, "leases_of_holder", agent):
            if lease.kind in MOVING and lease.expires_at > tx.now:
                grant.lend(tx, lease, parent.agent)


def give_leases_back(tx: Tx, agent: str) -> None:
    """Give leases back to the parent of a sub-agent that ends: the leases that the parent lent, and
    those that belong to a task."""
    parent = _find_present_parent(tx, agent)
    if parent is None:
        return
    for lease in tx.each(LeaseRow, "leases_of_holder", agent):
        if (lease.expires_at > tx.now and lease.kind in MOVING
                and (lease.task_id is not None or lease.lent_by == parent.agent)):
            grant.hand_over(tx, lease, parent.agent)


def _find_present_parent(tx: Tx, agent: str) -> AgentRow | None:
    """The parent of a sub-agent, if it is still there."""
    name = find_parent(tx, agent)
    row = tx.agent(name) if name is not None else None
    return row if row is not None and row.state != "gone" else None
