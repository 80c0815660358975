"""How an operation is served: a generator of steps, which a driver carries out in order.

A use case yields a step, receives its result, and returns the answer to the whole. A `Refusal` is a
result, too. The daemon drives use cases in its loop, its workers and its threads; benchmarks and
tests drive them at once. A use case carries nothing out itself, and knows no thread and no loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

import msgspec

from coordinator.kernel.core import Actor, Service, check_wait
from coordinator.looking.facts import AnyNeed, Looked, Unready
from coordinator.store.ledger import Job, Tx, View
from coordinator.words.refusals import HELD, Code, Refusal

#: A reading request's use case, and a writing one's: what it answers.
Reader = Callable[[Service, View, Actor, Any], Any]
Decider = Callable[[Service, Tx, Actor, Any], Any]
#: Refusals of a request for work that another commit may turn into work.
NO_WORK_YET = (Code.NOTHING_TO_DO, *HELD, Code.TASK_NOT_READY, Code.REVIEW_OPEN)

#: How long a reading waits for what is about to be closed, and how often it looks (seconds).
SETTLED_S, AGAIN_S = 2.0, 0.02


class Worker(Protocol):
    """What a step gets that reads and writes files of the repository."""

    view: View
    """On a connection of its own."""

    def report(self, job: Callable[[Tx], Any]) -> None:
        """Have this recorded soon; nobody waits for it."""

    def halted(self) -> bool:
        """Whether the coordinator is about to stop."""

    def piece(self) -> AbstractContextManager[object]:
        """A piece of the work on the disk is done in it; a rest may follow (`files.pace`)."""


class Caller(Protocol):
    """The asker, as the daemon's own operations see it."""

    @property
    def token(self) -> str | None:
        """The agent's token; None for a person."""

    @property
    def gone(self) -> Callable[[], bool]:
        """Tells whether the asker has hung up."""


class Look(msgspec.Struct, frozen=True, gc=False):
    """Look at these before anything is decided; gives a `Looked`."""

    needs: Sequence[AnyNeed]
    looked: Looked | None = None
    """The facts that are known already; new ones are added."""


class Read(msgspec.Struct, frozen=True, gc=False):
    """Read one committed state. `apart`: in a thread of its own, for it takes long."""

    reading: Callable[[View, Actor], Any]
    apart: bool = False


class Write(msgspec.Struct, frozen=True, gc=False):
    """Look at what a decision `needs`, then decide in a transaction, by `looked` and by the further
    facts that the decision asks for. Gives the refusal of a look that could not be made.

    `last`: the value answers the whole request. If the request has an idempotency key, the value is
    kept in the same transaction. If the value is a place in the queue at which the request then
    waits (`queues`), it is kept with the grant.
    """

    decide: Callable[[Tx, Actor], Any]
    looked: Looked | None = None
    last: bool = False
    queues: bool = False
    needs: Sequence[AnyNeed] = ()


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Run a job in a transaction once; an `Unready` is a value."""

    job: Job


class OffLoop(msgspec.Struct, frozen=True, gc=False):
    """Do this in a thread, outside of any transaction and of everybody's time."""

    work: Callable[[], Any]


class OnDisk(msgspec.Struct, frozen=True, gc=False):
    """Do this in one of the few workers that read and write files of the repository."""

    work: Callable[[Worker], Any]


class Await(msgspec.Struct, frozen=True, gc=False):
    """Await what the daemon does itself."""

    begin: Callable[[Caller], Coroutine[Any, Any, Any]]


class FindAsker(msgspec.Struct, frozen=True, gc=False):
    """Give the mark of the asking process (`core.Presence`); empty if it is not seen."""


class Pause(msgspec.Struct, frozen=True, gc=False):
    """Wait so long (seconds)."""

    seconds: float


class WaitForGrant(msgspec.Struct, frozen=True, gc=False):
    """Wait in the queue as long as the request says. Gives the grant, or the refusal at the end;
    None if nothing waits here.

    `stays`: the place is kept when the time is over. `alone`: a grant to another request of the
    agent does not count for this one. `passing`: the asker is gone with the answer, so its place
    stays only while its agent is there.
    """

    acquisition: str
    stays: bool
    alone: bool
    passing: bool


class WaitForChange(msgspec.Struct, frozen=True, gc=False):
    """Wait for a commit that offers work, or changes what is read, as long as the request says.
    Gives whether to look again. `rests_until`: an instant (ISO text) that is waited for, too."""

    of: Literal["work", "values"]
    rests_until: str | None = None


Step = (Look | Read | Write | Commit | OffLoop | OnDisk | Await | FindAsker | Pause
        | WaitForGrant | WaitForChange)
Steps = Generator[Step, Any, Any]
UseCase = Callable[[Service, Any], Steps]


def read(handle: Reader, apart: Callable[[Any], bool] = lambda request: False) -> UseCase:
    """The use case that only reads. `apart`: which requests take long."""
    def serve(svc: Service, request: Any) -> Steps:
        return (yield Read(lambda view, actor: handle(svc, view, actor, request), apart(request)))

    return serve


def read_apart(handle: Reader) -> UseCase:
    """The use case that walks the log or all tasks."""
    return read(handle, lambda request: True)


def read_until(handle: Reader, is_there: Callable[[Any], bool]) -> UseCase:
    """The use case that reads, and waits for what it reads."""
    def serve(svc: Service, request: Any) -> Steps:
        check_wait(svc, request.wait_s)
        while True:
            value = yield Read(lambda view, actor: handle(svc, view, actor, request))
            if isinstance(value, Refusal) or is_there(value):
                return value
            if not (yield WaitForChange("values")):
                return value

    return serve


def read_settled(handle: Reader, is_due: Callable[[View], object]) -> UseCase:
    """The use case that reads once everything that has expired is closed and flagged, or after
    `SETTLED_S`."""
    def serve(svc: Service, request: Any) -> Steps:
        for _ in range(round(SETTLED_S / AGAIN_S)):
            due = yield Read(lambda view, actor: bool(is_due(view)))
            if due is not True or not svc.tend():
                break
            yield Pause(AGAIN_S)
        return (yield Read(lambda view, actor: handle(svc, view, actor, request)))

    return serve


def write(handle: Decider, needs: Callable[[Any], list[AnyNeed]] | None = None) -> UseCase:
    """The use case of one transaction. `needs`: what a request has to have looked at."""
    def serve(svc: Service, request: Any) -> Steps:
        return (yield Write(lambda tx, actor: handle(svc, tx, actor, request), last=True,
                            needs=needs(request) if needs else ()))

    return serve


def write_by(handle: Decider,
             find_needs: Callable[[Service, View, Any], list[AnyNeed]]) -> UseCase:
    """The use case that writes where the database tells what has to be looked at."""
    def serve(svc: Service, request: Any) -> Steps:
        needs = yield Read(lambda view, actor: find_needs(svc, view, request))
        return (yield Write(lambda tx, actor: handle(svc, tx, actor, request), last=True,
                            needs=needs if isinstance(needs, list) else ()))

    return serve


def take_work(handle: Decider, find_needs: Callable[[Service, View, Any], list[AnyNeed]] | None
              = None) -> UseCase:
    """The use case that gives something to do, and waits for it."""
    once = write(handle) if find_needs is None else write_by(handle, find_needs)

    def serve(svc: Service, request: Any) -> Steps:
        asked = request
        while True:
            value = yield from once(svc, asked)
            if request.wait_s <= 0 or not (
                    isinstance(value, Refusal) and value.code in NO_WORK_YET):
                return value
            if value.facts.get("counts", {}).get("ready"):  # it is noted once that it waits
                asked = msgspec.structs.replace(request, wait_s=0.0)
            if not (yield WaitForChange("work", value.facts.get("rests_until"))):
                return value

    return serve


def answer_at_once(handle: Callable[[Any], Any]) -> UseCase:
    """The use case that the daemon answers from what it knows of itself."""
    return read(lambda svc, view, actor, request: handle(request))


def await_daemon(handle: Callable[[Any, Caller], Coroutine[Any, Any, Any]]) -> UseCase:
    """The use case that takes the daemon itself long."""
    def serve(svc: Service, request: Any) -> Steps:
        return (yield Await(lambda caller: handle(request, caller)))

    return serve


# ------------------------------------------------------------ what a decision has to know

#: How often one decision is made again before it is given up. Each time either more is known, or
#: the files have changed.
ROUNDS_MAX = 100


def decide(job: Job) -> Write:
    """The step that runs a job of coord's own, whatever it has to know for it."""
    return Write(lambda tx, actor: job(tx))


def read_again(reading: Callable[[View], Any], unready: Unready) -> Steps:
    """The result of a reading once the needed facts of the disk are known."""
    facts = Looked()

    def informed(view: View, actor: Actor) -> Any:
        view.looked = facts
        try:
            return reading(view)
        except Unready as more:
            return more

    for _ in range(ROUNDS_MAX):
        refusal = yield Look(unready.needs, facts)
        if isinstance(refusal, Refusal):
            return refusal
        value = yield Read(informed)
        if not isinstance(value, Unready):
            return value
        unready = value
    return never_at_rest()


def never_at_rest() -> Refusal:
    """The refusal of what cannot be decided: the files change faster than they are looked at."""
    return Refusal(
        Code.VERSION_CHANGED, "The files were changed again and again while coord looked at them; "
        "nothing was done.", next="Repeat it when they are at rest.",
    )


