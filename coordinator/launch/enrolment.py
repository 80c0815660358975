"""A launched agent's name, token and connection, and the tasks that it claims with them.

A restart of the coordinator costs the agent nothing: before it asks again it looks up what may have
been done already. An agent that a person removed enrols anew. The module runs no program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from coordinator.client.client import Client
from coordinator.files.runs import Worker as Recorded
from coordinator.launch.attempt import LOST, PASSING
from coordinator.launch.launch_state import RETRY_S, LaunchState
from coordinator.profiles import Profile
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import WORDS_MAX

T = TypeVar("T")
#: How long one request for a task waits; also how soon an idle agent sees that everything is done.
IDLE_S = 0.5


class Enrolment:
    """The connection of a launch's agent to the coordinator.

    Attributes:
        client: its connection; another one after it was removed.
        agent: its name, once it has enrolled.
    """

    def __init__(self, launch: LaunchState, profile: Profile, wanted: str,
                 renewed: Callable[[], None]) -> None:
        """`renewed` is called after each new registration."""
        self._launch = launch
        self._profile = profile
        self._wanted = wanted
        self._renewed = renewed
        self.client = Client(launch.root, agent=wanted, profile=profile.name)
        self.agent = wanted

    def begin(self) -> None:
        """Register once, by the wanted name or the next free name."""
        if self.client.token is not None:
            return
        self.client.agent = self._wanted
        self.agent = self.steady(
            lambda: self.client.register(
                unique=True, silence_s=max(60.0, self._launch.limits.ttl_s),
                description=f"launched by run {self._launch.run.record.run}",
                launch=self._launch.run.record.run,
            )
        )
        self._launch.names.add(self.agent)
        self._launch.run.worker(Recorded(agent=self.agent))

    def again(self) -> None:
        """Register again after a person removed it, or its leases were ended with it."""
        self.client.close()
        self.client = Client(self._launch.root, agent=self._wanted, profile=self._profile.name)
        self.begin()
        self._renewed()

    def end(self, *, clean: bool, reason: str, log_tail: str = "") -> None:
        """Leave, if it is still there. `clean`: nothing of its work is partial."""
        try:
            self.ask(rq.Leave(agent=self.agent, clean=clean, reason=reason[:WORDS_MAX],
                              log_tail=log_tail))
        except Refusal as refusal:
            if refusal.code not in LOST:
                raise

    def close(self) -> None:
        """Close the connection. The agent stays as it is."""
        self.client.close()

    def row(self) -> rq.Agent | None:
        """Return the coordinator's row of the agent; None if it is gone.

        Raises:
            Refusal: its token counts for nothing (`attempt.LOST`), or no coordinator answers.
        """
        rows = self.ask(rq.Agents()).items
        return next((row for row in rows if row.agent == self.agent), None)

    # ------------------------------------------------------------ its tasks

    def claim(self) -> rq.Claimed | None:
        """Claim the next task; None if there is none now, or nothing is left at all."""
        request = rq.TaskClaim(agent=self.agent, ttl_s=self._launch.limits.ttl_s)
        for request.wait_s in (0.0, IDLE_S):  # without a wait it says at once when nothing is left
            try:
                return self._ask_for_task(request)
            except Refusal as refusal:
                if refusal.code is not Code.NOTHING_TO_DO:
                    raise
                counts = refusal.facts.get("counts", {})
                if not request.wait_s and self._launch.nothing_left(self.client, counts):
                    return None
        return None

    def _ask_for_task(self, request: rq.TaskClaim) -> rq.Claimed:
        deadline = time.monotonic() + self._launch.limits.patience_s
        while True:
            try:
                return self.client.call(request)
            except Refusal as refusal:
                if refusal.code in (Code.UNKNOWN_AGENT, Code.UNAUTHORIZED):
                    self.again()
                    request.agent = self.agent
                elif refusal.code not in PASSING or time.monotonic() > deadline:
                    raise
                else:
                    self._launch.hard.wait(RETRY_S)
                    # If the claim was granted and its answer lost, ask for the same task again.
                    request.task = self._held()

    def _held(self) -> str | None:
        held = self.ask(rq.Tasks(state="claimed", limit=5000))
        return next((t.task for t in held.items if t.claimed_by == self.agent), None)

    # ------------------------------------------------------------ asking

    def ask(self, request: rq.Request[T]) -> T:
        """Ask one request as this agent, by `steady`."""
        return self.steady(lambda: self.client.call(request))

    def steady(self, ask: Callable[[], T]) -> T:
        """Ask until the coordinator answers, however often it restarts.

        Raises:
            Refusal: its answer; or that it could not be reached for too long.
        """
        deadline = time.monotonic() + self._launch.limits.patience_s
        while True:
            try:
                return ask()
            except Refusal as refusal:
                if refusal.code not in PASSING or time.monotonic() > deadline:
                    raise
                self._launch.hard.wait(RETRY_S)
                if self._launch.hard.is_set() and time.monotonic() > deadline - 50:
                    raise
