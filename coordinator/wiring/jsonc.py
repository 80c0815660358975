"""Small edits of JSON with comments that keep everything else, letter for letter.

People write agents' settings, so order, comments, indentation and trailing commas are theirs. The
text is read into spans. The answer is a new text that differs by one insertion or one removal.
Existing libraries start another language's run time or reformat.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")
_DEPTH_MAX = 200


class BadJson(ValueError):
    """The text is not JSON with comments; says where (line and column, from 1)."""


class Span(msgspec.Struct):
    """One value and its place in the text."""

    start: int
    end: int
    value: Any
    members: dict[str, Span] = msgspec.field(default_factory=dict)
    items: list[Span] = msgspec.field(default_factory=list)
    key_start: int = -1
    """For a member: where its key begins."""


def parse(text: str) -> Span:
    """The whole document.

    Raises:
        BadJson.
    """
    position = _blank(text, 1 if text.startswith("\ufeff") else 0)
    root, position = _value(text, position, 0)
    if _blank(text, position) != len(text):
        raise _bad(text, position, "something follows the end")
    return root


def appended(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` as a further item of the list at `path`, which is made if need be.

    Raises:
        BadJson: also where something on the path is no object, or its end no list.
    """
    return _grown(text, path, value, as_item=True)


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` under `path`; objects on the way are made. It must not be there yet.

    Raises:
        BadJson.
    """
    return _grown(text, path, value, as_item=False)


def without(text: str, doomed: Span, around: Span) -> str:
    """The text without a member or item (`doomed`) of `around`, and without one comma."""
    begin = doomed.key_start if doomed.key_start >= 0 else doomed.start
    siblings = list(around.members.values()) or around.items
    place = siblings.index(doomed)
    if place > 0:  # from the end of the one before: its comma goes
        start = siblings[place - 1].end
        return text[:start] + text[doomed.end :]
    if len(siblings) > 1:  # to the beginning of the next one
        following = siblings[1]
        stop = following.key_start if following.key_start >= 0 else following.start
        return text[:begin] + text[stop:]
    inner = text[around.start + 1 : begin]
    rest = text[doomed.end : around.end - 1].lstrip(", \t")
    if not inner.strip() and not rest.strip():
        return text[: around.start + 1] + text[around.end - 1 :]
    return text[: around.start + 1] + inner.rstrip(" \t") + rest + text[around.end - 1 :]


def _grown(text: str, path: Sequence[str], value: Any, *, as_item: bool) -> str:
    if not text.strip():
        text = "{}\n"
    node = parse(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise _bad(text, node.start, f"{'.'.join(path[:depth]) or 'the file'} is no object")
        child = node.members.get(key)
        if child is None:
            rest: Any = [value] if as_item else value
            for missing in reversed(path[depth + 1 :]):
                rest = {missing: rest}
            return _insert(text, node, rest, key)
        node = child
    if not as_item or not isinstance(node.value, list):
        raise _bad(text, node.start, f"{'.'.join(path)} is there already, as something else")
    return _insert(text, node, value, None)


def _insert(text: str, around: Span, value: Any, key: str | None) -> str:
    """A further member (`key`) or item at the end of `around`."""
    siblings = list(around.members.values()) or around.items
    unit = _unit(text)
    if siblings:
        last = siblings[-1]
        begin = last.key_start if last.key_start >= 0 else last.start
        line = text.rfind("\n", 0, begin) + 1
        lead = text[line:begin]
        own_line = not lead.strip()
        margin = lead if own_line else ""
        text_of_value = _rendered(value, key, margin, unit, flat=not own_line)
        comma = _blank(text, last.end)
        trailing = text[comma : comma + 1] == ","
        gap = f"\n{margin}" if own_line else " "
        if trailing:  # their style is kept
            return f"{text[: comma + 1]}{gap}{text_of_value},{text[comma + 1 :]}"
        return f"{text[: last.end]},{gap}{text_of_value}{text[last.end :]}"
    line = text.rfind("\n", 0, around.start) + 1
    margin = text[line : len(text) - len(text[line:].lstrip(" \t"))]
    inner = margin + unit
    text_of_value = _rendered(value, key, inner, unit, flat=False)
    kept = text[around.start + 1 : around.end - 1].rstrip()  # comments, perhaps
    return (f"{text[: around.start + 1]}{kept}\n{inner}{text_of_value}\n{margin}"
            f"{text[around.end - 1 :]}")


def _rendered(value: Any, key: str | None, margin: str, unit: str, *, flat: bool) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=None if flat else unit)
    text = text.replace("\n", "\n" + margin)
    return text if key is None else f"{json.dumps(key, ensure_ascii=False)}: {text}"


def _unit(text: str) -> str:
    """The indentation of the file."""
    match = re.search(r"\n([ \t]+)\S", text)
    return match[1] if match else "  "


def _value(text: str, position: int, depth: int) -> tuple[Span, int]:
    if depth > _DEPTH_MAX:
        raise _bad(text, position, "it is nested too deep")
    sign = text[position : position + 1]
    if sign == "{":
        return _object(text, position, depth)
    if sign == "[":
        return _array(text, position, depth)
    if sign == '"':
        value, end = _string(text, position)
        return Span(position, end, value), end
    match = _SCALAR.match(text, position)
    if match is None:
        raise _bad(text, position, "a value is missing")
    try:
        value = json.loads(match[0])
    except ValueError:
        raise _bad(text, position, f"{match[0][:20]!r} is no value") from None
    return Span(position, match.end(), value), match.end()


def _object(text: str, start: int, depth: int) -> tuple[Span, int]:
    span = Span(start, start, {})
    position = _blank(text, start + 1)
    while text[position : position + 1] != "}":
        if text[position : position + 1] != '"':
            raise _bad(text, position, "a key in quotes is missing")
        key_start = position
        key, position = _string(text, position)
        position = _blank(text, position)
        if text[position : position + 1] != ":":
            raise _bad(text, position, "a colon is missing")
        child, position = _value(text, _blank(text, position + 1), depth + 1)
        child.key_start = key_start
        span.members[key] = child
        span.value[key] = child.value
        position = _comma(text, position, "}")
    span.end = position + 1
    return span, position + 1


def _array(text: str, start: int, depth: int) -> tuple[Span, int]:
    span = Span(start, start, [])
    position = _blank(text, start + 1)
    while text[position : position + 1] != "]":
        child, position = _value(text, position, depth + 1)
        span.items.append(child)
        span.value.append(child.value)
        position = _comma(text, position, "]")
    span.end = position + 1
    return span, position + 1


def _comma(text: str, position: int, end: str) -> int:
    position = _blank(text, position)
    if text[position : position + 1] == ",":
        return _blank(text, position + 1)
    if text[position : position + 1] != end:
        raise _bad(text, position, f"a comma or {end} is missing")
    return position


def _string(text: str, position: int) -> tuple[str, int]:
    try:  # the standard library's own reader of one string; its stubs leave it out
        # The type stubs leave it out; it is what reads the texts of JSON itself.
        # In no stub:
        value, end = json.decoder.scanstring(text, position + 1)  # type: ignore[attr-defined]
    except ValueError:
        raise _bad(text, position, "a string does not end, or holds a control character") from None
    return str(value), int(end)


def _blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _bad(text: str, position: int, what: str) -> BadJson:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return BadJson(f"line {line}, column {column}: {what}")
