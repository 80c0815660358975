"""What happens to changes of values in the course of time."""

from __future__ import annotations

from typing import Any

from coordinator.kernel.core import Actor, Service
from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, read_until, take_work, write
from coordinator.slices.state import changes, values
from coordinator.store.ledger import Tx, View
from coordinator.words import requests as rq


class State(Slice):
    """See `kernel.hooks.Slice`."""

    dead_kind = changes.CHANGES
    operations = (
        Operation(rq.StateGet, read(values.get)),
        Operation(rq.StateKeys, read(values.keys)),
        Operation(rq.StatePut, write(values.put)),
        Operation(rq.StatePatch, write(values.patch)),
        Operation(rq.StateDelete, write(values.delete)),
        Operation(rq.StateHistory, read(values.history)),
        Operation(rq.StateWatch, read_until(values.watch, lambda message: bool(message.changed))),
        Operation(rq.ChangeAdd, write(changes.add)),
        Operation(rq.ChangeNext, take_work(changes.give_next)),
        Operation(rq.ChangeDone, write(changes.done)),
        Operation(rq.ChangeFail, write(changes.fail)),
        Operation(rq.ChangeShow, read_until(changes.show, changes.is_closed)),
        Operation(rq.Changes, read(changes.listing)),
    )

    def propose_values(self, svc: Service, request: rq.Propose, tx: Tx, actor: Actor) -> Any:
        return values.write(svc, request, tx, actor)

    def is_due(self, view: View) -> bool:
        return view.has("changes_late", view.now)

    def tend(self, svc: Service, tx: Tx) -> None:
        changes.CHANGES.end_late(svc, tx)

    def tidy(self, svc: Service, tx: Tx) -> None:
        changes.CHANGES.forget_old(tx)
