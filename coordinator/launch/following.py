"""Launched agents as their runs' records show them, and what one says and does, as it comes.

The module reads the files of runs only (runs.py, agent_logs.py). So it works whatever the
coordinator does, and a followed agent does not know it. It prints nothing.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coordinator import profiles
from coordinator.files import runs
from coordinator.files.runs import Log, Record, Worker
from coordinator.files.state import StateDir
from coordinator.profiles import agent_logs
from coordinator.words.refusals import Code, Refusal
from coordinator.workers.process_group import lives

Kind = Literal["begins", "said", "ends", "waits", "taken over", "over"]


@dataclass(frozen=True)
class Launched:
    """An agent of a launch that is going on."""

    folder: Path
    record: Record
    worker: Worker

    @property
    def doing(self) -> str:
        """Return its state in a word or two."""
        if self.worker.task is None:
            return "at no task"
        return f"at {self.worker.task}" + (", taken over" if self.worker.taken_over else "")


@dataclass(frozen=True)
class Shown:
    """One thing to show. `well`: of an end, whether it was a good one."""

    kind: Kind
    text: str
    task: str | None = None
    well: bool = True


def find(state: StateDir, agent: str | None) -> Launched | None:
    """Return the launched agent of this name, or the only one there is; None if none has this name.

    Raises:
        Refusal: UNKNOWN_AGENT: it has ended, or none runs; INVALID: several run, and none is named.
    """
    live = list(_live(state))
    if agent is None:
        return _only(live)
    for launched in live:
        if launched.worker.agent == agent:
            return launched
    for _, record in runs.records(state):
        for worker in record.workers:
            if worker.agent == agent:
                raise _ended(record, worker)
    return None


def _live(state: StateDir) -> Iterator[Launched]:
    for path, record in runs.records(state):
        if record.ended_at is None and not record.orphaned:
            yield from (Launched(path.parent, record, worker) for worker in record.workers
                        if worker.gone is None)


def _only(live: list[Launched]) -> Launched:
    if not live:
        raise Refusal(
            Code.UNKNOWN_AGENT, "No launched agent is at work in this repository.",
            next="`coord logs TASK` shows what earlier ones said; `coord launch` starts some.",
        )
    if len(live) > 1:
        names = ", ".join(f"{launched.worker.agent} ({launched.doing})" for launched in live)
        raise Refusal(
            Code.INVALID, f"{len(live)} launched agents are at work: {names}. Name one.",
            next=f"coord attach {live[0].worker.agent}",
            agents=[launched.worker.agent for launched in live],
        )
    return live[0]


def _ended(record: Record, worker: Worker) -> Refusal:
    mine = record.logs_of(worker.agent)
    task = agent_logs.task_of(mine[-1][0]) if mine else None
    how = f" ({worker.gone})" if worker.gone else ""
    if worker.gone is None:  # its launch ended without saying why
        how = f": its launch (run {record.run}) was killed"
    last = ""
    if mine and mine[-1][1].ended is not None:
        last = f" Its last task: {task} {mine[-1][1].ended}."
    return Refusal(
        Code.UNKNOWN_AGENT, f"{worker.agent} has ended{how}.{last}",
        next=f"coord logs {task}" if task else "`coord agents` lists those that are there.",
    )


class Following:
    """One agent, from now on; first come the last `lines` of its present task."""

    def __init__(self, state: StateDir, launched: Launched, lines: int) -> None:
        self._state, self._folder, self._lines = state, launched.folder, lines
        self.agent = launched.worker.agent
        self._record, self._stamp = launched.record, (0, 0)
        mine = launched.record.logs_of(self.agent)
        #: How many of its logs were begun here; the last of them is shown.
        self._begun = len(mine)
        if mine and (launched.worker.task is not None or mine[-1][1].ended is None):
            self._begun -= 1
        self._log: agent_logs.Follower | None = None
        self._at = ""
        self._rests = self._taken = False
        self._first = True

    def poll(self) -> Iterator[Shown]:
        """Yield the new output, in order. An `over` is the last item."""
        dead = not lives(self._record.launcher, self._record.launcher_mark)
        self._read()  # later, so that its last output is there
        worker = next((worker for worker in self._record.workers if worker.agent == self.agent),
                      None)
        mine = self._record.logs_of(self.agent)
        yield from self._catch_up(mine)
        self._first = False
        if worker is not None and worker.gone is not None:
            yield Shown("over", f"{self.agent} has ended: {worker.gone}",
                        well=not worker.failed)
        elif self._record.ended_at is not None or dead:
            yield Shown("over", f"{self.agent} has ended: its launch was killed; what it had not "
                        "finished is flagged for review", well=False)
        elif worker is not None:
            yield from self._state_of(worker, mine)

    def _catch_up(self, mine: list[tuple[str, Log]]) -> Iterator[Shown]:
        """Yield the logs from the shown one to the newest."""
        while True:
            known_log = mine[self._begun - 1][1] if self._log is not None else None
            more = self._begun < len(mine)
            if self._log is not None and known_log is not None:
                over = more or known_log.ended is not None
                yield from self._draw_texts(self._log.shown(over=over))
                if known_log.ended is not None:
                    yield Shown("ends", f"{self.agent}: {self._at} {known_log.ended}", self._at)
                if over:
                    self._log = None
            if not more:
                return
            name, log = mine[self._begun]
            self._begun += 1
            yield from self._open(name, log)

    def _open(self, name: str, log: Log) -> Iterator[Shown]:
        self._at = agent_logs.task_of(name)
        self._rests = self._taken = False
        yield Shown("begins", f"{self.agent} is at {self._at} '{log.title}' ({name})", self._at)
        table = None
        with contextlib.suppress(Refusal):
            table = profiles.load(log.profile, self._state.root).stream
        self._log = agent_logs.Follower(self._folder / name, table)
        if self._first:
            before = [line for text in self._log.shown() for line in text.splitlines()]
            kept = deque(before, maxlen=self._lines)
            if len(before) > len(kept):
                yield Shown("said", f"… {len(before) - len(kept)} lines before: "
                            f"`coord logs {self._at}`", self._at)
            yield from self._draw_texts(iter(kept))

    def _draw_texts(self, texts: Iterator[str]) -> Iterator[Shown]:
        for text in texts:
            for line in text.splitlines():
                yield Shown("said", line, self._at)

    def _state_of(self, worker: Worker, mine: list[tuple[str, Log]]) -> Iterator[Shown]:
        if worker.taken_over and not self._taken:
            yield Shown("taken over", f"{self.agent}: what is said now shows in that person's "
                        "terminal; here it goes on when they leave", worker.task)
        self._taken = worker.taken_over
        rests = self._log is None and worker.task is None
        if rests and not self._rests:
            last = f"; its last, {self._at_last(mine)}" if mine and not self._at else ""
            yield Shown("waits", f"{self.agent} waits for a task{last}")
        self._rests = rests

    def _at_last(self, mine: list[tuple[str, Log]]) -> str:
        name, log = mine[-1]
        return f"{agent_logs.task_of(name)}, {log.ended or 'is being settled'}"

    def _read(self) -> None:
        path = self._folder / "record"
        with contextlib.suppress(OSError):
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if stamp != self._stamp:
                self._stamp, self._record = stamp, runs.read(self._folder) or self._record
