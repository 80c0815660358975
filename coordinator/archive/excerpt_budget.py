"""Cutting text to a byte budget, at places where a reader would stop.

The module divides one budget fairly among several texts and finds a good place to begin and to end.
Pure; lengths are bytes of UTF-8, and no character is ever split.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

ELLIPSIS = " …"
_OPENING = "… "
#: A cut may throw away at most this share of what would have fitted, to end a sentence.
_KEEP_AT_LEAST = 0.5
_ENDS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"(?<=[.!?:;])[\"')\]`*]*\s"),
    re.compile(r"\n"),
    re.compile(r"\s"),
)


def clean(text: str) -> str:
    """`text` with what UTF-8 cannot carry (half of a surrogate pair) replaced by `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def size(text: str) -> int:
    """Bytes of `text` in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def shares(sizes: Sequence[int], budget: int) -> list[int]:
    """Divide `budget` so that none gets more than its size and what one leaves goes to the rest."""
    given = [0] * len(sizes)
    left = max(budget, 0)
    for place, position in enumerate(sorted(range(len(sizes)), key=lambda n: (sizes[n], n))):
        given[position] = min(sizes[position], left // (len(sizes) - place))
        left -= given[position]
    return given


def cut(text: str, budget: int, around: Sequence[str] = ()) -> str:
    """At most `budget` bytes of `text`, ending at a paragraph, sentence, line or word.

    Begins at the paragraph that names one of `around` if that would otherwise fall outside.
    Omissions are marked by an ellipsis, counted in the budget; empty if nothing useful fits.
    """
    if size(text) <= budget:
        return text
    start = _start(text, budget, around)
    opening = _OPENING if start else ""
    rest = text[start:]
    if size(opening) + size(rest) <= budget:
        return opening + rest
    room = budget - size(opening) - size(ELLIPSIS)
    if room <= 0:
        return ""
    head = rest.encode("utf-8", "surrogatepass")[:room].decode("utf-8", "ignore")
    if not rest[len(head) :][:1].isspace():
        head = _whole(head)
    head = head.rstrip()
    return opening + head + ELLIPSIS if head else ""


def _whole(head: str) -> str:
    """`head` up to its last good end; as it is when there is none in its second half."""
    for end in _ENDS:
        stops = [m.start() for m in end.finditer(head)]
        if stops and stops[-1] >= len(head) * _KEEP_AT_LEAST:
            return head[: stops[-1]]
    return head


def _start(text: str, budget: int, around: Sequence[str]) -> int:
    """Where to begin: 0, or the paragraph of the first name that the budget would not reach."""
    places = sorted(position for name in around if name and (position := text.find(name)) >= 0)
    if not places:
        return 0
    position = places[0]
    if size(text[:position]) + size(around[0]) + size(ELLIPSIS) <= budget * _KEEP_AT_LEAST:
        return 0
    paragraph = text.rfind("\n\n", 0, position)
    begin = paragraph + 2 if paragraph >= 0 else 0
    if size(text[begin:position]) > budget * _KEEP_AT_LEAST:
        line = max(text.rfind("\n", 0, position), text.rfind(". ", 0, position) + 1)
        begin = line + 1 if line > 0 else begin
    return begin
