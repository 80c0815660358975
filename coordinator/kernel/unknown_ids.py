"""The refusal of an id that nothing of its kind has. Where its letter is that of another kind, that
is said, and the command that shows such a thing. Looks nothing up: whether there is one is for
that command to say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from coordinator.words.refusals import Code, Refusal

_ID = re.compile(r"([TRUMKSWA])-([0-9]{1,15})", re.IGNORECASE)
#: The letter of an id -> what has such ids, and what tells of one.
_KINDS = {
    "T": ("a task", "coord task show"), "R": ("a review", "coord review show"),
    "U": ("an unlock request", "coord explain"), "M": ("a message", "coord explain"),
    "K": ("a change of a key", "coord explain"), "S": ("a step", "coord explain"),
    "W": ("a place in line", "coord explain"), "A": ("an acquisition", "coord explain"),
}
Row = TypeVar("Row")
#: As much of a name as a sentence quotes (characters).
_QUOTED_MAX = 60


def spellings(text: str, letter: str) -> tuple[str, ...]:
    """What a typed id may mean, best first: `T-12`, `t-12`, `12`, `T12`."""
    name = text.strip()
    number = name[1:] if name[:1].upper() == letter else name
    return name, name.upper(), f"{letter}-{number}"


def find_by_id(get: Callable[[str], Row | None], text: str, letter: str, kind: str,
               code: Code) -> Row:
    """What `get` has under an id in one of its spellings; `kind` and `letter` as in `unknown`.

    Raises:
        Refusal: `code`.
    """
    name, *_ = names = spellings(text, letter)
    for candidate in names:
        row = get(candidate)
        if row is not None:
            return row
    raise unknown(code, kind, letter, name)


def unknown(code: Code, kind: str, letter: str, name: str, of: str = "") -> Refusal:
    """That no `kind` ("task") has the id `name`. `letter`: that of its kind; `of`: what else it
    was to be (" and is for src/a.py")."""
    text = f"No {kind} has the id {name[:_QUOTED_MAX]!r}{of}"
    match = _ID.fullmatch(name)
    other = match[1].upper() if match else letter
    if other == letter:
        return Refusal(code, f"{text}.")
    has, command = _KINDS[other]
    return Refusal(code, f"{text}: that is the id of {has}.",
                   next=f"`{command} {name.upper()}` tells of it.")
