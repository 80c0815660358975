"""What was seen of files, and what waits to land."""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.statements import STATEMENTS as Q


def _versions_seen(db: Database, at: str, e: ev.VersionsSeen) -> None:
    db.executemany(Q["version_put"], [(path, dig, at, agent) for path, dig, agent in e.versions])


def _landing_queued(db: Database, at: str, e: ev.LandingQueued) -> None:
    db.execute(Q["landing_queue"], (e.task, e.agent, e.target, at))


def _landing_begun(db: Database, at: str, e: ev.LandingBegun) -> None:
    db.execute(Q["landing_begin"], (e.task, e.agent, e.target, at))


APPLY: dict[type[ev.Event], Apply] = {
    ev.VersionsSeen: _versions_seen,
    ev.LandingQueued: _landing_queued,
    ev.LandingBegun: _landing_begun,
}
