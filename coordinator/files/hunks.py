"""The hunks of a change, and a change of which only some hunks are made.

The module decides where one hunk ends and the next begins: as in the unified diff that a person
reads (`content.unified`), so that the numbers are the same. It works on bytes, and reads and writes
no file.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from coordinator.files.content import DIFF_BYTES_MAX, as_lines, is_binary

#: Lines around a change that belong to its hunk, as in a unified diff.
CONTEXT = 3


def count(before: bytes | None, after: bytes | None) -> int:
    """The number of hunks in the change. 0 if it cannot be divided, because one side is absent,
    binary, or too large to be compared by lines."""
    if before is None or after is None or is_binary(before) or is_binary(after):
        return 0
    if len(before) + len(after) > DIFF_BYTES_MAX:
        return 0
    return sum(1 for _ in _hunks(before, after))


def with_hunks(before: bytes, after: bytes, numbers: Collection[int]) -> bytes:
    """`before` with those hunks of the change to `after` made (counted from 1), and no other."""
    old, new = _raw_lines(before), _raw_lines(after)
    result: list[bytes] = []
    position = 0
    for number, hunk in enumerate(_hunks(before, after), 1):
        for kind, i1, i2, j1, j2 in hunk:
            result += old[position:i1]
            result += new[j1:j2] if kind != "equal" and number in numbers else old[i1:i2]
            position = i2
    return b"".join([*result, *old[position:]])


def _hunks(before: bytes, after: bytes) -> Iterator[list[tuple[str, int, int, int, int]]]:
    matcher = difflib.SequenceMatcher(None, as_lines(before), as_lines(after))
    yield from matcher.get_grouped_opcodes(CONTEXT)


def _raw_lines(data: bytes) -> list[bytes]:
    """The lines of a file as bytes."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
