"""Lost time in a report: agents without a task, and waiters in the queue.

An agent that coord started may have no task, or another may wait for one, because others hold what
ready tasks need. Such an agent is not in the wait queue. A wait in the queue is the time from a
waiter's entry to its leaving; while its request is open, its agent does nothing else. Both are
gathered from the log, event by event. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from coordinator.words.clock import from_iso

#: A shorter time (ms) is what a program takes from one task to the next.
LEAST_MS = 1_000
#: Ready tasks whose resources are looked at, and leases that may be in their way.
TASKS_MAX, LEASES_MAX = 50, 500


@dataclass
class Idle:
    """One time without a task: how long something stood in the way (ms), whose and what."""

    ms: int = 0
    holders: dict[str, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)

    def add(self, ms: int, others: list[tuple[str, str]]) -> None:
        """For so long (ms) these holders' leases stood in the way: (holder, resource)."""
        self.ms += ms
        for sums, keys in ((self.holders, dict.fromkeys(holder for holder, _ in others)),
                           (self.names, dict.fromkeys(name for _, name in others))):
            for key in keys:
                sums[key] = sums.get(key, 0) + ms


@dataclass
class IdleAgents:
    """The agents without a task, and the ready tasks."""

    idle: dict[str, Idle] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    until: dict[str, int] = field(default_factory=dict)
    works: dict[str, str] = field(default_factory=dict)
    ready: dict[str, None] = field(default_factory=dict)
    needs: dict[str, list[str]] = field(default_factory=dict)

    def pass_time(self, since_ms: int, now_ms: int, held: Iterable[tuple[str, str]],
                  in_line: Collection[str]) -> list[tuple[str, Idle]]:
        """Advance to the time of the next event. `held`: (agent, resource) of leases; `in_line`:
        agents whose time counts by their place in the queue. Returns the waits that are over now.
        """
        if now_ms > since_ms and self.idle and self.ready:
            self._count(since_ms, now_ms, held, in_line)
        over = [agent for agent, until in self.until.items() if until <= now_ms]
        return [ended for agent in over if (ended := self._over(agent)) is not None]

    def _count(self, since_ms: int, now_ms: int, held: Iterable[tuple[str, str]],
               in_line: Collection[str]) -> None:
        wanted = [name for task in islice(self.ready, TASKS_MAX) for name in self.needs[task]]
        met = [(agent, name) for agent, name in islice(held, LEASES_MAX)
               if any(_meet(name, text) for text in wanted)]
        for agent, idle in self.idle.items():
            ms = max(0, min(now_ms, self.until.get(agent, now_ms)) - since_ms)
            others = [(holder, name) for holder, name in met if holder != agent]
            if ms and others and agent not in in_line:
                idle.add(ms, others)

    def registered(self, data: dict[str, Any]) -> None:
        """An agent has come; it counts where a launch started it: it begins tasks by itself."""
        if data.get("origin") == "launch":
            self.started.add(data["agent"])
            self.idle[data["agent"]] = Idle()

    def waits(self, data: dict[str, Any]) -> None:
        """An agent waits for a task from now on, and no longer than it says."""
        agent = data["agent"]
        if agent not in self.started:
            self.idle.setdefault(agent, Idle())
            self.until[agent] = from_iso(data["until"])

    def task(self, data: dict[str, Any]) -> None:
        """A task was added, or edited: what it needs."""
        self.needs[data["task"]] = [str(item[0]) for item in data["resources"]]
        if data.get("state") == "ready":
            self.ready[data["task"]] = None

    def task_changed(self, data: dict[str, Any]) -> tuple[str, Idle] | None:
        """A task is in another state: whose time without one has ended by that, and what it was."""
        task = data["task"]
        self.ready.pop(task, None)
        before = self.works.pop(task, None)
        if before in self.started and before not in self.works.values():
            self.idle.setdefault(before, Idle())
        if data["state"] == "ready" and task in self.needs:
            self.ready[task] = None
        if data["state"] != "claimed" or not data.get("claimed_by"):
            return None
        self.works[task] = agent = str(data["claimed_by"])
        return self._over(agent)

    def gone(self, agent: str) -> tuple[str, Idle] | None:
        """An agent has left; as above."""
        self.started.discard(agent)
        return self._over(agent)

    def end(self) -> list[tuple[str, Idle]]:
        """End all waits that are still open."""
        return [ended for agent in list(self.idle) if (ended := self._over(agent)) is not None]

    def _over(self, agent: str) -> tuple[str, Idle] | None:
        self.until.pop(agent, None)
        idle = self.idle.pop(agent, None)
        return (agent, idle) if idle is not None and idle.ms >= LEAST_MS else None


def _meet(held: str, wanted: str) -> bool:
    """Whether the one contains the other, by their names."""
    name, other = f"{held.partition('::')[0]}/", f"{wanted.partition('::')[0]}/"
    if "::" in held and "::" in wanted:
        return f"{held}.".startswith(f"{wanted}.") or f"{wanted}.".startswith(f"{held}.")
    name, other = name.replace("//", "/"), other.replace("//", "/")
    return name.startswith(other) or other.startswith(name)


@dataclass
class Waiting:
    """One agent's place in the queue, while it is there."""

    agent: str
    since_ms: int
    resources: list[str]
    holders: list[str]
    open_ms: int | None  # since when its request is held open
    stood_ms: int = 0

    def stand_until(self, now_ms: int) -> None:
        """Count the time in which the request was held open."""
        if self.open_ms is not None:
            self.stood_ms += now_ms - self.open_ms
            self.open_ms = None


@dataclass
class WaitQueue:
    """All places in the queue, at the instant of the last event."""

    places: dict[str, Waiting] = field(default_factory=dict)
    #: Agent -> when it was refused last, and who held what it asked for.
    refusals: dict[str, tuple[int, list[str]]] = field(default_factory=dict)

    def agents(self) -> set[str]:
        """The agents that have a place."""
        return {waiting.agent for waiting in self.places.values()}

    def note_refusal(self, data: dict[str, Any], now_ms: int) -> None:
        """An agent was refused. It entered the queue just before, or enters it just after, in the
        same transaction: that place waits for these holders."""
        agent, holders = data["agent"], data["holders"]
        self.refusals[agent] = now_ms, holders
        for waiting in self.places.values():
            if waiting.agent == agent and waiting.since_ms == now_ms and not waiting.holders:
                waiting.holders = holders

    def enter(self, data: dict[str, Any], now_ms: int) -> None:
        """A waiter takes its place."""
        refused_ms, holders = self.refusals.get(data["agent"], (-1, []))
        self.places[data["acquisition_id"]] = Waiting(
            data["agent"], now_ms, [resource[0] for resource in data["resources"]],
            holders if refused_ms == now_ms else [], now_ms if data["held"] else None)

    def change(self, data: dict[str, Any], now_ms: int) -> None:
        """A waiter's request is held open from now on, or no longer."""
        waiting = self.places.get(data["acquisition_id"])
        if waiting is not None:
            waiting.stand_until(now_ms)
            waiting.open_ms = now_ms if data["held"] else None

    def leave(self, acquisition: str, now_ms: int) -> Waiting | None:
        """A waiter leaves the queue: the place that it had, or None where the log does not tell."""
        waiting = self.places.pop(acquisition, None)
        if waiting is not None:
            waiting.stand_until(now_ms)
        return waiting
