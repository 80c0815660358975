"""What is said of a command that does not exist: ours that is near, or that another program calls
so. Reads in no other command's module for that."""

from __future__ import annotations

import difflib
from collections.abc import Collection

#: What other programs call it -> what it is called here.
MEANT = {"rm": "cancel", "remove": "cancel", "delete": "cancel", "ls": "list", "new": "add",
         "create": "add", "start": "up", "stop": "down", "log": "events", "uninstall": "remove"}


def sentence(typed: str, commands: Collection[str]) -> str:
    """That there is none called `typed` among these, and which may have been meant."""
    near = difflib.get_close_matches(typed, sorted(commands))
    meant = MEANT.get(typed, "")
    if meant in commands:
        near = [meant, *(one for one in near if one != meant)]
    said = f"No such command {typed!r}."
    return said + (f" Did you mean {', '.join(map(repr, near))}?" if near else "")
