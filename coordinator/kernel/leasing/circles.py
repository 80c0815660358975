"""Deadlocks: agents that wait for each other, detected when one of them is refused or granted
something.

`rules.circles` decides which agent gives way. Only that agent is told, once for each deadlock: in
its refusal if it asks itself, otherwise by a notice. Its place in the queue records the choice, so
that the next request finds the same agent. The others are told whom to wait for.

The transaction follows a few steps. A longer chain is followed outside of it, on a connection of
its own, so that only the agent that asked waits. The result is given to the other agents that ask
without following the chain again.
"""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from coordinator.kernel.core import Service, listed
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing.blockers import Blockers
from coordinator.kernel.leasing.waits import Wait, asked, waited_for, waits_of, wants_of
from coordinator.rules import circles as rule
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rebuild import apart
from coordinator.store.rows import LeaseRow, TaskRow, Wanting
from coordinator.words.resource_names import Located

#: Agents whose waits are followed within a transaction, and outside of it.
HERE_MAX, CHAIN_MAX = 32, 20_000
#: Agents looked at before a walk outside of the transaction rests.
PIECE = 8
#: How many long deadlocks are remembered, and for how long.
REMEMBERED_MAX, REMEMBERED_MS = 8, 30_000
#: How many names of a deadlock are listed, and how many resources a command names.
NAMES_MAX, TYPED_MAX = 20, 5
#: How many names of a deadlock a sentence has.
TOLD_MAX = 5


Waits = dict[str, list[Wait]]


class Circle(msgspec.Struct, frozen=True):
    """Agents that wait for each other, and the one of them that gives way."""

    members: list[str]
    victim: str
    told: str
    """The agent to tell: the victim, or its queued sub-agent."""
    to: str
    """For whom it gives way first: one that waits for what it holds."""
    waiter: str | None
    """Its place in the queue; None if it is the request that is being served."""
    known: bool
    """Whether it was told before."""
    step: str
    """The command that it types."""

    def gives_way(self, agent: str) -> bool:
        """Whether it is this agent that has to give way, or has to for its session."""
        return agent in (self.victim, self.told)

    def others(self, agent: str) -> list[str]:
        """The members without this agent: the victim first, then some of the others."""
        rest = [member for member in self.members if member not in (agent, self.victim)]
        first = [] if self.victim == agent else [self.victim]
        return [*first, *rest][:NAMES_MAX]


class TooLong(Exception):
    """The way is longer than may be walked here."""


def find(
    svc: Service, tx: Tx, agent: str, blockers: Blockers, located: Sequence[Located], *,
    priority: int = 0, before: str | None = None,
) -> Circle | None:
    """The deadlock that `agent` would be in if it waited for its blockers. Nothing is recorded
    before.

    `before`: its place in the queue for the same.

    Raises:
        Unready: the way is long; it is walked outside of the transaction.
    """
    if not tx.present().waiters or not waited_for(tx, agent):
        return None
    known_circle = _found_before(svc, tx, agent)
    if known_circle is not None:
        return known_circle
    resources = [place.resource for place in located]
    mine = asked(svc, tx, agent, blockers, resources, priority, before)
    try:
        return _search(svc, tx, agent, mine, before, HERE_MAX)
    except TooLong:
        pass

    def far(view: View) -> Circle | None:
        try:
            return _search(svc, view, agent, mine, before, CHAIN_MAX)
        except TooLong:
            return None

    circle = tx.looked.after("circle", apart(tx, far))
    assert circle is None or isinstance(circle, Circle)
    return circle


def _found_before(svc: Service, tx: Tx, agent: str) -> Circle | None:
    """A long deadlock that was detected a moment ago, and in which this agent is to wait."""
    for at_ms, circle in list(svc.circles):
        stands = any(row.gives_way_to == circle.to for row in wants_of(tx, str(circle.waiter)))
        if not stands or tx.now_ms - at_ms > REMEMBERED_MS:
            svc.circles.remove((at_ms, circle))
        elif agent in circle.members and not circle.gives_way(agent):
            return circle
    return None


def _remember(svc: Service, tx: Tx, circle: Circle) -> None:
    if len(circle.members) > HERE_MAX and all(known_circle != circle for _,
                                              known_circle in svc.circles):
        svc.circles.insert(0, (tx.now_ms, circle))
        del svc.circles[REMEMBERED_MAX:]


def tell(svc: Service, tx: Tx, circle: Circle | None, agent: str, acquisition: str | None) -> None:
    """Record which agent gives way, and tell it by a notice unless it is the `agent` that is
    answered now.

    `acquisition`: the place in the queue that this one has from now on.
    """
    if circle is None:
        return
    waiter = circle.waiter or (acquisition if circle.told == agent else None)
    if waiter is None:
        return
    tx.effects.turned_back.append(waiter)  # what it waits for cannot come: a held request ends now
    _remember(svc, tx, msgspec.structs.replace(circle, waiter=waiter, known=True))
    if circle.known:
        return
    tx.record(ev.GivesWay(
        agent=circle.victim, acquisition_id=waiter, to=circle.to,
        circle=[circle.victim, *circle.others(circle.victim)], size=len(circle.members),
    ))
    if circle.told != agent:
        notices.post(
            tx, circle.told, "gives_way", describe(circle, circle.told), give_way=True,
            deadlock=circle.others(circle.told), victim=circle.victim, next=circle.step,
            to=circle.to,
        )


def is_over(view: View, agent: str, facts: Mapping[str, Any]) -> bool:
    """Whether a notice asks the agent to give way in a deadlock that is over. Following it would
    give back what nobody waits for."""
    to = facts.get("to")
    return to is not None and not (
        any(row.gives_way_to == to for row in view.each(Wanting, "wants_of_agent", agent))
        and view.has("wants_of_agent", to))


def goes_on(circle: Circle | None, agent: str) -> str | None:
    """The record of an agent that asks again after it was told to give way."""
    if circle is None or not circle.known or circle.waiter is not None or circle.told != agent:
        return None
    return circle.to


def look(svc: Service, tx: Tx, agent: str) -> None:
    """Look for a deadlock of an agent that was granted something, or that asked a holder. A grant
    may close one, too. The victim is told by a notice."""
    tell(svc, tx, in_line(svc, tx, agent), "", None)


def in_line(svc: Service, tx: Tx, agent: str) -> Circle | None:
    """The deadlock that an agent is in by its places in the queue alone. A long one is found when
    the next of its members asks."""
    if not tx.present().waiters or not tx.has("wants_of_agent", agent):
        return None
    try:
        return _search(svc, tx, agent, [], None, HERE_MAX)
    except TooLong:
        return None


def describe(circle: Circle, agent: str) -> str:
    """The sentence that a member is told."""
    others = circle.others(agent)
    more = len(circle.members) - 1 - TOLD_MAX
    names = listed(others, TOLD_MAX) if more <= 0 else (
        f"{', '.join(others[:TOLD_MAX])} and {more} more")
    begins = (f"You and {names} wait for each other" if len(others) == 1
              else f"You, {names} wait for each other in a circle")
    if circle.gives_way(agent):
        who = "you who give" if agent == circle.victim else (
            f"{circle.victim}, for whom you work, who gives")
        return (f"{begins}, and it is {who} way: give back what they wait for with "
                f"`{circle.step}`. What you changed is kept.")
    return f"{begins}. {circle.victim} was chosen to give its work back; keep yours, and wait."


# ------------------------------------------------------------ the search


def _search(
    svc: Service, view: View, agent: str, mine: list[Wait], before: str | None, most: int
) -> Circle | None:
    """Raises:
    TooLong: more than `most` agents would have to be looked at.
    """
    waits: Waits = {}
    met, todo = {agent}, deque([agent])
    while todo:
        name = todo.popleft()
        if len(waits) == most:
            raise TooLong
        if len(waits) % PIECE == 0:
            view.rest()
        found_waits = waits_of(svc, view, name, before)
        waits[name] = found_waits = [*mine, *found_waits] if name == agent else found_waits
        for wait in found_waits:
            if wait.on not in met:
                met.add(wait.on)
                todo.append(wait.on)
    members = rule.members({other_name: [w.on for w in wait] for other_name,
                            wait in waits.items()}, agent)
    return _chosen(view, waits, members) if members else None


# ------------------------------------------------------------ the choice


def _chosen(view: View, waits: Waits, members: set[str]) -> Circle | None:
    """The deadlock of these members, with its victim and the way in which the victim gives way."""
    waited_on = _group_waits(waits, members)
    tasks: dict[str, TaskRow | None] = {}
    could = []
    for member, by in waited_on.items():
        own = _own_waits(waits, members, member)[1]
        if own:  # otherwise none of its members is queued and can be told
            leases = [*chain.from_iterable(by.values())]
            could.append(_member(view, member, leases, own, by, tasks))
    if not could:
        return None
    victim = rule.gives_way(could)
    teller, own = _own_waits(waits, members, victim)
    by = waited_on[victim]
    marked = next((wait for wait in own if wait.gives_way_to in by), None)
    wait = marked or own[0]
    return Circle(
        members=sorted(members), victim=victim, told=teller,
        to=str(marked.gives_way_to) if marked else min(by), waiter=wait.waiter,
        known=marked is not None,
        step=_step(victim, [*chain.from_iterable(by.values())], own, tasks),
    )


def _group_waits(waits: Waits, members: set[str]) -> dict[str, dict[str, list[LeaseRow]]]:
    """The leases that members of a deadlock wait for: by their holder, then by the waiting member.
    """
    waited_on: dict[str, dict[str, list[LeaseRow]]] = {}
    for member in members:
        for wait in waits[member]:
            if wait.on in members and wait.lease is not None:
                waited_on.setdefault(wait.on, {}).setdefault(member, []).append(wait.lease)
    return waited_on


def _own_waits(waits: Waits, members: set[str], agent: str) -> tuple[str, list[Wait]]:
    """Why an agent waits for other members, and which of its names is queued: itself, or a
    sub-agent."""
    inside = [wait for wait in waits[agent] if wait.on in members]
    own = [wait for wait in inside if wait.lease is not None]
    for child in sorted(wait.on for wait in inside if not own and wait.lease is None):
        found_waits = [wait for wait in waits[child] if wait.on in members
                       and wait.lease is not None]
        if found_waits:
            return child, found_waits
    return agent, own


def _member(
    view: View, agent: str, leases: Sequence[LeaseRow], own: Sequence[Wait],
    waited_on: dict[str, Any], tasks: dict[str, TaskRow | None],
) -> rule.Member:
    work = [row for row in (_task(view, tasks, lease.task_id) for lease in leases) if row]
    return rule.Member(
        agent=agent,
        priority=max([row.priority for row in work] or [wait.priority for wait in own]),
        began=min([str(row.claimed_at) for row in work] or [lease.locked_at for lease in leases]),
        told=any(wait.gives_way_to in waited_on for wait in own),
    )


def _task(view: View, tasks: dict[str, TaskRow | None], name: str | None) -> TaskRow | None:
    """The task that a lease belongs to, while it is claimed."""
    if name is None:
        return None
    if name not in tasks:
        row = view.first(TaskRow, "task_get", name)
        tasks[name] = row if row is not None and row.claimed_by is not None else None
    return tasks[name]


def _step(
    victim: str, leases: Sequence[LeaseRow], own: Sequence[Wait], tasks: dict[str, TaskRow | None]
) -> str:
    """The command of the victim. It gives its task back with what the task needs, and releases what
    belongs to no task."""
    work = [row for row in (tasks.get(lease.task_id or "") for lease in leases) if row]
    if work:
        first = min(work, key=lambda row: (row.priority, row.n))
        needs = dict.fromkeys(wait.wanted for wait in own)
        blocked = " ".join(f"--blocked {shlex.quote(name)}" for name in [*needs][:TYPED_MAX])
        return f"coord task fail {first.task_id} {blocked} --agent {first.claimed_by}"
    names = dict.fromkeys(lease.file_path for lease in leases)
    typed = " ".join(shlex.quote(name) for name in [*names][:TYPED_MAX])
    return f"coord unlock {typed} --agent {victim}"
