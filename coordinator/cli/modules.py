"""The table of which module declares which command, so that the program loads only that module.

The module also words the answer to an unknown command. It names a near command of coord's own, or
coord's name for a command that other programs have.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated

from coordinator.cli.command_table import MODULES
from coordinator.commands.signatures import Option, command, declare_group
from coordinator.words.pickled import Pickled

#: The names of other programs -> our names, in one group or another.
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
#: How similar to ours a mistyped name is (0 to 1): `lokc` is, `release` is not like `replay`.
NEAR = 0.7
#: How many similar names are suggested.
NAMED_MAX = 3
#: Ids typed in the place of a command, by the group -> the command for them.
_IDS = {"review": ("R-", "coord review show {}"), "task": ("T-", "coord task show {}"),
        "request": ("U-", "coord request list")}

#: The order in a list; other commands follow.
ORDER = (
    "trust shims hook init ps down doctor up serve compact help lock unlock renew locks tell "
    "messages regions commit-region merge-file merge-driver impact request agents lost-writes "
    "sweep task limit signal state propose dead review verify status web explain archive events "
    "replay report launch logs attach run guard commit mcp completion "
)

declare_group(
    "", "Run several AI coding agents in one repository at once.", ORDER,
    epilog="`coord init` prepares a repository; `coord COMMAND --help` tells more of one command.")


@command("")
def coord(
    version: Annotated[bool, Option("Say which version this is.", "-V")] = False,
) -> None:
    """Run several AI coding agents in one repository at once. (`main` answers `--version`.)"""


class UnknownCommandError(Pickled, Exception):
    """There is no such command in this group."""

    def __init__(self, group: str, typed: str, commands: Collection[str]) -> None:
        super().__init__(typed)
        self.message = describe_unknown(typed, commands)
        self.next = suggest_step(group, typed, commands) or f"coord {group} --help"


def is_command(word: str) -> bool:
    """Whether a command begins with this word."""
    return word in list_first_words(hidden=True)


def list_first_words(*, hidden: bool = False) -> set[str]:
    """Return the words that commands begin with."""
    words = {name.partition(" ")[0] for names in MODULES.values() for name in names}
    return {word for word in words if hidden or not word.startswith("_")}


def read_command(words: Sequence[str]) -> None:
    """Read in the command that a line begins with, and as few others as can be."""
    begins = {words[0], " ".join(words[:2])} if words else set()
    _read(module for module, names in MODULES.items() if begins.intersection(names))


def read_group(word: str) -> None:
    """Read in all commands that begin with this word; if none does, all commands."""
    modules = [module for module, names in MODULES.items()
               if any(word == name.partition(" ")[0] for name in names)]
    _read(modules or MODULES)


def _read(modules: Iterable[str]) -> None:
    for module in modules:
        importlib.import_module(f"coordinator.{module}")


def describe_unknown(typed: str, commands: Collection[str]) -> str:
    """Return the message that none of these commands is called `typed`, with the likeliest ones."""
    meant = [name for name in MEANT.get(typed, ()) if name in commands]
    near = [*meant, *(name for name in _find_near(typed, commands) if name not in meant)]
    sentence = f"No such command {typed!r}."
    return sentence + (f" Did you mean {', '.join(map(repr, near))}?" if near else "")


def _find_near(typed: str, commands: Collection[str]) -> list[str]:
    import difflib  # few lines are wrong

    return difflib.get_close_matches(typed, sorted(commands), NAMED_MAX, NEAR)


def suggest_step(group: str, typed: str, commands: Collection[str]) -> str:
    """The command to suggest if a group got a thing its commands work on (an id) as a command;
    empty if that does not apply."""
    begins, shows = _IDS.get(group, ("", ""))
    if begins and typed.upper().startswith(begins) and typed[len(begins):].isdecimal():
        return shows.format(typed)
    is_slip = typed in MEANT or bool(_find_near(typed, commands))
    if group != "request" or typed.startswith("-") or (is_slip and not _is_resource(typed)):
        return ""
    import shlex

    return f"coord request file {shlex.quote(typed)} --reason WHY"


def _is_resource(typed: str) -> bool:
    return not {*"./*:"}.isdisjoint(typed) or os.path.lexists(typed)
