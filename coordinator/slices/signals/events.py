"""Hints are left on resources, and fade."""

from __future__ import annotations

from coordinator.store.events.base import Database, Event
from coordinator.store.statements import STATEMENTS as Q


class SignalLeft(Event, tag="signal_left"):
    """Somebody left a hint on a resource, or added to one; `agent` None: coord itself."""

    SENTENCE = "a hint `{name}` was left on {resource} ({strength})"

    resource: str
    scope: str
    name: str
    strength: float  # as it is now, with what was left of it before
    half_life_ms: int
    agent: str | None = None
    note: str = ""

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["signal_put"],
            (
                self.scope,
                self.name,
                self.resource,
                self.strength,
                self.half_life_ms,
                instant,
                self.agent,
                self.note,
            ),
        )


class SignalsFaded(Event, tag="signals_faded"):
    """Hints too weak to count are forgotten: (scope, name) each."""

    SENTENCE = "hints faded"

    signals: list[tuple[str, str]]

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(Q["signal_delete"], self.signals)
