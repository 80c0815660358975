"""Detecting deadlocks when an agent is refused or granted something, and having one agent give way.

`rules.deadlocks` chooses the victim, which is the agent that gives way. coord tells it once: in its
refusal if it asks itself, otherwise by a notice. Its place in the queue records the choice, so the
next request chooses the same agent. A refusal tells any other member whom to wait for.

The transaction follows at most `HERE_MAX` agents. A longer chain is followed outside of it, on a
connection of its own, so that only the agent that asked waits. Other members that ask soon after
get the remembered result.
"""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from coordinator.kernel.core import Service, listed
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing.blockers import Blockers
from coordinator.kernel.leasing.waits import Wait, asked, waited_for, waits_of, wants_of
from coordinator.rules import deadlocks as rule
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rebuild import apart
from coordinator.store.rows import LeaseRow, TaskRow, Wanting
from coordinator.words.resource_names import Located

#: Agents whose waits are followed within a transaction, and outside of it.
HERE_MAX, CHAIN_MAX = 32, 20_000
#: Agents whose waits a search follows before it rests.
PIECE = 8
#: How many long deadlocks are remembered, and for how long (ms).
REMEMBERED_MAX, REMEMBERED_MS = 8, 30_000
#: How many members a deadlock's list names, and a sentence; how many resources a command names.
NAMES_MAX, SENTENCE_NAMES_MAX, TYPED_MAX = 20, 5, 5

Waits = dict[str, list[Wait]]


class Deadlock(msgspec.Struct, frozen=True):
    """Agents that wait for each other, and the agent among them that gives way.

    Attributes:
        victim: the agent that gives way.
        recipient: the agent that is told to: the victim, or its queued sub-agent.
        gives_way_to: the member for whose sake; it waits for what the victim holds.
        acquisition: the recipient's place in the queue; None if its request is being served.
        was_told: whether the recipient was told before.
        command: what the recipient types to give way.
    """

    members: list[str]
    victim: str
    recipient: str
    gives_way_to: str
    acquisition: str | None
    was_told: bool
    command: str

    def must_give_way(self, agent: str) -> bool:
        """Whether this agent gives way, for itself or for its session."""
        return agent in (self.victim, self.recipient)

    def list_others(self, agent: str) -> list[str]:
        """The members without this agent: the victim first, at most `NAMES_MAX`."""
        rest = [member for member in self.members if member not in (agent, self.victim)]
        first = [] if self.victim == agent else [self.victim]
        return [*first, *rest][:NAMES_MAX]


class TooLong(Exception):
    """A search would have to follow more agents than it may."""


def find_deadlock(
    svc: Service, tx: Tx, agent: str, blockers: Blockers, located: Sequence[Located], *,
    priority: int = 0, queued: str | None = None,
) -> Deadlock | None:
    """The deadlock that `agent` would be in if it waited for its blockers. Call it before the
    transaction records anything.

    `queued`: the agent's place in the queue for the same resources, if it has a place.

    Raises:
        Unready: the chain is long, and has to be followed outside of the transaction.
    """
    if not tx.present().waiters or not waited_for(tx, agent):
        return None
    remembered = _recall(svc, tx, agent)
    if remembered is not None:
        return remembered
    resources = [place.resource for place in located]
    own = asked(svc, tx, agent, blockers, resources, priority, queued)
    try:
        return _search(svc, tx, agent, own, queued, HERE_MAX)
    except TooLong:
        pass

    def search_far(view: View) -> Deadlock | None:
        try:
            return _search(svc, view, agent, own, queued, CHAIN_MAX)
        except TooLong:
            return None

    deadlock = tx.looked.after("deadlock", apart(tx, search_far))
    assert deadlock is None or isinstance(deadlock, Deadlock)
    return deadlock


def _recall(svc: Service, tx: Tx, agent: str) -> Deadlock | None:
    """The remembered long deadlock in which this agent waits and another gives way. Forgets those
    that are old or over."""
    for at_ms, deadlock in list(svc.deadlocks):
        lasts = any(row.gives_way_to == deadlock.gives_way_to
                    for row in wants_of(tx, str(deadlock.acquisition)))
        if not lasts or tx.now_ms - at_ms > REMEMBERED_MS:
            svc.deadlocks.remove((at_ms, deadlock))
        elif agent in deadlock.members and not deadlock.must_give_way(agent):
            return deadlock
    return None


def _remember(svc: Service, tx: Tx, deadlock: Deadlock) -> None:
    if len(deadlock.members) > HERE_MAX and all(other != deadlock for _, other in svc.deadlocks):
        svc.deadlocks.insert(0, (tx.now_ms, deadlock))
        del svc.deadlocks[REMEMBERED_MAX:]


def tell_recipient(svc: Service, tx: Tx, deadlock: Deadlock | None, agent: str,
                   acquisition: str | None) -> None:
    """Record which agent gives way, and tell it by a notice. The `agent` that is answered now needs
    no notice. `acquisition`: the place in the queue that this agent has from now on."""
    if deadlock is None:
        return
    place = deadlock.acquisition or (acquisition if deadlock.recipient == agent else None)
    if place is None:
        return
    tx.effects.turned_back.append(place)  # the grant cannot come, so a held request ends now
    _remember(svc, tx, msgspec.structs.replace(deadlock, acquisition=place, was_told=True))
    if deadlock.was_told:
        return
    tx.record(ev.GivesWay(
        agent=deadlock.victim, acquisition_id=place, to=deadlock.gives_way_to,
        circle=[deadlock.victim, *deadlock.list_others(deadlock.victim)],
        size=len(deadlock.members),
    ))
    if deadlock.recipient != agent:
        notices.post(
            tx, deadlock.recipient, "gives_way", describe(deadlock, deadlock.recipient),
            give_way=True, deadlock=deadlock.list_others(deadlock.recipient),
            victim=deadlock.victim, next=deadlock.command, to=deadlock.gives_way_to,
        )


def is_over(view: View, agent: str, facts: Mapping[str, Any]) -> bool:
    """Whether a notice, by its `facts`, asks the agent to give way in a deadlock that is over. The
    agent would give back what nobody waits for."""
    to = facts.get("to")
    return to is not None and not (
        any(row.gives_way_to == to for row in view.each(Wanting, "wants_of_agent", agent))
        and view.has("wants_of_agent", to))


def keep_choice(deadlock: Deadlock | None, agent: str) -> str | None:
    """The agent to whom `agent` still gives way when it asks again; None if it was not told to."""
    if deadlock is None or not deadlock.was_told or deadlock.acquisition is not None:
        return None
    return deadlock.gives_way_to if deadlock.recipient == agent else None


def look_for_deadlock(svc: Service, tx: Tx, agent: str) -> None:
    """Tell the victim of a deadlock by a notice, after `agent` was granted something or has asked a
    holder. A grant may close a deadlock, too."""
    if tx.present().waiters:
        tell_recipient(svc, tx, find_queued_deadlock(svc, tx, agent), "", None)


def find_queued_deadlock(svc: Service, tx: Tx, agent: str) -> Deadlock | None:
    """The deadlock that an agent is in by its places in the queue alone. The next request of a
    member finds a long deadlock."""
    if not tx.present().waiters or not tx.has("wants_of_agent", agent):
        return None
    try:
        return _search(svc, tx, agent, [], None, HERE_MAX)
    except TooLong:
        return None


def describe(deadlock: Deadlock, agent: str) -> str:
    """The sentence for a member, or for the recipient."""
    others = deadlock.list_others(agent)
    more = len(deadlock.members) - 1 - SENTENCE_NAMES_MAX
    names = listed(others, SENTENCE_NAMES_MAX) if more <= 0 else (
        f"{', '.join(others[:SENTENCE_NAMES_MAX])} and {more} more")
    begins = (f"You and {names} wait for each other" if len(others) == 1
              else f"You, {names} wait for each other in a circle")
    if deadlock.must_give_way(agent):
        who = "you who give" if agent == deadlock.victim else (
            f"{deadlock.victim}, for whom you work, who gives")
        return (f"{begins}, and it is {who} way: give back what they wait for with "
                f"`{deadlock.command}`. What you changed is kept.")
    return f"{begins}. {deadlock.victim} was chosen to give its work back; keep yours, and wait."


# ------------------------------------------------------------ the search


def _search(
    svc: Service, view: View, agent: str, own: list[Wait], queued: str | None, agents_max: int
) -> Deadlock | None:
    """Raises:
    TooLong: the waits of more than `agents_max` agents would have to be followed.
    """
    waits: Waits = {}
    met, todo = {agent}, deque([agent])
    while todo:
        name = todo.popleft()
        if len(waits) == agents_max:
            raise TooLong
        if len(waits) % PIECE == 0:
            view.rest()
        waits[name] = [*(own if name == agent else ()), *waits_of(svc, view, name, queued)]
        for wait in waits[name]:
            if wait.on not in met:
                met.add(wait.on)
                todo.append(wait.on)
    members = rule.find_members({name: [wait.on for wait in its_waits]
                                 for name, its_waits in waits.items()}, agent)
    return _choose(view, waits, members) if members else None


# ------------------------------------------------------------ the choice


def _choose(view: View, waits: Waits, members: set[str]) -> Deadlock | None:
    """The deadlock of these members, with its victim and the command by which that gives way."""
    blocking = _group_waits(waits, members)
    tasks: dict[str, TaskRow | None] = {}
    candidates = []
    for member, leases_by_waiter in blocking.items():
        own = _list_own_waits(waits, members, member)[1]
        if own:  # otherwise neither it nor a sub-agent of it is queued and can be told
            leases = [*chain.from_iterable(leases_by_waiter.values())]
            candidates.append(_make_member(view, member, leases, own, leases_by_waiter, tasks))
    if not candidates:
        return None
    victim = rule.choose_member(candidates)
    recipient, own = _list_own_waits(waits, members, victim)
    leases_by_waiter = blocking[victim]
    marked = next((wait for wait in own if wait.gives_way_to in leases_by_waiter), None)
    wait = marked or own[0]
    return Deadlock(
        members=sorted(members), victim=victim, recipient=recipient,
        gives_way_to=str(marked.gives_way_to) if marked else min(leases_by_waiter),
        acquisition=wait.waiter, was_told=marked is not None,
        command=_make_command(victim, [*chain.from_iterable(leases_by_waiter.values())], own,
                              tasks),
    )


def _group_waits(waits: Waits, members: set[str]) -> dict[str, dict[str, list[LeaseRow]]]:
    """The leases that members of a deadlock wait for: by their holder, then by the waiting member.
    """
    blocking: dict[str, dict[str, list[LeaseRow]]] = {}
    for member in members:
        for wait in waits[member]:
            if wait.on in members and wait.lease is not None:
                blocking.setdefault(wait.on, {}).setdefault(member, []).append(wait.lease)
    return blocking


def _list_own_waits(waits: Waits, members: set[str], agent: str) -> tuple[str, list[Wait]]:
    """The agent's waits for leases of other members, after the agent that is queued for them. If
    the agent itself has none, they are those of a sub-agent."""
    inside = [wait for wait in waits[agent] if wait.on in members]
    own = [wait for wait in inside if wait.lease is not None]
    for child in sorted(wait.on for wait in inside if not own and wait.lease is None):
        child_waits = [wait for wait in waits[child] if wait.on in members
                       and wait.lease is not None]
        if child_waits:
            return child, child_waits
    return agent, own


def _make_member(
    view: View, agent: str, leases: Sequence[LeaseRow], own: Sequence[Wait],
    waiters: Collection[str], tasks: dict[str, TaskRow | None],
) -> rule.Member:
    work = [row for row in (_find_claim(view, tasks, lease.task_id) for lease in leases) if row]
    return rule.Member(
        agent=agent,
        priority=max([row.priority for row in work] or [wait.priority for wait in own]),
        began=min([str(row.claimed_at) for row in work] or [lease.locked_at for lease in leases]),
        was_told=any(wait.gives_way_to in waiters for wait in own),
    )


def _find_claim(view: View, tasks: dict[str, TaskRow | None], name: str | None) -> TaskRow | None:
    """The task that a lease belongs to, while it is claimed."""
    if name is None:
        return None
    if name not in tasks:
        row = view.first(TaskRow, "task_get", name)
        tasks[name] = row if row is not None and row.claimed_by is not None else None
    return tasks[name]


def _make_command(
    victim: str, leases: Sequence[LeaseRow], own: Sequence[Wait], tasks: dict[str, TaskRow | None]
) -> str:
    """The command by which the victim gives way. It fails the task that the leases belong to, or
    unlocks leases that belong to no task."""
    work = [row for row in (tasks.get(lease.task_id or "") for lease in leases) if row]
    if work:
        first = min(work, key=lambda row: (row.priority, row.n))
        needs = dict.fromkeys(wait.wanted for wait in own)
        blocked = " ".join(f"--blocked {shlex.quote(name)}" for name in [*needs][:TYPED_MAX])
        return f"coord task fail {first.task_id} {blocked} --agent {first.claimed_by}"
    names = dict.fromkeys(lease.file_path for lease in leases)
    typed = " ".join(shlex.quote(name) for name in [*names][:TYPED_MAX])
    return f"coord unlock {typed} --agent {victim}"
