"""The guard's own operations: its operations."""

from __future__ import annotations

from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, write
from coordinator.slices.guard import commits
from coordinator.words import requests as rq


class Guard(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.GitTurn, None),  # the daemon serves it
        Operation(rq.GuardCheck, read(commits.check)),
        Operation(rq.GuardOverride, write(commits.override)),
    )
