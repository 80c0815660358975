"""What belongs in the story and what was seen of files: no state of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.store.events.base import Database, Event
from coordinator.store.statements import STATEMENTS as Q


class VersionsSeen(Event, tag="versions_seen"):
    """Content that the watcher found; agent where a lease tells who wrote it."""

    SENTENCE = "new content was seen"

    versions: list[tuple[str, str | None, str | None]]  # (path, hash, agent)

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(
            Q["version_put"], [(path, dig, instant, agent) for path, dig, agent in self.versions]
        )


class Noted(Event, tag="noted"):
    """Something that changes no state but belongs in the story: a sweep, a start, a stop."""

    SENTENCE = "{what}"

    what: str
    facts: dict[str, Any]


class CountersRaised(Event, tag="counters_raised"):
    """After a restore from a backup, or where a coordinator was before: numbers that may have been
    given out must never come again. `above`: counter -> all that are skipped."""

    SENTENCE = "numbers go on above all that may have been given before"

    by: int = 0
    above: dict[str, int] = msgspec.field(default_factory=dict)
