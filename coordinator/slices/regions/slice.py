"""Commits of regions: its operations."""

from __future__ import annotations

from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.slices.regions import region_commits
from coordinator.words import requests as rq


class Regions(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.CommitRegion, region_commits.commit, several=True),
    )
