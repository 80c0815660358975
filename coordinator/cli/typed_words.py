"""What was typed, by the table that is made from the program's own definition (`options.json`, by
`make docs`): which function carries it out, and with what. What the table does not understand
(a terminal's own commands, a mistake, a wish for help) is nobody's here: Typer parses it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from coordinator.commands.parsing import values

#: Made of all commands whose words it can hold: a line each, `"NAME": {…}`.
FILE = "options.json"


class Typed(NamedTuple):
    """A line that was understood: the module of `coordinator.cli` and the function in it that
    carry it out, and that function's parameters."""

    module: str
    function: str
    values: dict[str, Any]


def understood(words: Sequence[str]) -> Typed | None:
    """What these words say; None: not understood."""
    if not words or words[-1] in ("--help", "-h"):
        return None
    if list(words) in (["--version"], ["-V"]):
        return Typed("app", "version", {})
    if words[0] == "__complete":  # (the words of another command line, as far as it was typed)
        return Typed("completion", "complete", {"words": list(words[1:])})
    for count in (2, 1):
        if len(words) < count:
            continue
        command = _command(" ".join(words[:count]))
        if command is not None:
            given = values(command, words[count:])
            module, _, function = command["by"].partition(":")
            return Typed(module, function, given) if given is not None else None
    return None


def _command(name: str) -> dict[str, Any] | None:
    begins = f'"{name}": '
    with open(__file__.rpartition("/")[0] + "/" + FILE, encoding="utf-8") as lines:  # noqa: PTH123
        for line in lines:  # one of them alone is read: that is twice as fast
            if line.startswith(begins):
                found: dict[str, Any] = msgspec.json.decode(line[len(begins):].rstrip(",\n"))
                return found
    return None
