"""Dead letters: what was tried as often as it may be. One list of tasks, changes and steps; each is
retried or dropped by the room that it belongs to."""

from __future__ import annotations

import msgspec

from coordinator.kernel import tasks
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.leasing import leases
from coordinator.looking.facts import AnyNeed, Whole
from coordinator.rules.backlog import told_state
from coordinator.slices.state import changes, values
from coordinator.slices.steps import steps
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import BlockedStepRow, ChangeRow, TaskRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: Who acts where a person does and gives no name.
PERSON = "a person"


def listing(svc: Service, view: View, actor: Actor, req: rq.Dead) -> rq.DeadList:
    """See `requests.Dead`."""
    limit = min(req.limit, 1000)
    since, _, last = (req.after or "").partition(" ")
    page = since, last, limit + 1
    found: list[rq.DeadLetter] = []
    if req.kind in (None, "task"):
        found += (_of_task(view, task) for task in view.each(TaskRow, "tasks_dead_newest", *page))
    if req.kind in (None, "change"):
        found += (_of_change(view, row)
                  for row in view.each(ChangeRow, "changes_dead_newest", *page))
    found += (_of_step(view, row)
              for row in view.each(BlockedStepRow, "steps_dead_newest", *page, req.kind))
    found.sort(key=lambda one: (one.since, one.id), reverse=True)
    items = found[:limit]
    return rq.DeadList(items=items, next=f"{items[-1].since} {items[-1].id}"
                       if len(found) > limit else None)


def show(svc: Service, view: View, actor: Actor, req: rq.DeadShow) -> rq.DeadLetter:
    """See `requests.DeadShow`."""
    row = _find(view, req.id)
    if isinstance(row, TaskRow):
        return _of_task(view, row, whole=True)
    if isinstance(row, ChangeRow):
        return _of_change(view, row, whole=True)
    return _of_step(view, row, whole=True)


def retry_needs(svc: Service, view: View, req: rq.DeadRetry) -> list[AnyNeed]:
    """What to look at before a dead letter is tried again: the files of a place in line."""
    try:
        row = _find(view, req.id)
    except Refusal:
        return []
    if not isinstance(row, BlockedStepRow) or row.kind != "acquire":
        return []
    names: list[str] = msgspec.json.decode(row.resources)
    return [Whole(name) for name in names if ":" not in name or "/" in name]


def retry(svc: Service, tx: Tx, actor: Actor, req: rq.DeadRetry) -> rq.DeadLetter:
    """See `requests.DeadRetry`."""
    row = _find(tx, req.id)
    if isinstance(row, TaskRow):
        told = _of_task(tx, row)
        tasks.move(tx, row, "retry", attempts=0, why="put back by a person")
    elif isinstance(row, ChangeRow):
        told = _of_change(tx, row)
        changes.revive(tx, row, PERSON)
    elif row.kind == "acquire":
        told = _of_step(tx, row)
        _stand_in_line(svc, tx, actor, row)
    else:
        told = _of_step(tx, row)
        steps.revive(svc, tx, row)
    return told


def drop(svc: Service, tx: Tx, actor: Actor, req: rq.DeadDrop) -> rq.DeadLetter:
    """See `requests.DeadDrop`."""
    row = _find(tx, req.id)
    if isinstance(row, TaskRow):
        told = _of_task(tx, row)
        tasks.move(tx, row, "cancel", why="given up by a person", result=row.result)
    elif isinstance(row, ChangeRow):
        told = _of_change(tx, row)
        changes.drop(tx, row, PERSON)
    else:
        told = _of_step(tx, row)
        steps.drop(tx, row)
    return told


def _stand_in_line(svc: Service, tx: Tx, actor: Actor, row: BlockedStepRow) -> None:
    """The agent stands in line again, or gets at once what it asked for.

    Raises:
        Refusal: it has left.
    """
    request = msgspec.convert(steps.content_of(tx, row), rq.Acquire)
    request.reentrant = True
    given = leases.acquire(svc, tx, actor, request)
    if isinstance(given, Refusal) and given.facts.get("acquisition_id") is None:
        raise given
    steps.finished(tx, row)


def _find(view: View, text: str) -> TaskRow | ChangeRow | BlockedStepRow:
    """The dead letter with this id.

    Raises:
        Refusal: UNKNOWN_TASK, UNKNOWN_CHANGE, UNKNOWN_STEP, BAD_TRANSITION.
    """
    name = text.strip().upper()
    row: TaskRow | ChangeRow | BlockedStepRow
    if name.startswith(changes.PREFIX):
        row = changes.find(view, name)
    elif name.startswith(steps.PREFIX):
        row = steps.find(view, name)
    else:
        row = tasks.find(view, text.strip())
        name = row.task_id
    if row.state != "dead":
        raise Refusal(
            Code.BAD_TRANSITION, f"{name} is {told_state(row.state)}, not dead; it stays so.",
            next="`coord dead list` shows what was given up.", state=row.state,
        )
    return row


def _of_task(view: View, row: TaskRow, *, whole: bool = False) -> rq.DeadLetter:
    content = msgspec.Raw(msgspec.json.encode(tasks.reply(view, row))) if whole else values.NULL
    return rq.DeadLetter(
        id=row.task_id, kind="task", what=row.title, agent=None, attempts=row.attempts,
        why=row.result or "", since=row.updated_at, content=content,
    )


def _of_change(view: View, row: ChangeRow, *, whole: bool = False) -> rq.DeadLetter:
    return rq.DeadLetter(
        id=row.change_id, kind="change", what=row.key, agent=row.asked_by, attempts=row.attempts,
        why=row.why, since=row.closed_at or row.asked_at, content=_kept(view, row.content, whole),
    )


def _of_step(view: View, row: BlockedStepRow, *, whole: bool = False) -> rq.DeadLetter:
    return rq.DeadLetter(
        id=row.step_id, kind=row.kind, what=row.name, agent=row.agent, attempts=row.attempts,
        why=row.why, since=row.closed_at or row.asked_at, content=_kept(view, row.content, whole),
    )


def _kept(view: View, content: str, whole: bool) -> msgspec.Raw:
    text = view.blob(content) if whole else None
    return msgspec.Raw(text) if text is not None else values.NULL
