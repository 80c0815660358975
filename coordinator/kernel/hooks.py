"""The hooks by which slices extend the kernel: what the kernel tells them, and what it asks them.

A slice is one capability. The kernel knows no slice by name. It calls the hooks of all slices
inside the transaction, in the order of `words.slices`. A hook that a slice does not have does
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.store.ledger import Tx, View
from coordinator.store.rows import ReviewRow, TaskRow
from coordinator.words import requests as rq
from coordinator.words.resource_names import Located, Resource

if TYPE_CHECKING:
    from coordinator.kernel.core import Actor, Service
    from coordinator.kernel.operations import Operation
    from coordinator.kernel.retry_queue import DeadKind
    from coordinator.kernel.writing.journal import Journal
    from coordinator.kernel.writing.performing import Performed


class Surroundings(NamedTuple):
    """Environment variables that go with leases, and what their holder has to know of them."""

    variables: Mapping[str, str] = {}
    warnings: Sequence[str] = ()


class Slice:
    """One capability: what can be asked of it, and its hooks."""

    operations: Sequence[Operation] = ()
    #: Its kind of dead letters. Those of the first slice that has any have plain ids.
    dead_kind: DeadKind[Any] | None = None

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
        """An agent was refused in the course of a task because of these blockers."""

    def claimed(self, svc: Service, tx: Tx, task: str) -> None:
        """An agent works on a task now."""

    def put_off(self, svc: Service, tx: Tx, task: str, why: str) -> None:
        """A holder does not let go of what a task needs."""

    def kept_as_done(self, tx: Tx, task: TaskRow, row: ReviewRow) -> None:
        """A person took partial work as it was for a task's whole work."""

    # ------------------------------------------------------------ what is asked

    def check_done(self, svc: Service, tx: Tx, task: TaskRow) -> None:
        """Whether its agent may end this task as done.

        Raises:
            Refusal: BAD_TRANSITION.
        """

    def look_at_finished(self, svc: Service, tx: Tx, task: TaskRow,
                         landed: str | None) -> Callable[[], None] | None:
        """Look at what a task leaves that is about to be done. Returns a function that records it
        afterwards; None if it leaves nothing. Called before the first record. `landed`: the commit
        that landed.

        Raises:
            Unready: the files have to be looked at.
        """
        return None

    def show_partial(self, svc: Service, view: View, review: str) -> rq.Partial | None:
        """What the next agent of a task is told of the partial work on it."""
        return None

    def add_to_status(self, svc: Service, view: View, actor: Actor, reply: rq.StatusReply) -> None:
        """Fill in this slice's part of what is seen at a glance."""

    def warn(self, svc: Service, view: View) -> list[str]:
        """What a person has to know now."""
        return []

    def conclude_writing(self, svc: Service, tx: Tx, journal: Journal, done: Performed) -> Any:
        """Record the result of a write that this slice began, and give its answer; None if it
        belongs to another slice."""
        return None

    def propose_values(self, svc: Service, request: rq.Propose, tx: Tx, actor: Actor) -> Any:
        """Write the proposed values of keys, if nobody has written them meanwhile."""
        return None

    def offer_task(self, svc: Service, tx: Tx, agent: str) -> TaskRow | None:
        """The task that a blocked agent is sent to; None if there is none.

        Raises:
            Unready: files of the next tasks have to be looked at.
        """
        return None

    def rank_ready(self, svc: Service, tx: Tx, most: int) -> Mapping[str, float]:
        """Ranks of offered tasks, at most `most`: a task with a higher rank comes sooner."""
        return {}

    def check_needs(self, svc: Service, names: Sequence[str]) -> None:
        """Whether a task may need a value of each of these pools.

        Raises:
            Refusal: INVALID: there is no such pool.
        """

    def choose_needs(self, svc: Service, tx: Tx, agent: str, task: str,
                     names: Sequence[str]) -> Mapping[str, Located]:
        """What an agent that claims this task leases for a value of each of these pools, by the
        pool's name. Called before the claim is decided, once for each candidate.

        Raises:
            Unready: what a choice has to know was not looked at.
            Refusal: none can be had.
        """
        return {}

    def describe_surroundings(self, svc: Service, tx: Tx, names: Sequence[str]) -> Surroundings:
        """The environment variables that go with the leases on these resources."""
        return Surroundings()
