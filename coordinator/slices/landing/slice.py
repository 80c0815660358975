"""Landing: its operations."""

from __future__ import annotations

from coordinator.kernel.core import Service
from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, write
from coordinator.slices.landing import landing
from coordinator.store.ledger import Tx
from coordinator.store.rows import TaskRow
from coordinator.words import requests as rq


class Landing(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.TaskWorktree, write(landing.work_in)),
        Operation(rq.LandCheck, read(landing.check)),
        Operation(rq.Land, landing.land, several=True),
        Operation(rq.LandBack, landing.land_back, several=True),
        Operation(rq.LandQueue, write(landing.queue)),
        Operation(rq.Landings, read(landing.listing)),
    )

    def check_done(self, svc: Service, tx: Tx, task: TaskRow) -> None:
        landing.must_land_first(svc, tx, task)
