"""Reviews: its operations."""

from __future__ import annotations

from coordinator.kernel.hooks import Slice
from coordinator.kernel.leasing import lapse
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, read_apart, read_settled
from coordinator.slices.review import hunk_lists, reviews, verdicts
from coordinator.words import requests as rq


class Review(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.Reviews, read_settled(reviews.listing, lapse.due)),
        Operation(rq.ReviewShow, read(reviews.show_request)),
        Operation(rq.ReviewHunks, read_apart(hunk_lists.listing)),
        Operation(rq.ReviewDecide, verdicts.carry_out, several=True),
        Operation(rq.ReviewUndo, verdicts.carry_out, several=True),
    )
