"""Reading a unified diff: its hunks, the pairs of old and new lines, and the changes within a pair.

The module works on text and sends no request. `cli/difference_views.py` decides how the answer
looks.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

_HEAD = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
#: Two lines that have less in common (0 to 1) are two lines, not one that changed.
ALIKE = 0.5
#: More pairs of lines than this are not compared one by one: they are paired in order.
COMPARED_MAX = 2_500
#: Longer lines (characters) are not compared within.
LINE_MAX = 2_000

#: A part of a line: from and to, in characters.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a hunk. `kind`: ` `, `-` or `+`; `old`, `new`: its number on each side, from 1.
    `ended`: false where the file's last newline is missing."""

    kind: str
    text: str
    old: int | None
    new: int | None
    ended: bool = True


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk of a file's change. `number` counts from 1; `at`: its place, `@@ … @@`."""

    number: int
    at: str
    lines: list[Line] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two lines side by side; None: an empty side. The spans mark the changes within."""

    left: Line | None
    right: Line | None
    left_spans: Sequence[Span] = ()
    right_spans: Sequence[Span] = ()


def split(diff: str) -> tuple[list[str], list[Hunk]]:
    """The lines before the first hunk (names, modes, or that it is binary), and the hunks."""
    head: list[str] = []
    hunks: list[Hunk] = []
    old = new = old_left = new_left = 0
    for line in diff.removesuffix("\n").split("\n") if diff else []:
        if hunks and line.startswith("\\"):
            _take_off_newline(hunks[-1])
            continue
        match = _HEAD.match(line) if old_left <= 0 and new_left <= 0 else None
        if match is not None:
            old, new = int(match[1]), int(match[3])
            old_left, new_left = int(match[2] or 1), int(match[4] or 1)
            hunks.append(Hunk(len(hunks) + 1, line))
            continue
        if not hunks:
            head.append(line)
            continue
        kind, text = line[:1] or " ", line[1:]
        is_old, is_new = kind != "+", kind != "-"
        hunks[-1].lines.append(Line(kind, text, old if is_old else None, new if is_new else None))
        old, old_left = old + is_old, old_left - is_old
        new, new_left = new + is_new, new_left - is_new
    return head, hunks


def _take_off_newline(hunk: Hunk) -> None:
    """The last line so far ends without one."""
    if hunk.lines:
        last = hunk.lines[-1]
        hunk.lines[-1] = Line(last.kind, last.text, last.old, last.new, False)


def pairs(hunk: Hunk) -> list[Pair]:
    """The lines of a hunk side by side: an old line beside the new one that it became."""
    result: list[Pair] = []
    removed: list[Line] = []
    added: list[Line] = []
    for line in [*hunk.lines, None]:
        if line is not None and line.kind == "-" and not added:
            removed.append(line)
        elif line is not None and line.kind == "+":
            added.append(line)
        else:
            result += _paired(removed, added)
            removed, added = [], []
            if line is not None and line.kind == "-":
                removed.append(line)
            elif line is not None:
                result.append(Pair(line, line))
    return result


def spans(hunk: Hunk) -> dict[int, Sequence[Span]]:
    """The changes within the lines of a hunk, by their place in it. Only lines with a partner have
    any."""
    result = {}
    places = {id(line): n for n, line in enumerate(hunk.lines)}
    for pair in pairs(hunk):
        if pair.left is not None and pair.right is not None and pair.left is not pair.right:
            result[places[id(pair.left)]] = pair.left_spans
            result[places[id(pair.right)]] = pair.right_spans
    return result


def _paired(removed: Sequence[Line], added: Sequence[Line]) -> list[Pair]:
    """Pair old and new lines of one change. Similar lines stand side by side, in their order."""
    result: list[Pair] = []
    i = j = 0
    for a, b in [*_partners(removed, added), (len(removed), len(added))]:
        result += [Pair(*two) for two in zip_longest(removed[i:a], added[j:b])]
        if a < len(removed) and b < len(added):
            result.append(Pair(removed[a], added[b], *within(removed[a].text, added[b].text)))
        i, j = a + 1, b + 1
    return result


def _partners(removed: Sequence[Line], added: Sequence[Line]) -> list[tuple[int, int]]:
    """The pairs of old and new lines, in order, that have most in common."""
    if not removed or not added:
        return []
    if len(removed) * len(added) > COMPARED_MAX:
        return [(n, n) for n in range(min(len(removed), len(added)))]
    wide = len(added) + 1
    best = [[0.0] * wide for _ in range(len(removed) + 1)]
    took = [[False] * wide for _ in range(len(removed) + 1)]
    for i in range(len(removed) - 1, -1, -1):
        for j in range(len(added) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1])
            common = _common(removed[i].text, added[j].text)
            if common >= ALIKE and common + best[i + 1][j + 1] > best[i][j]:
                best[i][j], took[i][j] = common + best[i + 1][j + 1], True
    result = []
    i = j = 0
    while i < len(removed) and j < len(added):
        if took[i][j]:
            result.append((i, j))
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return result


def _common(before: str, after: str) -> float:
    """The similarity of two lines, 0 to 1."""
    name, two = before.strip(), after.strip()
    if name == two:
        return 1.0
    if not name or not two or max(len(name), len(two)) > LINE_MAX:
        return 0.0
    matcher = difflib.SequenceMatcher(None, _TOKEN.findall(name), _TOKEN.findall(two), False)
    if matcher.real_quick_ratio() < ALIKE or matcher.quick_ratio() < ALIKE:
        return 0.0
    return matcher.ratio()


def within(before: str, after: str) -> tuple[list[Span], list[Span]]:
    """The changes from one line to the other, in whole words."""
    if max(len(before), len(after)) > LINE_MAX:
        return [], []
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    old_at, new_at = _starts(old), _starts(new)
    left: list[Span] = []
    right: list[Span] = []
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if kind != "equal":
            _add(left, (old_at[i1], old_at[i2]), before)
            _add(right, (new_at[j1], new_at[j2]), after)
    return left, right


def _starts(tokens: Sequence[str]) -> list[int]:
    result = [0]
    for token in tokens:
        result.append(result[-1] + len(token))
    return result


def _add(matches: list[Span], span: Span, text: str) -> None:
    """Spans with nothing but spaces between them are one."""
    if span[0] == span[1]:
        return
    if matches and not text[matches[-1][1]:span[0]].strip():
        span = (matches.pop()[0], span[1])
    matches.append(span)
