"""What happens to changes of values in the course of time."""

from __future__ import annotations

from coordinator.kernel.core import Service
from coordinator.kernel.hooks import Slice
from coordinator.slices.state import changes
from coordinator.store.ledger import Tx, View


class State(Slice):
    """See `kernel.hooks.Slice`."""

    def is_due(self, view: View) -> bool:
        return bool(view.rows("changes_late", view.now))

    def tend(self, svc: Service, tx: Tx) -> None:
        changes.late(svc, tx)

    def tidy(self, svc: Service, tx: Tx) -> None:
        changes.forget(tx)
