"""Steps that were blocked: kept on disk, tried again after a rest, and dead letters in the end.

A *call* is a function of somebody's program, given to whoever asks for steps of its name. What
coord does itself (`acquire`: a place in line that was waited for in vain; `propose`; `webhook`) is
tried again by the daemon. Content (arguments, requests, events) is kept beside the log, not in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from coordinator.kernel.core import Actor, Service, check_give, check_wait, ms, split_page
from coordinator.kernel.holders import agents, notices
from coordinator.kernel.leasing.overlapping import holders_of
from coordinator.kernel.unknown_ids import unknown
from coordinator.rules import steps as rule
from coordinator.slices.state import values
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import BlockedStepRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words import resource_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import counted, quoted

PREFIX = "S-"
#: Steps that wait at the same time.
OPEN_MAX = 10_000
#: Calls that are looked at for one whose resources are free.
LOOKED_AT = 20
#: How long what is done or dropped is kept (ms).
KEPT_MS = 86_400_000
_NAME = re.compile(r"[\w.:/-]{1,200}")


def add(svc: Service, tx: Tx, actor: Actor, req: rq.StepAdd) -> rq.Step:
    """See `requests.StepAdd`."""
    if not _NAME.fullmatch(req.name):
        raise Refusal(
            Code.INVALID, f"{req.name[:60]!r} cannot be a step's name: 1 to 200 letters, digits "
            "and any of `_.:/-`. Nothing was put off.",
            next="Name the function, like `billing.add`.",
        )
    if not 1 <= req.attempts_max <= 1000 or not (
            req.delay_s is None or 0 <= req.delay_s <= 31_536_000):
        raise Refusal(Code.INVALID, "`attempts_max` must be between 1 and 1000, `delay_s` between "
                      "0 and a year. Nothing was put off.")
    text = values.checked_json(svc, req.arguments, "arguments")
    for name in req.resources:
        resource_names.parse(name)
    _check_room(tx)
    agents.acting(tx, actor, req.agent)
    rest = ms(req.delay_s) if req.delay_s is not None else _rest(svc, tx, "call", 1)
    return _reply(tx, put(
        svc, tx, "call", req.name, text, agent=req.agent, resources=req.resources, rest_ms=rest,
        attempts_max=req.attempts_max, why=req.why,
    ), content=True)


def give_next(svc: Service, tx: Tx, actor: Actor, req: rq.StepNext) -> rq.Step | Refusal:
    """See `requests.StepNext`."""
    check_wait(svc, req.wait_s)
    check_give(req.give_s)
    if not req.names:
        raise Refusal(Code.INVALID, "`names` is empty: at least one is to be given. Nothing was "
                      "done.", field="names")
    agents.may_act(tx, actor, req.agent)
    names = frozenset(req.names)
    found = tx.each(BlockedStepRow, "steps_due", "call", tx.now, OPEN_MAX)
    due = [row for row in found if row.name in names][:LOOKED_AT]
    row = next((one for one in due if not _held(tx, req.agent, one)), None)
    late(svc, tx)
    agents.acting(tx, actor, req.agent)
    if row is None:
        return Refusal(Code.NOTHING_TO_DO, "No step of these names can be tried now.",
                       next="Wait and ask again (`wait_s`).")
    _move(tx, row, "give", agent=req.agent, attempts=row.attempts + 1, given_to=req.agent,
          given_until=tx.later(ms(req.give_s)), why=row.why)
    return _reply(tx, find(tx, row.step_id), content=True)


def done(svc: Service, tx: Tx, actor: Actor, req: rq.StepDone) -> rq.Step:
    """See `requests.StepDone`."""
    row = _given(tx, actor, req.agent, req.step, req.attempt)
    agents.acting(tx, actor, req.agent)
    _move(tx, row, "finish", agent=req.agent)
    return _reply(tx, find(tx, row.step_id))


def fail(svc: Service, tx: Tx, actor: Actor, req: rq.StepFail) -> rq.Step:
    """See `requests.StepFail`."""
    row = _given(tx, actor, req.agent, req.step, req.attempt)
    agents.acting(tx, actor, req.agent)
    failed(svc, tx, row, req.why, agent=req.agent)
    return _reply(tx, find(tx, row.step_id))


def listing(svc: Service, view: View, actor: Actor, req: rq.Steps) -> rq.StepList:
    """See `requests.Steps`."""
    limit = min(req.limit, 1000)
    rows, more = split_page(view.each(
        BlockedStepRow, "steps_list", req.after, req.state, req.kind, limit + 1), limit)
    return rq.StepList(items=[_reply(view, row) for row in rows],
                       next=rows[-1].n if more else None)


# ------------------------------------------------------------ for coord itself


def put(svc: Service, tx: Tx, kind: str, name: str, content: bytes, *, agent: str | None,
        resources: Sequence[str] = (), rest_ms: int = 0, attempts_max: int = 10, why: str = "",
        dead: bool = False, event: int | None = None) -> BlockedStepRow:
    """Keep something that is to be tried again; `dead`: only when a person says so."""
    n = tx.number("step")
    step = f"{PREFIX}{n}"
    tx.record(
        ev.StepAdded(
            step=step, n=n, step_kind=kind, name=name, state="dead" if dead else "waiting",
            attempts=1 if dead else 0, attempts_max=attempts_max,
            content=values.keep(svc, tx, content), agent=agent, resources=list(resources),
            not_before=None if dead else tx.later(rest_ms), why=why[:1000], event=event,
        )
    )
    tx.effects.offers = True
    return find(tx, step)


def kept_alike(svc: Service, tx: Tx, kind: str, content: bytes,
               agent: str | None) -> BlockedStepRow | None:
    """What this agent has waiting to be tried again, and is the very same."""
    row = tx.row("steps_kept_alike", kind, agent, values.keep(svc, tx, content))
    return find(tx, str(row[0])) if row is not None else None


def waited_in_vain(svc: Service, tx: Tx, waiter: WaiterRow, names: list[str]) -> BlockedStepRow:
    """A place in line was waited for in vain: what was asked for is kept, for a person to let it be
    asked again."""
    asked = rq.Acquire(
        agent=waiter.agent, resources=names, task=waiter.task_id, description=waiter.description,
        mode="shared" if waiter.mode == "shared" else "exclusive", ttl_s=waiter.ttl_ms / 1000,
    )
    for (before,) in tx.rows("steps_dead_alike", waiter.agent, msgspec.json.encode(names).decode()):
        _move(tx, find(tx, str(before)), "drop", why="it was waited for again, in vain")
    return put(svc, tx, "acquire", ", ".join(names)[:200], msgspec.json.encode(asked),
               agent=waiter.agent, resources=names, attempts_max=1, dead=True,
               why="it did not become free in time")


def failed(svc: Service, tx: Tx, row: BlockedStepRow, why: str, *,
           agent: str | None = None) -> None:
    """An attempt is over without success: it rests and is tried again, or is dead."""
    if row.attempts >= row.attempts_max:
        _move(tx, row, "exhaust", agent=agent, why=why)
        tell_dead(tx, row, why)
        return
    _move(tx, row, "fail", agent=agent, why=why,
          not_before=tx.later(_rest(svc, tx, row.step_id, row.attempts)))


def given_up(tx: Tx, row: BlockedStepRow, why: str) -> None:
    """It cannot work, whatever is tried: a dead letter at once."""
    _move(tx, row, "exhaust", why=why)
    tell_dead(tx, row, why)


def begin(tx: Tx, row: BlockedStepRow, until: str) -> BlockedStepRow:
    """The daemon itself is about to try it."""
    _move(tx, row, "give", attempts=row.attempts + 1, given_to="coord", given_until=until,
          why=row.why)
    return find(tx, row.step_id)


def finished(tx: Tx, row: BlockedStepRow) -> None:
    """It worked."""
    _move(tx, row, "finish")


def late(svc: Service, tx: Tx) -> int:
    """Steps whose time is over: whoever was given them hangs, or has gone; how many."""
    rows = [find(tx, str(name)) for (name,) in tx.rows("steps_late", tx.now)]
    for row in rows:
        failed(svc, tx, row, f"{row.given_to} did not answer in time")
    return len(rows)


def forget(tx: Tx) -> None:
    """Forget what was done or dropped a day ago. What is dead stays until a person acts, but for
    places in line of agents that have left."""
    for (name,) in tx.rows("steps_dead_left"):
        _move(tx, find(tx, str(name)), "drop", why="its agent has left")
    old = [str(name) for (name,) in tx.rows("steps_old", tx.later(-KEPT_MS), 1000)]
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
    _move(tx, row, "retry", attempts=0, not_before=tx.now, why="put back by a person")


def drop(tx: Tx, row: BlockedStepRow) -> None:
    """A person gives it up."""
    _move(tx, row, "drop", why="given up by a person")
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


def content_of(view: View, row: BlockedStepRow) -> Any:
    """What it is about, decoded."""
    text = view.blob(row.content)
    return msgspec.json.decode(text) if text is not None else None


# ------------------------------------------------------------ parts


def _rest(svc: Service, tx: Tx, step: str, attempts: int) -> int:
    limits = svc.settings.backlog
    return rule.rest_ms(step, attempts, ms(limits.backoff_s), ms(limits.backoff_max_s))


def _held(view: View, agent: str, row: BlockedStepRow) -> bool:
    """Whether others hold a key that the step was refused for. (Files are found out by trying.)"""
    names: list[str] = msgspec.json.decode(row.resources)
    keys = [(resource_names.resource(name, "key"), "exclusive") for name in names
            if resource_names.kind_of(name) == "key"]
    return bool(holders_of(view, agent, keys))


def _check_room(tx: Tx) -> None:
    count = int((tx.row("steps_open") or (0,))[0])
    if count >= OPEN_MAX:
        raise Refusal(
            Code.LIMIT, f"{count} steps wait to be tried, which are the most. Nothing was put off.",
            next="`coord dead list` and `coord status` show what is in the way.",
        )


def _given(tx: Tx, actor: Actor, agent: str, step: str, attempt: int) -> BlockedStepRow:
    """The step that this agent is at, in this attempt.

    Raises:
        Refusal: BAD_TRANSITION, NOT_HOLDER, STALE_TOKEN.
    """
    row = find(tx, step)
    agents.may_act(tx, actor, agent)
    if row.state in rule.CLOSED:
        raise Refusal(Code.BAD_TRANSITION, f"{row.step_id} is {row.state} already; it stays so.",
                      next="`coord dead list` shows what was given up.", state=row.state)
    if attempt > row.attempts:
        raise Refusal(
            Code.STALE_TOKEN, f"There was no attempt {attempt} of {row.step_id}: "
            f"{f'the last was {row.attempts}' if row.attempts else 'it was not given yet'}. "
            "Nothing was changed.", next="Ask for the next step.",
        )
    if row.given_to is None or row.attempts != attempt:
        raise Refusal(
            Code.STALE_TOKEN, f"Attempt {attempt} of {row.step_id} is over: its time had passed, "
            f"or it was asked for again; attempt {row.attempts} is the last. Nothing was changed.",
            next="Ask for the next step.",
        )
    if row.given_to != agent:
        raise Refusal(Code.NOT_HOLDER, f"{row.step_id} is given to {row.given_to}, not to {agent}; "
                      "it stays so.", holder=row.given_to)
    return row


def _move(tx: Tx, row: BlockedStepRow, verb: str, *, agent: str | None = None, why: str = "",
          attempts: int | None = None, not_before: str | None = None, given_to: str | None = None,
          given_until: str | None = None) -> None:
    """Take a step through one transition.

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
            attempts=row.attempts if attempts is None else attempts, not_before=not_before,
            given_to=given_to, given_until=given_until,
        )
    )
    tx.effects.offers = True


def _reply(view: View, row: BlockedStepRow, *, content: bool = False) -> rq.Step:
    text = view.blob(row.content) if content else None
    return rq.Step(
        step=row.step_id, kind=row.kind, name=row.name, state=row.state, agent=row.agent,
        resources=msgspec.json.decode(row.resources),
        content=msgspec.Raw(text) if text is not None else values.NULL, attempts=row.attempts,
        attempts_max=row.attempts_max, not_before=row.not_before, given_to=row.given_to,
        given_until=row.given_until, why=row.why, asked_at=row.asked_at, closed_at=row.closed_at,
    )
