"""Steps of programs that were blocked: put off, given out again, done or failed.

A *call* is a function of somebody's program, given to whoever asks for steps of its name. What
coord does itself (`acquire`: a place in line that was waited for in vain; `propose`; `webhook`) is
tried again by the daemon. Content (arguments, requests, events) is kept beside the log, not in it.
"""

from __future__ import annotations

import re

import msgspec

from coordinator.kernel import json_values
from coordinator.kernel.blocked_steps import STEPS, NewStep, put
from coordinator.kernel.core import Actor, Service, check_give, check_wait, ms, split_page
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing.overlapping import holders_of
from coordinator.kernel.retry_queue import read_limits
from coordinator.rules import retrying as rule
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import BlockedStepRow
from coordinator.words import requests as rq
from coordinator.words import resource_names
from coordinator.words.refusals import Code, Refusal

#: Steps that wait at the same time.
OPEN_MAX = 10_000
#: Calls that are looked at for one whose resources are free.
LOOKED_AT = 20
ASK_AGAIN = "Ask for the next step."
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
    text = json_values.check_json(svc, req.arguments, "arguments")
    for name in req.resources:
        resource_names.parse(name)
    _check_room(tx)
    agents.acting(tx, actor, req.agent)
    rest = ms(req.delay_s) if req.delay_s is not None else rule.rest_ms(
        "call", 1, *read_limits(svc, jitter=rule.JITTER))
    return _reply(tx, put(svc, tx, NewStep(
        "call", req.name, text, req.agent, req.resources, rest_ms=rest,
        attempts_max=req.attempts_max, why=req.why,
    )), content=True)


def give_next(svc: Service, tx: Tx, actor: Actor, req: rq.StepNext) -> rq.Step | Refusal:
    """See `requests.StepNext`."""
    check_wait(svc, req.wait_s)
    check_give(req.give_s)
    if not req.names:
        raise Refusal(Code.INVALID, "`names` is empty: at least one is to be given. Nothing was "
                      "done.", field="names")
    agents.may_act(tx, actor, req.agent)
    names = frozenset(req.names)
    blocked_steps = tx.each(BlockedStepRow, "steps_due", "call", tx.now, OPEN_MAX, None)
    due = [row for row in blocked_steps if row.name in names][:LOOKED_AT]
    row = next((step for step in due if not _held(tx, req.agent, step)), None)
    STEPS.end_late(svc, tx)
    agents.acting(tx, actor, req.agent)
    if row is None:
        return Refusal(Code.NOTHING_TO_DO, "No step of these names can be tried now.",
                       next="Wait and ask again (`wait_s`).")
    STEPS.move(tx, row, "give", agent=req.agent, why=row.why,
               given_to=req.agent, given_until=tx.later(ms(req.give_s)))
    return _reply(tx, STEPS.find(tx, row.step_id), content=True)


def done(svc: Service, tx: Tx, actor: Actor, req: rq.StepDone) -> rq.Step:
    """See `requests.StepDone`."""
    row = _given(tx, actor, req.agent, req.step, req.attempt)
    agents.acting(tx, actor, req.agent)
    STEPS.move(tx, row, "finish", agent=req.agent)
    return _reply(tx, STEPS.find(tx, row.step_id))


def fail(svc: Service, tx: Tx, actor: Actor, req: rq.StepFail) -> rq.Step:
    """See `requests.StepFail`."""
    row = _given(tx, actor, req.agent, req.step, req.attempt)
    agents.acting(tx, actor, req.agent)
    STEPS.fail(svc, tx, row, req.why, agent=req.agent)
    return _reply(tx, STEPS.find(tx, row.step_id))


def listing(svc: Service, view: View, actor: Actor, req: rq.Steps) -> rq.StepList:
    """See `requests.Steps`."""
    limit = min(req.limit, 1000)
    rows, more = split_page(view.each(
        BlockedStepRow, "steps_list", req.after, req.state, req.kind, limit + 1), limit)
    return rq.StepList(items=[_reply(view, row) for row in rows],
                       next=rows[-1].n if more else None)


def _held(view: View, agent: str, row: BlockedStepRow) -> bool:
    """Whether others hold a key that the step was refused for. (Files are found out by trying.)"""
    names: list[str] = msgspec.json.decode(row.resources)
    keys = [(resource_names.resource(name, "key"), "exclusive") for name in names
            if resource_names.kind_of(name) == "key"]
    return bool(holders_of(view, agent, keys))


def _check_room(tx: Tx) -> None:
    count = int(tx.value("steps_open") or 0)
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
    row = STEPS.find(tx, step)
    agents.may_act(tx, actor, agent)
    if row.state in rule.CLOSED:
        raise Refusal(Code.BAD_TRANSITION, f"{row.step_id} is {row.state} already; it stays so.",
                      next=STEPS.shown_by, state=row.state)
    STEPS.check_attempt(row, attempt, begin=ASK_AGAIN, go_on=ASK_AGAIN)
    if row.given_to != agent:
        raise Refusal(Code.NOT_HOLDER, f"{row.step_id} is given to {row.given_to}, not to {agent}; "
                      "it stays so.", holder=row.given_to)
    return row


def _reply(view: View, row: BlockedStepRow, *, content: bool = False) -> rq.Step:
    text = view.blob(row.content) if content else None
    return rq.Step(
        step=row.step_id, kind=row.kind, name=row.name, state=row.state, agent=row.agent,
        resources=msgspec.json.decode(row.resources),
        content=msgspec.Raw(text) if text is not None else json_values.NULL, attempts=row.attempts,
        attempts_max=row.attempts_max, not_before=row.not_before, given_to=row.given_to,
        given_until=row.given_until, why=row.why, asked_at=row.asked_at, closed_at=row.closed_at,
    )
