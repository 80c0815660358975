"""Opening a screen, if the terminal and Textual allow it.

The module decides when a screen is possible, and says why if it is not. Only the room
`cli/screens/` imports Textual, when a screen opens.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

from coordinator.cli.app import complain

#: How to install the missing screen.
MISSING = ("The screen needs Textual, which is not installed here: `python -m pip install textual` "
           "in the environment of coord (`pipx inject coord textual`).")


def on_a_terminal() -> bool:
    """Whether a person is at a terminal that can draw."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not _cannot_draw()


def _cannot_draw() -> bool:
    return os.environ.get("TERM", "") in ("", "dumb")


def opened(name: str) -> bool:
    """Open the screen of this name (a module of `cli/screens/`) and wait until it is closed. False
    if this terminal cannot show it; the reason is printed if it is not obvious."""
    if not on_a_terminal():
        if sys.stdin.isatty() and sys.stdout.isatty():
            complain("coord: TERM says that this terminal cannot draw a screen; `coord status` and "
                     "`coord review list` print the same as text.\n")
        return False
    if importlib.util.find_spec("textual") is None:
        complain(f"coord: {MISSING}")
        return False
    importlib.import_module(f"coordinator.cli.screens.{name}").run()
    return True
