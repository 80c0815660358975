"""What each event does to the state tables. The only code that changes them.

Applying the whole log to an empty database gives the state, because the daemon itself makes its
state by no other way (`Tx.record`). Nothing here decides: no clock, no rule, no refusal.
"""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections import (
    agents,
    backlog,
    leases,
    messages,
    reviews,
    signals,
    state,
    steps,
    story,
    verification,
    waiting,
    writes,
)
from coordinator.store.projections.base import Apply, Database
from coordinator.store.projections.parking import at_review, park

__all__ = ["APPLY", "Apply", "apply", "at_review", "park"]


def apply(db: Database, at: str, event: ev.Event) -> None:
    """Change the state tables as `event`, which happened at `at` (ISO text), says."""
    APPLY[type(event)](db, at, event)


def _nothing(db: Database, at: str, e: ev.Event) -> None:
    """Belongs in the story, changes no state (counters are kept by whoever takes a number)."""


APPLY: dict[type[ev.Event], Apply] = {
    **agents.APPLY, **leases.APPLY, **waiting.APPLY, **backlog.APPLY, **reviews.APPLY,
    **signals.APPLY, **state.APPLY, **steps.APPLY, **messages.APPLY,
    **story.APPLY, **verification.APPLY, **writes.APPLY,
    ev.UnleasedWrite: _nothing,
    ev.ClaimWaits: _nothing,
    ev.TargetMoved: _nothing,
    ev.Noted: _nothing,
    ev.CountersRaised: _nothing,
}
