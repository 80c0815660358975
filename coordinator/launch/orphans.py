"""Ending the agents of a dead launcher and flagging their changes.

The next launch does this. So does, at once, a process that each launch starts beside itself: a
shell that waits for the end of a pipe, which the kernel closes however the launcher dies. Only then
does the shell become `python -P -m coordinator.launch.orphans`, so it costs almost nothing before.
One of the two does the work and the other waits. Nothing is reverted.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import subprocess
import sys
import time
from pathlib import Path

from coordinator.client.client import Client
from coordinator.files import runs
from coordinator.files.state import StateDir
from coordinator.launch import isolation, recovery
from coordinator.launch.at_terminal import AtTerminal
from coordinator.profiles import agent_logs
from coordinator.words import requests as rq
from coordinator.words.clock import now_iso
from coordinator.words.refusals import Refusal
from coordinator.workers.process_group import end_orphan, mark, unrecorded

#: The launcher's word for its regular end.
_OVER = b"over\n"
_WAITS = 'read -r said; [ "$said" = over ] || exec "$@"'
#: How long to wait for the end of a launcher whose pipe was closed (seconds).
END_S = 10.0
#: The time between SIGTERM and SIGKILL for a program that a person had taken over (seconds).
GRACE_S = 2.0


class Outlives:
    """A process that waits for the end of the launcher that starts it here."""

    def __init__(self, root: Path, run: str) -> None:
        command = [sys.executable, "-P", "-m", "coordinator.launch.orphans", "--root", str(root),
                   "--run", run]
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):  # then the next launch does it
            self._process = subprocess.Popen(
                ["sh", "-c", _WAITS, "sh", *command], cwd="/", stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )

    @property
    def pid(self) -> int | None:
        """Its process id; None if it could not be started."""
        return self._process.pid if self._process is not None else None

    def over(self) -> None:
        """Tell it that the launch has ended, so that there is nothing to tidy up."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.communicate(_OVER)


def tidy_up(
    root: Path, state: StateDir, operator: Client, run: str
) -> tuple[int, list[str]] | None:
    """End the agents of this run, if its launcher is gone, and have their unfinished work flagged.
    Returns how many were still at work, and the worktrees with work that did not land. None if that
    is done already, or if there is nothing to do.

    Raises:
        OSError: the folder of the run cannot be written to.
    """
    folder = state.runs / run
    with (folder / "tidy.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = runs.read(folder)
        if record is None or not record.orphaned:
            return None
        return _tidy_up(root, state, operator, folder / "record", record)


def _tidy_up(
    root: Path, state: StateDir, operator: Client, path: Path, record: runs.Record
) -> tuple[int, list[str]]:
    ended = 0
    for worker in record.workers:
        tail = ""
        if worker.pid is None:
            group = unrecorded(worker.agent, str(state.socket()))
            if group is not None:
                ended += end_orphan(group, mark(group), worker.agent)
        elif worker.task is not None:
            ended += _end(worker, str(state.socket()))
            log = agent_logs.log_path(path.parent, worker.task, worker.attempt or 1)
            tail = agent_logs.tail(log, 4_000)
        with contextlib.suppress(Refusal):
            operator.call(rq.Leave(agent=worker.agent, clean=False, log_tail=tail,
                                   reason=f"its launcher (run {record.run}) died"))
    if record.door is not None:
        with contextlib.suppress(OSError):
            Path(record.door).unlink()
    runs.close(path, record, now_iso())
    return ended, isolation.tidy_up(root, state, record.run)


def _end(worker: runs.Worker, socket: str) -> bool:
    """End its process, whosever terminal that is at; whether there was one."""
    assert worker.pid is not None, "it was written down"
    if not worker.taken_over:
        return end_orphan(worker.pid, worker.mark, worker.agent)
    person = AtTerminal.found(worker.pid, worker.agent, socket)
    if worker.mark is None or person.mark != worker.mark or not person.lives():
        return False
    person.end(GRACE_S)
    return True


def main() -> int:
    """The program that the shell becomes when the launcher has died."""
    parser = argparse.ArgumentParser(prog="coordinator.launch.orphans")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--run", required=True)
    given = parser.parse_args()
    state, deadline = StateDir(given.root), time.monotonic() + END_S
    while (record := runs.read(state.runs / given.run)) is not None and not record.orphaned:
        if record.ended_at is not None or time.monotonic() > deadline:
            return 0  # it came to its end; or it lives, and has lost its pipe only
        time.sleep(0.05)
    with contextlib.suppress(Refusal, OSError), Client(given.root) as operator:
        if recovery.unfinished(state) is not None:
            with contextlib.suppress(Refusal):
                recovery.recover(state, operator.call)
        tidy_up(given.root, state, operator, given.run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
