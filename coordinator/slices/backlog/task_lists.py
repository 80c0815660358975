"""The backlog as lists: a window in one of two orders, filtered, and everything about one task.

Only what is shown is read. A window of one state by priority is the start of an index, and long
texts are left out of a `brief` list.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

import msgspec

from coordinator.kernel import blackboard, tasks
from coordinator.kernel.core import Actor, Service, split_page
from coordinator.store.ledger import View
from coordinator.store.rows import ListedRow, TaskRow
from coordinator.words import requests as rq

#: Tasks that one list tells of at most; what one task was seen to change; tasks of its chain.
ITEMS_MAX, RESOURCES_MAX, CHAIN_MAX = 5_000, 200, 60


class Window(NamedTuple):
    """Tasks of a list, and what is known of the rest of it."""

    rows: list[TaskRow]
    counts: dict[str, int]
    next: int | None


def listing(svc: Service, view: View, actor: Actor, req: rq.Tasks) -> rq.TaskList:
    """See `requests.Tasks`."""
    limit = min(req.limit, ITEMS_MAX)
    window = _filtered(view, req, limit) if looks_at_all(req) else _whole(view, req, limit)
    items = [tasks.reply(view, row) for row in window.rows]
    if req.brief:
        for item in items:
            item.prompt, item.result = "", None
    return rq.TaskList(items=items, counts=window.counts, next=window.next)


def show(svc: Service, view: View, actor: Actor, req: rq.TaskShow) -> rq.TaskShown:
    """See `requests.TaskShow`."""
    task = tasks.reply(view, tasks.find(view, req.task), full=True,
                       quarantine=svc.settings.review.quarantine)
    task.tried = blackboard.candidates(view, task.task)
    return rq.TaskShown(
        **msgspec.structs.asdict(task), chain=_chain(view, task.task),
        wrote=view.values("task_wrote", task.task, RESOURCES_MAX),
        leased=view.values("task_leased", task.task, RESOURCES_MAX),
    )


def counts(view: View) -> dict[str, int]:
    """Tasks by state."""
    return view.counts("task_counts")


def looks_at_all(req: rq.Tasks) -> bool:
    """Whether every task has to be looked at to tell which ones are asked for."""
    return bool(req.filter) or req.agent is not None or (
        req.order == "priority" and req.after > 0)


def _whole(view: View, req: rq.Tasks, limit: int) -> Window:
    """A window of an index in its own order."""
    window = (limit + 1, req.skip)
    of_state = () if req.state is None else (req.state,)
    if req.order == "arrival":
        rows = view.each(TaskRow, "tasks_in_state" if of_state else "tasks_list",
                         req.after, *window, *of_state)
    else:
        rows = view.each(TaskRow, "tasks_ranked_in_state" if of_state else "tasks_ranked",
                         *window, *of_state)
    chosen, more = split_page(rows, limit)
    return Window(chosen, counts(view), _next(req, limit, chosen[-1].n) if more else None)


def _filtered(view: View, req: rq.Tasks, limit: int) -> Window:
    """A window of the tasks that pass a check of every task."""
    matching = view.each(ListedRow, "tasks_found", req.filter, req.agent)
    of_state = [row for row in matching if req.state in (None, row.state) and row.n > req.after]
    of_state.sort(key=lambda row: (-row.priority if req.order == "priority" else 0, row.n))
    chosen = of_state[req.skip : req.skip + limit]
    more = len(of_state) > req.skip + limit
    return Window(
        [tasks.find(view, row.task_id) for row in chosen],
        dict(Counter(row.state for row in matching)),
        _next(req, limit, chosen[-1].n) if more else None,
    )


def _next(req: rq.Tasks, limit: int, last: int) -> int:
    """The beginning of the next page: after a task's number, or by how many are left out."""
    return last if req.order == "arrival" else req.skip + limit


def _chain(view: View, task: str) -> list[rq.TaskLink]:
    """The dependencies of the task, itself, and its dependents, step by step and the nearest first,
    up to a limit; in the order of their numbers."""
    before = _reached(view, "task_after_of", task)
    names = before | _reached(view, "task_come_after", task)
    if len(names) == 1:
        return []  # it stands for itself
    rows = sorted((tasks.find(view, name) for name in names), key=lambda row: row.n)
    return [
        rq.TaskLink(
            task=row.task_id, title=row.title, state=row.state,
            after=[str(name) for name in view.values("task_after_of", row.task_id)
                   if name in names])
        for row in rows
    ]


def _reached(view: View, statement: str, begin: str) -> set[str]:
    """The task and what is reached from it by a statement, breadth first."""
    names = {begin}
    todo = deque([begin])
    while todo:
        for name in view.values(statement, todo.popleft()):
            if len(names) > CHAIN_MAX // 2:
                return names
            if name not in names:
                names.add(str(name))
                todo.append(str(name))
    return names
