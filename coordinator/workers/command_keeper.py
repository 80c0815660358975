"""Runs one command for somebody who may die: whatever happens, nothing of the command outlives it.

`python -P -m coordinator.workers.command_keeper SECONDS LOG COMMAND`, in the directory where the
command is to run; what that prints is appended to LOG. The keeper reads its standard input: when
that ends, whoever wanted the command is gone. All that the command has started is ended with it,
also what has left its group or was left behind in the background (on Linux, where orphans come to
the keeper; elsewhere its group alone). On its standard output it says how it went, as JSON:
`{"code": 0, "why": ""}`.

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

#: Whoever is at work goes before.
NICE = 10
#: What the command has between SIGTERM and SIGKILL (seconds), and how often it is looked at.
GRACE_S, LOOK_S = 2.0, 0.1
#: prctl: orphans below this process become its children; the death of its parent ends a process.
_SUBREAPER, _PARENT_DEATH = 36, 1
#: How it went when it took too long, and when nobody waits for it any more.
TOO_LONG, NOBODY = "time", "nobody"


def main(arguments: list[str]) -> int:
    """0: it has said how it went."""
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
    """Whether it was told to end."""

    def __init__(self) -> None:
        self.over = False

    def end(self, *_: object) -> None:
        self.over = True


def _die_with_parent(libc: ctypes.CDLL) -> None:
    libc.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)


def _wait(process: subprocess.Popen[bytes], until: float, message: _Told) -> str:
    """Wait for its end; why it is to be ended, if it has not come to it by itself."""
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
    """End whatever has come to this process, until nothing comes any more."""
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
