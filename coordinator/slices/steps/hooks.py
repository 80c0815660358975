"""What happens to steps in the course of time, and when a place in the queue was in vain."""

from __future__ import annotations

from coordinator.kernel.core import Service
from coordinator.kernel.hooks import Slice
from coordinator.slices.steps import steps
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import WaiterRow


class Steps(Slice):
    """See `kernel.hooks.Slice`."""

    def is_due(self, view: View) -> bool:
        return bool(view.rows("steps_late", view.now))

    def tend(self, svc: Service, tx: Tx) -> None:
        steps.late(svc, tx)

    def tidy(self, svc: Service, tx: Tx) -> None:
        steps.forget(tx)

    def waited_in_vain(self, svc: Service, tx: Tx, waiter: WaiterRow, names: list[str]) -> str:
        return steps.waited_in_vain(svc, tx, waiter, names).step_id
