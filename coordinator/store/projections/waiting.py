"""The line, and unlock requests."""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.projections.parking import offer_if_free
from coordinator.store.statements import STATEMENTS as Q


def _acquisition_refused(db: Database, at: str, e: ev.AcquisitionRefused) -> None:
    if e.explained is not None:
        db.execute(Q["agent_explained"], (e.agent, f"{at} {e.explained}"))


def _waiter_queued(db: Database, at: str, e: ev.WaiterQueued) -> None:
    db.execute(
        Q["waiter_put"],
        (
            e.acquisition_id, e.agent, e.mode, e.priority, e.asked_at, e.until, int(e.held),
            e.ttl_ms, e.task, e.description, e.met, e.gives_way_to, e.purpose,
        ),
    )
    rows = [(e.acquisition_id, *one, e.worktrees.get(one[0]), e.contents.get(one[0]))
            for one in e.resources]
    db.executemany(Q["waiter_resource_put"], rows)


def _waiter_changed(db: Database, at: str, e: ev.WaiterChanged) -> None:
    db.execute(Q["waiter_change"], (e.acquisition_id, int(e.held)))


def _gives_way(db: Database, at: str, e: ev.GivesWay) -> None:
    db.execute(Q["waiter_gives_way"], (e.acquisition_id, e.to))


def _waiter_left(db: Database, at: str, e: ev.WaiterLeft) -> None:
    scopes = db.execute(Q["waiter_scopes_of"], (e.acquisition_id,)).fetchall()
    db.execute(Q["waiter_resources_delete"], (e.acquisition_id,))
    db.execute(Q["waiter_delete"], (e.acquisition_id,))
    db.execute(Q["aside_delete"], ("waiter", e.acquisition_id))
    for (scope,) in scopes:
        offer_if_free(db, str(scope))


def _unlock_asked(db: Database, at: str, e: ev.UnlockAsked) -> None:
    db.execute(
        Q["unlock_insert"],
        (
            e.request, e.n, e.agent, e.holder, e.resource, e.resource_kind, e.scope, e.mode,
            e.reason, at,
        ),
    )


def _unlock_passed(db: Database, at: str, e: ev.UnlockPassed) -> None:
    db.execute(Q["unlock_pass"], (e.request, e.holder))


def _unlock_answered(db: Database, at: str, e: ev.UnlockAnswered) -> None:
    db.execute(
        Q["unlock_answer"], (e.request, e.status, at, e.by, int(e.override), e.answer or None)
    )


APPLY: dict[type[ev.Event], Apply] = {
    ev.AcquisitionRefused: _acquisition_refused,
    ev.WaiterQueued: _waiter_queued,
    ev.WaiterChanged: _waiter_changed,
    ev.GivesWay: _gives_way,
    ev.WaiterLeft: _waiter_left,
    ev.UnlockAsked: _unlock_asked,
    ev.UnlockPassed: _unlock_passed,
    ev.UnlockAnswered: _unlock_answered,
}
