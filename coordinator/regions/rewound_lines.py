"""Putting back some regions of a file by its lines: for a file that cannot be divided as it is now,
because an unclosed bracket, string or comment begins in one of the regions.

Pure: it gets both contents, and the places of the regions in the earlier one. A difference in the
lines of a region belongs to that region; all others belong to other agents. If a change crosses the
edge of a region, and its lines cannot be told apart, it says so, and guesses nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import NamedTuple

#: The most lines between the first and the last difference, of both contents, that are compared.
LINES_MAX = 20_000
#: Characters with which no statement begins.
_NO_BEGIN = tuple(sign.encode() for sign in ")]}'\"")
#: A line that is as much like another (0 to 1) counts as that line, changed.
ALIKE = 0.5


#: The kind of a difference (`equal` or another), then first and last line of both contents.
_Block = tuple[str, int, int, int, int]


class Earlier(NamedTuple):
    """A region in the earlier content.

    Attributes:
        start, end: its bytes there; whole lines.
        was: the bytes to put back.
        is_text: whether its lines are text that is not indented below its first (a section).
    """

    start: int
    end: int
    was: bytes
    is_text: bool = False


class _Lines(NamedTuple):
    """The lines of a region in the earlier content: from `first` to before `last`."""

    first: int
    last: int
    of: Earlier


def put_back(whole: bytes, now: bytes, regions: Sequence[Earlier],
             new: Sequence[bytes] = ()) -> bytes | None:
    """Return the present content with these regions as they were.

    Args:
        whole: the earlier content.
        now: the present content.
        regions: apart from each other.
        new: names of definitions that came since and have to go.

    Returns:
        The bytes; None if they cannot be told apart from others' changes, or if the file has
        become another.
    """
    before, after = whole.splitlines(keepends=True), now.splitlines(keepends=True)
    ranges = _in_lines(before, regions)
    if ranges is None:
        return None
    held = [False] * len(before)
    for lines in ranges:
        held[lines.first:lines.last] = [True] * (lines.last - lines.first)
    # An equal end, such as the bracket that ends all blocks, is not always the same end.
    for ends in (True, False):
        blocks = _differences(before, after, ends)
        if blocks is None or not _is_the_same_file(before, held, blocks):
            return None
        back = _without(before, after, blocks, held, ranges, new)
        if back is not None:
            return back
    return None


def _without(before: Sequence[bytes], after: Sequence[bytes], blocks: Sequence[_Block],
             held: Sequence[bool], ranges: Sequence[_Lines], new: Sequence[bytes]
             ) -> bytes | None:
    """Apply the differences of the two contents, without those of the regions."""
    begins = {lines.first: lines.of.was for lines in ranges}
    pieces: list[bytes] = []
    missing = set(new)
    for kind, first, last, start, end in blocks:
        lines: Sequence[bytes] | None = after[start:end]
        within = held[first:last]
        if first == last:
            gone = _find_names(missing, after[start:end])
            missing -= gone
            lines = _list_others(before, after[start:end], first, ranges, is_gone=bool(gone))
        elif kind != "equal" and all(within):  # the lines that they have become go with them
            missing -= _find_names(missing, after[start:end])
            if _ends_in_another(before, after[start + 1:end], last, ranges):
                return None
        elif kind != "equal" and any(within) and end - start != last - first:
            lines = _separate(before[first:last], within, after[start:end])
        if lines is None:
            return None
        if first == last or (kind != "equal" and not any(within)):
            pieces += lines
            continue
        pieces += _lay_out(lines, range(first, last), begins, held)
    return None if missing else b"".join(_end_lines(pieces))


def _lay_out(lines: Sequence[bytes], positions: range, begins: Mapping[int, bytes],
             held: Sequence[bool]) -> Iterator[bytes]:
    """Yield these lines of the earlier content: a region there as it was, otherwise `lines`."""
    for n, position in enumerate(positions):
        if position in begins:
            yield begins[position]
        if not held[position]:
            yield lines[n]


def _find_names(names: Collection[bytes], lines: Sequence[bytes]) -> set[bytes]:
    return {name for name in names if any(name in line for line in lines)}


def _list_others(before: Sequence[bytes], lines: Sequence[bytes], position: int,
                 ranges: Sequence[_Lines], *, is_gone: bool) -> Sequence[bytes] | None:
    """Return the other agents' part of lines that came before `position` of the earlier content;
    None if it cannot be told. `is_gone`: a definition that must go is among the lines."""
    if is_gone:
        return []
    range_ = _find_owner(before, lines, position, ranges)
    if range_ is None:
        return lines
    return None if _begins_another(before, lines, range_) else []


def _ends_in_another(before: Sequence[bytes], lines: Sequence[bytes], last: int,
                     ranges: Sequence[_Lines]) -> bool:
    """Whether another definition begins in these lines, which came at the end of a region."""
    range_ = next((range_ for range_ in ranges if range_.last == last), None)
    return range_ is not None and _begins_another(before, lines, range_)


def _in_lines(lines: Sequence[bytes], regions: Sequence[Earlier]) -> list[_Lines] | None:
    """Return the regions by their lines; None if one begins or ends within a line."""
    edges = [0, *accumulate(map(len, lines))]
    result = []
    for earlier in regions:
        first, last = bisect_left(edges, earlier.start), bisect_left(edges, earlier.end)
        if last >= len(edges) or (edges[first], edges[last]) != (earlier.start, earlier.end) or (
                first == last):
            return None
        result.append(_Lines(first, last, earlier))
    return result


def _differences(before: Sequence[bytes], after: Sequence[bytes], ends: bool
                 ) -> list[_Block] | None:
    """Return the equal and differing lines, as `difflib` does; None if that would take too long.
    `ends`: equal lines at the end count as the same."""
    most = min(len(before), len(after))
    same = next((n for n in range(most) if before[n] != after[n]), most)
    rest = 0 if not ends else next(
        (n for n in range(most - same) if before[-1 - n] != after[-1 - n]), most - same)
    old, new = before[same:len(before) - rest], after[same:len(after) - rest]
    if len(old) + len(new) > LINES_MAX:
        return None
    opcodes = SequenceMatcher(None, old, new,
                              autojunk=len(old) * len(new) > 4_000_000).get_opcodes()
    return [("equal", 0, same, 0, same),
            *((kind, a + same, b + same, c + same, d + same) for kind, a, b, c, d in opcodes),
            ("equal", len(before) - rest, len(before), len(after) - rest, len(after))]


def _is_the_same_file(before: Sequence[bytes], held: Sequence[bool],
                      blocks: Sequence[_Block]) -> bool:
    """Whether any text of other agents is left, if there was any."""
    there = {position for position,
             line in enumerate(before) if not held[position] and len(line.strip()) > 1}
    return not there or any(
        position in there for kind, first, last, _, _ in blocks if kind == "equal"
        for position in range(first, last))


def _begins_another(before: Sequence[bytes], lines: Sequence[bytes], of: _Lines) -> bool:
    """Whether lines that came in a region may begin another definition."""
    return not of.of.is_text and any(
        line.strip() and _indent(line) <= _indent(before[of.first])
        and not line.lstrip().startswith(_NO_BEGIN) for line in lines)


def _find_owner(before: Sequence[bytes], lines: Sequence[bytes], position: int,
                ranges: Sequence[_Lines]) -> _Lines | None:
    """Return the region that lines before `position` of the earlier content belong to: they are in
    the middle of it, or continue it at its end. None if they are others'."""
    for range_ in ranges:
        if range_.first < position < range_.last:
            return range_
        if position == range_.last:
            said = next((line for line in lines if line.strip()), b"")
            goes_on = (not said.startswith((b"#", b"[")) if range_.of.is_text
                       else _indent(said) > _indent(before[range_.first]))
            return range_ if goes_on else None
    return None


def _separate(before: Sequence[bytes], held: Sequence[bool],
              after: Sequence[bytes]) -> list[bytes] | None:
    """Return the present form of these lines, some of which are held and gone, line by line; empty
    in place of a held line. None if it cannot be told."""
    beside = [line for line, mine in zip(before, held, strict=True) if not mine]
    if _words(beside) == _words(after):
        return list(before)  # only the separators beside it were changed
    if len(beside) != len(after) or not all(map(_is_alike, beside, after)):
        return None
    others = iter(after)
    return [b"" if mine else next(others) for mine in held]


def _is_alike(data: bytes, other: bytes) -> bool:
    """Whether one line may have become the other."""
    return SequenceMatcher(None, data.strip(), other.strip()).ratio() >= ALIKE


def _words(lines: Sequence[bytes]) -> list[bytes]:
    """Return the words of lines, without separators at their ends."""
    return [word for line in lines if (word := line.strip().rstrip(b",;").rstrip())]


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())


def _end_lines(pieces: Sequence[bytes]) -> list[bytes]:
    """Return the pieces, each on a line of its own."""
    some = [piece for piece in pieces if piece]
    return [data if data.endswith(b"\n") or n == len(some) - 1 else data + b"\n"
            for n, data in enumerate(some)]
