"""Reviews: its operations."""

from __future__ import annotations

from typing import Any

from coordinator.kernel.core import Actor, Service
from coordinator.kernel.hooks import Slice
from coordinator.kernel.leasing import lapse
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, read_apart, read_settled
from coordinator.kernel.writing.journal import Journal
from coordinator.kernel.writing.performing import Performed
from coordinator.slices.review import hunk_lists, reviews, verdicts
from coordinator.store.ledger import Tx, View
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

    def conclude_writing(self, svc: Service, tx: Tx, journal: Journal, done: Performed) -> Any:
        return verdicts.conclude(svc, tx, journal, done)

    def show_partial(self, svc: Service, view: View, review: str) -> rq.Partial:
        return reviews.show_partial(svc, view, review)

    def add_to_status(self, svc: Service, view: View, actor: Actor, reply: rq.StatusReply) -> None:
        reply.reviews = reviews.listing(svc, view, actor, rq.Reviews()).items
