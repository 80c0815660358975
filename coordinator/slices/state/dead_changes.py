"""Changes of values that failed too often (`kernel.dead_letters`)."""

from __future__ import annotations

from coordinator.kernel.core import Actor, Service
from coordinator.kernel.dead_letters import PERSON, Page, read_kept
from coordinator.looking.facts import AnyNeed
from coordinator.slices.state import changes
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import ChangeRow
from coordinator.words import requests as rq


class DeadChanges:
    """See `kernel.dead_letters.DeadKind`."""

    prefix = changes.PREFIX

    def list_newest(self, view: View, page: Page, kind: str | None) -> list[rq.DeadLetter]:
        if kind not in (None, "change"):
            return []
        return [self.describe(view, row)
                for row in view.each(ChangeRow, "changes_dead_newest", *page)]

    def find(self, view: View, name: str) -> ChangeRow:
        return changes.find(view, name)

    def describe(self, view: View, row: ChangeRow, whole: bool = False) -> rq.DeadLetter:
        return rq.DeadLetter(
            id=row.change_id, kind="change", what=row.key, agent=row.asked_by,
            attempts=row.attempts, why=row.why, since=row.closed_at or row.asked_at,
            content=read_kept(view, row.content, whole),
        )

    def list_needs(self, row: ChangeRow) -> list[AnyNeed]:
        return []

    def retry(self, svc: Service, tx: Tx, actor: Actor, row: ChangeRow) -> None:
        changes.revive(tx, row, PERSON)

    def drop(self, tx: Tx, row: ChangeRow) -> None:
        changes.drop(tx, row, PERSON)
