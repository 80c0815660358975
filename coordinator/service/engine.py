"""Running a decision: transaction, look, transaction again; and the errands that follow from one.

A decision that is `Unready` names what it needs: files to be looked at, lapsed leases to be closed
first. `decide` sees to that outside of any transaction, and then asks again. Each errand (a waiter
that may be served, lapsed leases, dependents of a closed task) runs alone, in transactions of its
own: one that cannot be served is set aside with its reason, and nobody else hears of it
(invariant 11).

Knows no thread, process or event loop: an `Engine` writes and looks for it. The daemon's does so in
its loop and its workers, that of the tests at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from coordinator.looking.facts import AnyNeed, Lapsed, Looked, Unready
from coordinator.service import unserved
from coordinator.service.backlog import tasks
from coordinator.service.core import Service
from coordinator.service.leasing import lapse, waiting_line
from coordinator.store.ledger import Job, Tx, View
from coordinator.words.refusals import Code, Refusal

T = TypeVar("T")
#: How often one decision is made again before it is given up. Each time either more is known, or
#: the files have changed.
ROUNDS_MAX = 100


class Engine(Protocol):
    """What a decision is run by."""

    async def write(self, job: Job) -> Any:
        """The job's value once it is on disk; a `Refusal` or `Unready` is a value."""

    async def read(self, reading: Callable[[View], Any]) -> Any:
        """What a reading of the committed state gives; a `Refusal` is a value."""

    async def look(self, needs: Iterable[AnyNeed], looked: Looked) -> Refusal | None:
        """Look at all of these and add what is found. A refusal: nobody can look now."""

    async def do(self, work: Callable[[], T]) -> T | Refusal:
        """What `work` gives, done outside of any transaction and of everybody's time."""


def going_by(looked: Looked, job: Job) -> Job:
    """The job, with these facts at hand."""
    def run(tx: Tx) -> Any:
        tx.looked = looked
        return job(tx)

    return run


async def decide(engine: Engine, svc: Service, job: Job, looked: Looked | None = None) -> Any:
    """The job's value or `Refusal`, whatever it has to know for it."""
    facts = looked or Looked()
    ready = going_by(facts, job)
    return await go_on(engine, svc, ready, facts, await engine.write(ready))


async def go_on(engine: Engine, svc: Service, ready: Job, facts: Looked, value: Any) -> Any:
    """`decide` from the job's first answer on."""
    for _ in range(ROUNDS_MAX):
        if not isinstance(value, Unready):
            return value
        for one in value.lapsed:
            closed = await close_lapsed(engine, svc, one)
            if isinstance(closed, Refusal):
                return closed
        if value.needs:
            refusal = await engine.look(value.needs, facts)
            if refusal is not None:
                return refusal
        for name, work in value.work.items():
            facts.done = {**(facts.done or {}), name: await engine.do(work)}
        value = await engine.write(ready)
    if not isinstance(value, Unready):
        return value
    return Refusal(
        Code.VERSION_CHANGED, "The files were changed again and again while coord looked at them; "
        "nothing was done.", next="Repeat it when they are at rest.",
    )


async def read(engine: Engine, reading: Callable[[View], Any]) -> Any:
    """What a reading of the committed state gives, whatever of the disk it has to know."""
    facts = Looked()

    def informed(view: View) -> Any:
        view.looked = facts
        try:
            return reading(view)
        except Unready as unready:
            return unready

    for _ in range(ROUNDS_MAX):
        value = await engine.read(informed)
        if not isinstance(value, Unready):
            return value
        refusal = await engine.look(value.needs, facts)
        if refusal is not None:
            return refusal
    return Refusal(Code.VERSION_CHANGED, "The files were changed again and again while coord "
                   "looked at them; nothing was done.")


async def close_lapsed(engine: Engine, svc: Service, which: Lapsed) -> lapse.Ending | Refusal:
    """Close one holder's lapsed leases of one task, with what changed under them. Where that
    cannot be told, they are closed all the same, and a review says so. A refusal (STORAGE): the
    database cannot be written now, and all is as it was."""
    value = await decide(engine, svc, lambda tx: lapse.close_group(svc, tx, which))
    if isinstance(value, Refusal) and value.code is Code.STORAGE:
        return value
    if isinstance(value, Refusal):
        why = value.message
        value = await engine.write(lambda tx: lapse.close_group(svc, tx, which, unseen=why))
        if isinstance(value, Refusal | Unready):
            subject = lapse.subject(which)
            await engine.write(lambda tx: unserved.put(
                tx, "lapse", subject, why, agent=which.holder, task=which.task))
            return lapse.Ending()
    ending: lapse.Ending = value
    return ending


async def serve_waiter(engine: Engine, svc: Service, acquisition: str) -> bool:
    """Grant to this waiter if nothing stands in its way; whether it was granted."""
    value = await decide(engine, svc, lambda tx: waiting_line.serve(svc, tx, acquisition))
    if isinstance(value, Refusal):
        why = value.message
        await engine.write(lambda tx: waiting_line.set_aside(svc, tx, acquisition, why))
        return False
    return bool(value)


async def ripple(engine: Engine) -> None:
    """Tell dependents of closed tasks, slice by slice, until none is left."""
    while await engine.write(lambda tx: tasks.go_on_rippling(tx)) is True:
        pass
