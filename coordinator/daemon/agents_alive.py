"""Agents whose processes are known live as long as these: signs of life, rest, and ends.

Owns neither the processes (namespaces.py, session_processes.py) nor what becomes of what they held
(service): it says to the coordinator what an agent would say itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from coordinator.daemon.noted_processes import Noted, NotedProcesses
from coordinator.daemon.request_router import RequestRouter
from coordinator.words import requests as rq

#: Agents at rest that are remembered.
RESTING_MAX = 1_000
#: The agents that somebody knows the processes of.
Known = Callable[[], Iterable[str]]


class AgentsAlive:
    """One daemon's."""

    def __init__(self, router: RequestRouter, notes: NotedProcesses) -> None:
        self._router, self._notes = router, notes
        self._known: list[Known] = []
        #: Those whose turn is over; who began to rest last stands last.
        self._resting: dict[str, None] = {}

    def add(self, known: Known) -> None:
        """Somebody who knows processes of agents."""
        self._known.append(known)

    def beat(self) -> None:
        """An agent lives while its process does, however long it says nothing."""
        for agent in {agent for known in self._known for agent in known()}:
            self._ask(rq.Heartbeat(agent=agent))

    def rests(self, agent: str, at_rest: bool) -> None:
        """What the last hook of this agent, or of a sub-agent of its, has told: that its turn is
        over, or that it is at work."""
        self._resting.pop(agent, None)
        if at_rest:
            self._resting[agent] = None
            if len(self._resting) > RESTING_MAX:
                del self._resting[next(iter(self._resting))]
        self._notes.rests(agent, at_rest)

    def resume(self) -> list[Noted]:
        """At the daemon's start: the processes that the one before has noted."""
        noted_processes = self._notes.read()
        self._resting |= {noted_process.agent: None for noted_process in noted_processes
                          if noted_process.rests}
        return noted_processes

    def ended(self, agent: str, left: Callable[[], None] = lambda: None) -> None:
        """Its process has ended: so has the agent. What it left is half done where it was at work
        then; several CLIs say no more at their end than that the turn is over. `left` is called
        when it is gone."""
        self._notes.forget(agent)
        clean = agent in self._resting
        self._resting.pop(agent, None)
        self._ask(rq.Leave(agent=agent, clean=clean, reason="its process ended"), left)

    def _ask(self, request: rq.Request[Any], then: Callable[[], None] = lambda: None) -> None:
        self._router.ask(request.op, msgspec.json.encode(request), None, lambda value: then())
