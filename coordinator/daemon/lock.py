"""The lock that makes a daemon the repository's one daemon. Owns nothing but that file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from pathlib import Path
from typing import IO

from coordinator.files import ownership
from coordinator.files.state import StateDir
from coordinator.words.refusals import Code, Refusal

#: How long (seconds) a start waits for a daemon that holds the lock and answers nobody. A daemon
#: without its socket ends by itself within that time.
PATIENCE_S = 5.0


def take_lock(state: StateDir, patience_s: float = PATIENCE_S) -> IO[str]:
    """Take the lock, and write this process's id into it.

    Raises:
        OSError.
        Refusal: BAD_TRANSITION: another daemon runs; its pid is among the facts. FOREIGN.
    """
    until = time.monotonic() + patience_s
    while True:
        file = os.fdopen(
            ownership.open_own(state.lock, os.O_RDWR | os.O_CREAT), "r+", encoding="utf-8"
        )
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = file.read().strip() or "unknown"
            file.close()
            if time.monotonic() < until and not answers(state.socket()):
                time.sleep(0.05)
                continue
            raise Refusal(
                Code.BAD_TRANSITION,
                f"A coordinator for {state.root} is running already (pid {pid}).",
                next="`coord status` shows it; `coord down` stops it.", pid=pid,
            ) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), state.lock.lstat()):
                break
        file.close()  # removed or replaced since it was opened: it locks nothing
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
    return file


def answers(path: Path) -> bool:
    """Whether anybody listens at this socket."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(1)
        try:
            link.connect(str(path))
        except OSError:
            return False
        return True
