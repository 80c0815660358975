"""What has a typed id, and the refusal of an id that nothing has.

Where its letter is that of another kind, that is said, and the command that shows such a thing.
Whether there is one is for that command to say.
"""

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


def find_by_id(get: Callable[[str], Row | None], text: str, letter: str, kind: str, code: Code,
               whose: str = "") -> Row:
    """What `get` has under a typed id: `T-12`, `t-12`, `12`, `T12`.

    Args:
        letter: that of its ids.
        kind: what a sentence calls it ("task").
        whose: what else it was to be (" and is for src/a.py").

    Raises:
        Refusal: `code`.
    """
    name = text.strip()
    number = name[1:] if name[:1].upper() == letter else name
    for candidate in (name, name.upper(), f"{letter}-{number}"):
        row = get(candidate)
        if row is not None:
            return row
    sentence = f"No {kind} has the id {name[:_QUOTED_MAX]!r}{whose}"
    match = _ID.fullmatch(name)
    other = match[1].upper() if match else letter
    if other == letter:
        raise Refusal(code, f"{sentence}.")
    has, command = _KINDS[other]
    raise Refusal(code, f"{sentence}: that is the id of {has}.",
                  next=f"`{command} {name.upper()}` tells of it.")
