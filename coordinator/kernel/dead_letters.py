"""Dead letters: what was tried as often as it may be, and waits for a person. What each kind of
them has to tell and to do, and the kernel's own: tasks.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import msgspec

from coordinator.kernel import tasks
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.json_values import NULL
from coordinator.looking.facts import AnyNeed
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import TaskRow
from coordinator.words import requests as rq

#: Who acts where a person does and gives no name.
PERSON = "a person"


class Page(NamedTuple):
    """Where a list of them begins: after this one; and how many are wanted."""

    since: str
    name: str
    limit: int


class DeadKind(Protocol):
    """One kind of dead letters. `prefix`: what its ids begin with. A row has a `state`."""

    prefix: str

    def list_newest(self, view: View, page: Page, kind: str | None) -> list[rq.DeadLetter]:
        """The newest of them; `kind`: only these."""

    def find(self, view: View, name: str) -> Any:
        """The row with this id.

        Raises:
            Refusal: UNKNOWN_TASK, UNKNOWN_CHANGE, UNKNOWN_STEP.
        """

    def describe(self, view: View, row: Any, whole: bool = False) -> rq.DeadLetter:
        """What is told of it; `whole`: with its content."""

    def list_needs(self, row: Any) -> list[AnyNeed]:
        """What to look at before it is tried again."""

    def retry(self, svc: Service, tx: Tx, actor: Actor, row: Any) -> None:
        """A person lets it be tried again."""

    def drop(self, tx: Tx, row: Any) -> None:
        """A person gives it up."""


def read_kept(view: View, content: str, whole: bool) -> msgspec.Raw:
    """The content that is kept under this name."""
    text = view.blob(content) if whole else None
    return msgspec.Raw(text) if text is not None else NULL


class DeadTasks:
    """Tasks that failed too often. See `DeadKind`."""

    prefix = "T-"

    def list_newest(self, view: View, page: Page, kind: str | None) -> list[rq.DeadLetter]:
        if kind not in (None, "task"):
            return []
        return [self.describe(view, row) for row in view.each(TaskRow, "tasks_dead_newest", *page)]

    def find(self, view: View, name: str) -> TaskRow:
        return tasks.find(view, name)

    def describe(self, view: View, row: TaskRow, whole: bool = False) -> rq.DeadLetter:
        content = msgspec.Raw(msgspec.json.encode(tasks.reply(view, row))) if whole else NULL
        return rq.DeadLetter(
            id=row.task_id, kind="task", what=row.title, agent=None, attempts=row.attempts,
            why=row.result or "", since=row.updated_at, content=content,
        )

    def list_needs(self, row: TaskRow) -> list[AnyNeed]:
        return []

    def retry(self, svc: Service, tx: Tx, actor: Actor, row: TaskRow) -> None:
        tasks.move(tx, row, "retry", attempts=0, why="put back by a person")

    def drop(self, tx: Tx, row: TaskRow) -> None:
        tasks.move(tx, row, "cancel", why="given up by a person", result=row.result)
