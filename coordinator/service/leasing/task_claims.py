"""What the claim of a task means: for those who ask for the task itself (`task:T-3`), that whoever
has claimed it holds it, which is derived from the claim and kept nowhere; for its agent, that what
the task needs stays leased until its end."""

from __future__ import annotations

from coordinator.rules import leases as rule
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, TaskRow
from coordinator.words.resource_names import task_resource

#: The fencing token of a lease that is only a claim.
NO_TOKEN = 0


def task_of(scope: str) -> str:
    """The id in the scope of a task."""
    return scope.split("/")[2]


def as_lease(view: View, scope: str) -> LeaseRow | None:
    """The claim of the task with this scope, as the lease that it amounts to; None: nobody's."""
    raw = view.row("task_get", task_of(scope))
    task = TaskRow(*raw) if raw is not None else None
    if task is None or task.claimed_by is None:
        return None
    until = task.claim_until or view.now
    return LeaseRow(
        fencing_token=NO_TOKEN, file_path=task_resource(task.task_id).name,
        locked_by=task.claimed_by, locked_at=task.claimed_at or view.now,
        task_description=task.title, expires_at=until, kind="key", mode="exclusive", scope=scope,
        slot="", inode=None, worktree=None, content_hash=None, acquisition_id="",
        task_id=task.task_id, ttl_ms=task.ttl_ms or 1, max_until=task.claim_max or until,
    )


def holder_of(view: View, task: TaskRow) -> tuple[str, str] | None:
    """Who holds a task now, and since when: by its claim, or by a lease on it."""
    if task.claimed_by is not None and task.claimed_at is not None:
        return task.claimed_by, task.claimed_at
    for raw in view.rows("leases_at_scope", task_resource(task.task_id).scope):
        row = LeaseRow(*raw)
        if row.expires_at > view.now:
            return row.locked_by, row.locked_at
    return None


def take_over(tx: Tx, row: LeaseRow, baselines: list[tuple[str, str]] | None) -> None:
    """An agent gives back what it had leased before it claimed a task that needs it, too: the task
    goes on with a lease of its own, judged from where that one began (`baselines`: what lay below
    it then, as `grant.baselines` gave it before that lease ended)."""
    need = tx.row("claim_that_needs", row.locked_by, row.file_path, row.kind, tx.now)
    if need is None:
        return
    task, mode, until, most, ttl_ms = need
    kind = rule.as_resource(row.file_path, row.kind, row.scope).kind
    if row.agreed_as is not None:
        mode = row.mode
    token = tx.number("fencing")
    tx.record(ev.LeaseGranted(
        fencing_token=token, resource=row.file_path, agent=row.locked_by, expires_at=until,
        lease_kind=row.kind, mode=mode, scope=row.scope, acquisition_id=f"A-{token}",
        ttl_ms=ttl_ms, max_until=most, description=row.task_description, inode=row.inode,
        slot=rule.slot(kind, row.file_path, mode, row.locked_by), task=task,
        worktree=row.worktree, content_hash=row.content_hash, baselines=baselines,
        agreed_as=row.agreed_as,
    ))
