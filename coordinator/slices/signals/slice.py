"""The hints that coord leaves by itself when something happens, and what hints say for a task."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.kernel.core import Service
from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, write
from coordinator.slices.signals import signals
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.resource_names import Resource


class Signals(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.SignalAdd, write(signals.add, signals.needs)),
        Operation(rq.Signals, read(signals.listing)),
    )

    def tidy(self, svc: Service, tx: Tx) -> None:
        signals.fade(tx)

    def refused(self, svc: Service, tx: Tx, blocked_by: list[Resource], task: str | None) -> None:
        signals.refused(svc, tx, blocked_by, task)

    def claimed(self, svc: Service, tx: Tx, task: str) -> None:
        signals.claimed(svc, tx, task)

    def put_off(self, svc: Service, tx: Tx, task: str, why: str) -> None:
        signals.put_off(svc, tx, task, why)

    def rank_ready(self, svc: Service, tx: Tx, most: int) -> Mapping[str, float]:
        return signals.rank_ready(svc, tx, most)
