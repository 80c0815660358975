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
    """Whether somebody hears of what is granted to this name later: a session, a launch, or a
    program, that was heard of within its silence. Nobody is behind a name that a person only
    acted for."""
    if agent is None or agent.is_label or agent.state != "active":
        return False
    return agent.silence_ms is None or now_ms - from_iso(agent.seen_at) < agent.silence_ms
