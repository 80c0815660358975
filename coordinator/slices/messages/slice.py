"""The operations of messages, and their ageing."""

from __future__ import annotations

from coordinator.kernel.core import Actor, Service
from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, write
from coordinator.slices.messages import messages
from coordinator.store.ledger import Tx, View
from coordinator.words import requests as rq


class Messages(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.MessageSend, write(messages.send)),
        Operation(rq.Messages, read(messages.listing)),
        Operation(rq.MessagesSee, write(messages.see)),
    )

    def tidy(self, svc: Service, tx: Tx) -> None:
        messages.forget(svc, tx)

    def add_to_status(self, svc: Service, view: View, actor: Actor, reply: rq.StatusReply) -> None:
        reply.messages = messages.waiting(view)
