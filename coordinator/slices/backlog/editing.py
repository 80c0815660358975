"""Changing the text of a task, by a person, as long as nobody works on it and it is not history.

A task keeps its number, its attempts and its blackboard. Its dependencies may be changed, too. The
state follows, and a circle of dependencies is refused.

The module also moves a task to another place in the order of dispatch: it computes the priorities
that this task and the tasks before it need.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from coordinator.kernel import tasks, unserved
from coordinator.kernel.core import Actor, Service
from coordinator.rules import placing
from coordinator.rules.backlog import SETTLED, told_state
from coordinator.rules.pools import read_need
from coordinator.slices.backlog.backlog import Draft, check_priority, checked
from coordinator.slices.backlog.events import TaskEdited
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import ListedRow, NeedRow, TaskRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: Tasks whose priorities are raised for the place of another.
RAISED_MAX = 100


def priorities_for(view: View, task: TaskRow, req: rq.TaskEdit) -> dict[str, int]:
    """The priorities that give a task the place that is asked for: its own, and of the tasks before
    it as far as they have to be raised.

    Raises:
        Refusal: INVALID, UNKNOWN_TASK, BAD_TRANSITION; LIMIT: too many would have to be raised.
    """
    if (req.before is not None) + (req.behind is not None) + (req.priority is not None) != 1:
        raise Refusal(Code.INVALID, "A task has one place: by its priority, before or behind "
                      "another. Nothing was changed.", next="Give one of the three.")
    named = tasks.find(view, req.before or req.behind or "")
    if named.task_id == task.task_id or named.state in SETTLED:
        why = "it is the same" if named.task_id == task.task_id else (
            f"{named.task_id} is {told_state(named.state)}")
        raise Refusal(Code.BAD_TRANSITION, f"{task.task_id} has no place beside {named.task_id}: "
                      f"{why}. Nothing was changed.", next="Name one that waits.")
    here = placing.Ranked(named.task_id, named.priority, named.n)
    if req.before is not None:
        later: placing.Ranked | None = here
        earlier = _beside(view, "tasks_earlier", task, here, RAISED_MAX + 1)
    else:
        later = next(iter(_beside(view, "tasks_later", task, here, 1)), None)
        earlier = [here, *_beside(view, "tasks_earlier", task, here, RAISED_MAX)]
    own, raised = placing.make_room(placing.Ranked(task.task_id, task.priority, task.n),
                                    earlier, later)
    if len(raised) > RAISED_MAX:
        raise Refusal(
            Code.LIMIT, f"More than {RAISED_MAX} tasks before that place have the priority of "
            "those behind it, and would have to be raised. Nothing was changed.",
            next=f"Give {task.task_id} another priority than theirs.")
    return {**raised, task.task_id: own}


def _beside(view: View, statement: str, task: TaskRow, here: placing.Ranked,
            limit: int) -> list[placing.Ranked]:
    """Those that wait before a task, or behind it, nearest first; not the one that is placed."""
    return [placing.Ranked(row.task_id, row.priority, row.n) for row in
            view.each(ListedRow, statement, task.task_id, here.priority, here.n, limit)]


NOTHING = "Nothing was changed."
#: A resource of a task: its name, kind, scope and mode.
_Resource = tuple[str, str, str, str]
#: How many tasks before another are checked for a circle of dependencies, because others' requests
#: wait meanwhile.
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
    _check_editable(task, req)
    shown = tasks.reply(tx, task)
    placed = {} if req.before is None and req.behind is None else priorities_for(tx, task, req)
    priority = placed.pop(task.task_id, shown.priority) if req.priority is None else req.priority
    for priority_of_other in placed.values():
        check_priority(priority_of_other, NOTHING)
    draft = _merge(shown, req, priority)
    title, attempts, resources = checked(svc, tx, draft, req.cwd, NOTHING)
    rows = [msgspec.structs.astuple(need)
            for need in tx.each(NeedRow, "task_resources_of", task.task_id)]
    named, needs = _split(rows)
    wanted, pools = _split(resources)
    resources = [*(named if req.resources is None else wanted),
                 *(needs if req.needs is None else pools)]
    after = shown.after if req.after is None else _after(tx, task, req.after)
    event = TaskEdited(
        task=task.task_id, title=title, prompt=draft.prompt, priority=draft.priority,
        attempts_max=attempts, resources=resources, after=after,
        fields=[],
    )
    event.fields = [
        name for name, changed in (
            ("title", title != task.title), ("prompt", draft.prompt != task.prompt),
            ("resources", sorted(_split(resources)[0]) != sorted(named)),
            ("needs", sorted(_split(resources)[1]) != sorted(needs)),
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


def _check_editable(task: TaskRow, req: rq.TaskEdit) -> None:
    """Whether it may be changed now, and is what was read."""
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


def _merge(shown: rq.Task, req: rq.TaskEdit, priority: int) -> Draft:
    """The task as it is to be."""
    return Draft(
        title=shown.title if req.title is None else req.title,
        prompt=shown.prompt if req.prompt is None else req.prompt,
        resources=[] if req.resources is None else req.resources,
        needs=[] if req.needs is None else req.needs,
        priority=priority,
        attempts_max=shown.attempts_max if req.attempts_max is None else req.attempts_max,
    )


def _split(resources: Sequence[_Resource]) -> tuple[list[_Resource], list[_Resource]]:
    """A task's resources without those that stand for any value of a pool, and those."""
    parts: tuple[list[_Resource], list[_Resource]] = ([], [])
    for name, kind, scope, mode in resources:
        parts[read_need(name, mode) is not None].append((name, kind, scope, mode))
    return parts


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
