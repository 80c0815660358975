"""Proposals that others were in the way of: tried again by the daemon when their time has come.

Owns when. What becomes of one is for `slices.proposals` to say; it is carried out like one that
an agent has just made, in the agent's name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from coordinator.daemon.loop_engine import LoopEngine
from coordinator.kernel import retry_queue
from coordinator.kernel.core import Service
from coordinator.slices.proposals import proposals
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import BlockedStepRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: Proposals of one round; and how long one may take (ms) before another attempt is due.
AT_ONCE, GIVEN_MS = 20, 120_000


class KeptProposals:
    """One per daemon; used from the loop's thread only."""

    def __init__(self, engine: LoopEngine, service: Service,
                 look: Callable[[Callable[[View], Any]], Any]) -> None:
        self._engine, self._service = engine, service
        self._look = look
        self._busy = False

    def tend(self) -> None:
        """Once a second: try those whose time has come, one after the other."""
        if self._busy:
            return
        rows = self._look(lambda view: view.each(
            BlockedStepRow, "steps_due", "propose", view.now, AT_ONCE))
        if not isinstance(rows, Refusal) and rows:
            self._busy = True
            self._next(rows)

    def _next(self, left: list[BlockedStepRow]) -> None:
        if not left:
            self._busy = False
            return
        self._engine.task(self._begin(left[0]), lambda begun: self._begun(left, begun))

    async def _begin(self, row: BlockedStepRow) -> Any:
        def begin(tx: Tx) -> Any:
            retry_queue.begin(tx, retry_queue.find(tx, row.step_id), tx.later(GIVEN_MS))
            return retry_queue.read_content(tx, row)

        return await self._engine.write(begin)

    def _begun(self, left: list[BlockedStepRow], content: Any) -> None:
        if isinstance(content, Refusal):
            self._next(left[1:])
            return
        request = msgspec.convert({**content, "retry": False}, rq.Propose)
        self._engine.run(proposals.propose(self._service, request), partial(self._tried, left))

    def _tried(self, left: list[BlockedStepRow], answer: Any) -> None:
        if isinstance(answer, Refusal) and answer.code is Code.SHUTTING_DOWN:
            self._busy = False
            return
        job = partial(_end, self._service, left[0].step_id, answer)
        self._engine.task(self._engine.write(job), lambda value: self._next(left[1:]))


def _end(service: Service, step: str, answer: Any, tx: Tx) -> None:
    proposals.tried_again(service, tx, step, answer)
