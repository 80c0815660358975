"""Hints are left on resources, and fade."""

from __future__ import annotations

from coordinator.store.events.base import Event


class SignalLeft(Event, tag="signal_left"):
    """Somebody left a hint on a resource, or added to one; `agent` None: coord itself."""

    resource: str
    scope: str
    name: str
    strength: float  # as it is now, with what was left of it before
    half_life_ms: int
    agent: str | None = None
    note: str = ""


class SignalsFaded(Event, tag="signals_faded"):
    """Hints too weak to count are forgotten: (scope, name) each."""

    signals: list[tuple[str, str]]
