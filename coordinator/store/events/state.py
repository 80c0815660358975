"""Values of keys, and changes that their owners apply. No value ever stands in the log: an event
names content by a sealed digest, and the content is kept beside it."""

from __future__ import annotations

from coordinator.store.events.base import Event


class KeyWritten(Event, tag="key_written"):
    """A key has a new version. `content` None: it was deleted."""

    resource: str
    scope: str
    version: int
    content: str | None
    size: int
    agent: str
    fencing_token: int | None = None
    change: str | None = None  # what it was written for


class ChangeAsked(Event, tag="change_asked"):
    """A change of a key was queued for its owner."""

    change: str
    n: int
    resource: str
    scope: str
    agent: str
    content: str
    attempts_max: int
    note: str = ""
    during: str | None = None


class ChangeMoved(Event, tag="change_moved"):
    """All that may change in a change, as it is afterwards."""

    change: str
    resource: str
    state: str
    attempts: int
    agent: str | None = None  # who did it
    not_before: str | None = None
    given_to: str | None = None
    given_until: str | None = None
    version: int | None = None
    why: str = ""


class ChangesForgotten(Event, tag="changes_forgotten"):
    """Changes that were closed long ago."""

    changes: list[str]
