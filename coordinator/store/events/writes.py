"""Writes without a lease: those that came too late, and the one after that which stood."""

from __future__ import annotations

from coordinator.store.events.base import Event


class WriteLost(Event, tag="write_lost"):
    """What an agent proposed was made on what somebody else has replaced since."""

    agent: str
    resource: str
    scope: str
    wasted_ms: int = 0  # since it had read that, where it is known


class WriteStood(Event, tag="write_stood"):
    """An agent that had lost writes of this resource has written it."""

    agent: str
    resource: str
    scope: str
