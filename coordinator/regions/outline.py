"""The division of a file into regions, by one rule, from bytes alone.

Owns the rule, and the shape of its result. It knows no language and no grammar: it gets the
definitions that a query has marked (`Mark`), and the leads that are attached to them. It reads no
file and keeps nothing. No offset outlives the bytes that it was made from: callers ask again.

**The rule.** Regions partition the file: each byte belongs to exactly one region, and the regions'
spans in order are the file.

* A definition's region begins with the first line of the definition. Its decorators belong to it,
  and comments (attributes, in some languages) on lines of their own directly above it, without a
  blank line between. A first line `#!…` never does.
* It ends with the last line of the definition, and the blank lines below. If the next definition
  begins on that line, the region ends there. If the surrounding definition ends on that line, the
  region ends with its own last character.
* A definition with members (a class, a namespace, a key, a section) keeps all bytes outside its
  members: its head, the text between members, its end. So it may have several spans. A lease on it
  covers the members by name, `C` before `C.m`.
* All code outside definitions is `<header>`, one region with as many spans as needed. So its name
  stays whatever is put between. Every divided file has it, even without bytes.
* A statement with branches outside of functions (`if`, `try`, `#if … #else`) is one region with all
  its definitions (kind `block`), named by its first words in angle brackets: its branches are no
  siblings that could be distinguished or change places.
* An assignment outside of functions is a region with the name that it assigns (kind `constants`).
  Consecutive assignments of the same name are one region.
* A function keeps its nested definitions, unless the caller asks for these.
* Of several regions with one name, the second is `name#2`.

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
#: The kinds that a query may mark (queries/README.md).
MarkKind = Literal[
    "function", "method", "class", "namespace", "constants", "block", "key", "section",
]
#: Larger files (bytes) are not divided.
FILE_BYTES_MAX = 5_000_000
#: How deep regions are named. Deeper definitions belong to the region above them.
DEPTH_MAX = 24

_MEMBERS = frozenset({"class", "namespace", "key", "section"})
_CODE = frozenset({"function", "method"})
_CLOSING = re.compile(rb"[\s,;]*[}\])][\s,;}\])]*")
_BLANK = re.compile(rb"(?:[ \t\r\f\v]*\n)+(?:[ \t\r\f\v]*\Z)?|[ \t\r\f\v]+\Z")


class Region(msgspec.Struct, frozen=True, gc=False):
    """One region of a file, as it is in the given bytes.

    Attributes:
        name: the text behind `path::`; empty for kind `file`.
        start, end: the bytes from its first to its last, members included.
        first_line, last_line: their lines, counted from 1.
        line: the line that its own name is on.
        hash: `sha256:…` of its own bytes: its spans, joined.
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
        language: its row of the table; None without one.
        note: why the file was not divided; empty where it was.
        broken: whether the grammar met errors; there are regions all the same.
    """

    language: str | None
    size: int
    regions: list[Region]
    note: str = ""
    broken: bool = False

    def names(self) -> list[str]:
        """Return the regions' names."""
        return [region.name for region in self.regions]


def bare(outline: Outline, text: bytes) -> bytes:
    """Return a region's text without JSON's comma, which belongs to neither it nor the next."""
    return json_commas.bare(text) if outline.language == "json" else text


class Mark(msgspec.Struct):
    """A definition that a query has found: its bytes, its kind, the parts of its name.

    `line_at` is the first byte of its name. `around` returns the end of the surrounding definition,
    by the grammar. It is called only where the rest of a line has to go to one of the two.
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
    """Return the outline of an undivided file: one region of kind `file`."""
    lines = max(1, data.count(b"\n") + (not data.endswith(b"\n")))
    region = Region("", "file", 0, len(data), 1, lines, 1, digest([data]), [(0, len(data))])
    return Outline(language, len(data), [region], note)


def divide(
    data: bytes, language: str, marks: Sequence[Mark], leads: Sequence[tuple[int, int]],
    *, nested: bool = False, broken: bool = False,
) -> Outline:
    """Divide `data` by the rule above.

    Args:
        marks: in any order; two marks never overlap in part.
        leads: (start, end) of comments and attributes.
        nested: also the definitions inside of functions.
        broken: the grammar met errors.
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
    """Return the name of these bytes, as `files.content` names a plain file's."""
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
        """Return the byte after the end of the line of `position`, or the end of the data."""
        found = self.data.find(b"\n", position)
        return len(self.data) if found < 0 else found + 1

    def begin(self, mark: Mark, floor: int, after: int) -> int:
        """Return the beginning of a region, at least `floor`. A lead before `after` is left out."""
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
        """Return the end of a region, at most `limit`. `following`: the next one's first byte."""
        end = mark.end
        if end == mark.start or self.data[end - 1] != 0x0A:
            line = min(self.line_end(end), limit)
            if following is not None and following < line:
                return following
            if self.data[end:line].strip():
                around = mark.around()
                # A last line may have no end: then the rest of it is a closing bracket, or more.
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
    """Return the marks with their members, without marks that get no region of their own."""
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
    """Make a mark a member of the one around it. False if it gets no region of its own."""
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
    """Set the first and last byte of each region between these, and join consecutive constants."""
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
    """Return the earliest byte of members: the leads of a class are the class's own."""
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
