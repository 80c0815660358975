"""Agents whose processes are known live as long as these: their signs of life, and their ends.

Owns neither the processes (namespaces.py, session_processes.py) nor what becomes of what they held
(service): it says to the coordinator what an agent would say itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from coordinator.daemon.request_router import RequestRouter
from coordinator.words import requests as rq

#: The agents that somebody knows the processes of.
Known = Callable[[], Iterable[str]]


class AgentsAlive:
    """One daemon's."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router
        self._known: list[Known] = []

    def add(self, known: Known) -> None:
        """Somebody who knows processes of agents."""
        self._known.append(known)

    def beat(self) -> None:
        """An agent lives while its process does, however long it says nothing."""
        for agent in {agent for known in self._known for agent in known()}:
            self._ask(rq.Heartbeat(agent=agent))

    def ended(self, agent: str) -> None:
        """Its process has ended: so has the agent, whatever it left half done."""
        self._ask(rq.Leave(agent=agent, clean=False, reason="its process ended"))

    def _ask(self, request: rq.Request[Any]) -> None:
        self._router.ask(request.op, msgspec.json.encode(request), None, lambda value: None)
