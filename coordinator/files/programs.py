"""Checking that what is to be started is a program, and saying why where it is not. It starts
nothing.
"""

from __future__ import annotations

import os
import shlex

from coordinator.words.refusals import Code, Exit, Refusal


def missing(name: str) -> tuple[Refusal, Exit]:
    """The refusal for a name that cannot be started, and the exit code that a shell gives it."""
    typed = shlex.quote(name)
    if os.path.isdir(name) and "/" in name:  # noqa: PTH112
        return Refusal(Code.INVALID, f"{name} is a directory. Nothing was started.",
                       next=f"Name a program: `ls {typed}`"), Exit.NOT_STARTED
    if os.path.isfile(name) and "/" in name:  # noqa: PTH113
        return Refusal(Code.INVALID, f"{name} is not executable. Nothing was started.",
                       next=f"chmod +x {typed}"), Exit.NOT_STARTED
    if name.startswith("-"):
        return Refusal(Code.INVALID, f"{name} stands where a program is to be. Nothing was "
                       "started.", next="Name the program first, then its options."), Exit.INVALID
    return Refusal(
        Code.INVALID, f"There is no program called {name}. Nothing was started.",
        next=f"Install it, or put its folder on PATH: `command -v {typed}` must find it."
    ), Exit.NOT_FOUND
