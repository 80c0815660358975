"""The text that a tool's edit would make of a file. Pure; it knows no tool's name.

The module decides how an edit is applied. If the text to be replaced is missing or occurs twice,
it is unknown what the tool will write. Then there is no candidate, and the edit counts as an edit
of the whole file.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

#: Edits of one call that are looked at; of more, the whole file is taken.
EDITS_MAX = 200


class Edit(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One replacement.

    Attributes:
        old: the present text; None: the new text is the whole file's.
        new: the text in its place.
        every: in every place; otherwise the text must occur once.
        lines: both are whole lines, looked for behind the edit before; `anchors` are lines that
            come before them, in order (the `@@ …` of a patch).
    """

    old: str | None
    new: str
    every: bool = False
    lines: bool = False
    anchors: tuple[str, ...] = ()


def candidate(data: bytes, edits: Sequence[Edit]) -> bytes | None:
    """The file's bytes after these edits, in order; None if that is uncertain.

    Tools show a model lines that end in a line feed, and keep the file's own line ends: so does
    this.
    """
    if not edits or len(edits) > EDITS_MAX:
        return None
    position = 0
    for edit in edits:
        made = _applied(data, edit, position)
        if made is None:
            return None
        data, position = made
    return data


def _applied(data: bytes, edit: Edit, position: int) -> tuple[bytes, int] | None:
    """The bytes after one edit, and where it ended."""
    crlf = b"\r\n" in data and "\r\n" not in (edit.old or "") + edit.new
    try:
        new = _bytes(edit.new, crlf)
        old = None if edit.old is None else _bytes(edit.old, crlf)
    except UnicodeEncodeError:
        return None
    if old is None:
        return new, 0
    if edit.lines:
        return _lines(data, edit, old, new, position, crlf)
    count = data.count(old) if old else 0
    if count == 0 or (count > 1 and not edit.every):
        return None
    return data.replace(old, new), 0


def _lines(data: bytes, edit: Edit, old: bytes, new: bytes, position: int,
           crlf: bool) -> tuple[bytes, int] | None:
    for anchor in edit.anchors:
        position_found = _line_like(data, anchor.strip().encode("utf-8", "surrogatepass"), position)
        if position_found is None:
            return None
        position = position_found
    if not old:  # only additions: behind the anchors, otherwise at the end
        if not edit.anchors:
            position = len(data)
            if data and not data.endswith(b"\n"):
                new = (b"\r\n" if crlf else b"\n") + new
        return data[:position] + new + data[position:], position + len(new)
    start = data.find(old, position)
    while start > 0 and data[start - 1] != 0x0A:
        start = data.find(old, start + 1)
    if start < 0 and (b"\n" + data[position:]).endswith(b"\n" + old.rstrip(b"\r\n")):
        start, old = len(data) - len(old.rstrip(b"\r\n")), old.rstrip(b"\r\n")
    if start < 0:
        return None
    return data[:start] + new + data[start + len(old):], start + len(new)


def _line_like(data: bytes, wanted: bytes, position: int) -> int | None:
    """The start of the line after the next one that reads so."""
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end + 1
        if data[position:end].strip() == wanted:
            return end
        position = end
    return None


def _bytes(text: str, crlf: bool) -> bytes:
    raw = text.encode()
    return raw.replace(b"\n", b"\r\n") if crlf else raw
