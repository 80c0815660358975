"""Proposals: its operations."""

from __future__ import annotations

from coordinator.kernel import lost_writes
from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read
from coordinator.slices.proposals import proposals
from coordinator.words import requests as rq


class Proposals(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.Propose, proposals.propose, several=True),
        Operation(rq.LostWrites, read(lost_writes.listing)),
    )
