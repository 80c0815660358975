"""Merging lines that git calls too near each other, tried after git's merge had conflicts. Pure.

git knows nothing of the meaning of lines, so it puts changes of neighbouring lines in conflict.
Inside one body it is enough that no line is changed by both. These stay conflicts: overlapping
changes; two additions at one place, unless they are elements of an unordered list, each on lines of
its own; and many lines in the place of others, next to a change of the other side, because their
correspondence is unknown. But if one side made all changes of the other, and more, its text is
taken: a fix was carried over to a line of work that continued.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

#: Longer texts (lines) are left to git.
LINES_MAX = 1500
#: A line with a word.
_TELLS = re.compile(rb"\w{3}")
_BULLET = re.compile(rb"([ \t]*)[*+-][ \t]+\S")


@dataclass(frozen=True, slots=True)
class _Change:
    """A replacement of lines `first` to `last` of the base."""

    first: int
    last: int
    lines: tuple[bytes, ...]

    @property
    def even(self) -> bool:
        """Whether it changes lines one for one, or only adds some, or only removes some."""
        return (not self.lines or self.first == self.last
                or len(self.lines) == self.last - self.first)


def merged(base: bytes, ours: bytes, theirs: bytes, *, listed: bool = False) -> bytes | None:
    """Merge the lines; None if they stay a conflict.

    Args:
        listed: whether points of a list (Markdown's) may be put at one place by both.
    """
    texts = [data.splitlines(keepends=True) for data in (base, ours, theirs)]
    if max(map(len, texts)) > LINES_MAX:
        return None
    was = texts[0]
    mine, other = _changes(was, texts[1]), _changes(was, texts[2])
    result: list[bytes] = []
    position = 0
    while mine or other:
        if mine and other:
            if mine[0] == other[0]:
                other.pop(0)
                continue
            if _join(mine[0], other[0], listed) is None:
                until, text = _find_wider(was, mine, other)
                if text is None or min(mine[0].first, other[0].first) < position:
                    return None
                result += was[position:min(mine[0].first, other[0].first)]
                result += text
                position = until
                mine, other = _list_behind(mine, until), _list_behind(other, until)
                continue
        takes = mine if mine and (not other or _before(mine[0], other[0])) else other
        change = takes.pop(0)
        if change.first < position:
            return None
        result += was[position:change.first]
        result += change.lines
        position = change.last
    return b"".join([*result, *was[position:]])


def _changes(base: Sequence[bytes], side: Sequence[bytes]) -> list[_Change]:
    matcher = SequenceMatcher(None, base, side, autojunk=False)
    return [_Change(a, b, tuple(side[c:d])) for tag, a, b, c, d in matcher.get_opcodes()
            if tag != "equal"]


def _list_behind(changes: Sequence[_Change], until: int) -> list[_Change]:
    return [change for change in changes if max(change.first, change.last) > until]


def _before(change: _Change, other: _Change) -> bool:
    return (change.first, change.last) <= (other.first, other.last)


def _join(change: _Change, other: _Change, listed: bool) -> bool | None:
    """Return True if these two changes can be joined; None if they are in conflict."""
    first, second = (change, other) if _before(change, other) else (other, change)
    if first.last < second.first:
        return True
    if first.first == first.last == second.first == second.last:
        return True if listed and _points(first.lines) == _points(second.lines) != b"" else None
    if first.last > second.first:
        return None
    return True if first.even and second.even and first.lines and second.lines else None


def _find_wider(was: Sequence[bytes], mine: Sequence[_Change],
                other: Sequence[_Change]) -> tuple[int, list[bytes] | None]:
    """Return the end of changes that meet each other, and the text of the side that made all
    changes of the other there. The text is None if neither did."""
    first = min(mine[0].first, other[0].first)
    until = max(mine[0].last, other[0].last)
    while True:
        reached = max([until,
                       *(change.last for change in (*mine, *other) if change.first <= until)])
        if reached == until:
            break
        until = reached
    base = was[first:until]
    texts = [_applied(was, [change for change in side if change.first <= until], first, until)
             for side in (mine, other)]
    for some, all_ in (texts, texts[::-1]):
        if _contains(base, some, all_):
            return until, all_
    return until, None


def _applied(was: Sequence[bytes], changes: Sequence[_Change], first: int,
             until: int) -> list[bytes]:
    result: list[bytes] = []
    for change in changes:
        result += was[first:change.first]
        result += change.lines
        first = change.last
    return [*result, *was[first:until]]


def _contains(base: Sequence[bytes], some: Sequence[bytes], more: Sequence[bytes]) -> bool:
    """Whether `more` has the lines that `some` added, each run of lines in one piece, and none of
    the lines that it removed. A mere removal says nothing about what should be there."""
    is_said = False
    there = Counter(data.strip() for data in more)
    kept = Counter(data.strip() for data in some)
    position = 0
    for change in _changes(base, some):
        for line in base[change.first:change.last]:
            text = line.strip()
            if _TELLS.search(text) and there[text] > kept[text]:
                return False
        if change.lines:
            found = _position(more, change.lines, position)
            if found is None:
                return False
            position = found + len(change.lines)
            is_said = is_said or any(_TELLS.search(line) for line in change.lines)
    return is_said


def _position(lines: Sequence[bytes], run: Sequence[bytes], position: int) -> int | None:
    return next((n for n in range(position, len(lines) - len(run) + 1)
                 if list(lines[n:n + len(run)]) == list(run)), None)


def _points(lines: Sequence[bytes]) -> bytes:
    """Return the indent and mark of these lines, if they are points of a list; otherwise empty."""
    match = _BULLET.match(lines[0]) if lines else None
    if match is None or not lines[-1].endswith(b"\n"):
        return b""
    return match[1] + b"*"
