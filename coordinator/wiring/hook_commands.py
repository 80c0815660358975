"""The commands that an agent's settings name for its hooks, as its shell reads them.

Owns their words, and what they come to where this installation of coord is gone and its Python is
not (`pip uninstall coord` before `coord init --remove`): the hook before a tool stops the tool, for
nobody could say whose file it writes; every other hook lets pass, for it stops nothing but a
person. Runs nothing.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

#: The program that hooks run.
HOOK = Path(__file__).resolve().parent.parent / "_hook.py"


def guard(socket: str, name: str, patience_s: float, *, is_spoken: bool) -> str:
    """The hook before a tool. Without its file Python exits 2, which is a refusal.

    Args:
        socket: where the coordinator listens; "-": the one around the working directory.
        name: PROFILE or PROFILE:EVENT.
        patience_s: how long it waits for an answer (seconds).
        is_spoken: say a refusal as JSON, for a CLI that shows no words of a hook that failed.
    """
    return _words(socket, name, "spoken" if is_spoken else "closed", patience_s)


def notice(socket: str, name: str, patience_s: float) -> str:
    """A hook that only tells; arguments as of `guard`."""
    return f"test ! -e {shlex.quote(str(HOOK))} || exec " + _words(
        socket, name, "open", patience_s)


def begin(name: str) -> str:
    """The hook of a session's beginning, which starts the coordinator."""
    return shlex.join((sys.executable, "-P", "-m", "coordinator.cli.main", "hook", name))


def _words(socket: str, name: str, mode: str, patience_s: float) -> str:
    return shlex.join((sys.executable, "-I", "-S", "-E", str(HOOK), socket, name, mode,
                       f"{patience_s:g}"))
