"""Hints on resources."""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.statements import STATEMENTS as Q


def _signal_left(db: Database, at: str, e: ev.SignalLeft) -> None:
    db.execute(
        Q["signal_put"],
        (e.scope, e.name, e.resource, e.strength, e.half_life_ms, at, e.agent, e.note),
    )


def _signals_faded(db: Database, at: str, e: ev.SignalsFaded) -> None:
    db.executemany(Q["signal_delete"], e.signals)


APPLY: dict[type[ev.Event], Apply] = {
    ev.SignalLeft: _signal_left,
    ev.SignalsFaded: _signals_faded,
}
