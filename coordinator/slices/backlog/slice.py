"""The backlog's operations, its answers to the kernel's hooks, and its dead letters."""

from __future__ import annotations

import msgspec

from coordinator.kernel import tasks
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.hooks import Slice
from coordinator.kernel.json_values import NULL
from coordinator.kernel.operations import Operation
from coordinator.kernel.retry_queue import DeadKind, Page
from coordinator.kernel.use_cases import read, read_apart, take_work, write
from coordinator.slices.backlog import (
    backlog,
    claims,
    dispatch,
    editing,
    limit_reached,
    task_lists,
)
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import TaskRow
from coordinator.words import requests as rq


class DeadTasks(DeadKind[TaskRow]):
    """Tasks that failed too often."""

    prefix = "T-"

    def list_newest(self, view: View, page: Page, kind: str | None) -> list[TaskRow]:
        return view.each(TaskRow, "tasks_dead_newest", *page) if kind in (None, "task") else []

    def find(self, view: View, text: str) -> TaskRow:
        return tasks.find(view, text)

    def describe(self, view: View, row: TaskRow, whole: bool = False) -> rq.DeadLetter:
        content = msgspec.Raw(msgspec.json.encode(tasks.reply(view, row))) if whole else NULL
        return rq.DeadLetter(
            id=row.task_id, kind="task", what=row.title, agent=None, attempts=row.attempts,
            why=row.result or "", since=row.updated_at, content=content,
        )

    def retry(self, svc: Service, tx: Tx, actor: Actor, row: TaskRow) -> None:
        tasks.move(tx, row, "retry", attempts=0, why="put back by a person")

    def drop(self, tx: Tx, row: TaskRow) -> None:
        tasks.move(tx, row, "cancel", why="given up by a person", result=row.result)


class Backlog(Slice):
    """See `kernel.hooks.Slice`."""

    dead_kind = DeadTasks()
    operations = (
        Operation(rq.LimitReached, write(limit_reached.reached)),
        Operation(rq.TaskAdd, write(backlog.add)),
        Operation(rq.Tasks, read(task_lists.listing, apart=task_lists.looks_at_all)),
        Operation(rq.TaskShow, read(task_lists.show)),
        Operation(rq.TaskEdit, write(editing.edit)),
        Operation(rq.TaskClaim, take_work(claims.claim, claims.claim_needs)),
        Operation(rq.TaskDone, write(claims.done)),
        Operation(rq.TaskFail, write(claims.fail)),
        Operation(rq.TaskOutcome, write(claims.outcome)),
        Operation(rq.TaskRetry, write(claims.retry)),
        Operation(rq.TaskCancel, write(claims.cancel)),
        Operation(rq.TaskImport, write(backlog.import_text)),
        Operation(rq.TaskExport, read_apart(backlog.export_text)),
    )

    def offer_task(self, svc: Service, tx: Tx, agent: str) -> TaskRow | None:
        chosen = dispatch.choose(svc, tx, agent, beside=True)
        return chosen[0] if chosen is not None else None

    def add_to_status(self, svc: Service, view: View, actor: Actor, reply: rq.StatusReply) -> None:
        reply.tasks = task_lists.counts(view)
