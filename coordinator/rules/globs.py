"""Globs, and the rule of what overlaps what (invariant 1). Pure: text in, a verdict out.

A glob is git-like: `*` and `?` stay within a part of a path, `**` as a whole part spans any number
of directories (none, too), `[a-z]` and `[!a-z]` are classes, `\\` takes the meaning from the next
character. `a/**` is all that is below `a`; `a/*/` is `a/*/**`. A glob always matches from the root,
and wildcards match leading dots.

Whether two globs can meet in some path is decided exactly, by walking both patterns at once
(product construction): first over parts, and for each pair of parts over characters. Each state is
visited once, so the time is at most the product of the lengths, whatever the pattern; the lengths
are bounded (`LIMIT`). For the same reason `matches` compiles to an expression that never tries the
same star twice: in a run of fixed length the leftmost place is as good as any, so it is atomic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import HEADER, Resource, file_scope, literal_prefix, path_in

__all__ = ["check", "intersect", "literal_prefix", "matches", "overlaps", "reaches"]

#: Longest pattern, in characters, and in parts.
PATTERN_CHARS_MAX = 512
PATTERN_PARTS_MAX = 64

_LAST = 0x10FFFF
_SLASH = ord("/")

#: The possible values of one character: sorted, disjoint, inclusive ranges of code points.
Ranges = tuple[tuple[int, int], ...]
#: One part of a pattern: sets of characters, and None for a star.
Part = tuple[Ranges | None, ...]


class _Pattern(NamedTuple):
    """A glob taken apart. A part that is None is `**`; the last part never is."""

    parts: tuple[Part | None, ...]
    regex: re.Pattern[str]


def check(pattern: str) -> None:
    """Compile a pattern, to refuse a bad one where it is typed.

    Raises:
        Refusal: LIMIT if it is too long; INVALID if it has a class that coord does not know.
    """
    _compiled(pattern)


def matches(pattern: str, path: str, *, fold_case: bool = False) -> bool:
    """Whether a glob matches a file's relative path.

    Both are compared as they are: the caller brings them to the same normal form (NFC), as
    `Resource` does. With `fold_case` both are casefolded first.

    Raises:
        Refusal: see `check`.
    """
    if fold_case:
        pattern, path = pattern.casefold(), path.casefold()
    return _compiled(pattern).regex.fullmatch(path) is not None


def reaches(pattern: str, directory: str) -> bool:
    """Whether a glob can match some path below a directory (`""` is the root).

    Raises:
        Refusal: see `check`.
    """
    parts = _compiled(pattern).parts
    positions = _skip(parts, {0})
    if directory:
        for name in directory.split("/"):
            positions = _skip(parts, _step(parts, positions, name))
            if not positions:
                return False
    return any(i < len(parts) and all(p is None or _possible(p) for p in parts[i:]) for i
               in positions)


@lru_cache(maxsize=8192)
def intersect(a: str, b: str) -> bool:
    """Whether some path matches both globs; exact.

    Raises:
        Refusal: see `check`.
    """
    left, right = _compiled(a).parts, _compiled(b).parts
    seen = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        i, j = todo.pop()
        if i == len(left) and j == len(right):
            return True
        # At the end of one pattern, only a `**` of the other could be skipped, and none is last.
        if i == len(left) or j == len(right):
            continue
        steps = [(i + more, j + others) for more, others in _list_steps(left[i], right[j])]
        todo += [step for step in steps if step not in seen]
        seen.update(steps)
    return False


def _list_steps(part: Part | None, other: Part | None) -> list[tuple[int, int]]:
    """How many parts of each pattern one name may use up."""
    if part is not None and other is not None:
        return [(1, 1)] if _meet(part, other) else []
    steps = []
    if part is None or _possible(part):
        steps.append((1, 0))
    if other is None or _possible(other):
        steps.append((0, 1))
    return steps


def overlaps(a: Resource, b: Resource) -> bool:
    """Whether leases on `a` and `b` would meet in some byte or meaning. Symmetric and reflexive.

    Equal, or one contains the other; a file's `<header>` meets each of its regions; a glob meets
    the files that it matches (and their regions), the directories below which it could match, and
    the globs with which it could share a file. Keys meet keys only.

    Raises:
        Refusal: see `check`; never for resources that were checked when they were typed.
    """
    sa, sb = a.scope, b.scope
    if a.kind == "glob" or b.kind == "glob":
        # A cheap no: what a glob matches is below its scope.
        if not (sa.startswith(sb) or sb.startswith(sa)):
            return False
        return _glob_overlaps(a, b) if a.kind == "glob" else _glob_overlaps(b, a)
    if sa.startswith(sb) or sb.startswith(sa):
        return True
    if a.kind == "region" and b.kind == "region":
        home = file_scope(sa)
        header = f"{home}::{HEADER}/"
        return file_scope(sb) == home and header in (sa, sb)
    return False


def _glob_overlaps(glob: Resource, other: Resource) -> bool:
    if other.kind == "glob":
        if glob.name == other.name:
            return True
        return intersect(*sorted((glob.name, other.name)))
    if other.kind == "key":
        return False
    if other.kind == "dir":
        return reaches(glob.name, path_in(other.scope))
    return matches(glob.name, path_in(other.scope))


# --- one part against another ---------------------------------------------------------------


@lru_cache(maxsize=8192)
def _meet(a: Part, b: Part) -> bool:
    """Whether some text matches both parts. Two runs of stars meet in more than nothing."""
    seen = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        i, j = todo.pop()
        if i == len(a) and j == len(b):
            return True
        p = a[i] if i < len(a) else ()
        q = b[j] if j < len(b) else ()
        steps = []
        if p is None:
            steps.append((i + 1, j))
            if q:
                steps.append((i, j + 1))
        if q is None:
            steps.append((i, j + 1))
            if p:
                steps.append((i + 1, j))
        if p and q and _share(p, q):
            steps.append((i + 1, j + 1))
        todo += [step for step in steps if step not in seen]
        seen.update(steps)
    return False


def _share(a: Ranges, b: Ranges) -> bool:
    """Whether two sets of characters have one in common."""
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][1] < b[j][0]:
            i += 1
        elif b[j][1] < a[i][0]:
            j += 1
        else:
            return True
    return False


def _possible(part: Part) -> bool:
    """Whether a part can match anything: a class may hold no character at all."""
    return () not in part


def _skip(parts: Sequence[Part | None], positions: set[int]) -> set[int]:
    """The states `positions`, and those behind a `**` that matches no directory."""
    result = set(positions)
    for i in sorted(positions):
        while i < len(parts) and parts[i] is None:
            i += 1
            result.add(i)
    return result


def _step(parts: Sequence[Part | None], positions: set[int], name: str) -> set[int]:
    """The states after the directory `name`."""
    result = set()
    for i in positions:
        if i == len(parts):
            continue
        part = parts[i]
        if part is None:
            result.add(i)
        elif _part_regex(part).fullmatch(name):
            result.add(i + 1)
    return result


# --- compiling ------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> _Pattern:
    texts = pattern.split("/")
    if texts[-1] == "" and len(texts) > 1:
        texts[-1] = "**"
    if len(pattern) > PATTERN_CHARS_MAX:
        raise _over(f"is longer than {PATTERN_CHARS_MAX} characters", PATTERN_CHARS_MAX)
    if len(texts) > PATTERN_PARTS_MAX:
        raise _over(f"has more than {PATTERN_PARTS_MAX} parts", PATTERN_PARTS_MAX)
    parts: list[Part | None] = []
    for text in texts:
        if text != "**":
            parts.append(_parse_part(text, pattern))
        elif not parts or parts[-1] is not None:
            parts.append(None)
    if parts[-1] is None:
        # `a/**` means everything below `a`, which is at least one part more.
        parts.append((None,))
    return _Pattern(tuple(parts), re.compile(_path_expression(parts), re.DOTALL))


def _over(what: str, limit: int) -> Refusal:
    return Refusal(Code.LIMIT, f"The glob {what}; nothing was done.", limit=limit)


def _parse_part(text: str, pattern: str) -> Part:
    result: list[Ranges | None] = []
    position = 0
    while position < len(text):
        sign = text[position]
        position += 1
        if sign == "*":
            if not result or result[-1] is not None:
                result.append(None)
            continue
        if sign == "?":
            result.append(_without_slash([(0, _LAST)]))
            continue
        if sign == "[":
            end = _class_end(text, position)
            # Like in a shell, an unclosed bracket is only a bracket.
            if end > 0:
                result.append(_parse_class(text[position:end], pattern))
                position = end + 1
                continue
        elif sign == "\\" and position < len(text):
            sign = text[position]
            position += 1
        result.append(((ord(sign), ord(sign)),))
    return tuple(result)


def _class_end(text: str, position: int) -> int:
    """The end of the class that opened before `position`; -1 if it is not closed."""
    if text[position : position + 1] in ("!", "^"):
        position += 1
    if text[position : position + 1] == "]":  # first of all, it is a member
        position += 1
    while position < len(text) and text[position] != "]":
        position += 2 if text[position] == "\\" else 1
    return position if position < len(text) else -1


def _parse_class(body: str, pattern: str) -> Ranges:
    if "[:" in body:
        raise Refusal(
            Code.INVALID,
            f"The glob {pattern!r} uses a named class like `[[:alpha:]]`; write it as ranges, "
            "like `[A-Za-z]`. Nothing was done.",
            resource=pattern,
        )
    negated = body[0] in "!^"
    signs: list[tuple[int, bool]] = []  # code point, and whether it is a live hyphen
    position = 1 if negated else 0
    while position < len(body):
        live = body[position] == "-"
        if body[position] == "\\" and position + 1 < len(body):
            position += 1
        signs.append((ord(body[position]), live))
        position += 1
    ranges: list[tuple[int, int]] = []
    position = 0
    while position < len(signs):
        low = high = signs[position][0]
        if position + 2 < len(signs) and signs[position + 1][1]:
            high = signs[position + 2][0]
            position += 2
        if low <= high:
            ranges.append((low, high))
        position += 1
    if negated:
        edges = [(-1, -1), *sorted(ranges), (_LAST + 1, _LAST + 1)]
        ranges, reached = [], -1
        for (_, before), (after, _) in pairwise(edges):
            reached = max(reached, before)
            if reached + 1 < after:
                ranges.append((reached + 1, after - 1))
    return _without_slash(ranges)


def _without_slash(ranges: list[tuple[int, int]]) -> Ranges:
    """Sorted and disjoint, and never matching what separates parts."""
    split: list[tuple[int, int]] = []
    for low, high in ranges:
        for piece in ((low, min(high, _SLASH - 1)), (max(low, _SLASH + 1), high)):
            if piece[0] <= piece[1]:
                split.append(piece)
    result: list[tuple[int, int]] = []
    for low, high in sorted(split):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)


def _path_expression(parts: Sequence[Part | None]) -> str:
    """The regular expression of a whole pattern.

    A run between two `**` has a fixed number of parts. Its leftmost place is as good as any other,
    so all but the last run are atomic. The last must end the path, and its length is fixed, so only
    one place can do.
    """
    runs: list[list[str]] = [[]]
    for part in parts:
        if part is None:
            runs.append([])
        else:
            runs[-1].append(_part_expression(part))
    *early, last = runs
    if not early:
        return "/".join(last)
    output = "".join(f"{part}/" for part in early[0])
    for run in early[1:]:
        output += "(?>(?:[^/]+/)*?" + "".join(f"{part}/" for part in run) + ")"
    return output + "(?:[^/]+/)*" + "/".join(last)


def _part_expression(part: Part) -> str:
    runs: list[str] = [""]
    for ranges in part:
        if ranges is None:
            runs.append("")
        else:
            runs[-1] += _set_expression(ranges)
    *early, last = runs
    if not early:
        return last
    # The lookahead: a part of a path is never empty, though a star may be.
    output = "(?=[^/])" + early[0]
    for run in early[1:]:
        output += f"(?>[^/]*?{run})"
    return f"{output}[^/]*{last}(?=/|\\Z)"


def _set_expression(ranges: Ranges) -> str:
    if not ranges:
        return "(?!)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    return "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges) + "]"


@lru_cache(maxsize=4096)
def _part_regex(part: Part) -> re.Pattern[str]:
    return re.compile(_part_expression(part), re.DOTALL)
