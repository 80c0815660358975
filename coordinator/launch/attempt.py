"""One attempt: an agent's process from its start to its end, with its claim kept alive as it moves.

The module watches three things at once: the process (exit, time over, silence), the claim (expired,
finished or given back by the agent itself), and the launch (stopped by a person). It says how the
attempt ended; `agent_worker` decides what follows for the task.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from coordinator.client.client import Client
from coordinator.dialects.stream import Told
from coordinator.files.git import clean_environment
from coordinator.files.state import StateDir
from coordinator.launch.progress import Signs
from coordinator.profiles import Profile
from coordinator.profiles.agent_logs import Follower, last_line
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock, from_iso
from coordinator.words.refusals import Code, Refusal
from coordinator.workers.process_group import Running

#: How often to look at the process; its exit is noticed at once all the same.
TICK_S = 0.2
#: An agent that reported its task finished, or gave it back, may say good-bye for this long.
FAREWELL_S = 2.0
#: Refusals that mean: this agent has no claim any longer.
LOST = frozenset({Code.STALE_TOKEN, Code.BAD_TRANSITION, Code.NOT_HOLDER, Code.UNKNOWN_AGENT,
                  Code.UNAUTHORIZED, Code.UNKNOWN_TASK})
#: Refusals that pass: the daemon is away, or its disk is full.
PASSING = frozenset({Code.DAEMON_DOWN, Code.SHUTTING_DOWN, Code.STORAGE})

#: Hooks can be absent without a word (not trusted, switched off): then nothing is enforced.
UNHOOKED = ("its hooks never reported in, so its writes were not guarded: `coord doctor` checks "
            "the wiring")

How = Literal["exited", "gave up", "unhooked", "timeout", "hung", "lapsed", "closed", "stopped",
              "cut off", "taken over"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an agent may take (seconds)."""

    ttl_s: float
    timeout_s: float
    stall_s: float
    grace_s: float
    rest_s: float = 5.0
    """The pause between two tries when the model failed (seconds); doubled each time."""

    @property
    def beat_s(self) -> float:
        """The time between two heartbeats: leases are renewed well before they end."""
        return min(5.0, self.ttl_s / 4)

    @property
    def patience_s(self) -> float:
        """How long to wait for a coordinator that does not answer."""
        return max(60.0, self.ttl_s)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, why in words, and its exit code; the facts of its stream, if it has one.

    `ok`: it says that it did its task. `model`: not the agent failed, but its model or the model's
    server. `unhooked`, whatever else went wrong: no hook saw its work. `changed`: whether it
    changed any of its task's files; None if the task names none, or too many to compare.
    """

    how: How
    code: int
    why: str
    ok: bool = False
    model: bool = False
    told: Told | None = None
    changed: bool | None = None


class Stop(Protocol):
    """The sign of a hard stop."""

    def is_set(self) -> bool: ...


class Claim:
    """An agent's right to its task, kept alive from here."""

    def __init__(self, client: Client, task: rq.Task) -> None:
        self._client, self._task = client, task
        self._clock = SystemClock()
        self.answered_at = time.monotonic()
        """When the coordinator answered last (monotonic seconds)."""

    def renewed(
        self, progress: str | None, silent_s: float = 0.0
    ) -> tuple[Literal["lapsed", "closed"], str] | None:
        """Tell that the agent moves (the words differ from time to time), or with None that it is
        only alive, silent for so long (seconds). Returns whether its claim has ended: by itself, or
        because the task was ended. Without an answer it counts as alive."""
        agent = str(self._client.agent)
        try:
            alive = self._client.call(rq.Heartbeat(agent=agent, progress=progress))
            task = self._client.call(rq.TaskShow(task=self._task.task))
        except Refusal as refusal:
            if refusal.code in LOST:
                return "lapsed", f"its claim is gone: {refusal.message}"
            return None
        self.answered_at = time.monotonic()
        if task.state == "claimed" and task.claimed_by == agent and task.claim_until is not None:
            if self._clock.now_ms() < from_iso(task.claim_until):
                return None
            silent = f"it gave no sign of progress for {silent_s:.0f} s, so " if silent_s else ""
            return "lapsed", f"{silent}its leases have ended"
        if any(n.kind in ("lapsed", "overridden") for n in alive.notices) and task.state != "done":
            return "lapsed", "its leases have ended"
        return "closed", "its task was ended"  # by the agent itself, or by a person


class Attempted(NamedTuple):
    """An attempt that runs: a process works on a task in `place`, and writes a log."""

    process: Running
    client: Client
    task: rq.Task
    log: Path
    limits: Limits
    place: Path
    profile: Profile


def supervise(attempt: Attempted, hard: Stop,
              wanted: Callable[[], bool] = lambda: False) -> Ended:
    """Stay with the process until it has ended, by itself or stopped from here. `wanted`: whether a
    person waits to take it over, which happens as soon as its session is known."""
    process, limits = attempt.process, attempt.limits
    watch = _Watch(attempt)
    while not process.exited.wait(TICK_S):
        if hard.is_set():
            return Ended("stopped", process.stop(min(limits.grace_s, FAREWELL_S)),
                         "the launch was stopped")
        if wanted() and watch.may_be_taken_over():
            return watch.stopped_for_a_person(process.stop(limits.grace_s))
        end = watch.look()
        if end is not None:
            how, why, grace_s = end
            return Ended(how, process.stop(grace_s), why, told=watch.told())
    return watch.ended(process.finish())


class _Watch:
    def __init__(self, attempt: Attempted) -> None:
        process, client, task, log, limits, place, profile = attempt
        self._process, self._client, self._task = process, client, task
        self._log, self._limits, self._profile = log, limits, profile
        self._stream = Follower(log, profile.stream) if profile.stream is not None else None
        self._hooked = profile.hooks is None or not profile.wire
        self._signs = Signs(log, place, task.resources)
        self._claim = Claim(client, task)
        self._started = self._moved_at = time.monotonic()
        self._next_beat = self._started + limits.beat_s
        self._moves = False
        self._closed_at: float | None = None

    def told(self) -> Told | None:
        """The facts of its stream so far."""
        return self._stream.poll() if self._stream is not None else None

    def may_be_taken_over(self) -> bool:
        """Whether its conversation can be found again, and is not at its end."""
        message = self.told()
        return message is not None and bool(message.session) and not message.ended

    def stopped_for_a_person(self, code: int) -> Ended:
        """The end of a process that was stopped for a person; or its success, if it had just
        finished its task. A failure that it reports because it was stopped does not count."""
        message = self._stream.poll(over=True) if self._stream is not None else None
        if message is not None and message.ended:
            ended = self.ended(next(iter(self._profile.success_codes), 0))
            if ended.ok:
                return ended
        return Ended("taken over", code, "a person took it over", told=message)

    def ended(self, code: int) -> Ended:
        """How it ended, by its exit code and its stream."""
        message, codes = None, self._profile.success_codes
        if self._stream is not None:
            message = self._stream.poll(over=True)
        if code < 0:
            why = f"killed by signal {-code}"
        elif self._stream is not None:
            why = self._stream.reader.verdict(code, codes)
        else:
            why = "" if code in codes else f"exit code {code}"
        if message is not None and message.tools and self._is_unhooked(why):
            return Ended("unhooked", code, UNHOOKED + (f"; {why}" if why else ""), told=message)
        if not why:
            return Ended("exited", code, "", ok=True, told=message, changed=self._signs.changed())
        text = last_line(self._log) if self._stream is None else ""
        model = message is not None and bool(message.model_error) and why.startswith("the model")
        return Ended("exited", code, why + (f": {text}" if text else ""), model=model, told=message)

    def _is_unhooked(self, why: str) -> bool:
        """Whether its hooks never reported in. `why` it did not succeed, if it did not: then it is
        no matter if that cannot be asked.

        Raises:
            Refusal
        """
        try:
            return not self._reported()
        except Refusal:
            if why:
                return False
            raise

    def _reported(self) -> bool:
        """Whether a hook of its has reached the coordinator (asked until one has)."""
        if not self._hooked:
            agent = str(self._client.agent)
            rows = self._client.call(rq.Agents()).items
            self._hooked = any(row.agent == agent and row.hooked_at for row in rows)
        return self._hooked

    def look(self) -> tuple[How, str, float] | None:
        """Return the reason to end the process, if any: how, why, and its grace time."""
        limits, now = self._limits, time.monotonic()
        if self._signs.moved():
            self._moved_at, self._moves = now, True
        if now - self._started > limits.timeout_s:
            return "timeout", f"it took longer than {limits.timeout_s:g} s", limits.grace_s
        if now - self._moved_at > limits.stall_s:
            return ("hung", f"no output and no change below its leases for {limits.stall_s:g} s",
                    limits.grace_s)
        if self._closed_at is not None:
            if now - self._closed_at > FAREWELL_S:
                return "closed", "it went on after it had ended its task", limits.grace_s
            return None
        if now < self._next_beat:
            return None
        self._next_beat = now + limits.beat_s
        return self._beat(now)

    def _beat(self, now: float) -> tuple[How, str, float] | None:
        limits, message = self._limits, self.told()
        try:
            if message is not None and message.tools and not self._reported():
                return "unhooked", UNHOOKED, limits.grace_s
        except Refusal as refusal:
            if refusal.code in LOST:
                return "lapsed", f"its claim is gone: {refusal.message}", limits.grace_s
        # The words must differ from beat to beat: this distinguishes moving from being alive.
        text = (message.doing if message is not None else last_line(self._log))[:200]
        progress = f"{text} ({self._signs.output_bytes} bytes, {now - self._started:.0f} s)"
        renewal = self._claim.renewed(progress if self._moves else None, now - self._moved_at)
        if self._claim.answered_at >= now:
            self._moves = False
        if renewal is None:
            silent = now - self._claim.answered_at
            if silent > limits.patience_s:
                return ("cut off", f"the coordinator could not be reached for "
                        f"{limits.patience_s:g} s", limits.grace_s)
            return None
        how, why = renewal
        if how == "lapsed":
            return how, why, limits.grace_s
        self._closed_at = now
        return None


def environment(client: Client, task: rq.Task, socket: Path) -> dict[str, str]:
    """Return the environment of the agent's process, so that `coord` there acts for it."""
    mine = {k: v for k, v in clean_environment().items()
            if k not in ("COORD_AGENT", "COORD_AGENT_TOKEN")}
    return mine | {
        "COORD_ROOT": str(client.root), "COORD_AGENT": str(client.agent),
        "COORD_AGENT_TOKEN": str(client.token), "COORD_TASK": task.task,
        "COORD_SOCKET": str(socket),
        # At the end: only used if there is no other `coord`.
        "PATH": f"{mine.get('PATH', os.defpath)}{os.pathsep}{StateDir(client.root).bin}",
    }
