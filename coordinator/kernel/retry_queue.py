"""What could not be done now: kept on disk, tried again after a rest, and a dead letter in the end.

Each such step has attempts, a rest between them and a limit. Its content (arguments, requests,
events) is kept beside the log, not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from coordinator.kernel.core import Service, ms
from coordinator.kernel.holders import notices
from coordinator.kernel.json_values import keep_json
from coordinator.kernel.unknown_ids import unknown
from coordinator.rules import steps as rule
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import BlockedStepRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import counted, quoted

PREFIX = "S-"
#: How long what is done or dropped is kept (ms).
KEPT_MS = 86_400_000


class NewStep(NamedTuple):
    """Something that is to be tried again: see `steps` in schema.sql. `rest_ms`: not before so long
    from now; `dead`: only when a person says so."""

    kind: str
    name: str
    content: bytes
    agent: str | None
    resources: Sequence[str] = ()
    rest_ms: int = 0
    attempts_max: int = 10
    why: str = ""
    dead: bool = False
    event: int | None = None


class Given(NamedTuple):
    """Who is to try a step, and until when it may take."""

    to: str
    until: str


def put(svc: Service, tx: Tx, new: NewStep) -> BlockedStepRow:
    """Keep something that is to be tried again."""
    n = tx.number("step")
    step = f"{PREFIX}{n}"
    tx.record(
        ev.StepAdded(
            step=step, n=n, step_kind=new.kind, name=new.name,
            state="dead" if new.dead else "waiting", attempts=1 if new.dead else 0,
            attempts_max=new.attempts_max, content=keep_json(svc, tx, new.content),
            agent=new.agent, resources=list(new.resources),
            not_before=None if new.dead else tx.later(new.rest_ms), why=new.why[:1000],
            event=new.event,
        )
    )
    tx.effects.offers = True
    return find(tx, step)


def find_alike(svc: Service, tx: Tx, kind: str, content: bytes,
               agent: str | None) -> BlockedStepRow | None:
    """What this agent has waiting to be tried again, and is the very same."""
    step = tx.value("steps_kept_alike", kind, agent, keep_json(svc, tx, content))
    return find(tx, step) if step is not None else None


def keep_waited_in_vain(svc: Service, tx: Tx, waiter: WaiterRow,
                        names: list[str]) -> BlockedStepRow:
    """A place in line was waited for in vain: what was asked for is kept, for a person to let it be
    asked again."""
    asked = rq.Acquire(
        agent=waiter.agent, resources=names, task=waiter.task_id, description=waiter.description,
        mode="shared" if waiter.mode == "shared" else "exclusive", ttl_s=waiter.ttl_ms / 1000,
    )
    for before in tx.values("steps_dead_alike", waiter.agent, msgspec.json.encode(names).decode()):
        move(tx, find(tx, str(before)), "drop", why="it was waited for again, in vain")
    return put(svc, tx, NewStep(
        "acquire", ", ".join(names)[:200], msgspec.json.encode(asked), waiter.agent, names,
        attempts_max=1, dead=True, why="it did not become free in time"))


def fail(svc: Service, tx: Tx, row: BlockedStepRow, why: str, *,
           agent: str | None = None) -> None:
    """An attempt is over without success: it rests and is tried again, or is dead."""
    if row.attempts >= row.attempts_max:
        move(tx, row, "exhaust", agent=agent, why=why)
        tell_dead(tx, row, why)
        return
    move(tx, row, "fail", agent=agent, why=why,
          not_before=tx.later(rest_ms(svc, row.step_id, row.attempts)))


def give_up(tx: Tx, row: BlockedStepRow, why: str) -> None:
    """It cannot work, whatever is tried: a dead letter at once."""
    move(tx, row, "exhaust", why=why)
    tell_dead(tx, row, why)


def begin(tx: Tx, row: BlockedStepRow, until: str) -> BlockedStepRow:
    """The daemon itself is about to try it."""
    move(tx, row, "give", given=Given("coord", until), why=row.why)
    return find(tx, row.step_id)


def finish(tx: Tx, row: BlockedStepRow) -> None:
    """It worked."""
    move(tx, row, "finish")


def end_late(svc: Service, tx: Tx) -> int:
    """Steps whose time is over: whoever was given them hangs, or has gone; how many."""
    rows = [find(tx, str(name)) for name in tx.values("steps_late", tx.now)]
    for row in rows:
        fail(svc, tx, row, f"{row.given_to} did not answer in time")
    return len(rows)


def forget_old(tx: Tx) -> None:
    """Forget what was done or dropped a day ago. What is dead stays until a person acts, but for
    places in line of agents that have left."""
    for name in tx.values("steps_dead_left"):
        move(tx, find(tx, str(name)), "drop", why="its agent has left")
    old = tx.values("steps_old", tx.later(-KEPT_MS), 1000)
    if old:
        tx.record(ev.StepsForgotten(steps=old))


def find(view: View, text: str) -> BlockedStepRow:
    """The step called `S-3`, `s-3` or `3`.

    Raises:
        Refusal: UNKNOWN_STEP.
    """
    name = text.strip()
    for candidate in (name, name.upper(), PREFIX + name):
        row = view.first(BlockedStepRow, "step_get", candidate)
        if row is not None:
            return row
    raise unknown(Code.UNKNOWN_STEP, "step", "S", name)


def revive(svc: Service, tx: Tx, row: BlockedStepRow) -> None:
    """A person lets a dead step be tried again, from its first attempt on."""
    move(tx, row, "retry", not_before=tx.now, why="put back by a person")


def drop(tx: Tx, row: BlockedStepRow) -> None:
    """A person gives it up."""
    move(tx, row, "drop", why="given up by a person")
    if row.agent is not None:
        notices.post(tx, row.agent, "step", f"{row.step_id} ({quoted(row.name)}) was given up by a "
                     "person; it is not tried again.", step=row.step_id)


def tell_dead(tx: Tx, row: BlockedStepRow, why: str) -> None:
    """Whoever was blocked hears that it is given up for now."""
    if row.agent is not None:
        notices.post(
            tx, row.agent, "step", f"{row.step_id} ({quoted(row.name)}) did not work in "
            f"{counted(row.attempts, 'attempt')} and is a dead letter: {quoted(why, 500)}. A "
            "person can retry or drop it.", step=row.step_id,
        )


def read_content(view: View, row: BlockedStepRow) -> Any:
    """What it is about, decoded."""
    text = view.blob(row.content)
    return msgspec.json.decode(text) if text is not None else None


def rest_ms(svc: Service, step: str, attempts: int) -> int:
    """How long a step rests after so many attempts (ms)."""
    limits = svc.settings.backlog
    return rule.rest_ms(step, attempts, ms(limits.backoff_s), ms(limits.backoff_max_s))


def move(tx: Tx, row: BlockedStepRow, verb: str, *, agent: str | None = None, why: str = "",
         not_before: str | None = None, given: Given | None = None) -> None:
    """Take a step through one transition: giving it begins an attempt, retrying it the count anew.

    Raises:
        Refusal: BAD_TRANSITION.
    """
    state = rule.STEP_TRANSITIONS.get((row.state, verb))
    if state is None:
        raise Refusal(
            Code.BAD_TRANSITION, f"{row.step_id} is {row.state}, which allows no `{verb}`. "
            "It stays as it is.", next="`coord dead list` shows what was given up.",
            state=row.state,
        )
    tx.record(
        ev.StepMoved(
            step=row.step_id, state=state, agent=agent, why=why[:1000],
            attempts=0 if verb == "retry" else row.attempts + (verb == "give"),
            not_before=not_before, given_to=given.to if given else None,
            given_until=given.until if given else None,
        )
    )
    tx.effects.offers = True
