"""One agent as a process in a group of its own, and the end of that group.

Agents start helpers. Some helpers ignore a signal to their parent alone, or leave the real worker
behind. So each agent gets a session of its own and is always ended as a group. A process is
identified by its pid *and* the instant it started, so that a reused pid is never signalled. Owns no
task and talks to no daemon.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

#: How long the end of a killed group is waited for.
REAP_S = 10.0


class Running:
    """An agent's process; `exited` is set when its first process has ended."""

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path,
        stdin: Path | IO[bytes] | None,
    ) -> None:
        """Start it, its output appended to `log`. It reads `stdin`; None is an empty input.

        Raises:
            OSError: it cannot be started.
        """
        self.exited = threading.Event()
        with log.open("ab") as out, _source(stdin) as given:
            self._process = subprocess.Popen(
                argv, cwd=cwd, env=dict(env), stdin=given, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
            )
        self.pid = self._process.pid
        self.mark = mark(self.pid)
        self._watcher = threading.Thread(
            target=self._watch, name=f"coord-wait-{self.pid}", daemon=True
        )
        self._watcher.start()

    def _watch(self) -> None:
        # Not reaped yet: while the zombie exists, its number is not reused, and the rest of its
        # group can be signalled safely.
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        self.exited.set()

    def finish(self) -> int:
        """After `exited`: end the rest of its group, and return its exit code (-N: signal N)."""
        if self._process.returncode is None:
            _signal(self.pid, signal.SIGKILL)
            self._process.wait()
        return self._process.returncode

    def stop(self, grace_s: float) -> int:
        """Send SIGTERM to the group, after `grace_s` SIGKILL. Return its exit code."""
        if not self.exited.is_set():
            _signal(self.pid, signal.SIGTERM)
            if not self.exited.wait(grace_s):
                _signal(self.pid, signal.SIGKILL)
                self.exited.wait(REAP_S)
        return self.finish()


def _source(stdin: Path | IO[bytes] | None) -> contextlib.AbstractContextManager[IO[bytes]]:
    if stdin is not None and not isinstance(stdin, Path):
        return contextlib.nullcontext(stdin)
    return stdin.open("rb") if stdin is not None else open(os.devnull, "rb")  # noqa: PTH123


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def mark(pid: int) -> str | None:
    """Return a mark of this process that no later one with its number has: boot and start.

    None if there is no such process.
    """
    fields = stat_fields(pid)
    if fields is not None:
        return f"{_boot()}/{fields[19]}"
    if Path("/proc/self/stat").exists():
        return None
    asked = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return " ".join(asked.stdout.split()) or None


def lives(pid: int, known: str | None) -> bool:
    """Whether the process that had this number and this `mark` still runs. An ended process keeps
    both until its parent collects it."""
    if known is None or mark(pid) != known:
        return False
    fields = stat_fields(pid)
    return fields is None or fields[0] not in "ZX"


def end_orphan(pid: int, known: str | None, agent: str, grace_s: float = 2.0) -> bool:
    """End the group of a process that an earlier launcher left. Return whether there was one.

    Its number may have been reused: the first process must have the same `mark`, or, if it is gone,
    a member of its group must have been started as `agent`.
    """
    now = mark(pid)
    if now is None:
        if not any(started_with(member, "COORD_AGENT", agent) for member in _members(pid)):
            return False
    elif known is None or now != known:
        return False
    _signal(pid, signal.SIGTERM)
    pause = threading.Event()
    for _ in range(round(grace_s / 0.02)):
        if not _members(pid):
            return True
        pause.wait(0.02)
    _signal(pid, signal.SIGKILL)
    return True


def unrecorded(agent: str, socket: str) -> int | None:
    """Find the group of a process that was started as `agent` for the coordinator at `socket`, and
    whose launcher died before it could record the group. None without /proc."""
    try:
        known = [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]
    except OSError:
        return None
    for pid in known:
        fields = stat_fields(pid)
        if (fields is not None and fields[0] != "Z" and int(fields[2]) != os.getpgrp()
                and started_with(pid, "COORD_AGENT", agent)
                and started_with(pid, "COORD_SOCKET", socket)):
            return int(fields[2])
    return None


def _members(group: int) -> list[int]:
    """Return the living processes of a group. Without /proc, the group's number if it answers."""
    if not Path("/proc/self/stat").exists():
        try:
            os.killpg(group, 0)
        except OSError:
            return []
        return [group]
    result = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            fields = stat_fields(int(entry))
            if fields is not None and fields[2] == str(group) and fields[0] != "Z":
                result.append(int(entry))
    return result


def started_with(pid: int, name: str, value: str) -> bool:
    """Whether a process was started with this in its environment; False if that is unknown."""
    try:
        wanted = os.fsencode(f"{name}={value}")
        return wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the third (state) on: 0 state, 2 group, 3 session, 4
    terminal, 19 start. None without such a process, or without /proc."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    return text[text.rfind(")") + 2 :].split()


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
