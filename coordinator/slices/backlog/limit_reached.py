"""An agent reports that its provider's limit is reached: it rests, and its tasks return to the
backlog.

Leases and partial work end as for any task that is given back (`kernel/leasing/lapse`), and no
attempt is counted. While the agent rests, its profile's tasks are preferably given to agents of
other profiles. If there is none, they are offered as before.
"""

from __future__ import annotations

import math
import re

from coordinator.kernel import tasks
from coordinator.kernel.core import Actor, Service, check_at_rest, ms
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing import lapse
from coordinator.slices.backlog.events import TaskAvoids
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import AgentRow, TaskRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso, short
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import one_line, quoted


def rest_of(view: View, agent: str) -> str | None:
    """Until when the agent, or its parent, rests; None if it does not."""
    row = view.agent(agent)
    above = view.agent(row.parent) if row is not None and row.parent else None
    ends = [agent.rests_until for agent in (row, above) if agent is not None and agent.rests_until]
    last = max(ends, default=None)
    return last if last is not None and last > view.now else None


def profile_of(row: AgentRow | None) -> str:
    """The profile whose provider has the limit; empty if a person acts, or nobody said."""
    return "" if row is None or row.is_label else row.profile


def left_to_others(view: View, agent: str) -> frozenset[str]:
    """Ready tasks that this agent leaves to those of other profiles, who are there."""
    profile = profile_of(view.agent(agent))
    if not profile:
        return frozenset()
    avoided = view.values("tasks_avoided", profile, view.now)
    if not avoided or not view.has("agents_of_others", profile, view.now):
        return frozenset()
    return frozenset(avoided)


#: The longest rest (seconds).
REST_MAX_S = 7 * 86_400.0
_ZONED = re.compile(r"(Z|[+-]\d\d:?\d\d)$")


def reached(svc: Service, tx: Tx, actor: Actor, req: rq.LimitReached) -> rq.Limited:
    """See `requests.LimitReached`."""
    until = _until(tx, req)
    row = agents.may_act(tx, actor, req.agent)
    if until is None:
        agents.acting(tx, actor, req.agent, moved=False)
        tx.record(ev.AgentRests(agent=req.agent, until=None))
        tx.effects.offers = True
        return rq.Limited(agent=req.agent, rests_until=None, given_back=[], reviews=[])
    claimed = tx.each(TaskRow, "tasks_of_holder", req.agent)
    check_at_rest(svc, [task.task_id for task in claimed])
    for task in claimed:
        lapse.look_first(svc, tx, req.agent, task.task_id)
    agents.acting(tx, actor, req.agent, moved=False)
    tx.record(ev.AgentRests(agent=req.agent, until=until, note=req.note))
    why = f"its provider's limit is reached until {short(from_iso(until))}"
    why += f": {quoted(req.note)}" if req.note else ""
    reviews: list[str] = []
    profile = profile_of(row)
    for task in claimed:
        ending = lapse.fail_claim(svc, tx, task, tasks.Failure(why, blocked=True),
                                  log_tail=req.log_tail)
        reviews += ending.reviews
        if profile:
            tx.record(TaskAvoids(task=task.task_id, agent=req.agent, profile=profile,
                                    until=until))
    return rq.Limited(agent=req.agent, rests_until=until,
                      given_back=[task.task_id for task in claimed], reviews=reviews)


def _until(tx: Tx, req: rq.LimitReached) -> str | None:
    """Raises:
    Refusal: INVALID.
    """
    if (req.until is None) == (req.for_s is None):
        raise Refusal(Code.INVALID, "Say until when, or for how long: one of them. Nothing was "
                      "done.", next=f"`coord limit --for 1h --agent {req.agent}`")
    if req.until is not None:
        try:
            if _ZONED.search(req.until) is None:
                raise ValueError("no one can tell which instant that is")
            end_ms = from_iso(req.until)
        except (ValueError, OverflowError):
            raise Refusal(
                Code.INVALID, f"{one_line(req.until[:60])!r} is no instant. Nothing was done.",
                next="Write it like 2026-11-21T14:32:00Z, or use `--for 1h`.") from None
        left_s = (end_ms - tx.now_ms) / 1000
    else:
        left_s = req.for_s if req.for_s is not None else 0.0
        if left_s == 0:
            return None
    if not (math.isfinite(left_s) and 0 < left_s <= REST_MAX_S):
        raise Refusal(
            Code.INVALID, "A rest ends in the future, and within 7 days. Nothing was done.",
            next=f"`coord limit --for 1h --agent {req.agent}`",
        )
    return iso(tx.now_ms + ms(left_s))
