"""Leasing a task, asking for it, and handing it over: `task:T-3`.

A claim becomes a real lease only when somebody queues for the task, because the queue holds
requests for leases. A holder that agrees to give up its task hands over the claim with all its
leases, in one transaction.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from coordinator.kernel import tasks
from coordinator.kernel.core import Service, ms
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing.grant import end, hand_over
from coordinator.kernel.leasing.located import Wanted
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.kernel.tasks import NO_TOKEN, task_of
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, UnlockRow
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, is_task, task_resource


def check_known(tx: Tx, located: Sequence[Located]) -> None:
    """Check that a named task exists.

    Raises:
        Refusal: UNKNOWN_TASK.
    """
    for located_resource in located:
        if is_task(located_resource.resource):
            tasks.find(tx, task_of(located_resource.resource.scope))


def with_itself(tx: Tx, task: str, wanted: Sequence[Wanted]) -> list[Wanted]:
    """Add the task itself to what blocks a claim, where somebody holds it or waits for it. A claim
    leases only what the task needs."""
    if not tx.present().task_locks:
        return list(wanted)
    return [*wanted, (Located(task_resource(task), None, None), "exclusive")]


def make_real(tx: Tx, leases: list[LeaseRow]) -> None:
    """Turn claims among these into real leases, because somebody is about to wait for them."""
    for position, row in enumerate(leases):
        if row.fencing_token == NO_TOKEN:
            token = tx.number("fencing")
            tx.record(
                ev.LeaseGranted(
                    fencing_token=token, resource=row.file_path, agent=row.locked_by,
                    expires_at=row.expires_at, lease_kind=row.kind, mode=row.mode, scope=row.scope,
                    acquisition_id=f"A-{token}", ttl_ms=row.ttl_ms, max_until=row.max_until,
                    description=row.task_description, task=row.task_id,
                    purpose=row.purpose,
                )
            )
            leases[position] = next(lease for lease
                                    in tx.each(LeaseRow, "leases_at_scope", row.scope)
                if lease.fencing_token == token)


def check_apart(tx: Tx, asked: UnlockRow, handed: Sequence[LeaseRow], me: str) -> None:
    """Check that the holder of a task keeps nothing that overlaps what is handed over. Otherwise
    both would hold that.

    Raises:
        Refusal: BAD_TRANSITION.
    """
    goes = {row.fencing_token for row in handed}
    for row in handed:
        resource = as_resource(row.file_path, row.kind, row.scope)
        kept = next((other for other in leases_near(tx, resource)
                     if other.locked_by == asked.holder and other.fencing_token not in goes
                     and other.expires_at > tx.now and "exclusive" in (other.mode, row.mode)
                     and other.file_path != row.file_path
                     and overlaps(resource, as_resource(other.file_path, other.kind, other.scope))
                     ), None)
        if kept is not None:
            raise Refusal(
                Code.BAD_TRANSITION,
                f"{asked.holder} holds {kept.file_path}, too, beside {row.file_path} of "
                f"{task_of(asked.scope)}: both would hold a part of that. {asked.request_id} stays "
                "open, and nothing was changed.", resource=kept.file_path,
                next=f"`coord unlock {shlex.quote(kept.file_path)} --agent {asked.holder}`, then "
                f"`coord request approve {asked.request_id} {me}`.")


def pass_claim(svc: Service, tx: Tx, asked: UnlockRow) -> bool:
    """Pass the claim of a task, with its leases, to the asker. Returns whether there was a claim.
    """
    task = tasks.find(tx, task_of(asked.scope))
    if task.claimed_by != asked.holder:
        return False
    rows = {}
    for row in tx.each(LeaseRow, "leases_of_task", task.task_id):
        if row.locked_by != asked.holder:
            continue
        for other in tx.each(LeaseRow, "leases_at_scope", row.scope):
            if other.locked_by == asked.requested_by:  # shared by both; one each is enough
                end(tx, other)
            elif other.locked_by == asked.holder and other.file_path == row.file_path:
                rows[other.fencing_token] = other  # in other working trees, too: one has the name
    for row in rows.values():
        hand_over(tx, row, asked.requested_by)
    ttl_ms = task.ttl_ms or ms(svc.settings.leases.ttl_s)
    tasks.move(
        tx, task, "hand", agent=asked.holder, why=f"handed to {asked.requested_by}",
        claimed_by=asked.requested_by, claimed_at=tx.now, claim_until=tx.later(ttl_ms),
        ttl_ms=ttl_ms, claim_max=tx.later(max(ttl_ms, ms(svc.settings.leases.max_hold_s))),
    )
    notices.post(
        tx, asked.holder, "handed",
        f"{task.task_id} is {asked.requested_by}'s now, with all its leases ({asked.request_id}). "
        "Do not go on with it, and write none of its files.",
        task=task.task_id, request=asked.request_id,
    )
    return True
