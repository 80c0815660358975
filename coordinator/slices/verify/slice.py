"""Verifications of finished work: its operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from coordinator.kernel.core import Actor, Service
from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, write
from coordinator.slices.verify import finished_work, verifications
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import ReviewRow, TaskRow
from coordinator.words import requests as rq


class Verify(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.Verify, write(verifications.ask)),
        Operation(rq.Verifications, read(verifications.listing)),
    )

    def look_at_finished(self, svc: Service, tx: Tx, task: TaskRow,
                         landed: str | None) -> Callable[[], None] | None:
        finished = finished_work.look(svc, tx, task, landed)
        return None if finished is None else partial(
            finished_work.note, tx, task.task_id, str(task.claimed_by), finished)

    def kept_as_done(self, tx: Tx, task: TaskRow, row: ReviewRow) -> None:
        finished_work.note_kept(tx, task.task_id, row)

    def add_to_status(self, svc: Service, view: View, actor: Actor, reply: rq.StatusReply) -> None:
        verified = verifications.listing(svc, view, actor, rq.Verifications(limit=1))
        reply.verified = verified if verified.command or verified.items else None

    def warn(self, svc: Service, view: View) -> list[str]:
        return verifications.warnings(svc, view)
