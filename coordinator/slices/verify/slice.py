"""Verifications of finished work: its operations."""

from __future__ import annotations

from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, write
from coordinator.slices.verify import verifications
from coordinator.words import requests as rq


class Verify(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.Verify, write(verifications.ask)),
        Operation(rq.Verifications, read(verifications.listing)),
    )
