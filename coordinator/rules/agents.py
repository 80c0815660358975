"""Whether an agent is present and can receive what it waits for. Facts and an instant; no clock."""

from __future__ import annotations

from typing import Protocol

from coordinator.words.clock import from_iso


class Agent(Protocol):
    """The facts about an agent that this decision needs."""

    @property
    def state(self) -> str: ...
    @property
    def is_label(self) -> bool: ...
    @property
    def seen_at(self) -> str: ...
    @property
    def silence_ms(self) -> int | None: ...


def is_there(agent: Agent | None, now_ms: int) -> bool:
    """Whether anyone receives a later grant to this name: a session, a launch, or a program, with a
    sign of life within its silence. A name that a person only acted for has no receiver."""
    if agent is None or agent.is_label or agent.state != "active":
        return False
    return agent.silence_ms is None or now_ms - from_iso(agent.seen_at) < agent.silence_ms
