"""The state that the agents of one launch share: draining, stopping, the end, and the attempts.

launcher.py starts and ends agents, and agent_worker.py does their work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from coordinator.client.client import Client
from coordinator.files import runs
from coordinator.files.state import StateDir
from coordinator.launch import report
from coordinator.launch.attempt import PASSING, Limits
from coordinator.launch.isolation import Isolation
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock, from_iso
from coordinator.words.refusals import Refusal
from coordinator.words.texts import counted

#: Between two tries to reach a coordinator that restarts (seconds).
RETRY_S = 0.2
#: Leases that are named when nothing can start.
HOLDERS_MAX = 3


class LaunchState:
    """Shared by the threads of a launch. `run` is its record on disk, once it is prepared;
    `isolation` its worktrees, if each agent works in one."""

    run: runs.RunFile

    def __init__(
        self, root: Path, limits: Limits, *, say: Callable[[str], None],
        expects_verdicts: Callable[[], bool], options: Mapping[str, str] | None,
    ) -> None:
        self.root, self.limits = root, limits
        self.options = dict(options or {})
        self.say = say
        self.state = StateDir(root)
        self.isolation: Isolation | None = None
        #: Whether its agents run in sessions of their own.
        self.sessions = False
        self.draining, self.hard = threading.Event(), threading.Event()
        self.over = threading.Event()
        self.attempts: list[report.Attempt] = []
        self.problems: list[str] = []
        #: When the last attempt ended (monotonic seconds).
        self.last_at = time.monotonic()
        self._expects_verdicts = expects_verdicts
        self._numbers: dict[str, int] = {}
        #: The names of its agents, ever.
        self.names: set[str] = set()
        self._waits_for = ""
        self._lock = threading.Lock()
        self.operator = Client(root)

    def steady(self, request: rq.Request[Any]) -> Any:
        """Ask as the person who launched, until the coordinator answers.

        Raises:
            Refusal: its answer; or that it could not be reached for too long.
        """
        deadline = time.monotonic() + self.limits.patience_s
        while True:
            try:
                return self.operator.call(request)
            except Refusal as refusal:
                if refusal.code not in PASSING or time.monotonic() > deadline:
                    raise
                self.hard.wait(RETRY_S)

    def nothing_left(self, client: Client, counts: Mapping[str, int]) -> bool:
        """Whether no agent has anything left to do, by a refused claim's counts."""
        if self.over.is_set():
            return True
        if counts.get("claimed") or counts.get("failed"):
            self._say_who_else_works(client)
            return False
        if counts.get("review") or counts.get("ready"):
            if self._expects_verdicts():
                self._say_what_it_waits_for(client)
                return False
            if counts.get("ready") and not self._barred(client):
                self._say_what_it_waits_for(client)
                return False
        self.over.set()
        return True

    def _say_who_else_works(self, client: Client) -> None:
        """Say so if all running work is another launch's, or done by hand."""
        claimed = client.call(rq.Tasks(state="claimed", limit=HOLDERS_MAX)).items
        if claimed and not any(task.claimed_by in self.names for task in claimed):
            names = ", ".join(f"{task.claimed_by} works on {task.task}" for task in claimed)
            self._say_once(f"others are at it, {names}: `coord status`", names)

    def _say_what_it_waits_for(self, client: Client) -> None:
        """If no agent of this launch works and nothing can start, say why, once. That may last for
        hours, and a silent launch looks hung."""
        rows = client.call(rq.Locks(limit=HOLDERS_MAX)).items
        held = [lease for lease in rows if lease.locked_by not in self.names]
        open_ = [] if rows else client.call(rq.Reviews(limit=1)).items
        if held:
            names = ", ".join(f"{lease.resource} ({lease.locked_by}, until "
                              f"{lease.expires_at[11:16]}Z)"
                              for lease in held)
            where = f"others hold {names}: `coord locks`"
            key = ", ".join(f"{lease.resource} {lease.locked_by}" for lease in held)
        elif open_:
            where = key = "reviews wait for your verdict: `coord review`"
        else:  # one of its own agents has begun since the counts were taken
            return
        self._say_once(where, key)

    def _say_once(self, why: str, key: str) -> None:
        with self._lock:
            if key == self._waits_for:
                return
            self._waits_for = key
        self.say(f"No task can start now; {why}. The launch waits.")

    def _barred(self, client: Client) -> bool:
        """Whether reviews bar ready tasks, although nothing is held."""
        held = client.call(rq.Locks(limit=1))
        if held.items or held.waiters:
            return False
        now = client.call(rq.Tasks(limit=1)).counts
        return not (now.get("claimed") or now.get("failed")) and bool(
            client.call(rq.Reviews(limit=1)).items
        )

    def follows(self, task: str, outcome: str) -> str:
        """Return the next step of a failed task, for its line in the output."""
        if outcome != "failed" or self.hard.is_set():
            return ""
        try:
            row = self.steady(rq.TaskShow(task=task))
        except Refusal:  # the line says less; the launch continues
            return ""
        if row.state == "failed" and row.not_before is not None:
            rest = max(0, from_iso(row.not_before) - SystemClock().now_ms())
            return (f"; tried again in {max(1, round(rest / 1000))}s "
                    f"(attempt {row.attempts + 1} of {row.attempts_max})")
        if row.state == "dead":
            return f"; given up after {counted(row.attempts, 'attempt')}"
        return "; what it changed is kept as a review" if row.state == "review" else ""

    def number(self, task: str) -> int:
        """Return the number of the next attempt at this task in this run. It names the attempt's
        files."""
        with self._lock:
            self._numbers[task] = self._numbers.get(task, 0) + 1
            return self._numbers[task]

    def note(self, attempt: report.Attempt) -> None:
        """Keep an attempt for the report."""
        with self._lock:
            self.attempts.append(attempt)
            self.last_at = time.monotonic()

    def trouble(self, what: str) -> None:
        """Record that an agent could not continue for a reason that is no task's fault."""
        with self._lock:
            self.problems.append(what)
        self.say(what)
