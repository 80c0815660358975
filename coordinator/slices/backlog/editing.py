"""Changing what a task says, by a person: as long as nobody works on it, and it is not history.

A task keeps its number, its attempts and its blackboard. What it comes after may be changed, too;
its state follows, and a circle is refused.
"""

from __future__ import annotations

import msgspec

from coordinator.kernel import tasks, unserved
from coordinator.kernel.core import Actor, Service
from coordinator.rules.backlog import SETTLED, told_state
from coordinator.slices.backlog.backlog import Draft, check_priority, checked
from coordinator.slices.backlog.events import TaskEdited
from coordinator.slices.backlog.placing import priorities_for
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import NeedRow, TaskRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

NOTHING = "Nothing was changed."
#: Tasks before another that are looked at for a circle: others' requests wait meanwhile.
BEFORE_MAX = 5_000
#: What a task that cannot be changed would need first.
_FIRST = {
    "claimed": "`coord tell {by} TEXT --task {task}` reaches the agent that works on it.",
    "done": "`coord task add` adds another one.",
    "cancelled": "`coord task retry {task}` puts it back.",
}


def edit(svc: Service, tx: Tx, actor: Actor, req: rq.TaskEdit) -> rq.Task:
    """See `requests.TaskEdit`."""
    task = tasks.find(tx, req.task)
    if task.state in SETTLED:
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{task.task_id} is {told_state(task.state)}"
            f"{f' by {task.claimed_by}' if task.claimed_by else ''}; "
            f"what it says cannot be changed now. {NOTHING}", state=task.state,
            next=_FIRST[task.state].format(task=task.task_id, by=task.claimed_by),
        )
    if req.seen is not None and req.seen != task.updated_at:
        raise Refusal(
            Code.VERSION_CHANGED, f"{task.task_id} was changed at {task.updated_at}, after you had "
            f"read it. {NOTHING}", next=f"`coord task show {task.task_id}`, and change it again.",
            updated_at=task.updated_at,
        )
    shown = tasks.reply(tx, task)
    placed = {} if req.before is None and req.behind is None else priorities_for(tx, task, req)
    priority = placed.pop(task.task_id, shown.priority) if req.priority is None else req.priority
    for priority_of_other in placed.values():
        check_priority(priority_of_other, NOTHING)
    draft = Draft(
        title=shown.title if req.title is None else req.title,
        prompt=shown.prompt if req.prompt is None else req.prompt,
        resources=[] if req.resources is None else req.resources,
        priority=priority,
        attempts_max=shown.attempts_max if req.attempts_max is None else req.attempts_max,
    )
    title, attempts, resources = checked(svc, tx, draft, req.cwd, NOTHING)
    rows = [msgspec.structs.astuple(need)
            for need in tx.each(NeedRow, "task_resources_of", task.task_id)]
    after = shown.after if req.after is None else _after(tx, task, req.after)
    event = TaskEdited(
        task=task.task_id, title=title, prompt=draft.prompt, priority=draft.priority,
        attempts_max=attempts, resources=rows if req.resources is None else resources, after=after,
        fields=[],
    )
    event.fields = [
        name for name, changed in (
            ("title", title != task.title), ("prompt", draft.prompt != task.prompt),
            ("resources", sorted(event.resources) != sorted(rows)),
            ("priority", draft.priority != task.priority),
            ("after", sorted(after) != sorted(shown.after)),
            ("attempts_max", attempts != task.attempts_max),
        ) if changed
    ]
    for name, raised in placed.items():
        _raise(tx, name, raised)
    if event.fields:
        tx.record(event)
        unserved.take_up(tx, "task", task.task_id)
        tx.effects.offers = True
        tasks.settle(tx, task.task_id, "what it comes after was changed")
    return tasks.reply(tx, tasks.find(tx, task.task_id))


def _raise(tx: Tx, name: str, priority: int) -> None:
    """Give another task this priority, so that one has its place behind it."""
    task = tasks.find(tx, name)
    rows = [msgspec.structs.astuple(need)
            for need in tx.each(NeedRow, "task_resources_of", task.task_id)]
    tx.record(TaskEdited(
        task=task.task_id, title=task.title, prompt=task.prompt, priority=priority,
        attempts_max=task.attempts_max, resources=rows, after=tasks.reply(tx, task).after,
        fields=["priority"],
    ))


def _after(tx: Tx, task: TaskRow, names: list[str]) -> list[str]:
    """The tasks that these are.

    Raises:
        Refusal: UNKNOWN_TASK; INVALID: they wait for the task itself.
    """
    result = list(dict.fromkeys(tasks.find(tx, name).task_id for name in names))
    for name in result:
        way = _way(tx, name, task.task_id)
        if way:
            named = " -> ".join([task.task_id, *way])
            raise Refusal(
                Code.INVALID, f"These tasks would wait for each other: {named}. {NOTHING}",
                next="Remove one of these `after`.", cycle=[task.task_id, *way],
            )
    return result


def _way(view: View, begin: str, end: str) -> list[str]:
    """From one task to another, along what each comes after; empty: there is no way.

    Raises:
        Refusal: LIMIT: too many tasks come before it to be looked at in one transaction.
    """
    came_from = {begin: ""}
    todo = [begin]
    while todo:
        name = todo.pop()
        if name == end:
            way = [name]
            while came_from[way[0]]:
                way.insert(0, came_from[way[0]])
            return way
        if len(came_from) > BEFORE_MAX:
            raise Refusal(
                Code.LIMIT, f"More than {BEFORE_MAX:,} tasks come before {begin}: whether they "
                f"wait for {end} was not looked at. {NOTHING}",
                next="`coord task add` adds a task after it, which can close no circle.",
            )
        for after in view.values("task_after_of", name):
            if str(after) not in came_from:
                came_from[str(after)] = name
                todo.append(str(after))
    return []
