"""Serving one request: whom it speaks for, the job that a writing one is, and a reading's snapshot.

Knows no connection and keeps nothing; who is answered when is the router's business.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import apsw

from coordinator.looking.facts import Looked
from coordinator.operations.listing import Operation, allowed
from coordinator.service import answered
from coordinator.service.answered import Once
from coordinator.service.core import OPERATOR, Actor, Service, token_hash
from coordinator.service.leasing import waiting_line
from coordinator.store.ledger import Tx, View
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal

log = logging.getLogger("coord.requests")


def serve(svc: Service, operation: Operation, request: Any, token: str | None, looked: Looked,
           once: Once | None, tx: Tx) -> Any:
    """The job that serves a writing request, by what was looked at for it."""
    tx.looked = looked
    actor = who(tx, token)
    if operation.operator_only:
        allowed(operation, actor)
    assert operation.handle is not None, "it is no course and no verdict"
    if once is not None:
        before = answered.known(svc, tx, actor.agent, once)
        if before is not None:
            return before
        tx.once = once.key
        try:
            value = operation.handle(svc, tx, actor, request)
        finally:
            tx.once = None
        if not isinstance(value, Refusal):
            answered.note(tx, actor.agent, once, value)
        elif (isinstance(request, rq.Acquire) and request.wait_s > 0 and value.code in HELD
              and (place := value.facts.get("acquisition_id")) is not None):
            answered.wait(tx, actor.agent, once, place)
    else:
        value = operation.handle(svc, tx, actor, request)
    if tx.freed:
        waiting_line.wake(svc, tx)
    return value


def who(view: View, token: str | None) -> Actor:
    """Whom a token speaks for; no token (a local connection of the same user): the operator.

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
