"""What differs between two releases, as values: files, hunks, and whole-file changes.

Owns the words of the replay benchmark that everything else there speaks in. Holds bytes, never
text: CRLF, a missing final newline and odd encodings must come out as they went in. Imports little,
for each worker process loads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """How a file gets from OLD to NEW."""

    EDIT = "edit"  # text; hunks, which may be carried by several tasks in any order
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"  # all its hunks belong to whoever renames it
    REPLACE = "replace"  # binary, a link, or nothing but the executable bit


class Entry(NamedTuple):
    """One file of a tree: its bytes (a link: its target), and what kind of file it is."""

    data: bytes
    executable: bool = False
    link: bool = False


class Hunk(NamedTuple):
    """Replace `old` at byte `start` of the OLD file by `new`; either may be empty, not both."""

    start: int
    old: bytes
    new: bytes


class Change(NamedTuple):
    """All that happens to one file.

    `path` is its name in NEW (deleted: in OLD), `source` its name in OLD (created: empty).
    `old` and `new` are None where it does not exist. Hunks are in order of `start` and disjoint.
    """

    kind: Kind
    path: str
    source: str
    old: Entry | None
    new: Entry | None
    hunks: tuple[Hunk, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Every name whose file this change touches."""
        return tuple(dict.fromkeys(p for p in (self.source, self.path) if p))

    @property
    def edits(self) -> int:
        """How many edits this is: one a hunk, and one for a whole-file operation."""
        return len(self.hunks) + (self.kind is not Kind.EDIT)


class Segments(NamedTuple):
    """A file cut at its hunks: `fixed[0]`, side of hunk 0, `fixed[1]`, …, `fixed[n]`."""

    fixed: tuple[bytes, ...]
    sides: tuple[tuple[bytes, bytes], ...]  # old, new


def segments(old: bytes, hunks: Sequence[Hunk]) -> Segments:
    """Cut `old` at `hunks`."""
    fixed: list[bytes] = []
    at = 0
    for hunk in hunks:
        fixed.append(old[at : hunk.start])
        at = hunk.start + len(hunk.old)
    return Segments((*fixed, old[at:]), tuple((h.old, h.new) for h in hunks))


def mixture(parts: Segments, chosen: set[int]) -> bytes:
    """The content with exactly the hunks in `chosen` carried out."""
    pieces = [parts.fixed[0]]
    for n, sides in enumerate(parts.sides):
        pieces += (sides[n in chosen], parts.fixed[n + 1])
    return b"".join(pieces)
