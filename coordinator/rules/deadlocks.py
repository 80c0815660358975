"""Deadlocks: agents that wait for each other, and which of them gives way. Pure.

All agents in a deadlock wait until one of them gives its work back. Exactly one is chosen, by facts
that do not depend on which request detected the deadlock:

* the agent that was chosen before in this very deadlock;
* otherwise the one whose work is least urgent;
* of these the one that began last, because it has the least to lose;
* of these the first by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coordinator.words.clock import from_iso


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a deadlock, which holds what another member waits for.

    `priority`: of its work. `began`: when it began that work (ISO text). `was_told`: it was told to
    give way, and the agent for whose sake it should still waits for it.
    """

    agent: str
    priority: int
    began: str
    was_told: bool = False


def find_members(waits_for: Mapping[str, Iterable[str]], name: str) -> set[str]:
    """The members of a deadlock with `name`: all that it waits for, directly or through others, and
    that wait for it in the same way. It is among them; empty if there is no deadlock.

    `waits_for`: for each agent that can be reached from `name`, those that it waits for. Without
    recursion, because a deadlock may be long.
    """
    waited_on: dict[str, list[str]] = {}
    for waiter, others in waits_for.items():
        for other in others:
            waited_on.setdefault(other, []).append(waiter)
    members: set[str] = set()
    todo = [name]
    while todo:
        for waiter in waited_on.get(todo.pop(), ()):
            if waiter not in members:
                members.add(waiter)
                todo.append(waiter)
    return members if len(members) > 1 else set()


def choose_member(members: Iterable[Member]) -> str:
    """The member of a deadlock that gives its work back, so that the others continue."""
    return min(members,
               key=lambda member: (not member.was_told, member.priority, -from_iso(member.began),
                                   member.agent)).agent
