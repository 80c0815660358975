"""Serving one request: the actor that it speaks for, its transactions, and a reading's snapshot.

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
from coordinator.kernel.operations import Operation, allowed
from coordinator.kernel.use_cases import Write
from coordinator.kernel.writing import journal
from coordinator.looking.facts import Looked
from coordinator.store.ledger import Job, Tx, View
from coordinator.words.refusals import HELD, Code, Refusal

log = logging.getLogger("coord.requests")


class Asker:
    """Who asks, for what operation, how long the request waits, and its idempotency key.

    Attributes:
        operation: None if the daemon itself asks.
        deadline: until when the request waits (the loop's time).
        once: the key of a request of one transaction, if it has a key.
        later: the place to answer a longer request, if it has a key.
    """

    __slots__ = ("checked", "deadline", "gone", "later", "once", "operation", "token")

    def __init__(self, operation: Operation | None = None, token: str | None = None,
                 gone: Callable[[], bool] = lambda: False, deadline: float = 0.0,
                 once: Once | None = None, later: Later | None = None) -> None:
        self.operation = operation
        self.token = token
        self.gone = gone
        self.deadline = deadline
        self.once = once
        self.later = later
        self.checked = operation is None

    def identify(self, view: View) -> Actor:
        """The actor that the request speaks for.

        Raises:
            Refusal: UNAUTHORIZED: the token is nobody's, or the operation is not for agents.
        """
        actor = who(view, self.token)
        if self.operation is not None and self.operation.operator_only:
            allowed(self.operation, actor)
        self.checked = True
        return actor


def make_job(svc: Service, step: Write, asker: Asker, looked: Looked) -> Job:
    """Make the job of one transaction from its step and from what was looked at. If the request has
    an idempotency key, the job keeps the answer."""
    def decide(tx: Tx) -> Any:
        tx.looked = looked
        actor = asker.identify(tx)
        if asker.later is not None:
            return _note_later(tx, asker.later, step, step.decide(tx, actor))
        if asker.once is not None:
            return _decide_once(svc, tx, actor, step, asker.once)
        return step.decide(tx, actor)

    return decide


def _decide_once(svc: Service, tx: Tx, actor: Actor, step: Write, once: Once) -> Any:
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


def _note_later(tx: Tx, later: Later, step: Write, value: Any) -> Any:
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
