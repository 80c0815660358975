"""Git commands that have the turn: it ends when their process does.

Owns what is known of these processes (pidfd, Linux). Who may have the turn is decided elsewhere
(slices/guard/git_turns.py). In memory only: after a restart a turn ends with its lease, in
two minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from coordinator.daemon.request_router import RequestRouter
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.use_cases import Steps, look_and_write
from coordinator.slices.guard import git_turns
from coordinator.store.ledger import Job, Tx
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal


class GitProcesses:
    """One daemon's. Used from the loop's thread.

    Args:
        agent_of: the agent in whose session a process is; None: in none of this repository's.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, router: RequestRouter,
                 agent_of: Callable[[int], str | None]) -> None:
        self._loop = loop
        self._router = router
        self._agent_of = agent_of
        #: descriptor of a process -> whose git it is.
        self._running: dict[int, str] = {}
        #: Called when one has ended.
        self.on_end: Callable[[], None] = lambda: None

    def take(self, svc: Service, req: rq.GitTurn) -> Steps:
        """See `requests.GitTurn`."""
        agent = self._agent_of(req.pid) or ""
        try:
            process = os.pidfd_open(req.pid)
        except (OSError, OverflowError):
            return rq.GitTurnTaken(agent=agent or None)  # it has ended

        def decide(tx: Tx, actor: Actor) -> Any:
            try:
                tree = git_turns.tree_of(svc, tx, req.top)
            except Refusal:
                return rq.GitTurnTaken(agent=None)  # it is not of this repository
            refusal = git_turns.take(svc, tx, agent, [(req.command, tree)])
            return refusal or rq.GitTurnTaken(agent=agent or None)

        taken = yield from look_and_write(git_turns.needs(req.top), decide)
        if isinstance(taken, Refusal) or not agent:
            os.close(process)
        else:
            self._running[process] = agent
            self._loop.add_reader(process, self._ended, process)
        return taken

    def renew(self) -> None:
        """Those that run go on."""
        for agent in set(self._running.values()):
            self._submit(partial(git_turns.renew, self._router.service, agent=agent))

    def close(self) -> None:
        """Watch no more."""
        for process in list(self._running):
            self._drop(process)

    def _ended(self, process: int) -> None:
        agent = self._running[process]
        self._drop(process)
        self.on_end()
        if agent in self._running.values():
            return  # another one of its is at work

        def job(tx: Tx) -> None:
            git_turns.end(tx, agent)

        self._submit(job)

    def _submit(self, job: Job) -> None:
        self._router.writer.submit(job, lambda value: None)

    def _drop(self, process: int) -> None:
        del self._running[process]
        self._loop.remove_reader(process)
        with contextlib.suppress(OSError):
            os.close(process)
