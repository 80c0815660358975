"""What the backlog does when the kernel asks: it offers a blocked agent other work."""

from __future__ import annotations

from coordinator.kernel.core import Service
from coordinator.kernel.hooks import Slice
from coordinator.slices.backlog import dispatch
from coordinator.store.ledger import Tx
from coordinator.store.rows import TaskRow


class Backlog(Slice):
    """See `kernel.hooks.Slice`."""

    def offer_task(self, svc: Service, tx: Tx, agent: str) -> TaskRow | None:
        chosen = dispatch.choose(svc, tx, agent, beside=True)
        return chosen[0] if chosen is not None else None
