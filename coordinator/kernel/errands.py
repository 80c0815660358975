"""The work that follows a decision: closing expired leases, serving waiters, telling dependents of
a closed task.

A decision that raises `Unready` names what it needs, such as files to be looked at, or expired
leases to be closed first. `decide_again` provides it outside of any transaction. Each errand runs
alone in transactions of its own. An errand that cannot be served is set aside with its reason and
disturbs nobody else (invariant 11).
"""

from __future__ import annotations

from coordinator.kernel import tasks, unserved
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import lapse, waiting_line
from coordinator.kernel.use_cases import (
    ROUNDS_MAX,
    Commit,
    Look,
    OffLoop,
    Steps,
    decide,
    never_at_rest,
)
from coordinator.looking.facts import Lapsed, Looked, Unready
from coordinator.store.ledger import Job
from coordinator.words.refusals import Code, Refusal


def decide_again(svc: Service, job: Job, facts: Looked, unready: Unready) -> Steps:
    """A job's value or `Refusal` once what it lacked is known. It goes by `facts`, which grow."""
    for _ in range(ROUNDS_MAX):
        for group in unready.lapsed:
            closed = yield from close_lapsed(svc, group)
            if isinstance(closed, Refusal):
                return closed
        if unready.needs:
            refusal = yield Look(unready.needs, facts)
            if isinstance(refusal, Refusal):
                return refusal
        for name, work in unready.work.items():
            facts.done = {**(facts.done or {}), name: (yield OffLoop(work))}
        value = yield Commit(job)
        if not isinstance(value, Unready):
            return value
        unready = value
    return never_at_rest()


def close_lapsed(svc: Service, which: Lapsed) -> Steps:
    """Close one holder's expired leases of one task, with what changed under them. Gives an
    `Ending`. If the changes cannot be told, the leases are closed nevertheless, and a review says
    so. A refusal (STORAGE) means that the database cannot be written now and nothing has changed.
    """
    value = yield decide(lambda tx: lapse.close_group(svc, tx, which))
    if not isinstance(value, Refusal) or value.code is Code.STORAGE:
        return value
    why = value.message
    value = yield Commit(lambda tx: lapse.close_group(svc, tx, which, unseen=why))
    if isinstance(value, Refusal | Unready):
        subject = lapse.subject(which)
        yield Commit(lambda tx: unserved.put(
            tx, "lapse", subject, why, agent=which.holder, task=which.task))
        return lapse.Ending()
    return value


def serve_waiter(svc: Service, acquisition: str) -> Steps:
    """Grant to this waiter if nothing blocks it. Gives whether it was granted."""
    value = yield decide(lambda tx: waiting_line.serve(svc, tx, acquisition))
    if isinstance(value, Refusal):
        why = value.message
        yield Commit(lambda tx: waiting_line.set_aside(svc, tx, acquisition, why))
        return False
    return bool(value)


def ripple() -> Steps:
    """Tell dependents of closed tasks, slice by slice, until none is left."""
    while (yield Commit(lambda tx: tasks.go_on_rippling(tx))) is True:
        pass
