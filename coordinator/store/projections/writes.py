"""Writes that were lost, counted by agent and resource."""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.statements import STATEMENTS as Q


def _write_lost(db: Database, at: str, e: ev.WriteLost) -> None:
    db.execute(Q["lost_write_add"], (e.agent, e.scope, e.resource, e.wasted_ms, at))


def _write_stood(db: Database, at: str, e: ev.WriteStood) -> None:
    db.execute(Q["lost_write_over"], (e.agent, e.scope))


APPLY: dict[type[ev.Event], Apply] = {
    ev.WriteLost: _write_lost,
    ev.WriteStood: _write_stood,
}
