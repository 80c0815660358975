"""Steps that were blocked."""

from __future__ import annotations

import msgspec

from coordinator.rules.steps import CLOSED
from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.statements import STATEMENTS as Q

_JSON = msgspec.json.Encoder()


def _step_added(db: Database, at: str, e: ev.StepAdded) -> None:
    db.execute(
        Q["step_put"],
        (
            e.step, e.n, e.step_kind, e.name, e.agent, _JSON.encode(e.resources).decode(),
            e.content, e.state, e.attempts, e.attempts_max, e.not_before, e.why, at,
            at if e.state in CLOSED else None, e.event,
        ),
    )


def _step_moved(db: Database, at: str, e: ev.StepMoved) -> None:
    db.execute(
        Q["step_move"],
        (e.step, e.state, e.attempts, e.not_before, e.given_to, e.given_until, e.why,
         at if e.state in CLOSED else None),
    )


def _steps_forgotten(db: Database, at: str, e: ev.StepsForgotten) -> None:
    db.executemany(Q["step_delete"], [(one,) for one in e.steps])


APPLY: dict[type[ev.Event], Apply] = {
    ev.StepAdded: _step_added,
    ev.StepMoved: _step_moved,
    ev.StepsForgotten: _steps_forgotten,
}
