"""A claimed task counts as held by its agent when others ask for the task itself (`task:T-3`).

This follows from the claim and is stored nowhere. For the agent, what the task needs stays leased
until the task ends (`grant.take_over`).
"""

from __future__ import annotations

from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow, TaskRow
from coordinator.words.purposes import CLAIM
from coordinator.words.resource_names import task_resource

#: The fencing token of a lease that is only a claim.
NO_TOKEN = 0


def task_of(scope: str) -> str:
    """The id in the scope of a task."""
    return scope.split("/")[2]


def as_lease(view: View, scope: str) -> LeaseRow | None:
    """The claim of the task with this scope, as a lease; None if nobody has claimed it."""
    task = view.first(TaskRow, "task_get", task_of(scope))
    if task is None or task.claimed_by is None:
        return None
    until = task.claim_until or view.now
    return LeaseRow(
        fencing_token=NO_TOKEN, file_path=task_resource(task.task_id).name,
        locked_by=task.claimed_by, locked_at=task.claimed_at or view.now,
        task_description=task.title, expires_at=until, kind="key", mode="exclusive", scope=scope,
        slot="", inode=None, worktree=None, content_hash=None, acquisition_id="",
        task_id=task.task_id, ttl_ms=task.ttl_ms or 1, max_until=task.claim_max or until,
        purpose=CLAIM,
    )


def holder_of(view: View, task: TaskRow) -> tuple[str, str] | None:
    """The holder of a task and since when, by its claim or by a lease on it."""
    if task.claimed_by is not None and task.claimed_at is not None:
        return task.claimed_by, task.claimed_at
    for row in view.each(LeaseRow, "leases_at_scope", task_resource(task.task_id).scope):
        if row.expires_at > view.now:
            return row.locked_by, row.locked_at
    return None
