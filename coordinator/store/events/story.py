"""What belongs in the story and what was seen of files: no state of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.store.events.base import Event


class VersionsSeen(Event, tag="versions_seen"):
    """Content that the watcher found; agent where a lease tells who wrote it."""

    versions: list[tuple[str, str | None, str | None]]  # (path, hash, agent)


class UnleasedWrite(Event, tag="unleased_write"):
    """A file changed that nobody had leased while agents were active."""

    resource: str
    hash: str | None
    agent: str | None = None


class TargetMoved(Event, tag="target_moved"):
    """A branch went from one commit to another with what an agent did; see `why`."""

    agent: str
    task: str
    target: str
    before: str
    after: str
    why: str
    paths: list[str]
    fencing_tokens: list[int]


class LandingQueued(Event, tag="landing_queued"):
    """What an agent has done waits to land on a branch."""

    agent: str
    task: str
    target: str


class LandingBegun(Event, tag="landing_begun"):
    """It is its turn."""

    agent: str
    task: str
    target: str


class Noted(Event, tag="noted"):
    """Something that changes no state but belongs in the story: a sweep, a start, a stop."""

    what: str
    facts: dict[str, Any]


class CountersRaised(Event, tag="counters_raised"):
    """After a restore from a backup, or where a coordinator was before: numbers that may have been
    given out must never come again. `above`: counter -> all that are skipped."""

    by: int = 0
    above: dict[str, int] = msgspec.field(default_factory=dict)
