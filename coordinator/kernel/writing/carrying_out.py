"""Carrying out what the journal has, from its beginning or after a crash, to its noted end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordinator.kernel import answered
from coordinator.kernel.core import Service
from coordinator.kernel.use_cases import OnDisk, Steps, Write
from coordinator.kernel.writing import commits
from coordinator.kernel.writing.journal import HOLD_MS, Journal, holder, journal_of, unfinished
from coordinator.kernel.writing.performing import Performed, perform
from coordinator.kernel.writing.words import where_to_look
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words.refusals import Code, Refusal


def finish(svc: Service, journal: Journal, *, after_crash: bool,
           last: Callable[[Tx, Any], Any] = lambda tx, answer: answer) -> Steps:
    """Carry out what the journal has, and note how it went. `last` makes the answer to the whole,
    in the transaction that notes the end."""
    svc.at_work.add(journal.review)
    try:
        done = yield OnDisk(lambda worker: perform(svc, worker, journal, after_crash))
        if isinstance(done, Refusal):
            return done
        if done.state == "halted":
            return Refusal(
                Code.SHUTTING_DOWN, f"The coordinator is shutting down in the middle of the "
                f"{journal.verdict.what} of {journal.review}. It goes on with that at its next "
                "start.", next=where_to_look(journal),
            )
        return (yield Write(
            lambda tx, actor: _keep_answers(tx, journal, last(tx, _end(svc, tx, journal, done))),
            last=True))
    finally:
        svc.at_work.discard(journal.review)


def resume(svc: Service, review: str) -> Steps:
    """Go on with a verdict that a crash or a disk has cut off."""
    journal = yield OnDisk(lambda worker: journal_of(worker.view, review))
    if isinstance(journal, Journal) and review not in svc.at_work:
        return (yield from finish(svc, journal, after_crash=True))
    return journal


def hold(svc: Service, tx: Tx) -> None:
    """Renew the leases of verdicts that have begun and not ended; those of what never began end."""
    commits.close_left(svc, tx)
    for review in unfinished(tx):
        held = tx.each(LeaseRow, "leases_of_holder", holder(review))
        if held:
            until = tx.later(HOLD_MS)
            tx.record(ev.LeaseRenewed(agent=holder(review),
                                      until=[(row.fencing_token, until) for row in held]))


def _end(svc: Service, tx: Tx, journal: Journal, done: Performed) -> Any:
    if journal.verdict.what == "commit":
        return commits.conclude(svc, tx, journal, done)
    return next(ended for part in svc.slices
                if (ended := part.conclude_writing(svc, tx, journal, done)) is not None)


def _keep_answers(tx: Tx, journal: Journal, answer: Any) -> Any:
    """The answer, which is kept for those who had asked for it under an idempotency key; they wait
    on where a disk has stopped it in the middle."""
    if journal_of(tx, journal.review) is not None:
        return answer
    for asker, asked in answered.awaited(tx, journal.review):
        if isinstance(answer, list):  # nobody is left who knows the request
            answer = commits.answer(asked.op, journal, answer)
        if not isinstance(answer, Refusal):
            answered.note(tx, asker or None, asked, answer)
    answered.wait_no_more(tx, journal.review)
    return answer
