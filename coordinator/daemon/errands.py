"""Work that the daemon does by itself: it delivers webhooks, retries proposals, and tells the
person on this machine.

The database says when each errand is due and what becomes of it. A kept proposal is applied in the
name of the agent that made it, by the same steps as a new one (`slices.proposals`). What the daemon
records about itself is a job of the one writer, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from coordinator.daemon.loop_engine import LoopEngine
from coordinator.daemon.notifications import Notifications
from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.webhooks import Webhooks
from coordinator.kernel import blocked_steps
from coordinator.kernel.core import Service
from coordinator.resources import program_version
from coordinator.slices.proposals import proposals
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import BlockedStepRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: Proposals of one round, and how long one may take (ms) before another attempt is due.
AT_ONCE, GIVEN_MS = 20, 120_000


class KeptProposals:
    """Applies kept proposals that are due. Used in the loop's thread only."""

    def __init__(self, engine: LoopEngine, service: Service,
                 look: Callable[[Callable[[View], Any]], Any]) -> None:
        self._engine, self._service = engine, service
        self._look = look
        self._busy = False

    def tend(self) -> None:
        """Try the proposals that are due, one after the other. Called once a second."""
        if self._busy:
            return
        rows = self._look(lambda view: view.each(
            BlockedStepRow, "steps_due", "propose", view.now, AT_ONCE, None))
        if not isinstance(rows, Refusal) and rows:
            self._busy = True
            self._try_next(rows)

    def _try_next(self, left: list[BlockedStepRow]) -> None:
        if not left:
            self._busy = False
            return
        self._engine.task(self._begin_attempt(left[0]), lambda begun: self._propose(left, begun))

    async def _begin_attempt(self, row: BlockedStepRow) -> Any:
        def begin(tx: Tx) -> Any:
            blocked_steps.begin(row.step_id, GIVEN_MS, tx)
            return blocked_steps.read_content(tx, row)

        return await self._engine.write(begin)

    def _propose(self, left: list[BlockedStepRow], content: Any) -> None:
        if isinstance(content, Refusal):
            self._try_next(left[1:])
            return
        request = msgspec.convert({**content, "retry": False}, rq.Propose)
        self._engine.run(proposals.propose(self._service, request), partial(self._finish, left))

    def _finish(self, left: list[BlockedStepRow], answer: Any) -> None:
        if isinstance(answer, Refusal) and answer.code is Code.SHUTTING_DOWN:
            self._busy = False
            return
        job = partial(_end, self._service, left[0].step_id, answer)
        self._engine.task(self._engine.write(job), lambda value: self._try_next(left[1:]))


def _end(service: Service, step: str, answer: Any, tx: Tx) -> None:
    proposals.tried_again(service, tx, step, answer)


class Errands:
    """All errands of one daemon. Used in the loop's thread only."""

    def __init__(self, router: RequestRouter, service: Service) -> None:
        self._webhooks = Webhooks(router.engine, service, router.look)
        self._notifications = Notifications(service, router.look)
        self._proposals = KeptProposals(router.engine, service, router.look)
        if self._webhooks.wanted:
            self._webhooks.begin()
            router.subscribe(self._webhooks.events_came)
        if self._notifications.wanted:
            self._notifications.begin()
            router.subscribe(self._notifications.events_came)

    def tend(self) -> None:
        """Do what is due. Called once a second."""
        self._webhooks.tend()
        self._notifications.tend()
        self._proposals.tend()

    def close(self) -> None:
        """End the program of a running notification, which nobody could end later."""
        self._notifications.close()


def started(tx: Any) -> None:
    """Record that the coordinator has started."""
    tx.record(ev.Noted(what="the coordinator started", facts={"version": program_version()}))


def stopped(tx: Any) -> None:
    """Record that the coordinator ends in order."""
    tx.record(ev.Noted(what="the coordinator stopped", facts={}))


def raised(tx: Any, fencing: int) -> None:
    """Record that no fencing token up to this is given again."""
    tx.raise_counters({"fencing": fencing})
    tx.record(ev.CountersRaised(above={"fencing": fencing}))
