"""What a file is divided into: regions, by one rule, from bytes alone.

Owns the rule, and the shape of its result. It knows no language and no grammar: it is handed what a
query has marked (`Mark`), and what is attached to what follows (leads). It reads no file, keeps
nothing, and no offset outlives the bytes that it was made from: who wants to know again asks again.

**The rule.** Regions partition the file: each byte belongs to exactly one region, and the regions'
spans in order are the file.

* A definition's region begins with the line that it begins on; decorators belong to it, and
  comments (attributes, in some languages) that stand alone on the lines right above it, without a
  blank line between. A first line `#!…` never does.
* It ends with the line that it ends on, and the blank lines below. Where the next one begins on
  that line, it ends there; where what surrounds it ends on that line, with its own last sign.
* What has members (a class, a namespace, a key, a section) keeps for itself all that is not in one
  of them: its head, what stands between, its end. So it may have several spans. A lease on it
  covers the members by name, `C` before `C.m`.
* What is outside of all definitions is `<header>`, one region of as many spans as it takes; so its
  name stays whatever comes between. It is there in every divided file, if only with no bytes.
* A statement with branches outside of functions (`if`, `try`, `#if … #else`) is one region with
  all that it defines (kind `block`), called by its first words in angle brackets: its branches are
  no siblings that could be told apart or change places.
* An assignment outside of functions is a region by the name that it assigns (kind `constants`);
  one after the other of the same name are one.
* A function keeps its nested definitions, unless these are asked for.
* Of several with one name, the second is `name#2`.

A file that cannot be divided is one region of kind `file` without a name: the file itself.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from coordinator.regions import json_commas
from coordinator.regions.names import Ids
from coordinator.words.file_names import sha256
from coordinator.words.resource_names import HEADER

Kind = Literal[
    "header", "function", "class", "method", "nested", "constants", "block", "key", "section",
    "file",
]
#: What a query may mark (queries/README.md).
MarkKind = Literal[
    "function", "method", "class", "namespace", "constants", "block", "key", "section",
]
#: Larger files (bytes) are not divided.
FILE_BYTES_MAX = 5_000_000
#: Regions are named so deep; what is below belongs to the one above it.
DEPTH_MAX = 24

_MEMBERS = frozenset({"class", "namespace", "key", "section"})
_CODE = frozenset({"function", "method"})
_CLOSING = re.compile(rb"[\s,;]*[}\])][\s,;}\])]*")
_BLANK = re.compile(rb"(?:[ \t\r\f\v]*\n)+(?:[ \t\r\f\v]*\Z)?|[ \t\r\f\v]+\Z")


class Region(msgspec.Struct, frozen=True, gc=False):
    """One region of a file, as it is in the bytes that were asked about.

    Attributes:
        name: what stands behind `path::`; empty for kind `file`.
        start, end: the bytes from its first to its last, members included.
        first_line, last_line: of the same, counted from 1.
        line: the line that its own name is on.
        hash: `sha256:…` of its own bytes, those of its spans, one after the other.
        spans: its own bytes, (start, end) each: without those of its members.
    """

    name: str
    kind: Kind
    start: int
    end: int
    first_line: int
    last_line: int
    line: int
    hash: str
    spans: list[tuple[int, int]]


class Outline(msgspec.Struct, frozen=True, gc=False):
    """The regions of one file's bytes, in order of their beginning; `<header>` first.

    Attributes:
        language: by which row of the table; None if by none.
        note: why the file was not divided; empty where it was.
        broken: whether the grammar met what it cannot read; there are regions all the same.
    """

    language: str | None
    size: int
    regions: list[Region]
    note: str = ""
    broken: bool = False

    def names(self) -> list[str]:
        """The regions' names."""
        return [region.name for region in self.regions]


def bare(outline: Outline, text: bytes) -> bytes:
    """A region's text without what belongs to neither it nor the next: the comma in JSON."""
    return json_commas.bare(text) if outline.language == "json" else text


class Mark(msgspec.Struct):
    """A definition that a query has found: its bytes, its kind, the parts of its name.

    `line_at` is the byte that its name is at. `around` tells where that ends which it stands in, by
    the grammar: it is asked only where the rest of a line has to be given to one of the two.
    """

    start: int
    end: int
    kind: MarkKind
    parts: list[str]
    line_at: int
    around: Callable[[], int]
    members: list[Mark] = msgspec.field(default_factory=list)
    depth: int = 1
    nested: bool = False
    first: int = 0
    last: int = 0


def whole(data: bytes, language: str | None, note: str) -> Outline:
    """A file that is not divided: one region of kind `file`."""
    lines = max(1, data.count(b"\n") + (not data.endswith(b"\n")))
    region = Region("", "file", 0, len(data), 1, lines, 1, digest([data]), [(0, len(data))])
    return Outline(language, len(data), [region], note)


def divide(
    data: bytes, language: str, marks: Sequence[Mark], leads: Sequence[tuple[int, int]],
    *, nested: bool = False, broken: bool = False,
) -> Outline:
    """The outline of `data` by the rule above.

    Args:
        marks: in any order; two of them are one in the other, or apart.
        leads: (start, end) of comments and attributes.
        nested: also the definitions inside of functions.
        broken: the grammar met what it cannot read.
    """
    text = _Text(data, leads)
    top = _tree(marks, nested)
    _lay(text, top, 0, len(data))
    ids = Ids()
    header = Mark(0, len(data), "namespace", [], 0, lambda: len(data), top)
    header.last = len(data)
    regions = [_region(text, header, HEADER, "header")]
    _name(text, top, (), ids, regions)
    return Outline(language, len(data), regions, broken=broken)


def digest(pieces: Sequence[bytes]) -> str:
    """The name of these bytes, as `files.content` names a plain file's."""
    made = sha256()
    for piece in pieces:
        made.update(piece)
    return "sha256:" + made.hexdigest()


class _Text:
    """The bytes and their lines."""

    def __init__(self, data: bytes, leads: Sequence[tuple[int, int]]) -> None:
        self.data = data
        self.lines = [0, *(match.end() for match in re.finditer(b"\n", data))]
        #: Last line of a lead that is alone on its lines -> (byte of its first line, its start).
        self.leads: dict[int, tuple[int, int]] = {}
        for start, end in leads:
            while end > start and data[end - 1] in b"\r\n":
                end -= 1
            begin = self.line_start(start)
            if begin == 0 and data.startswith(b"#!"):
                continue
            if data[begin:start].strip() or data[end:self.line_end(end)].strip():
                continue
            self.leads[self.row(end)] = (begin, start)

    def row(self, position: int) -> int:
        return bisect_right(self.lines, position) - 1

    def line_start(self, position: int) -> int:
        return self.data.rfind(b"\n", 0, position) + 1

    def line_end(self, position: int) -> int:
        """The byte after the end of the line of which `position` is a byte, or the end."""
        found = self.data.find(b"\n", position)
        return len(self.data) if found < 0 else found + 1

    def begin(self, mark: Mark, floor: int, after: int) -> int:
        """Where a region begins: not before `floor`; no lead counts that begins before `after`."""
        start = self.line_start(mark.start)
        if start < floor or self.data[start:mark.start].strip():
            return mark.start
        row = self.row(start)
        while (lead := self.leads.get(row - 1)) is not None:
            first, sign = lead
            if first < floor or sign < after:
                break
            start, row = first, self.row(first)
        return start

    def finish(self, mark: Mark, following: int | None, limit: int) -> int:
        """Where it ends, if the next one's own first byte is `following`: not after `limit`."""
        end = mark.end
        if end == mark.start or self.data[end - 1] != 0x0A:
            line = min(self.line_end(end), limit)
            if following is not None and following < line:
                return following
            if self.data[end:line].strip():
                around = mark.around()
                # (A last line may have no end: what is left of it then is what closes, or more.)
                if end < around < line or (around == line and _CLOSING.fullmatch(
                        self.data, end, line)):
                    return end
            end = line
        if end and self.data[end - 1] == 0x0A and (match := _BLANK.match(self.data, end)):
            end = match.end()
        if following is not None and following < end:
            end = max(mark.end, self.line_start(following))
        return min(end, limit)


def _tree(marks: Sequence[Mark], nested: bool) -> list[Mark]:
    """The marks with their members, without those that belong to no region of their own."""
    top: list[Mark] = []
    open_: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        while open_ and open_[-1].end <= mark.start:
            open_.pop()
        above = open_[-1] if open_ else None
        if above is None:
            top.append(mark)
        elif not _takes(above, mark, nested):
            continue
        open_.append(mark)
    return top


def _takes(above: Mark, mark: Mark, nested: bool) -> bool:
    """Make a mark a member of the one around it; False: it belongs to no region of its own."""
    if (above.start, above.end) == (mark.start, mark.end) or above.depth == DEPTH_MAX:
        return False
    if above.nested or above.kind not in _MEMBERS:
        if not nested or not (above.nested or above.kind in _CODE):
            return False
        if mark.kind not in _CODE and mark.kind != "class":
            return False
        mark.nested = True
    elif above.kind == "class" and mark.kind == "function":
        mark.kind = "method"
    mark.depth = above.depth + 1
    above.members.append(mark)
    return True


def _lay(text: _Text, marks: list[Mark], floor: int, limit: int) -> None:
    """Set the first and last byte of each region between these two, and join what is one."""
    after = floor
    laid: list[Mark] = []
    for position, mark in enumerate(marks):
        following = marks[position + 1].start if position + 1 < len(marks) else None
        mark.first = max(floor, text.begin(mark, floor, after))
        mark.last = max(mark.first, text.finish(mark, following, limit))
        floor, after = mark.last, mark.end
        before = laid[-1] if laid else None
        if (before is not None and mark.kind == before.kind == "constants"
                and before.parts == mark.parts and before.last == mark.first):
            before.last, before.end = mark.last, mark.end
            continue
        laid.append(mark)
        _lay(text, mark.members, _inside(text, mark), mark.last)
    marks[:] = laid


def _inside(text: _Text, mark: Mark) -> int:
    """From where on members may begin: what leads to a class is the class's own."""
    return mark.start if text.line_start(mark.start) < mark.start else mark.first


def _name(
    text: _Text, marks: Sequence[Mark], above: tuple[str, ...], ids: Ids, regions: list[Region],
) -> None:
    for mark in marks:
        parts = mark.parts
        if mark.kind == "block":
            parts = [ids.block(text.data[mark.start:min(mark.end, mark.start + 1000)])]
        path = ids.take((*above, *parts))
        kind: Kind = "class" if mark.kind == "namespace" else mark.kind
        regions.append(_region(text, mark, ".".join(path), "nested" if mark.nested else kind))
        _name(text, mark.members, path, ids, regions)


def _region(text: _Text, mark: Mark, name: str, kind: Kind) -> Region:
    spans: list[tuple[int, int]] = []
    position = mark.first
    for member in mark.members:
        if position < member.first:
            spans.append((position, member.first))
        position = member.last
    if position < mark.last:
        spans.append((position, mark.last))
    start, end = mark.first, mark.last
    if kind == "header":
        start, end = (spans[0][0], spans[-1][1]) if spans else (0, 0)
    return Region(
        name, kind, start, end, text.row(start) + 1, text.row(max(start, end - 1)) + 1,
        text.row(mark.line_at if name != HEADER else start) + 1,
        digest([text.data[a:b] for a, b in spans]), spans,
    )
