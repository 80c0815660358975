"""Tasks of a text that were added before, from an earlier version of it: told by their titles.

So a file to which somebody has added a line can be given again, and what is done stays done.
Decides and tells; adds and changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from coordinator.kernel import tasks
from coordinator.slices.backlog.task_fields import Item
from coordinator.store.ledger import View
from coordinator.store.rows import TaskRow
from coordinator.words.texts import quoted

#: Sentences of one kind.
TOLD_MAX = 5
_OVER = ("done", "cancelled")


def among(view: View, items: Sequence[Item], names: Sequence[str]) -> dict[int, TaskRow]:
    """By the place of an item in the text: the task that it is already. Of several with one title
    the first is the first; what is over is another task where it has another prompt."""
    rows = {task.task_id: task
            for task in view.each_of(TaskRow, "task_get", dict.fromkeys(names))}
    by_title: defaultdict[str, list[TaskRow]] = defaultdict(list)
    for row in rows.values():
        by_title[_plain(row.title)].append(row)
    result: dict[int, TaskRow] = {}
    for n, item in enumerate(items):
        left = by_title[_plain(item.title)]
        same = next((row for row in left if row.state not in _OVER
                     or item.prompt.strip() == row.prompt.strip()), None)
        if same is not None:
            left.remove(same)
            result[n] = same
    return result


def remarks(view: View, items: Sequence[Item], names: Sequence[str],
            found: dict[int, TaskRow]) -> list[str]:
    """What whoever has changed the text should know: what in it does not count, and what is not in
    it any more."""
    other = [row.task_id for n, row in found.items()
             if row.state not in _OVER and _differs(view, items[n], row)]
    task_ids = {row.task_id for row in found.values()}
    unnamed = (name for name in dict.fromkeys(names) if name not in task_ids)
    gone = [row for row in view.each_of(TaskRow, "task_get", unnamed) if row.state not in _OVER]
    sentences = [f"{name} stays as it was added, and the text says otherwise now: `coord task edit "
            f"{name}`." for name in other[:TOLD_MAX]]
    sentences += [f"{row.task_id} ({quoted(row.title, 40)}) is not in the text any more, and "
                  "stays in "
                  f"the backlog: `coord task cancel {row.task_id}` takes it out."
                  for row in gone[:TOLD_MAX]]
    left = max(0, len(other) - TOLD_MAX) + max(0, len(gone) - TOLD_MAX)
    return [*sentences, f"And {left} more like these."] if left else sentences


def _plain(title: str) -> str:
    return " ".join(title.split())


def _differs(view: View, item: Item, row: TaskRow) -> bool:
    shown = tasks.reply(view, row).resources
    return item.prompt.strip() != row.prompt.strip() or {
        resource.removeprefix("./") for resource in item.resources} != set(shown)
