"""The operation of overlaps."""

from __future__ import annotations

from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read_apart
from coordinator.slices.overlap import overlap
from coordinator.words import requests as rq


class Overlap(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (Operation(rq.Overlaps, read_apart(overlap.overlaps)),)
