"""A task's place in the order in which tasks are given out: what its priority, and those of the
tasks before it, have to be for it. Looks only; `editing` records.
"""

from __future__ import annotations

from coordinator.kernel import tasks
from coordinator.rules import placing
from coordinator.rules.backlog import SETTLED, told_state
from coordinator.store.ledger import View
from coordinator.store.rows import ListedRow, TaskRow
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
