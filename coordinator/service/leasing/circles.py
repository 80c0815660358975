"""Circles: agents that wait for each other, found when one of them is refused or granted something.

Who gives way is a rule (`rules.circles`); it alone is told to, once for each circle: in its refusal
if it asks itself, else by a notice. It is noted with its place in line, so that whoever asks next
finds the same one. The others are told whom to wait for.

An agent waits for the holders of what its waiters want; where only the line is in the way, for
those whom the ones before it wait for; and for its sub-agents that stand in line. A few steps are
taken in the transaction. Where the way is longer it is walked outside of it, on a connection of its
own, so that only the one who asked waits for that.
"""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec

from coordinator.rules import circles as rule
from coordinator.rules import leases as lease_rule
from coordinator.rules.globs import overlaps
from coordinator.service import unserved
from coordinator.service.core import Service, listed, ms
from coordinator.service.holders import notices
from coordinator.service.leasing.conflicts import Obstacles
from coordinator.service.leasing.overlapping import one_by_one
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, NearWaiter, TaskRow, Wanting
from coordinator.words.resource_names import Resource

#: Agents whose waits are followed within a transaction, and outside of it.
HERE_MAX, CHAIN_MAX = 32, 20_000
#: Leases in the way of one resource, or waiters before it, that are followed.
BLOCKERS_MAX = 50
#: Leases of one agent that are looked at for whether anybody waits for them at all.
HELD_MAX = 50
#: Names of a circle that are told, and resources in a command.
NAMES_MAX, TYPED_MAX = 20, 5
#: Names of a circle in a sentence.
TOLD_MAX = 5


class Wait(msgspec.Struct, frozen=True, gc=False):
    """One agent waits for another."""

    on: str
    lease: LeaseRow | None = None
    """What is in its way; None: it waits for its sub-agent."""
    wanted: str = ""
    """The resource that it asked for."""
    waiter: str | None = None
    """Its place in line; None: the request that is being served."""
    priority: int = 0
    gives_way_to: str | None = None
    """It was told to give way, for this one's sake."""


Waits = dict[str, list[Wait]]


class Circle(msgspec.Struct, frozen=True):
    """Agents that wait for each other, and the one of them that gives way."""

    members: list[str]
    victim: str
    told: str
    """Whom to tell: the victim, or its sub-agent that stands in line for it."""
    to: str
    """For whom it gives way first: one that waits for what it holds."""
    waiter: str | None
    """Its place in line; None: the request that is being served."""
    known: bool
    """It was told before."""
    step: str
    """What it types."""

    def gives_way(self, agent: str) -> bool:
        """Whether it is this agent that has to give way, or has to for its session."""
        return agent in (self.victim, self.told)

    def others(self, agent: str) -> list[str]:
        """The circle without this agent: the victim first, then some of the rest."""
        rest = [one for one in self.members if one not in (agent, self.victim)]
        first = [] if self.victim == agent else [self.victim]
        return [*first, *rest][:NAMES_MAX]


class TooLong(Exception):
    """The way is longer than may be walked here."""


def find(
    svc: Service, tx: Tx, agent: str, obstacles: Obstacles, located: Sequence[Resource], *,
    priority: int = 0, before: str | None = None,
) -> Circle | None:
    """The circle that `agent` is in, if it waits for what stands in its way.

    `before`: its place in line for the same. Asked before anything is recorded.

    Raises:
        Unready: the way is long; it is walked outside of the transaction.
    """
    if not tx.present().waiters or not _waited_for(tx, agent):
        return None
    mark = None
    if before is not None:
        mark = next((row.gives_way_to for row in _wanting(tx, "wants_of", before)), None)
    asked = [
        Wait(on=lease.locked_by, lease=lease, wanted=_wanted_for(located, lease),
             priority=priority, gives_way_to=mark)
        for lease in obstacles.leases
    ]
    if not asked:
        line = _before(svc, tx, agent, obstacles.waiters)
        asked = [Wait(on=lease.locked_by, lease=lease, wanted=name, priority=priority,
                      gives_way_to=mark) for lease, name in line]
    try:
        return _search(svc, tx, agent, asked, before, HERE_MAX)
    except TooLong:
        pass

    def far(view: View) -> Circle | None:
        try:
            return _search(svc, view, agent, asked, before, CHAIN_MAX)
        except TooLong:
            return None

    return tx.looked.after("circle", tx.apart(far))


def tell(tx: Tx, circle: Circle | None, agent: str, acquisition: str | None) -> None:
    """Note who gives way, and tell it by a notice unless it is the `agent` that is answered now.

    `acquisition`: the place in line that this one has from now on.
    """
    if circle is None:
        return
    waiter = circle.waiter or (acquisition if circle.told == agent else None)
    if waiter is None:
        return
    tx.turned_back.append(waiter)  # what it waits for cannot come: a held request ends now
    if circle.known:
        return
    tx.record(ev.GivesWay(
        agent=circle.victim, acquisition_id=waiter, to=circle.to,
        circle=[circle.victim, *circle.others(circle.victim)], size=len(circle.members),
    ))
    if circle.told != agent:
        notices.post(
            tx, circle.told, "gives_way", said(circle, circle.told), give_way=True,
            deadlock=circle.others(circle.told), victim=circle.victim, next=circle.step,
        )


def goes_on(circle: Circle | None, agent: str) -> str | None:
    """What is noted of one that asks again, and was told before to give way."""
    if circle is None or not circle.known or circle.waiter is not None or circle.told != agent:
        return None
    return circle.to


def after_grant(svc: Service, tx: Tx, agent: str) -> None:
    """A grant may close a circle, too: of one that waits for something else."""
    if not tx.present().waiters or not tx.rows("wants_of_agent", agent):
        return
    try:
        circle = _search(svc, tx, agent, [], None, HERE_MAX)
    except TooLong:
        return  # it is found when the next of them asks
    tell(tx, circle, "", None)


def said(circle: Circle, agent: str) -> str:
    """What a member of it is told."""
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
    svc: Service, view: View, agent: str, asked: list[Wait], before: str | None, most: int
) -> Circle | None:
    """Raises:
    TooLong: more than `most` agents would have to be looked at.
    """
    waits: Waits = {}
    met, todo = {agent}, deque([agent])
    while todo:
        one = todo.popleft()
        if len(waits) == most:
            raise TooLong
        found = _waits_of(svc, view, one, before)
        waits[one] = found = [*asked, *found] if one == agent else found
        for wait in found:
            if wait.on not in met:
                met.add(wait.on)
                todo.append(wait.on)
    members = rule.members({one: [w.on for w in found] for one, found in waits.items()}, agent)
    return _chosen(view, waits, members) if members else None


def _waits_of(svc: Service, view: View, agent: str, without: str | None) -> list[Wait]:
    """Whom an agent waits for: by its places in line, and through its sub-agents."""
    out: list[Wait] = []
    for row in _wanting(view, "wants_of_agent", agent):
        if row.acquisition_id == without or row.until <= view.now:
            continue
        asked = lease_rule.as_resource(row.name, row.kind, row.scope)
        ways = [(lease, row.name) for lease in _in_the_way(view, row, asked)]
        if not ways:
            ways = _before(svc, view, agent, _ahead(svc, view, row, asked), row.name)
        out += [Wait(lease.locked_by, lease, name, row.acquisition_id, row.priority,
                     row.gives_way_to) for lease, name in ways]
    return out + [Wait(str(name)) for (name,) in view.rows("children_in_line", agent)]


def _wanting(view: View, statement: str, of: str) -> list[Wanting]:
    return [Wanting(*raw) for raw in view.rows(statement, of)]


def _in_the_way(view: View, row: Wanting, asked: Resource) -> list[LeaseRow]:
    """Leases that keep a waiter from this, also of the same file under another name."""
    leases = (LeaseRow(*raw) for raw in one_by_one(view, "rivals", asked))
    found = list(islice(
        (lease for lease in leases if lease.expires_at > view.now
         and lease_rule.conflicts(asked, row.mode, row.agent, lease)), BLOCKERS_MAX))
    if not found and row.met not in ("", asked.scope):
        found = [
            lease for lease in (LeaseRow(*raw) for raw in view.rows("leases_at_scope", row.met))
            if lease.locked_by != row.agent and lease.expires_at > view.now
            and "exclusive" in (lease.mode, row.mode)
        ]
    return found


def _ahead(svc: Service, view: View, row: Wanting, asked: Resource) -> list[NearWaiter]:
    """Waiters of others that stand before this one at a resource that nobody holds."""
    step = ms(svc.settings.leases.age_step_s)
    mine = (lease_rule.standing(row.priority, row.asked_at, view.now_ms, step), row.acquisition_id)
    out: list[NearWaiter] = []
    for raw in islice(one_by_one(view, "waiters_near", asked), BLOCKERS_MAX):
        other = NearWaiter(*raw)
        theirs = lease_rule.standing(other.priority, other.asked_at, view.now_ms, step)
        if (
            other.agent != row.agent and other.until > view.now
            and "exclusive" in (other.mode, row.mode) and (theirs, other.acquisition_id) < mine
            and overlaps(asked, lease_rule.as_resource(other.name, other.kind, other.scope))
            and not unserved.rests(view, "waiter", other.acquisition_id)
        ):
            out.append(other)
    return out


def _before(
    svc: Service, view: View, agent: str, line: Iterable[NearWaiter], wanted: str = ""
) -> list[tuple[LeaseRow, str]]:
    """Leases that those wait for who stand before an agent in line, and what it wants itself. Who
    waits for the very one behind it is passed."""
    out: list[tuple[LeaseRow, str]] = []
    met: set[str] = set()
    todo = [(agent, one, wanted or one.name) for one in line]
    while todo and len(out) < BLOCKERS_MAX:
        behind, waiter, name = todo.pop()
        if waiter.acquisition_id in met:
            continue
        met.add(waiter.acquisition_id)
        leases: list[LeaseRow] = []
        further: list[tuple[str, NearWaiter, str]] = []
        for row in _wanting(view, "wants_of", waiter.acquisition_id):
            asked = lease_rule.as_resource(row.name, row.kind, row.scope)
            held = _in_the_way(view, row, asked)
            leases += held
            if not held:
                further += [(row.agent, one, name) for one in _ahead(svc, view, row, asked)]
        if all(lease.locked_by != behind for lease in leases):
            out += [(lease, name) for lease in leases if lease.locked_by != agent]
            todo += further
    return out


def _waited_for(tx: Tx, agent: str) -> bool:
    """Whether anybody waits for what this agent holds, or the session that it works for: nearly
    always nobody does, and there is nothing to be searched."""
    one: str | None = agent
    met: set[str] = set()
    while one is not None and one not in met:
        met.add(one)
        held = tx.rows("leases_of_holder", one)
        if len(held) > HELD_MAX:
            return True
        for raw in held:
            lease = LeaseRow(*raw)
            leased = lease_rule.as_resource(lease.file_path, lease.kind, lease.scope)
            if any(near[1] != one for near in one_by_one(tx, "waiters_near", leased)):
                return True
            if tx.rows("waiters_met", lease.scope):
                return True
        row = tx.agent(one)
        one = row.parent if row is not None else None
    return False


def _wanted_for(located: Sequence[Resource], lease: LeaseRow) -> str:
    """Which of the resources that were asked for this lease is in the way of."""
    held = lease_rule.as_resource(lease.file_path, lease.kind, lease.scope)
    return next((one.name for one in located if overlaps(one, held)), located[0].name)


# ------------------------------------------------------------ the choice


def _chosen(view: View, waits: Waits, members: set[str]) -> Circle | None:
    """The circle of these members, with the one that gives way and how it does."""
    waited_on: dict[str, dict[str, list[LeaseRow]]] = {}
    for one in members:
        for wait in waits[one]:
            if wait.on in members and wait.lease is not None:
                waited_on.setdefault(wait.on, {}).setdefault(one, []).append(wait.lease)
    tasks: dict[str, TaskRow | None] = {}
    could = []
    for one, by in waited_on.items():
        own = _own_waits(waits, members, one)[1]
        if own:  # else nobody of it stands in line, to be told
            leases = [lease for some in by.values() for lease in some]
            could.append(_member(view, one, leases, own, by, tasks))
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
        step=_step(victim, [lease for some in by.values() for lease in some], own, tasks),
    )


def _own_waits(waits: Waits, members: set[str], agent: str) -> tuple[str, list[Wait]]:
    """By what an agent waits for others of its circle, and who stands in line there: itself, or a
    sub-agent of it."""
    inside = [wait for wait in waits[agent] if wait.on in members]
    own = [wait for wait in inside if wait.lease is not None]
    for child in sorted(wait.on for wait in inside if not own and wait.lease is None):
        found = [wait for wait in waits[child] if wait.on in members and wait.lease is not None]
        if found:
            return child, found
    return agent, own


def _member(
    view: View, agent: str, leases: Sequence[LeaseRow], own: Sequence[Wait],
    waited_on: dict[str, Any], tasks: dict[str, TaskRow | None],
) -> rule.Member:
    work = [row for row in (_task(view, tasks, lease.task_id) for lease in leases) if row]
    return rule.Member(
        agent=agent,
        priority=max([row.priority for row in work] or [wait.priority for wait in own]),
        began=min([str(row.claimed_at) for row in work] or [one.locked_at for one in leases]),
        told=any(wait.gives_way_to in waited_on for wait in own),
    )


def _task(view: View, tasks: dict[str, TaskRow | None], name: str | None) -> TaskRow | None:
    """The task that a lease belongs to, while it is claimed."""
    if name is None:
        return None
    if name not in tasks:
        raw = view.row("task_get", name)
        row = TaskRow(*raw) if raw is not None else None
        tasks[name] = row if row is not None and row.claimed_by is not None else None
    return tasks[name]


def _step(
    victim: str, leases: Sequence[LeaseRow], own: Sequence[Wait], tasks: dict[str, TaskRow | None]
) -> str:
    """What the one that gives way types: its task goes back with what it needs; what belongs to no
    task is released."""
    work = [row for row in (tasks.get(lease.task_id or "") for lease in leases) if row]
    if work:
        first = min(work, key=lambda row: (row.priority, row.n))
        needs = dict.fromkeys(wait.wanted for wait in own)
        blocked = " ".join(f"--blocked {shlex.quote(name)}" for name in [*needs][:TYPED_MAX])
        return f"coord task fail {first.task_id} {blocked} --agent {first.claimed_by}"
    names = dict.fromkeys(lease.file_path for lease in leases)
    typed = " ".join(shlex.quote(name) for name in [*names][:TYPED_MAX])
    return f"coord unlock {typed} --agent {victim}"
