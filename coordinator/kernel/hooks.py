"""Where slices hang into the kernel: what each is told, and what it is asked.

A slice is one capability. The kernel knows none of them by name: it calls the hooks of all, inside
the transaction that they are about, in the order of the one list (`operations.slices`). A hook that
a slice does not have does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coordinator.store.ledger import Tx, View
from coordinator.store.rows import TaskRow, WaiterRow
from coordinator.words.resource_names import Resource

if TYPE_CHECKING:
    from coordinator.kernel.core import Service
    from coordinator.kernel.operations import Operation
    from coordinator.kernel.writing.journal import Journal
    from coordinator.kernel.writing.performing import Performed


class Slice:
    """One capability: what can be asked of it, and its hooks."""

    operations: Sequence[Operation] = ()

    # ------------------------------------------------------------ in the course of time

    def is_due(self, view: View) -> bool:
        """Whether `tend` would find work: a look-up or two, once a second."""
        return False

    def tend(self, svc: Service, tx: Tx) -> None:
        """Once a second, where anything is due: end what has lasted too long."""

    def tidy(self, svc: Service, tx: Tx) -> None:
        """At the sweep: forget what is over."""

    # ------------------------------------------------------------ what has happened

    def refused(self, svc: Service, tx: Tx, blocked_by: list[Resource], task: str | None) -> None:
        """An agent was refused for what these stand in the way of, in the course of a task."""

    def claimed(self, svc: Service, tx: Tx, task: str) -> None:
        """An agent works on a task now."""

    def put_off(self, svc: Service, tx: Tx, task: str, why: str) -> None:
        """A holder does not let go of what a task needs."""

    def waited_in_vain(self, svc: Service, tx: Tx, waiter: WaiterRow, names: list[str]) -> str:
        """The time of a place in the queue is over. Gives the id under which a person can let it be
        asked again; empty: nobody keeps it."""
        return ""

    def committed(self, svc: Service, tx: Tx, agent: str,
                  written: Sequence[tuple[str, str | None]]) -> None:
        """An agent's commit has written these: (name, the name of the content there now)."""

    # ------------------------------------------------------------ what is asked

    def conclude_writing(self, svc: Service, tx: Tx, journal: Journal, done: Performed) -> Any:
        """Note how the writing went that this slice has begun, and give the answer to it; None: it
        is another's."""
        return None

    def offer_task(self, svc: Service, tx: Tx, agent: str) -> TaskRow | None:
        """The task that a blocked agent is sent to; None: there is none.

        Raises:
            Unready: files of the next tasks have to be looked at.
        """
        return None

    def rank_ready(self, svc: Service, tx: Tx, most: int) -> Mapping[str, float]:
        """What speaks for tasks that are offered, of `most` at most: more is sooner."""
        return {}
