"""What is said of a command that does not exist: ours that is near, or that another program calls
so. Reads in no other command's module for that."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Collection

#: What other programs call it -> what it is called here: in one group or another.
MEANT = {"rm": ("cancel",), "remove": ("cancel",), "delete": ("cancel",), "ls": ("list",),
         "new": ("add",), "create": ("add",), "start": ("up",), "stop": ("down",),
         "log": ("events",), "uninstall": ("remove",), "ask": ("file",),
         "accept": ("approve", "keep"), "grant": ("approve",), "allow": ("approve",),
         "approve": ("keep",), "answer": ("approve", "reject"), "deny": ("reject",),
         "refuse": ("reject",), "reject": ("revert",), "decline": ("reject",),
         "share": ("coexist",), "cancel": ("withdraw",), "diff": ("show",), "view": ("show",),
         "show": ("list",), "status": ("list",),
         "finish": ("done",), "complete": ("done",), "take": ("claim",),
         "release": ("unlock",), "acquire": ("lock",), "lease": ("lock",), "leases": ("locks",),
         "dashboard": ("status",), "who": ("locks",)}
#: How like ours a name is that may be a slip (0 to 1): `lokc` is, `release` is not like `replay`.
NEAR = 0.7
#: Of the near ones so many are named.
NAMED_MAX = 3
#: Ids that are typed where a command is to be, by the group -> what is done with one.
_IDS = {"review": ("R-", "coord review show {}"), "task": ("T-", "coord task show {}"),
        "request": ("U-", "coord request list")}


def sentence(typed: str, commands: Collection[str]) -> str:
    """That there is none called `typed` among these, and which may have been meant."""
    near = _near(typed, commands)
    meant = [one for one in MEANT.get(typed, ()) if one in commands]
    near = [*meant, *(one for one in near if one not in meant)]
    said = f"No such command {typed!r}."
    return said + (f" Did you mean {', '.join(map(repr, near))}?" if near else "")


def _near(typed: str, commands: Collection[str]) -> list[str]:
    return difflib.get_close_matches(typed, sorted(commands), NAMED_MAX, NEAR)


def step(group: str, typed: str, commands: Collection[str]) -> str:
    """What to type where a group of commands was given what its commands are about; empty: nothing
    of that kind."""
    begins, shows = _IDS.get(group, ("", ""))
    if begins and typed.upper().startswith(begins) and typed[len(begins):].isdecimal():
        return shows.format(typed)
    if group != "request" or typed.startswith("-"):
        return ""
    is_name = any(sign in typed for sign in "./*:") or os.path.lexists(typed)
    if not is_name and (typed in MEANT or _near(typed, commands)):
        return ""
    return f"coord request file {shlex.quote(typed)} --reason WHY"
