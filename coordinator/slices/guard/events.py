"""The events of the guard."""

from __future__ import annotations

from coordinator.store.events.base import Event


class UnleasedWrite(Event, tag="unleased_write"):
    """A file changed that nobody had leased while agents were active."""

    SENTENCE = "{resource} was changed without a lease"

    resource: str
    hash: str | None
    agent: str | None = None
