"""Which task next: the best ready one that this agent could start now, in a few index look-ups.

Best is by priority, then age. A candidate that meets something held is *parked* on what holds it
and not looked at again until that is free (store/projections.py offers it again): so the cost
does not grow with what is held, nor with the backlog. Tasks parked on the agent's own leases are
candidates for it all the same.
"""

from __future__ import annotations

from coordinator.files.canonical import Located
from coordinator.rules.leases import as_resource
from coordinator.service import lapse, tasks
from coordinator.service.core import Service
from coordinator.service.weighing import Wanted, Weighing, weigh
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, TaskRow
from coordinator.words.refusals import Refusal

#: Own leases whose parked tasks are looked at too.
OWN_MAX = 32


def wanted_by(svc: Service, tx: Tx, task_id: str) -> list[Wanted]:
    """The task's resources as they are on disk now, with the mode each is needed in."""
    out: list[Wanted] = []
    for name, kind, scope, mode in tx.rows("task_resources_of", task_id):
        try:
            located = svc.tree.resolve(name)
        except Refusal:
            located = Located(as_resource(name, kind, scope), None, None)
        out.append((located, mode))
    return out


def choose(
    svc: Service, tx: Tx, agent: str, *, beside: bool = False
) -> tuple[TaskRow, list[Wanted], Weighing] | None:
    """The best task that `agent` could start now, with what it wants; None when there is none.

    `beside`: it is in the middle of something, so nothing that touches what it holds is offered:
    its own reads would go stale under it.
    """
    lapse.close_due(svc, tx)
    tasks.offer_rested(tx)
    seen: set[str] = set()
    held = [] if beside else tx.rows("leases_of_holder", agent)[:OWN_MAX]
    own = {LeaseRow(*raw).scope for raw in held}
    while True:
        best = tx.row("ready_best")
        for scope in own:
            parked = tx.row("parked_best", scope)
            if parked and parked[0] not in seen and (best is None or parked[1:] < best[1:]):
                best = parked
        if best is None:
            return None
        task_id = str(best[0])
        wanted = wanted_by(svc, tx, task_id)
        weighing = weigh(svc, tx, agent, wanted, task=task_id)
        quarantined = bool(weighing.reviews) and svc.settings.review.quarantine
        touches_own = beside and bool(weighing.mine)
        if not weighing.blocked and not quarantined and not touches_own:
            return tasks.find(tx, task_id), wanted, weighing
        seen.add(task_id)
        tx.park(task_id, weighing.first_scope)
