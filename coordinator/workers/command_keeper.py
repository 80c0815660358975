"""Runs one command for a caller that may die: whatever happens, nothing of the command outlives it.

Called as `python -P -m coordinator.workers.command_keeper SECONDS LOG COMMAND`, in the directory
for the command. The command's output is appended to LOG. The end of the keeper's standard input
means that the caller is gone. All processes that the command has started are ended with it, even
those that left its group or stayed in the background. This holds on Linux, where orphans come to
the keeper; elsewhere only its group is ended. The keeper writes the result to its standard output,
as JSON: `{"code": 0, "why": ""}`.

Knows no task, no repository and no daemon.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from coordinator.workers.process_group import stat_fields

#: Interactive work has priority.
NICE = 10
#: The command's time between SIGTERM and SIGKILL (seconds), and the time between two checks of it.
GRACE_S, LOOK_S = 2.0, 0.1
#: prctl: orphans below this process become its children; the death of its parent ends a process.
_SUBREAPER, _PARENT_DEATH = 36, 1
#: Why the command was ended: it took too long, or its caller is gone.
TOO_LONG, NOBODY = "time", "nobody"


def main(arguments: list[str]) -> int:
    """Run the command. Returns 0 when the result is written."""
    seconds, log, command = float(arguments[0]), Path(arguments[1]), arguments[2]
    with contextlib.suppress(OSError):
        os.nice(NICE)
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if libc is not None:
        libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    message = _Told()
    signal.signal(signal.SIGTERM, message.end)
    with log.open("ab") as out:
        process = subprocess.Popen(
            ["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=None if libc is None else lambda: _die_with_parent(libc),
        )
    why = _wait(process, time.monotonic() + seconds, message)
    if why == TOO_LONG:
        _signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    _signal(process.pid, signal.SIGKILL)
    code = process.wait()
    _end_orphans()
    with contextlib.suppress(OSError):
        os.write(1, json.dumps({"code": code, "why": why}).encode())
    return 0


class _Told:
    """Whether the keeper got the signal to end."""

    def __init__(self) -> None:
        self.over = False

    def end(self, *_: object) -> None:
        self.over = True


def _die_with_parent(libc: ctypes.CDLL) -> None:
    libc.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)


def _wait(process: subprocess.Popen[bytes], until: float, message: _Told) -> str:
    """Wait for its end. Return why it has to be ended, empty if it ended by itself."""
    while process.poll() is None:
        if message.over:
            return NOBODY
        if time.monotonic() > until:
            return TOO_LONG
        ready, _, _ = select.select([0], [], [], LOOK_S)
        if ready and not os.read(0, 1024):
            return NOBODY
    return ""


def _end_orphans() -> None:
    """End all orphans that have come to this process, until no more come."""
    while True:
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    own, result = str(os.getpid()), []
    for entry in os.listdir("/proc") if Path("/proc/self").exists() else ():
        fields = stat_fields(int(entry)) if entry.isdecimal() else None
        if fields is not None and fields[1] == own:
            result.append(int(entry))
    return result


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
