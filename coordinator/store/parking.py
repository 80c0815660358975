"""The one derived table, `ready_tasks`: what blocks a ready task, and what offers it again.

The table follows from the same events as the tasks, so it has no event of its own. A ready task
enters it, and a task that moves on leaves it. `Tx.free` offers the tasks that were parked on a
freed scope.
"""

from __future__ import annotations

from coordinator.rules.pools import list_freed
from coordinator.store.events.base import Database
from coordinator.store.rows import Row
from coordinator.store.statements import STATEMENTS as Q

#: The scope on which a task that was set aside is parked; no resource has it.
ASIDE = "!aside"


def at_review(review: str) -> str:
    """The scope on which a task is parked that a review keeps back. It is not the file's scope,
    because tasks that wait for the file's lease are parked on that, and the task that got the
    review back may be one."""
    return f"!{review}"


def park(db: Database, task: str, scope: str) -> None:
    """The ready task met `scope` held: set it aside until that is free. Derived, so not evented."""
    queued = places_of(db, task)
    db.execute(Q["ready_park"], (task, scope))
    for place in queued:
        offer_next(db, place, parked_on=scope)


class ReadyPlaceRow(Row, frozen=True):
    """The place of a ready task, and the scope that it was parked on before it was offered."""

    offered_from: str | None
    rank: int
    n: int


def places_of(db: Database, task: str) -> list[ReadyPlaceRow]:
    """The places of a task; empty if it is not ready."""
    return [ReadyPlaceRow(*row) for row in db.execute(Q["ready_get"], (task,))]


def offer_next(db: Database, place: ReadyPlaceRow, parked_on: str | None = None) -> None:
    """A task that was offered has gone on from its place: offer the best that is parked there
    still, or the next after it, if what is held there does not forbid it."""
    offered_from = place.offered_from
    if not offered_from:
        return
    if not db.execute(Q["lease_at_scope"], (offered_from,)).fetchall():
        if offered_from != parked_on:  # else somebody waits for it, and would be met again
            db.execute(Q["ready_offer"], (offered_from,))
    elif not db.execute(Q["lease_at_scope_for_one"], (offered_from,)).fetchall():
        db.execute(Q["ready_offer_next"], (offered_from, place.rank, place.n))


def offer_if_free(db: Database, scope: str) -> None:
    """Offer the best task parked on this, unless somebody holds it alone: readers share it."""
    for freed in list_freed(scope):
        if not db.execute(Q["lease_at_scope_for_one"], (freed,)).fetchall():
            db.execute(Q["ready_offer"], (freed,))
