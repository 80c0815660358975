"""Merging one item that is on both sides.

Owns the ways that are tried, in this order: one side left it as it was; its own items, if it has
any; imported names, as a set; git's merge by lines; a function's lead, signature and body, each by
itself. If none of them decides, it is a conflict. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from coordinator.merging import near_lines, taken_away
from coordinator.merging.items import Item
from coordinator.merging.model import Clash, LineMerge, Segments

if TYPE_CHECKING:
    from coordinator.merging.containers import Notes

_FROM = re.compile(rb"from[ \t]+([.\w]+)[ \t]+import[ \t]*(?=[\w(])")
_COMMENT = re.compile(rb"#(?:!|[ \t]|\Z)|//|/\*|\*")
#: Kinds of items that import names.
BRINGS = ("import", "include")
_NAMES = re.compile(rb"[\w\s,]*")
_GUARDED = re.compile(rb"[ \t]+(?:from[ \t]+[.\w]+[ \t]+)?import[ \t]+[\w., \t]+")
#: A longer import (characters) gets a line for each name.
LINE_MAX = 88


class Container(Protocol):
    """`containers.merge`. It calls this module, so it is passed as an argument."""

    def __call__(
        self, versions: Sequence[Sequence[Item]], lines: LineMerge, notes: Notes, name: str,
    ) -> Segments | None: ...


def both(
    base: Item | None, ours: Item, theirs: Item, lines: LineMerge, notes: Notes,
    container: Container,
) -> Segments:
    """Merge one item.

    Args:
        base: None where both sides have added it.
        container: merges lists of items.
    """
    if ours.text == theirs.text:
        notes.shared.note(base.text if base is not None else b"", ours.text, theirs.text)
        return [ours.text]
    if base is None:
        return _both_added(ours, theirs, notes)
    if ours.text == base.text:
        return [theirs.text]
    if theirs.text == base.text:
        return [ours.text]
    if base.items is not None and ours.items is not None and theirs.items is not None:
        inner = container((base.items, ours.items, theirs.items), lines, notes, ours.name)
        if inner is not None:
            return inner
    joined = imported(base, ours, theirs) or guarded(base, ours, theirs)
    if joined is not None:
        notes.imports = True
        return [joined]
    notes.shared.note(base.text, ours.text, theirs.text)
    return _both_changed(base, ours, theirs, lines)


def _both_added(ours: Item, theirs: Item, notes: Notes) -> Segments:
    joined = imported(None, ours, theirs) or guarded(None, ours, theirs)
    if joined is not None:
        notes.imports = True
        return [joined]
    nearby = near_lines.merged(b"", ours.text, theirs.text)
    if nearby is not None:
        notes.shared.note(b"", ours.text, theirs.text)
        return [nearby]
    return [Clash(ours.name, "both added it, and not the same", b"", ours.text, theirs.text)]


def _both_changed(base: Item, ours: Item, theirs: Item, lines: LineMerge) -> Segments:
    merged = lines(base.text, ours.text, theirs.text)
    if not merged.conflicts:
        return [merged.data]
    away = _taken_away(base, ours, theirs)
    if away:
        return [Clash(ours.name, f"both changed it, and what one side took away the other newly "
                      f"uses ({', '.join(away[:3])})", base.text, ours.text, theirs.text)]
    nearby = near_lines.merged(base.text, ours.text, theirs.text, listed=ours.kind == "section")
    if nearby is not None:
        return [nearby]
    if base.parts and ours.parts and theirs.parts and base.parts != (0, 0):
        return _in_parts(base, ours, theirs, lines)
    return [Clash(ours.name, "both changed it", base.text, ours.text, theirs.text)]


def _taken_away(base: Item, ours: Item, theirs: Item) -> list[str]:
    """Return the names that one side removed and the other newly uses. Prose has words, no names.
    """
    if ours.kind in BRINGS:
        return taken_away.imports(*map(brought_in, (base, ours, theirs)))
    if ours.kind == "section":
        return []
    return taken_away.names(base.text, ours.text, theirs.text)


def _in_parts(base: Item, ours: Item, theirs: Item, lines: LineMerge) -> Segments:
    """Merge a function's lead, signature and body, each by itself."""
    result: Segments = []
    cut = [_parts(item) for item in (base, ours, theirs)]
    for what, (was, mine, other) in zip(
            ("what is attached to it", "its signature", "its body"),
            zip(*cut, strict=True), strict=True):
        if mine == other or other == was:
            result.append(mine)
        elif mine == was:
            result.append(other)
        else:
            merged = lines(was, mine, other)
            nearby = near_lines.merged(was, mine, other) if merged.conflicts else merged.data
            if nearby is None:
                result.append(Clash(ours.name, f"both changed {what}", was, mine, other))
            else:
                result.append(nearby)
    return result


def _parts(item: Item) -> tuple[bytes, bytes, bytes]:
    assert item.parts is not None
    start, body = item.parts
    return item.text[:start], item.text[start:body], item.text[body:]


@dataclass(frozen=True, slots=True)
class _Import:
    """`from WHERE import NAMES`. `indent` is that of names on lines of their own."""

    text: bytes
    where: bytes
    names: list[bytes]
    enclosed: bool
    indent: bytes | None


def imported(base: Item | None, ours: Item, theirs: Item) -> bytes | None:
    """Merge `from x import a, b`: add the names that either side added, without those that either
    removed. None if its form would lose a part."""
    if not ours.key.startswith("i:") or not theirs.key.startswith("i:"):
        return None
    before = _list_names(base)
    mine, other = _import(ours.text), _import(theirs.text)
    if mine is None or other is None or before is None or mine.where != other.where:
        return None
    names = _join(before, mine.names, other.names)
    if not names:
        return None
    for side in (mine, other):
        if set(side.names) == set(names):
            return side.text
    for key in (_as_is, _folded):
        if all(side.names == sorted(side.names, key=key) for side in (mine, other)):
            names.sort(key=key)
            break
    return _written(mine, other, names)


def _list_names(base: Item | None) -> list[bytes] | None:
    """Return the earlier names of an import, empty without one; None for another form."""
    if base is None:
        return []
    parsed = _import(base.text)
    return None if parsed is None else parsed.names


def _join(before: list[bytes], mine: list[bytes], other: list[bytes]) -> list[bytes]:
    """Return the names of either side, without earlier names that one removed."""
    gone = {name for name in before if name not in mine or name not in other}
    names = [name for name in mine if name not in gone]
    return names + [name for name in other if name not in gone and name not in names]


def brought_in(item: Item) -> list[bytes]:
    """Return a text for each imported name, with its origin. For any other form, return its lines.
    """
    parsed = _import(item.text)
    if parsed is None:
        return [line for other_line in item.text.splitlines()
                if (line := other_line.strip()) and not _COMMENT.match(line)]
    return [parsed.where + b" " + name for name in parsed.names]


def _import(text: bytes) -> _Import | None:
    match = _FROM.match(text)
    if match is None:
        return None
    rest = text[match.end():].strip()
    enclosed = rest.startswith(b"(")
    if enclosed:
        if not rest.endswith(b")"):
            return None
        rest = rest[1:-1]
    if not _NAMES.fullmatch(rest) or (b"\n" in rest and not enclosed):
        return None
    lines = rest.split(b"\n")[1:]
    line = next((line for line in lines if line.strip()), b"")
    indent = line[:len(line) - len(line.lstrip())] if line else None
    names = [b" ".join(data.split()) for data in rest.split(b",") if data.strip()]
    return _Import(text, match[1], names, enclosed, indent)


def _as_is(name: bytes) -> bytes:
    return name


def _folded(name: bytes) -> bytes:
    return name.lower()


def _written(mine: _Import, other: _Import, names: list[bytes]) -> bytes:
    """Write the import in the form of the side that has more lines."""
    like = max((mine, other), key=lambda other_import: other_import.text.count(b"\n"))
    head = b"from " + like.where + b" import "
    flat = head + (b"(%s)" if like.enclosed else b"%s") % b", ".join(names)
    if like.indent is None and len(flat) <= LINE_MAX:
        return flat + b"\n"
    indent = like.indent or b"    "
    return head + b"(\n" + b"".join(indent + name + b",\n" for name in names) + b")\n"


def guarded(base: Item | None, ours: Item, theirs: Item) -> bytes | None:
    """Merge an `if` around nothing but imports, a line each, as a set of lines. None for others."""
    was = _guard(base.text) if base is not None else None
    mine, other = _guard(ours.text), _guard(theirs.text)
    if mine is None or other is None or (base is not None and was is None) or mine[0] != other[0]:
        return None
    lines = _join(was[1] if was is not None else [], mine[1], other[1])
    return b"\n".join([mine[0], *lines]) + b"\n" if lines else None


def _guard(text: bytes) -> tuple[bytes, list[bytes]] | None:
    head, *lines = text.removesuffix(b"\n").split(b"\n")
    if not head.startswith(b"if ") or not all(_GUARDED.fullmatch(line) for line in lines):
        return None
    return (head, lines) if len(set(lines)) == len(lines) > 0 else None
