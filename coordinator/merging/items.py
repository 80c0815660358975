"""A file as a merge sees it: items one after the other, some with items of their own.

Owns the step from bytes and a `Reading` to items. An item is a region, or a statement or comment
outside regions, with the comments attached above it. The blank lines below it are kept apart. A
file and a class are lists of items. The first is their head, which precedes all others. The last
may be their tail, such as a closing brace.

Pure. If items do not begin on lines of their own, there are none: the text is merged by lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from coordinator.regions.outline import Region
from coordinator.regions.reading import Body, Piece, Reading

#: A person's name for a file's own part.
FILE = "<file>"
#: Languages in which the order of a class's declarations matters to its users.
_ORDERED_MEMBERS = frozenset({"c", "cpp", "go", "rust"})
_NUMBER = re.compile(r"#\d+\Z")
_ANNOTATED = re.compile(rb"\s*\w+\s*:")
#: Classes whose annotated fields may be passed by position.
_POSITIONAL = re.compile(
    rb"^\s*@|\b(?:NamedTuple|Struct|Structure|Tuple|Row|Record)\b", re.MULTILINE)
_BRACED = re.compile(rb"[{(]")
_NO_COMMENT = re.compile(rb"^[ \t]*(?:$|[^\s#/*;-])", re.MULTILINE)
_FUTURE = re.compile(rb"\s*from\s+__future__\s")
_FROM = re.compile(rb"from[ \t]+([.\w]+)[ \t]+import\b")


@dataclass(frozen=True, slots=True)
class Item:
    """One item.

    Attributes:
        key: its identity in all three versions; empty if only its text identifies it.
        kind: of a region, or `import` (Python's), `include` (others'), `comment`, `text`,
            `statement`, `attribute`, `head`, `tail`; `first` is an item that only the head may
            precede.
        text: its bytes, without the blank lines below; ends with a line's end, unless empty.
        blank: these blank lines.
        name: a person's name for it.
        parts: the beginnings of a function itself and of its body in `text`.
        items: its own items, if it has any; together they are `text`.
    """

    key: str
    kind: str
    text: bytes
    blank: bytes
    name: str
    parts: tuple[int, int] | None = None
    items: tuple[Item, ...] | None = None

    @property
    def ordered(self) -> bool:
        """Whether its effect may depend on the items before it."""
        return self.kind == "statement" or (self.kind == "attribute" and self.parts == (0, 0))


@dataclass(slots=True)
class _Cut:
    """The bounds of an item, and its identity."""

    first: int
    last: int
    key: str
    kind: str
    name: str
    region: _Node | None = None


@dataclass(slots=True)
class _Node:
    region: Region
    members: list[_Node]


def items(data: bytes, reading: Reading) -> tuple[Item, ...] | None:
    """Return the items of a file; None if it is not divided.

    Args:
        data: the bytes of `reading`. Its last line should have an end.
    """
    if reading.outline.note:
        return None
    return _Making(data, reading).file()


def distinguish_keys(versions: Sequence[Sequence[Item]]) -> list[tuple[Item, ...]]:
    """Return the versions with keys that mean the same item in each of them.

    If a version imports from one place in several statements, these are identified by their whole
    text. If a name occurs in several places, and not equally often in each version, its items are
    matched by likeness, and their order matters.
    """
    counts = [Counter(item.key.partition("#")[0] for item in version) for version in versions]
    several = {name for count in counts for name, times in count.items() if name and times > 1}
    uneven = {name for name in several if len({count[name] for count in counts}) > 1}
    if not several:
        return [tuple(version) for version in versions]

    return [tuple(_rename(item, several, uneven) for item in version) for version in versions]


def _rename(item: Item, several: set[str], uneven: set[str]) -> Item:
    """Return the item identified by its text, if its name is in `several` places, or `uneven`."""
    name = item.key.partition("#")[0]
    if name not in several:
        return item
    if name.startswith("i:"):
        text = " ".join(item.text.decode("utf-8", "surrogateescape").split())
        return replace(item, key=f"i:{text}")
    return replace(item, key="", kind="statement") if name in uneven else item


def bound_by(item: Item) -> set[str]:
    """Return the names that a definition, an assignment or an import of Python binds."""
    if item.key[:2] in ("r:", "a:"):
        return {item.key[2:].partition("#")[0]}
    if not item.key.startswith("i:"):
        return set()
    text = item.text.decode("utf-8", "replace")
    _, _, names = text.rpartition(" import ") if " import " in text else text.partition("import ")
    return {name.split()[-1].partition(".")[0]
            for name in re.sub(r"#.*|[()]", "", names).split(",") if name.split()}


def walk(all_: Iterable[Item]) -> Iterator[Item]:
    """Yield all items, with the items inside items."""
    for item in all_:
        yield item
        if item.items is not None:
            yield from walk(item.items)


def _unwrap(own: list[Piece], members: list[_Node]) -> tuple[list[Piece], list[_Node]]:
    """Return the pieces without a piece that wraps all, such as an include guard or the braces of
    JSON. Without such a piece, return the regions that are not inside a piece."""
    starts = [node.region.start for node in members]
    around = [piece for piece in own
              if bisect_left(starts, piece.end) > bisect_right(starts, piece.start)]
    if len(around) == 1:
        rest = [piece for piece in own if piece is not around[0]]
        if all(piece.kind == "comment" for piece in rest):
            return rest, members
    return own, [node for node in members if not any(
        piece.start < node.region.start < piece.end for piece in around)]


def _place(own: Iterable[Piece], members: Sequence[_Node]) -> Iterator[tuple[Piece, bool, bool]]:
    """Yield each piece, whether it is in a region, and whether a region precedes it."""
    position = 0
    for piece in own:
        while position < len(members) and members[position].region.end <= piece.start:
            position += 1
        is_inside = position < len(members) and members[position].region.start <= piece.start
        yield piece, is_inside, position > 0


class _Making:
    def __init__(self, data: bytes, reading: Reading) -> None:
        self._data = data
        self._language = reading.outline.language or ""
        self._pieces = sorted(reading.pieces, key=lambda piece: (piece.start, -piece.end))
        self._bodies = sorted(reading.bodies, key=lambda body: body.start)
        self._starts = [body.start for body in self._bodies]
        self._regions = [region for region in reading.outline.regions if region.kind != "header"]

    def file(self) -> tuple[Item, ...] | None:
        top: list[_Node] = []
        open_: list[_Node] = []
        for region in sorted(self._regions, key=lambda region: (region.start, -region.end)):
            while open_ and open_[-1].region.end <= region.start:
                open_.pop()
            node = _Node(region, [])
            (open_[-1].members if open_ else top).append(node)
            open_.append(node)
        return self._inside(0, len(self._data), top, FILE, "", -1)

    def _inside(
        self, first: int, last: int, members: list[_Node], name: str, prefix: str,
        within: int,
    ) -> tuple[Item, ...] | None:
        """Return the items between two bytes; None if they are not on lines of their own."""
        cuts = self._cuts(first, members, prefix, within)
        if cuts is None or (within >= 0 and not cuts):
            return None
        begin = self._count_head(cuts)
        begins = [cut.first for cut in cuts[begin:]]
        head_end = begins[0] if begins else last
        tail_from = last
        if cuts[begin:] and self._data[(end := self._line_end(cuts[-1].last, last)):last].strip():
            tail_from = end
        made = [self._plain("<head>", "head", first, head_end, name)]
        for position, cut in enumerate(cuts[begin:]):
            until = begins[position + 1] if position + 1 < len(begins) else tail_from
            made.append(self._item(cut, until))
        if self._language == "python" and not _POSITIONAL.search(made[0].text):
            made = [replace(item, parts=None) if item.kind == "attribute" else item
                    for item in made]
        if tail_from < last:
            made.append(self._plain("<tail>", "tail", tail_from, last, name))
        return _number(made)

    def _count_head(self, cuts: list[_Cut]) -> int:
        """Count the comments of the head: those before everything else. Mark a docstring, and other
        items that must follow the head directly."""
        begin = next((n for n, cut in enumerate(cuts) if cut.kind != "comment"), 0)
        if self._language == "python":
            if cuts and cuts[begin].kind == "text":
                first = cuts[begin]
                first.key, first.kind, first.name = "<text>", "first", "its docstring"
            for cut in cuts[begin:]:
                if cut.kind == "import" and _FUTURE.match(self._data, cut.first):
                    cut.kind = "first"
        return begin

    def _cuts(
        self, first: int, members: list[_Node], prefix: str, within: int,
    ) -> list[_Cut] | None:
        """Return the bounds of the items, in order."""
        own, members = _unwrap([piece for piece in self._pieces if piece.within == within], members)
        if any(self._data[self._line_start(node.region.start):node.region.start].strip()
               for node in members):
            return None
        pieces, joins = self._cut_pieces(own, members, first)
        cuts = sorted([*(self._cut_region(node, prefix) for node in members), *pieces],
                      key=lambda cut: cut.first)
        for piece in joins:
            before_it = cuts[bisect_right(cuts, piece.start, key=lambda cut: cut.first) - 1]
            before_it.last = max(before_it.last, self._text_end(piece.start, piece.end))
        for before, after in pairwise(cuts):
            if after.first < before.last:
                return None
        return cuts

    def _cut_pieces(
        self, own: Sequence[Piece], members: Sequence[_Node], first: int,
    ) -> tuple[list[_Cut], list[Piece]]:
        """Return the bounds of items outside regions, and the texts that describe the item before
        them."""
        cuts: list[_Cut] = []
        joins: list[Piece] = []
        led = {self._line_start(piece.start) for piece in own if piece.kind != "text"}
        lead: int | None = None
        stated = False
        for piece, is_inside, is_behind in _place(own, members):
            if is_inside:
                lead = None
                continue
            start = self._line_start(piece.start)
            if piece.kind == "text" and (is_behind or stated):
                joins.append(piece)
                continue
            if start < first or self._data[start:piece.start].strip():
                continue  # it continues the item before it
            begin = start if lead is None else lead
            if piece.kind == "comment" and self._leads(piece, led):
                lead = begin
                continue
            lead = None
            stated = stated or piece.kind != "comment"
            cuts.append(self._cut(piece, begin))
        return cuts, joins

    def _leads(self, piece: Piece, led: set[int]) -> bool:
        """Whether a comment belongs to the item that begins below it, at one of these bytes. A
        licence, an interpreter and an encoding belong to the file."""
        return not self._opens(piece) and self._find_next_line(piece.end) in led

    def _cut_region(self, node: _Node, prefix: str) -> _Cut:
        region = node.region
        name = _NUMBER.sub("", region.name.removeprefix(prefix))
        return _Cut(region.start, self._text_end(region.start, region.end), f"r:{name}",
                    region.kind, region.name, node)

    def _opens(self, piece: Piece) -> bool:
        """Whether a comment is in the block at the beginning of the file."""
        return piece.within < 0 and not _NO_COMMENT.search(self._data, 0, piece.start)

    def _cut(self, piece: Piece, begin: int) -> _Cut:
        key, kind, shown = "", piece.kind, ""
        text = self._data[piece.start:piece.end]
        if kind == "import":
            plain = b"\n" not in text and not _BRACED.search(text)
            if self._language == "python":
                key = "i:" + self._imported(text)
            elif plain:  # otherwise it is matched by likeness, for its names may differ
                key, kind = "i:" + self._imported(text), "include"
            else:
                kind = "include"
            shown = " ".join(text.decode("utf-8", "replace").split())[:60]
        elif kind == "statement" and piece.name:
            kind = "attribute"
            key, shown = "a:" + piece.name, piece.name
        else:
            shown = " ".join(text.decode("utf-8", "replace").split())[:40]
        return _Cut(begin, self._text_end(piece.start, piece.end), key, kind, shown)

    def _imported(self, text: bytes) -> str:
        if self._language == "python":
            match = _FROM.match(text)
            if match:
                return "from " + match[1].decode("utf-8", "replace")
        return " ".join(text.decode("utf-8", "surrogateescape").split())

    def _item(self, cut: _Cut, until: int) -> Item:
        node = cut.region
        if node is None:
            made = self._plain(cut.key, cut.kind, cut.first, until, cut.name)
            ordered = cut.kind == "attribute" and (
                self._language in _ORDERED_MEMBERS
                or (self._language == "python" and _annotated(made.text)))
            return replace(made, parts=(0, 0)) if ordered else made
        made = self._plain(cut.key, cut.kind, cut.first, until, cut.name)
        if self._data[node.region.end:until].strip():
            return made  # text outside all regions follows on its last line
        end = cut.first + len(made.text)
        found_body = self._body_between(cut.first, end)
        if node.members or cut.kind == "class":
            inner = self._inside(cut.first, min(end, len(self._data)), node.members, cut.name,
                                 node.region.name + ".",
                                 found_body.body if found_body else len(self._data))
            return made if inner is None else replace(made, items=inner)
        if found_body is not None and cut.kind in ("function", "method"):
            start, body = self._line_start(found_body.start), self._body(found_body)
            if cut.first <= start < body < end:
                return replace(made, parts=(start - cut.first, body - cut.first))
        return made

    def _body_between(self, first: int, last: int) -> Body | None:
        """Return the outermost body that begins after `first` and ends before `last`."""
        for position in range(bisect_left(self._starts, first), len(self._bodies)):
            body = self._bodies[position]
            if body.start >= last:
                return None
            if body.end <= last:
                return body
        return None

    def _body(self, found_body: Body) -> int:
        """Return the beginning of a body's lines; -1 if it has no lines of its own."""
        if self._data[found_body.body:found_body.body + 1] == b"{":
            return self._line_end(found_body.body, len(self._data))
        body = self._line_start(found_body.body)
        return -1 if self._data[body:found_body.body].strip() else body

    def _plain(self, key: str, kind: str, first: int, last: int, name: str) -> Item:
        raw = self._data[first:last]
        text, blank = split_blank(raw)
        return Item(key, kind, text, blank, name)

    def _text_end(self, first: int, last: int) -> int:
        return first + len(self._data[first:last].rstrip())

    def _find_next_line(self, position: int) -> int | None:
        """Return the beginning of the next line, if it is not blank."""
        begin = self._line_end(position, len(self._data))
        line = self._data[begin:self._data.find(b"\n", begin) + 1 or None]
        if self._data[position:begin].strip() or not line.strip():
            return None
        return begin

    def _line_start(self, position: int) -> int:
        return self._data.rfind(b"\n", 0, position) + 1

    def _line_end(self, position: int, most: int) -> int:
        if position and self._data[position - 1:position] == b"\n":
            return min(position, most)
        found = self._data.find(b"\n", position)
        return most if found < 0 else min(found + 1, most)


def split_blank(raw: bytes) -> tuple[bytes, bytes]:
    """Split a text into its lines and the blank lines at its end."""
    body = raw.rstrip()
    if not body:
        return b"", raw
    found = raw.find(b"\n", len(body))
    end = len(raw) if found < 0 else found + 1
    return raw[:end], raw[end:]


def _annotated(text: bytes) -> bool:
    line = next((data for data in text.split(b"\n") if not data.strip().startswith(b"#")), b"")
    return bool(_ANNOTATED.match(line))


def _number(made: list[Item]) -> tuple[Item, ...]:
    """Join adjacent items of one name, and number the others of that name."""
    joined: list[Item] = []
    for item in made:
        before = joined[-1] if joined else None
        if before is not None and before.key and before.key == item.key and item.key[0] != "i":
            joined[-1] = Item(item.key, before.kind, before.text + before.blank + item.text,
                              item.blank, before.name)
            continue
        joined.append(item)
    seen: Counter[str] = Counter()
    for position, item in enumerate(joined):
        if not item.key:
            continue
        seen[item.key] += 1
        if seen[item.key] > 1:
            joined[position] = replace(item, key=f"{item.key}#{seen[item.key]}")
    return tuple(joined)
