"""Lines of a difference that are too long to be shown: of each the part around the difference.

The result is for people and no patch. Plain text in, plain text out.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from itertools import zip_longest

#: A difference longer than this (bytes) is cut in replies; the bytes themselves are all kept.
DIFF_BYTES_MAX = 200_000
#: A longer line (characters) is shortened.
SHOWN_MAX = 2_000
#: How much of it (characters) is left on both sides of the difference.
AROUND = 120
#: The mark of left out characters.
GAP = "…"


def shorten_difference(diff: str) -> tuple[str, bool]:
    """As many whole lines of a difference as a reply has room for, and whether there are more. Of
    long lines the part around the difference is left."""
    if len(diff) <= DIFF_BYTES_MAX:
        return diff, False
    diff = shortened(diff)
    if len(diff) > DIFF_BYTES_MAX:
        diff = diff[: diff.rfind("\n", 0, DIFF_BYTES_MAX) + 1]
    return diff, True


def shortened(diff: str) -> str:
    """A unified difference without the middle of its long lines. Removed lines and their
    replacements are taken in pairs, so that the difference stays visible."""
    result: list[str] = []
    removed: list[str] = []
    added: list[str] = []
    for line in StringIO(diff, newline="\n"):  # a form feed ends no line of a difference
        if line.startswith("-") and not added:
            removed.append(line)
        elif line.startswith("+"):
            added.append(line)
        elif line.startswith("\\"):  # about the line before
            (added or removed or result).append(line)
        else:
            result += _pairs(removed, added)
            removed, added = [line] if line.startswith("-") else [], []
            if not removed:
                result.append(_cut(line, 0, SHOWN_MAX))
    return "".join([*result, *_pairs(removed, added)])


def _pairs(removed: list[str], added: list[str]) -> Iterator[str]:
    made = [_pair(old, new) for old, new in zip_longest(removed, added, fillvalue="")]
    yield from (old for old, _ in made if old)
    yield from (new for _, new in made if new)


def _pair(old: str, new: str) -> tuple[str, str]:
    if max(len(old), len(new)) <= SHOWN_MAX:
        return old, new
    if not old or not new:
        return _cut(old, 0, SHOWN_MAX), _cut(new, 0, SHOWN_MAX)
    start = 1 + _alike(old[1:], new[1:])
    rest = _alike(old[start:][::-1], new[start:][::-1])
    return _cut(old, start, len(old) - rest), _cut(new, start, len(new) - rest)


def _alike(name: str, two: str) -> int:
    """The number of equal characters at their beginning."""
    return next((position for position,
                 (a, b) in enumerate(zip(name, two, strict=False)) if a != b),
                min(len(name), len(two)))


def _cut(line: str, start: int, end: int) -> str:
    """The line's part from one place to another and something around it, with its first character
    and its end."""
    body = line.rstrip("\n")
    if len(body) <= SHOWN_MAX:
        return line
    start, end = max(1, start - AROUND), min(len(body), end + AROUND)
    end = min(end, start + SHOWN_MAX)
    return (body[0] + (GAP if start > 1 else "") + body[start:end]
            + (GAP if end < len(body) else "") + line[len(body):])
