"""Changes of keys that a single owner applies, one by one.

Any agent may ask for a change, and gets its answer when the change is on disk. The owner of a key
holds an exclusive lease on the key, or on a key that it continues. So a key has at most one owner.
The owner's right ends with its session, and its fencing token exposes a late owner. The owner is
given one change at a time, applies it to the value that it was shown, and answers once. One
transaction records the value and closes the change, so a change that is given twice applies once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.kernel import json_values
from coordinator.kernel.core import Actor, Service, check_give, check_wait, ms, split_page
from coordinator.kernel.holders import agents, notices
from coordinator.kernel.retry_queue import PERSON, About, Page, RetryQueue
from coordinator.rules import retrying as rule
from coordinator.slices.state import values
from coordinator.slices.state.events import ChangeAsked, ChangeMoved, ChangesForgotten
from coordinator.slices.state.values import ABOVE
from coordinator.store.events import Event
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import ChangeRow, LeaseRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource, ancestors
from coordinator.words.texts import quoted

#: Owners that are followed to see whether owners wait for each other.
OWNERS_MAX = 200


class ChangeQueue(RetryQueue[ChangeRow]):
    """Changes, and those among them that failed too often. See `kernel.retry_queue.RetryQueue`."""

    prefix = "K-"
    noun, late, old = "change", "changes_late", "changes_old"
    unknown = Code.UNKNOWN_CHANGE
    transitions = rule.CHANGE_TRANSITIONS
    forgotten = ChangesForgotten
    shown_by = "`coord state changes --state all` lists them."
    dead_text = ("failed {attempts} times and is dead ({why}). Nothing was written; a person can "
                 "retry or drop it.")
    dropped_text = f"was given up by {PERSON}. Nothing was written."
    unharmed = "Nothing was written."
    person = PERSON
    rest_part = 10

    def get(self, view: View, name: str) -> ChangeRow | None:
        return view.first(ChangeRow, "change_get", name)

    def list_newest(self, view: View, page: Page, kind: str | None) -> list[ChangeRow]:
        if kind not in (None, "change"):
            return []
        return view.each(ChangeRow, "changes_dead_newest", *page)

    def sum_up(self, row: ChangeRow) -> About:
        return About(row.change_id, "change", row.key, row.asked_by, f", a change of {row.key},",
                     {"key": row.key})

    def make_moved(self, row: ChangeRow, *, why: str, **fields: Any) -> Event:
        return ChangeMoved(change=row.change_id, resource=row.key, why=why, **fields)


CHANGES = ChangeQueue()


def add(svc: Service, tx: Tx, actor: Actor, req: rq.ChangeAdd) -> rq.Change:
    """See `requests.ChangeAdd`."""
    key = values.key_of(req.key)
    text = json_values.check_json(svc, req.wanted, "wanted")
    limits = svc.settings.state
    if not 1 <= req.attempts_max <= 100:
        raise Refusal(Code.INVALID, "`attempts_max` must be between 1 and 100. Nothing was asked.")
    of_key = int(tx.value("changes_open_at", key.scope) or 0)
    of_all = int(tx.value("changes_open") or 0)
    if of_key >= limits.changes_of_key_max or of_all >= limits.changes_max:
        raise Refusal(
            Code.LIMIT, f"{of_key} changes of {key.name} wait to be applied, {of_all} of all keys; "
            f"{limits.changes_of_key_max} and {limits.changes_max} are the most. Nothing was "
            "asked.", next=f"`coord state changes {key.name}` lists them; see that it has an "
            "owner.",
        )
    during = CHANGES.find(tx, req.during) if req.during is not None else None
    asking = agents.may_act(tx, actor, req.agent)
    if during is not None:
        _check_no_deadlock(tx, key, during, req.agent)
    agents.noted(tx, req.agent, asking)
    n = tx.number("change")
    change = f"{CHANGES.prefix}{n}"
    tx.record(
        ChangeAsked(
            change=change, n=n, resource=key.name, scope=key.scope, agent=req.agent,
            content=json_values.keep_json(svc, tx, text), attempts_max=req.attempts_max,
            note=req.note,
            during=during.change_id if during is not None else None,
        )
    )
    tx.effects.offers = True
    return make_reply(tx, CHANGES.find(tx, change))


def give_next(svc: Service, tx: Tx, actor: Actor, req: rq.ChangeNext) -> rq.ChangeGiven | Refusal:
    """See `requests.ChangeNext`."""
    key = values.key_of(req.key)
    check_wait(svc, req.wait_s)
    check_give(req.give_s)
    agents.may_act(tx, actor, req.agent)
    _check_owner(tx, key, req.agent)
    CHANGES.end_late(svc, tx)
    begun = tx.each(ChangeRow, "changes_given", key.scope, key.scope + ABOVE)
    again: ChangeRow | None = None
    for change in begun:
        if change.given_to != req.agent:  # its lease has ended, so its answer would be late
            CHANGES.fail(svc, tx, change, f"{change.given_to} is not the owner any more")
        elif change.attempts >= change.attempts_max or again is not None:
            CHANGES.fail(svc, tx, change, f"{req.agent} began it and did not finish")
        else:
            again = change
    row = again or tx.first(ChangeRow, "change_next", key.scope, key.scope + ABOVE, tx.now)
    agents.acting(tx, actor, req.agent)
    if row is None:
        return Refusal(Code.NOTHING_TO_DO, f"No change of {key.name} waits to be applied.",
                       next="Wait and ask again (`wait_s`).")
    CHANGES.move(tx, row, "give", agent=req.agent, given_to=req.agent,
                 given_until=tx.later(ms(req.give_s)))
    given = CHANGES.find(tx, row.change_id)
    resource = values.key_of(given.key)
    now = values.newest(tx, resource.scope)
    return rq.ChangeGiven(
        change=make_reply(tx, given),
        state=values.make_reply(tx, now) if now is not None else values.nothing(resource),
    )


def done(svc: Service, tx: Tx, actor: Actor, req: rq.ChangeDone) -> rq.Change:
    """See `requests.ChangeDone`."""
    row = _find_given(tx, actor, req.agent, req.change, req.attempt)
    key = values.key_of(row.key)
    text = json_values.check_json(svc, req.value, "value")
    lease = _check_owner(tx, key, req.agent)
    before = values.newest(tx, key.scope)
    values.check_room(svc, tx, before)
    agents.acting(tx, actor, req.agent)
    value = values.record(svc, tx, key, before, text, values.Writer(
        req.agent, lease.fencing_token, row.change_id))
    CHANGES.move(tx, row, "apply", agent=req.agent, version=value.version)
    notices.post(tx, row.asked_by, "change", f"{row.change_id} was applied: {row.key} is at "
                 f"version {value.version}.", change=row.change_id, key=row.key)
    return make_reply(tx, CHANGES.find(tx, row.change_id))


def fail(svc: Service, tx: Tx, actor: Actor, req: rq.ChangeFail) -> rq.Change:
    """See `requests.ChangeFail`."""
    row = _find_given(tx, actor, req.agent, req.change, req.attempt)
    agents.acting(tx, actor, req.agent)
    if req.refuse:
        CHANGES.move(tx, row, "refuse", agent=req.agent, why=req.why)
        CHANGES.tell(tx, row, f"was refused by {req.agent}: {quoted(req.why, 500)}. Nothing was "
                     "written.")
    else:
        CHANGES.fail(svc, tx, row, req.why, agent=req.agent)
    return make_reply(tx, CHANGES.find(tx, row.change_id))


def show(svc: Service, view: View, actor: Actor, req: rq.ChangeShow) -> rq.Change:
    """See `requests.ChangeShow`. Returns the present state; the caller waits for the end."""
    return make_reply(view, CHANGES.find(view, req.change))


def is_closed(change: rq.Change) -> bool:
    """Whether the change is closed: only a person can do more with it."""
    return change.state in rule.CLOSED


def listing(svc: Service, view: View, actor: Actor, req: rq.Changes) -> rq.ChangeList:
    """See `requests.Changes`."""
    limit = min(req.limit, 1000)
    scope = values.key_of(req.key).scope if req.key is not None else None
    above = scope + ABOVE if scope is not None else None
    rows, more = split_page(view.each(
        ChangeRow, "changes_list", req.after, req.state, scope, above, limit + 1), limit)
    return rq.ChangeList(items=[make_reply(view, row, wanted=False) for row in rows],
                         next=rows[-1].n if more else None)


def make_reply(view: View, row: ChangeRow, *, wanted: bool = True) -> rq.Change:
    """The reply about a change. `wanted`: with the wanted value."""
    text = view.blob(row.content) if wanted else None
    return rq.Change(
        change=row.change_id, key=row.key, state=row.state, asked_by=row.asked_by,
        asked_at=row.asked_at, wanted=msgspec.Raw(text) if text is not None else json_values.NULL,
        note=row.note, during=row.during, attempts=row.attempts, attempts_max=row.attempts_max,
        not_before=row.not_before, given_to=row.given_to, given_until=row.given_until, why=row.why,
        version=row.version, closed_at=row.closed_at,
    )


# ------------------------------------------------------------ parts


def _find_given(tx: Tx, actor: Actor, agent: str, change: str, attempt: int) -> ChangeRow:
    """The change that was given to this agent, in this attempt.

    Raises:
        Refusal: NOT_HOLDER, BAD_TRANSITION, STALE_TOKEN.
    """
    row = CHANGES.find(tx, change)
    agents.may_act(tx, actor, agent)
    if row.state in rule.CLOSED:
        raise Refusal(
            Code.BAD_TRANSITION, f"{row.change_id} is {row.state} already; it stays so, and "
            "nothing was written.", next=f"`coord state get {row.key}` tells the value.",
            state=row.state,
        )
    if row.given_to not in (None, agent):
        raise Refusal(
            Code.NOT_HOLDER, f"{row.change_id} is given to {row.given_to}, not to {agent}; nothing "
            "was written.", holder=row.given_to,
        )
    command = f"`coord state next {row.key} --agent {agent}` gives"
    CHANGES.check_attempt(row, attempt, begin=f"{command} it.", go_on=f"{command} the next.")
    return row


def _check_owner(view: View, key: Resource, agent: str) -> LeaseRow:
    """The lease by which this agent is the key's owner.

    Raises:
        Refusal: NOT_HOLDER.
    """
    lease = values.covering(view, key, agent)
    if lease is None:
        raise Refusal(
            Code.NOT_HOLDER, f"{agent} holds no exclusive lease on {key.name}, so it is not its "
            "owner; nothing was changed.", next=f"`coord lock {key.name} --agent {agent}`",
            resource=key.name,
        )
    return lease


def _find_owner(view: View, scope: str) -> str | None:
    """The agent with an exclusive lease on a key, or on a key that it continues."""
    for place in (scope, *reversed(ancestors(scope))):
        for row in view.each(LeaseRow, "leases_at_scope", place):
            if row.mode == "exclusive" and row.expires_at > view.now:
                return row.locked_by
    return None


def _check_no_deadlock(tx: Tx, key: Resource, during: ChangeRow, agent: str) -> None:
    """Refuse a change of `key` that would make the owners of keys wait for each other. `during` is
    the change that `agent` applies while it asks. The search begins at the owner of `key` and
    follows the changes that each owner has asked for while it applies another.

    Raises:
        Refusal: DEADLOCK.
    """
    todo, keys_by_owner = [(key.scope, key.name)], dict[str, str]()
    while todo and len(keys_by_owner) < OWNERS_MAX:
        scope, name = todo.pop()
        owner = _find_owner(tx, scope)
        if owner is None or owner in keys_by_owner:
            continue
        keys_by_owner[owner] = name
        for row in tx.each(ChangeRow, "changes_given", "k/", "k/" + ABOVE):
            if row.given_to != owner:
                continue
            if row.change_id == during.change_id:
                keys = [during.key, *keys_by_owner.values()]
                raise Refusal(
                    Code.DEADLOCK, f"{during.change_id} of {during.key} would wait for itself: the "
                    f"owner of {key.name} cannot apply this before {agent} is done with "
                    f"{during.change_id} ({' -> '.join(keys)}). Nothing was asked.",
                    next="Ask for it after that, without `during`, or put both under one owner.",
                    circle=keys,
                )
            todo += [(child.scope, child.key)
                     for child in tx.each(ChangeRow, "changes_during", row.change_id)]
