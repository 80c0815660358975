"""The operations of pools, and the values that a task is given with its claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.kernel.core import Service
from coordinator.kernel.hooks import Slice, Surroundings
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import write
from coordinator.slices.pools import pools
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.resource_names import Located


class Pools(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.EnvironmentTake, write(pools.take)),
        Operation(rq.EnvironmentRelease, write(pools.release)),
        Operation(rq.PoolValues, pools.listing),
    )

    def check_needs(self, svc: Service, names: Sequence[str]) -> None:
        for name in names:
            pools.find(svc, name)

    def choose_needs(self, svc: Service, tx: Tx, agent: str, task: str,
                     names: Sequence[str]) -> Mapping[str, Located]:
        return pools.choose(svc, tx, agent, task, names)

    def describe_surroundings(self, svc: Service, tx: Tx, names: Sequence[str]) -> Surroundings:
        return pools.describe(svc, tx, names)
