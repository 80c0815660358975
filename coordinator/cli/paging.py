"""A long answer on a terminal, through the pager that git would take.

Owns which pager, and when there is one: `$GIT_PAGER`, git's `core.pager`, `$PAGER`, `less`; never
into a pipe, never on a dumb terminal. A pager that cannot be started costs nobody the answer.
"""

from __future__ import annotations

import os
import subprocess
import sys

#: What git gives to its pager, where the person has not set them.
FOR_PAGERS = {"LESS": "FRX", "LV": "-c"}


def pager() -> str | None:
    """The command (for `sh -c`); None: nothing is paged here."""
    if not (sys.stdout.isatty() and sys.stdin.isatty()) or os.environ.get("TERM") == "dumb":
        return None
    try:
        completed = subprocess.run(["git", "var", "GIT_PAGER"], capture_output=True, text=True,
                                   check=False)
        command = completed.stdout.strip() if completed.returncode == 0 else None
    except OSError:
        command = None
    if command is None:
        command = os.environ.get("GIT_PAGER") or os.environ.get("PAGER") or "less"
    return None if command in ("", "cat") else command


def page(text: str) -> None:
    """Show this on the terminal, paged if it can be. The colours are in it already."""
    command = pager()
    if command is not None and _through(command, text):
        return
    sys.stdout.write(text)
    sys.stdout.flush()


def _through(command: str, text: str) -> bool:
    """Whether the pager took it."""
    env = {**FOR_PAGERS, **os.environ}
    sys.stdout.flush()
    try:
        process = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, env=env)
    except OSError:
        return False
    assert process.stdin is not None
    try:
        process.stdin.write(text.encode("utf-8", "backslashreplace"))
        process.stdin.close()
    except BrokenPipeError:  # the person has seen enough, or there is no such program
        pass
    while True:
        try:
            return process.wait() not in (126, 127)
        except KeyboardInterrupt:  # for the pager, not for us: as with git
            continue
