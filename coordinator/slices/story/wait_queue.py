"""Who stood in the wait queue, and for whom, gathered from the log event by event.

A wait is the time from a waiter's entry into the queue to its leaving. While its request is held
open, its agent does nothing else. Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
