"""Merging lines that git calls too near each other: pure, and tried where git's has conflicts.

git puts in conflict what both sides changed on neighbouring lines, for it knows nothing of what the
lines are. Inside of one body it is enough that no line is changed by both. Still a conflict: what
overlaps; what both put at one place, unless these are elements of a list, each on lines of its own,
which no order binds; and where a side put many lines in the place of others, next to a change of
the other side: there nobody can say what stands in whose place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

#: Longer texts (lines) are left to git.
LINES_MAX = 1500
_BULLET = re.compile(rb"([ \t]*)[*+-][ \t]+\S")


@dataclass(frozen=True, slots=True)
class _Change:
    """Lines `first` to `last` of the base give way to these."""

    first: int
    last: int
    lines: tuple[bytes, ...]

    @property
    def even(self) -> bool:
        """Whether it changes lines one for one, or only puts some in, or only takes some out."""
        return (not self.lines or self.first == self.last
                or len(self.lines) == self.last - self.first)


def merged(base: bytes, ours: bytes, theirs: bytes, *, listed: bool = False) -> bytes | None:
    """The merged text; None where it stays a conflict.

    Args:
        listed: whether points of a list (Markdown's) may be put at one place by both.
    """
    texts = [one.splitlines(keepends=True) for one in (base, ours, theirs)]
    if max(map(len, texts)) > LINES_MAX:
        return None
    was = texts[0]
    mine, other = _changes(was, texts[1]), _changes(was, texts[2])
    out: list[bytes] = []
    at = 0
    while mine or other:
        if mine and other:
            if mine[0] == other[0]:
                other.pop(0)
                continue
            joined = _together(mine[0], other[0], listed)
            if joined is None:
                return None
        takes = mine if mine and (not other or _before(mine[0], other[0])) else other
        change = takes.pop(0)
        if change.first < at:
            return None
        out += was[at:change.first]
        out += change.lines
        at = change.last
    return b"".join([*out, *was[at:]])


def _changes(base: Sequence[bytes], side: Sequence[bytes]) -> list[_Change]:
    matcher = SequenceMatcher(None, base, side, autojunk=False)
    return [_Change(a, b, tuple(side[c:d])) for tag, a, b, c, d in matcher.get_opcodes()
            if tag != "equal"]


def _before(one: _Change, other: _Change) -> bool:
    return (one.first, one.last) <= (other.first, other.last)


def _together(one: _Change, other: _Change, listed: bool) -> bool | None:
    """None if these two are in conflict."""
    first, second = (one, other) if _before(one, other) else (other, one)
    if first.last < second.first:
        return True
    if first.first == first.last == second.first == second.last:
        return True if listed and _points(first.lines) == _points(second.lines) != b"" else None
    if first.last > second.first:
        return None
    return True if first.even and second.even and first.lines and second.lines else None


def _points(lines: Sequence[bytes]) -> bytes:
    """How these lines are indented and marked, if they are whole points of a list; else empty."""
    found = _BULLET.match(lines[0]) if lines else None
    if found is None or not lines[-1].endswith(b"\n"):
        return b""
    return found[1] + b"*"
