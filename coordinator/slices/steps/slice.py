"""What happens to steps in the course of time, and when a place in the queue was in vain."""

from __future__ import annotations

from coordinator.kernel.core import Service
from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, take_work, write, write_by
from coordinator.slices.steps import dead_letters, steps
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import WaiterRow
from coordinator.words import requests as rq


class Steps(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.StepAdd, write(steps.add)),
        Operation(rq.StepNext, take_work(steps.give_next)),
        Operation(rq.StepDone, write(steps.done)),
        Operation(rq.StepFail, write(steps.fail)),
        Operation(rq.Steps, read(steps.listing)),
        Operation(rq.Dead, read(dead_letters.listing)),
        Operation(rq.DeadShow, read(dead_letters.show)),
        Operation(rq.DeadRetry, write_by(dead_letters.retry, dead_letters.retry_needs)),
        Operation(rq.DeadDrop, write(dead_letters.drop)),
    )

    def is_due(self, view: View) -> bool:
        return bool(view.rows("steps_late", view.now))

    def tend(self, svc: Service, tx: Tx) -> None:
        steps.late(svc, tx)

    def tidy(self, svc: Service, tx: Tx) -> None:
        steps.forget(tx)

    def waited_in_vain(self, svc: Service, tx: Tx, waiter: WaiterRow, names: list[str]) -> str:
        return steps.waited_in_vain(svc, tx, waiter, names).step_id
