"""Serving one request: the actor that it speaks for, its idempotency key, and a reading's snapshot.

The module knows no connection and keeps nothing. The router decides who is answered when.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import apsw

from coordinator.daemon.once_only import Later
from coordinator.kernel import answered
from coordinator.kernel.answered import Once
from coordinator.kernel.core import OPERATOR, Actor, Service, token_hash
from coordinator.kernel.use_cases import Write
from coordinator.kernel.writing import journal
from coordinator.store.ledger import Tx, View
from coordinator.words.refusals import HELD, Code, Refusal

log = logging.getLogger("coord.requests")


def decide_once(svc: Service, tx: Tx, actor: Actor, step: Write, once: Once) -> Any:
    """The value of a step under an idempotency key, which is kept in the transaction; or the answer
    that was kept before."""
    before = answered.find_answer(svc, tx, actor.agent, once)
    if before is not None:
        return before
    tx.once = once.key
    try:
        value = step.decide(tx, actor)
    finally:
        tx.once = None
    if not isinstance(value, Refusal):
        answered.note(tx, actor.agent, once, value)
    elif (step.queues and value.code in HELD
            and (place := value.facts.get("acquisition_id")) is not None):
        answered.wait(tx, actor.agent, once, place)
    return value


def note_later(tx: Tx, later: Later, step: Write, value: Any) -> Any:
    """Keep the value of a step of a request that has an idempotency key and several transactions,
    where it is the answer."""
    if not isinstance(value, Refusal):
        begun = journal.begun_by(value)
        if step.last:
            later.note(tx, value)
        elif begun is not None:
            later.begun(tx, begun)
    return value


def who(view: View, token: str | None) -> Actor:
    """The actor of a token. No token means the operator, on a local connection of the same user.

    Raises:
        Refusal: UNAUTHORIZED.
    """
    if token is None:
        return OPERATOR
    row = view.agent_of(token_hash(token))
    if row is None:
        raise Refusal(
            Code.UNAUTHORIZED, "This agent token is unknown, or its agent has left.",
            next="Register again; or act as a person, without a token (unset COORD_AGENT_TOKEN).",
        )
    return Actor(row)


def snapshot(db: apsw.Connection, now_ms: int, reading: Callable[[View], Any]) -> Any:
    """Run a reading against one committed state, at an instant."""
    started = time.perf_counter()
    db.execute("BEGIN")
    try:
        return reading(View(db, now_ms))
    finally:
        db.execute("COMMIT")
        spent = time.perf_counter() - started
        if spent > 0.5:
            log.info("a read took %.2f s", spent)
