"""What happens to messages in the course of time."""

from __future__ import annotations

from coordinator.kernel.core import Service
from coordinator.kernel.hooks import Slice
from coordinator.slices.messages import messages
from coordinator.store.ledger import Tx


class Messages(Slice):
    """See `kernel.hooks.Slice`."""

    def tidy(self, svc: Service, tx: Tx) -> None:
        messages.forget(svc, tx)
