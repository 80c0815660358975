"""What was seen of files."""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.statements import STATEMENTS as Q


def _versions_seen(db: Database, at: str, e: ev.VersionsSeen) -> None:
    db.executemany(Q["version_put"], [(path, dig, at, agent) for path, dig, agent in e.versions])


APPLY: dict[type[ev.Event], Apply] = {
    ev.VersionsSeen: _versions_seen,
}
