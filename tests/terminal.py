"""`coord` as a person types it at a terminal."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path


def at_a_terminal(where: Path, words: list[str], answer: str = "") -> tuple[int, str]:
    """The exit code, and what the terminal showed. `answer` is typed once a yes or no is asked."""
    pid, side = pty.fork()
    if pid == 0:
        os.chdir(where)
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-m", "coordinator.cli.main", *words])
    shown = b""
    try:
        while True:
            shown += os.read(side, 4096)
            if answer and b"[y/N]" in shown:
                os.write(side, answer.encode())
                answer = ""
    except OSError:  # it has ended
        pass
    finally:
        os.close(side)
    _, ended = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(ended), shown.decode(errors="replace")
