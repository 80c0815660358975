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

    `priority`: of its work. `began`: when it began that work (ISO text). `told`: it was told to
    give way, and the agent for which it should still waits for it.
    """

    agent: str
    priority: int
    began: str
    told: bool = False


def members(waits_for: Mapping[str, Iterable[str]], name: str) -> set[str]:
    """The members of a deadlock with `name`: all that it waits for, directly or through others, and
    that wait for it in the same way. It is among them; empty if there is no deadlock.

    `waits_for`: for each agent that can be reached from `name`, those that it waits for. Without
    recursion, because a deadlock may be long.
    """
    waited_on: dict[str, list[str]] = {}
    for waiter, others in waits_for.items():
        for other in others:
            waited_on.setdefault(other, []).append(waiter)
    matches: set[str] = set()
    todo = [name]
    while todo:
        for waiter in waited_on.get(todo.pop(), ()):
            if waiter not in matches:
                matches.add(waiter)
                todo.append(waiter)
    return matches if len(matches) > 1 else set()


def gives_way(circle: Iterable[Member]) -> str:
    """The member of a deadlock that gives its work back, so that the others continue."""
    return min(circle,
               key=lambda member: (not member.told, member.priority, -from_iso(member.began),
                                   member.agent)).agent
