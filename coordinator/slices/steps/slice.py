"""Steps of programs that were blocked, and dead letters: their operations.

The list of dead letters of all kinds; each is retried or dropped by its own kind.
"""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.kernel.blocked_steps import STEPS, StepQueue, read_content
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.hooks import Slice
from coordinator.kernel.leasing import leases
from coordinator.kernel.operations import Operation
from coordinator.kernel.retry_queue import DeadKind, Page
from coordinator.kernel.use_cases import read, take_work, write, write_by
from coordinator.looking.facts import AnyNeed, Whole
from coordinator.rules.backlog import told_state
from coordinator.slices.steps import steps
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import BlockedStepRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal


class DeadSteps(StepQueue):
    """What a person may do about steps that failed too often."""

    def list_needs(self, row: BlockedStepRow) -> list[AnyNeed]:
        """The files of a place in the queue."""
        if row.kind != "acquire":
            return []
        names: list[str] = msgspec.json.decode(row.resources)
        return [Whole(name) for name in names if ":" not in name or "/" in name]

    def retry(self, svc: Service, tx: Tx, actor: Actor, row: BlockedStepRow) -> None:
        """An agent that waited in vain waits again, or gets at once what it asked for.

        Raises:
            Refusal: it has left.
        """
        if row.kind != "acquire":
            super().retry(svc, tx, actor, row)
            return
        request = msgspec.convert(read_content(tx, row), rq.Acquire)
        request.reentrant = True
        given = leases.acquire(svc, tx, actor, request)
        if isinstance(given, Refusal) and given.facts.get("acquisition_id") is None:
            raise given
        self.move(tx, row, "finish")


def listing(svc: Service, view: View, actor: Actor, req: rq.Dead) -> rq.DeadList:
    """See `requests.Dead`."""
    limit = min(req.limit, 1000)
    since, _, last = (req.after or "").partition(" ")
    page = Page(since, last, limit + 1)
    letters = [kind.describe(view, row) for kind in _list_kinds(svc)
               for row in kind.list_newest(view, page, req.kind)]
    letters.sort(key=lambda letter: (letter.since, letter.id), reverse=True)
    items = letters[:limit]
    return rq.DeadList(items=items, next=f"{items[-1].since} {items[-1].id}"
                       if len(letters) > limit else None)


def show(svc: Service, view: View, actor: Actor, req: rq.DeadShow) -> rq.DeadLetter:
    """See `requests.DeadShow`."""
    kind, row = _find(svc, view, req.id)
    return kind.describe(view, row, whole=True)


def retry_needs(svc: Service, view: View, req: rq.DeadRetry) -> list[AnyNeed]:
    """What to look at before a dead letter is tried again."""
    try:
        kind, row = _find(svc, view, req.id)
    except Refusal:
        return []
    return kind.list_needs(row)


def retry(svc: Service, tx: Tx, actor: Actor, req: rq.DeadRetry) -> rq.DeadLetter:
    """See `requests.DeadRetry`."""
    kind, row = _find(svc, tx, req.id)
    letter = kind.describe(tx, row)
    kind.retry(svc, tx, actor, row)
    return letter


def drop(svc: Service, tx: Tx, actor: Actor, req: rq.DeadDrop) -> rq.DeadLetter:
    """See `requests.DeadDrop`."""
    kind, row = _find(svc, tx, req.id)
    letter = kind.describe(tx, row)
    kind.drop(tx, row)
    return letter


def _list_kinds(svc: Service) -> list[DeadKind[Any]]:
    return [part.dead_kind for part in svc.slices if part.dead_kind is not None]


def _find(svc: Service, view: View, text: str) -> tuple[DeadKind[Any], Any]:
    """The dead letter with this id, and its kind. An id without a letter is a task's.

    Raises:
        Refusal: UNKNOWN_TASK, UNKNOWN_CHANGE, UNKNOWN_STEP, BAD_TRANSITION.
    """
    name = text.strip().upper()
    kinds = _list_kinds(svc)
    kind = next((kind for kind in kinds if name.startswith(kind.prefix)), kinds[0])
    row = kind.find(view, text.strip())
    if row.state != "dead":
        raise Refusal(
            Code.BAD_TRANSITION, f"{kind.describe(view, row).id} is {told_state(row.state)}, not "
            "dead; it stays so.", next=STEPS.shown_by,
            state=row.state,
        )
    return kind, row


class Steps(Slice):
    """See `kernel.hooks.Slice`."""

    dead_kind = DeadSteps()
    operations = (
        Operation(rq.StepAdd, write(steps.add)),
        Operation(rq.StepNext, take_work(steps.give_next)),
        Operation(rq.StepDone, write(steps.done)),
        Operation(rq.StepFail, write(steps.fail)),
        Operation(rq.Steps, read(steps.listing)),
        Operation(rq.Dead, read(listing)),
        Operation(rq.DeadShow, read(show)),
        Operation(rq.DeadRetry, write_by(retry, retry_needs)),
        Operation(rq.DeadDrop, write(drop)),
    )
