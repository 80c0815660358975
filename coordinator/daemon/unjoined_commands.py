"""Commands of agents that were to join a session, and did not: their CLI runs them in a sandbox.

Claude Code's own sandbox lets nothing in it ask the coordinator, or enter a namespace. Such
commands just run (`_enter.py`), so what others hold is not read-only for them. That is told to the
agent, and to whoever asks for the coordinator's health. In memory only, from the loop's thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from coordinator.daemon.session_processes import has_prefix

#: Commands one after the other of which none has joined. (One that goes on in the background may
#: be told to be over before it has begun.)
SURE = 2
_FOUND = "What they change there is found afterwards; edits are asked for before, as ever."


class UnjoinedCommands:
    """One daemon's.

    Args:
        tell: a message for an agent.
        is_on: whether commands are to join at all.
    """

    def __init__(self, tell: Callable[[str, str], None], is_on: Callable[[], bool]) -> None:
        self._tell = tell
        self._is_on = is_on
        self._joined: Counter[str] = Counter()
        #: call -> its agent, and how many of that agent had joined when it began.
        self._running: dict[str, tuple[str, int]] = {}
        self._apart: Counter[str] = Counter()

    def joins(self, agent: str | None) -> None:
        """A command of this agent asks for its session."""
        if agent is not None:
            self._joined[agent] += 1
            self._apart.pop(agent, None)

    def began(self, agent: str, call: str, hook: int) -> None:
        """A command of this agent is about to run; `hook`: the process that asked for it."""
        if call and self._is_on() and has_prefix(hook):
            self._running[call] = agent, self._joined[agent]

    def ended(self, call: str) -> None:
        """It is over."""
        agent, before = self._running.pop(call, ("", 0))
        if not agent or self._joined[agent] != before:
            return
        self._apart[agent] += 1
        if self._apart[agent] == SURE:
            self._tell(agent, "Your shell commands run in a sandbox that coord may not enter, so "
                       f"they are not kept from what others hold. {_FOUND}")

    def gone(self, agent: str) -> None:
        """The agent's session has ended."""
        self._joined.pop(agent, None)
        self._apart.pop(agent, None)
        self._running = {call: one for call, one in self._running.items() if one[0] != agent}

    def warnings(self) -> list[str]:
        """What does not hold, and for whom."""
        return [f"{agent}: its shell commands run in a sandbox of its own, which coord may not "
                f"enter: what others hold is not read-only for them, and git does not ask there. "
                f"{_FOUND}" for agent, count in self._apart.items() if count >= SURE]
