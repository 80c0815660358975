"""A person takes a launched agent over: whose turn it is, and the time while the person is there.

At any moment one of the two is the agent: its unattended program, or the person's. The agent's
thread decides (agent_worker.py); a person who has come by the door waits in its `Seat`. The task
stays claimed by the same agent all the while. The module starts no process.
"""

from __future__ import annotations

import threading
import time

from coordinator.launch.at_terminal import AtTerminal
from coordinator.launch.attempt import FAREWELL_S, TICK_S, Claim, Ended, Limits
from coordinator.launch.door import Visitor
from coordinator.words.refusals import Code, Refusal

#: Between two heartbeats while a person is there, at most (seconds).
BEAT_S = 30.0


class Seat:
    """One agent's. Asked from the door's thread, answered from the agent's own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = False
        self._taken = False
        self._visitor: Visitor | None = None

    def ask(self, agent: str, visitor: Visitor) -> None:
        """Record the visitor that waits for this agent's conversation.

        Raises:
            Refusal: BAD_TRANSITION: it is taken over already, or at no task.
        """
        with self._lock:
            if self._taken or (self._visitor is not None and self._visitor.waits()):
                raise Refusal(Code.BAD_TRANSITION, f"Another person has taken {agent} over.",
                              next=f"coord attach {agent}")
            if not self._open:
                raise Refusal(
                    Code.BAD_TRANSITION, f"{agent} is between two tasks, so there is no "
                    "conversation to take over.", next=f"coord attach {agent}",
                )
            self._visitor = visitor

    def open(self) -> None:
        """Admit visitors: its program is at work."""
        with self._lock:
            self._open, self._taken = True, False

    @property
    def asked(self) -> bool:
        """Whether a person waits."""
        with self._lock:
            if self._visitor is not None and not self._visitor.waits():
                self._visitor = None  # this person has left
            return self._visitor is not None

    @property
    def taken(self) -> bool:
        """Whether a person has it."""
        with self._lock:
            return self._taken

    def take(self) -> Visitor | None:
        """Hand the seat to the waiting person, who has to be answered; None if none waits now."""
        with self._lock:
            visitor, self._visitor = self._visitor, None
            self._open, self._taken = False, visitor is not None
            return visitor

    def close(self, agent: str, task: str) -> None:
        """Refuse a waiting person: its program has ended."""
        with self._lock:
            visitor, self._visitor = self._visitor, None
            self._open = self._taken = False
        if visitor is not None:
            visitor.refuse(Refusal(
                Code.BAD_TRANSITION, f"{agent} has just come to the end of {task}; nothing was "
                "taken over.", next=f"coord attach {agent}",
            ))


def accompany(person: AtTerminal, claim: Claim, limits: Limits, hard: threading.Event
              ) -> Ended | None:
    """Keep the agent's claim while a person is at its conversation, until the person has left in
    any way. How the task ended meanwhile; None if it has not ended and is to continue."""
    began = next_beat = time.monotonic()
    over: Ended | None = None
    while person.lives():
        if hard.is_set():
            person.end(limits.grace_s)
            return Ended("stopped", 0, "the launch was stopped")
        if person.has_lost_its_terminal():
            break
        now = time.monotonic()
        if now >= next_beat:
            next_beat = now + min(BEAT_S, limits.ttl_s / 4)
            ending = _look(claim, f"taken over by a person ({now - began:.1f} s)")
            over = over or ending
        hard.wait(TICK_S)
    person.end(FAREWELL_S)
    return over or _look(claim, f"handed back by a person ({time.monotonic() - began:.1f} s)")


def _look(claim: Claim, progress: str) -> Ended | None:
    """Renew the claim. Returns how it ended, if it has. The person may continue to talk then. A
    coordinator that does not answer now does so later."""
    renewal = claim.renewed(progress)
    return None if renewal is None else Ended(renewal[0], 0, renewal[1])
