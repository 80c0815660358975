"""The words of a command, as a table of its options says. What is not understood is nobody's here:
the `coord` program then parses the words itself, and says what is wrong with them.

The tables are made from the program's own definition (by `make docs`); this only follows them. Of a
command a table has: its arguments (name, whether many, whether needed), its options (name, kind,
and `one`, `many` or what a flag means), those that are required, and all defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Words of one command; more are left to the program.
WORDS_MAX = 10_000


def values(command: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any] | None:
    """The parameters that these words give a command; None: not understood."""
    if len(words) > WORDS_MAX:
        return None
    options: Mapping[str, tuple[str, str, Any]] = command["options"]
    given: dict[str, Any] = {}
    rest: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            rest += words[at:]
            break
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        long, sign, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if long not in options:
            return None  # one that there is not, or several short ones in one
        name, kind, means = options[long]
        if kind == "flag":
            if sign:
                return None
            given[name] = means
            continue
        if not sign:
            if at == len(words):
                return None
            value = words[at]
            at += 1
            if value.startswith("-") and value in options:
                return None
        made = _made(kind, value)
        if made is None:
            return None
        if means == "many":
            given.setdefault(name, []).append(made)
        else:
            given[name] = made
    for name, many, needed in command["arguments"]:
        if many:
            if needed and not rest:
                return None
            if rest:
                given[name] = rest
            rest = []
        elif rest:
            given[name] = rest.pop(0)
        elif needed:
            return None
    if rest or any(name not in given for name in command["required"]):
        return None
    return {**command["defaults"], **given}


def _made(kind: str, value: str) -> str | int | float | None:
    """The value of an option; None: not understood."""
    if kind == "text":
        return value
    bare = value[1:] if value[:1] == "-" else value
    if not bare.isascii() or not bare.replace(".", "", kind == "float").isdigit():
        return None
    return int(value) if kind == "int" else float(value)
