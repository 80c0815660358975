"""Steps that were blocked: calls of programs, places in line, proposals, webhooks.

A step's content (arguments, requests, events) is kept beside the log, not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from coordinator.kernel.core import Actor, Service
from coordinator.kernel.json_values import keep_json
from coordinator.kernel.retry_queue import About, Page, RetryQueue
from coordinator.rules import retrying as rule
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import BlockedStepRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from coordinator.words.texts import quoted


class StepQueue(RetryQueue[BlockedStepRow]):
    """Steps, and those among them that failed too often. See `retry_queue.RetryQueue`."""

    prefix = "S-"
    noun, late, old = "step", "steps_late", "steps_old"
    unknown = Code.UNKNOWN_STEP
    transitions = rule.STEP_TRANSITIONS
    forgotten = ev.StepsForgotten
    shown_by = "`coord dead list` shows what was given up."
    dead_text = ("did not work in {counted} and is a dead letter: {why}. "
                 "A person can retry or drop it.")
    dropped_text = "was given up by a person; it is not tried again."
    unharmed = "Nothing was changed."
    jitter = rule.JITTER

    def get(self, view: View, name: str) -> BlockedStepRow | None:
        return view.first(BlockedStepRow, "step_get", name)

    def list_newest(self, view: View, page: Page, kind: str | None) -> list[BlockedStepRow]:
        return view.each(BlockedStepRow, "steps_dead_newest", *page, kind)

    def sum_up(self, row: BlockedStepRow) -> About:
        return About(row.step_id, row.kind, row.name, row.agent, f" ({quoted(row.name)})", {})

    def make_moved(self, row: BlockedStepRow, *, why: str, **fields: Any) -> ev.Event:
        return ev.StepMoved(step=row.step_id, why=why[:1000], **fields)

    def retry(self, svc: Service, tx: Tx, actor: Actor, row: BlockedStepRow) -> None:
        self.move(tx, row, "retry", not_before=tx.now, why="put back by a person")

    def forget_old(self, tx: Tx) -> None:
        """Forget also the dead places in line of agents that have left."""
        for name in tx.values("steps_dead_left"):
            self.move(tx, self.find(tx, name), "drop", why="its agent has left")
        super().forget_old(tx)


STEPS = StepQueue()


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


def put(svc: Service, tx: Tx, new: NewStep) -> BlockedStepRow:
    """Keep something that is to be tried again."""
    n = tx.number("step")
    step = f"{STEPS.prefix}{n}"
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
    return STEPS.find(tx, step)


def find_alike(svc: Service, tx: Tx, kind: str, content: bytes,
               agent: str | None) -> BlockedStepRow | None:
    """What this agent has waiting to be tried again, and is the very same."""
    step = tx.value("steps_kept_alike", kind, agent, keep_json(svc, tx, content))
    return STEPS.find(tx, step) if step is not None else None


def keep_waited_in_vain(svc: Service, tx: Tx, waiter: WaiterRow,
                        names: list[str]) -> BlockedStepRow:
    """A place in line was waited for in vain: what was asked for is kept, for a person to let it be
    asked again."""
    asked = rq.Acquire(
        agent=waiter.agent, resources=names, task=waiter.task_id, description=waiter.description,
        mode="shared" if waiter.mode == "shared" else "exclusive", ttl_s=waiter.ttl_ms / 1000,
    )
    for before in tx.values("steps_dead_alike", waiter.agent, msgspec.json.encode(names).decode()):
        STEPS.move(tx, STEPS.find(tx, before), "drop", why="it was waited for again, in vain")
    return put(svc, tx, NewStep(
        "acquire", ", ".join(names)[:200], msgspec.json.encode(asked), waiter.agent, names,
        attempts_max=1, dead=True, why="it did not become free in time"))


def begin(step: str, most_ms: int, tx: Tx) -> None:
    """The daemon itself is about to try it, for so long at most."""
    row = STEPS.find(tx, step)
    STEPS.move(tx, row, "give", given_to="coord", given_until=tx.later(most_ms), why=row.why)


def read_content(view: View, row: BlockedStepRow) -> Any:
    """What it is about, decoded."""
    text = view.blob(row.content)
    return msgspec.json.decode(text) if text is not None else None
