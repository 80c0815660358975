"""Values of keys and their changes."""

from __future__ import annotations

from coordinator.rules.state import CLOSED, TRIM_EVERY, VERSIONS_KEPT
from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.statements import STATEMENTS as Q


def _key_written(db: Database, at: str, e: ev.KeyWritten) -> None:
    db.execute(
        Q["state_put"],
        (e.scope, e.version, e.resource, e.content, e.size, e.agent, at, e.fencing_token),
    )
    if e.version > VERSIONS_KEPT and e.version % TRIM_EVERY == 0:
        db.execute(Q["state_trim"], (e.scope, e.version - VERSIONS_KEPT))


def _change_asked(db: Database, at: str, e: ev.ChangeAsked) -> None:
    db.execute(
        Q["change_put"],
        (e.change, e.n, e.resource, e.scope, e.agent, e.content, e.note, e.during,
         e.attempts_max, at),
    )


def _change_moved(db: Database, at: str, e: ev.ChangeMoved) -> None:
    db.execute(
        Q["change_move"],
        (e.change, e.state, e.attempts, e.not_before, e.given_to, e.given_until, e.version, e.why,
         at if e.state in CLOSED else None),
    )


def _changes_forgotten(db: Database, at: str, e: ev.ChangesForgotten) -> None:
    db.executemany(Q["change_delete"], [(one,) for one in e.changes])


APPLY: dict[type[ev.Event], Apply] = {
    ev.KeyWritten: _key_written,
    ev.ChangeAsked: _change_asked,
    ev.ChangeMoved: _change_moved,
    ev.ChangesForgotten: _changes_forgotten,
}
