"""Showing a file's difference on a terminal: unified as `git diff` does, or side by side.

The module decides colours and columns, and marks what changed within a line.
`commands/differences.py` decides which lines belong together. The functions return lines of text
and print nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.text import Text

from coordinator.commands.differences import Hunk, Line, Pair, Span, pairs, spans, split
from coordinator.commands.lists import printable
from coordinator.commands.review_page import hunk_head

TAB = 4
#: Narrower than this (columns), and two halves could not be read.
NARROWEST = 40


@dataclass(frozen=True, slots=True)
class Look:
    """The styles of a difference. `removed_part`, `added_part`: changes within a line."""

    removed: str = "red"
    added: str = "green"
    removed_part: str = "red reverse"
    added_part: str = "green reverse"
    head: str = "bold"
    at: str = "cyan"
    number: str = "dim"


#: Like `git diff`: in the terminal's own colours, on any background.
PLAIN = Look()


def unified(diff: str, total: int, look: Look = PLAIN) -> list[Text]:
    """Return a difference as lines below each other, each hunk with its number of `total`."""
    head, hunks = split(diff)
    texts = head_lines(head, look)
    for hunk in hunks:
        texts.append(title(hunk, total, look))
        texts += unified_hunk(hunk, look)
    return texts


def head_lines(lines: Sequence[str], look: Look = PLAIN) -> list[Text]:
    """Return the lines before the first hunk."""
    return [Text(printable(line), look.head) for line in lines]


def title(hunk: Hunk, total: int, look: Look = PLAIN) -> Text:
    """Return the heading of a hunk: its place, and its number if there are several."""
    return Text(hunk_head(hunk.at, hunk.number, total), look.at)


def unified_hunk(hunk: Hunk, look: Look = PLAIN, syntax: Syntax | None = None) -> list[Text]:
    """Return the lines of one hunk below each other."""
    changed = spans(hunk)
    texts = []
    for n, line in enumerate(hunk.lines):
        text = Text(line.kind if line.kind != " " else " ")
        text.append_text(_line(line, changed.get(n, ()), look, syntax))
        if line.kind != " ":
            text.stylize(look.removed if line.kind == "-" else look.added, 0, 1)
        texts.append(text)
        if not line.ended:
            texts.append(Text("\\ No newline at end of file", look.number))
    return texts


def beside(diff: str, total: int, width: int, look: Look = PLAIN) -> list[Text]:
    """Return a difference in two columns, `width` wide in all: the changes, and lines around."""
    head, hunks = split(diff)
    texts = head_lines(head, look)
    for hunk in hunks:
        texts.append(title(hunk, total, look))
        texts += beside_hunk(hunk, width, look)
    return texts


def beside_hunk(hunk: Hunk, width: int, look: Look = PLAIN,
                syntax: Syntax | None = None) -> list[Text]:
    """Return one hunk in two columns. A long line is continued below itself."""
    half = (max(width, NARROWEST) - 3) // 2
    digits = max([len(str(n)) for line in hunk.lines for n in (line.old, line.new) if n] or [1])
    texts = []
    for pair in pairs(hunk):
        left = _half(pair.left, pair, True, half, digits, look, syntax)
        right = _half(pair.right, pair, False, half, digits, look, syntax)
        for n in range(max(len(left), len(right))):
            row = left[n].copy() if n < len(left) else Text()
            row.append(" " * (half - cell_len(row.plain)))
            row.append(" │ ", look.number)
            if n < len(right):
                row.append_text(right[n])
            row.rstrip()
            texts.append(row)
    return texts


class Syntax:
    """The colours of a hunk's words, by the language of its file.

    A hunk begins in the middle of a file, so an earlier beginning, as of a long string, is unknown.
    """

    def __init__(self, path: str, hunk: Hunk, theme: str = "ansi_dark") -> None:
        from rich.syntax import Syntax as Highlighter  # loads Pygments: only when needed

        lexer = Highlighter.guess_lexer(path)
        self._coloured: dict[int, Text] = {}
        for kind in "-+":
            lines = [(n, line) for n, line in enumerate(hunk.lines) if line.kind in (" ", kind)]
            code = "\n".join(_shown(line.text) for _, line in lines)
            marked = Highlighter(code, lexer, theme=theme).highlight(code).split("\n")
            for (n, _), text in zip(lines, marked, strict=False):
                self._coloured[n] = text
        self._places = {id(line): n for n, line in enumerate(hunk.lines)}

    def of(self, line: Line) -> Text | None:
        """Return a line of the hunk in colours; None if there is none."""
        text = self._coloured.get(self._places[id(line)])
        return text if text is not None and text.plain == _shown(line.text) else None


def _shown(text: str) -> str:
    return printable(text).expandtabs(TAB)


def _line(line: Line, changed: Sequence[Span], look: Look, syntax: Syntax | None) -> Text:
    """A line's text in its colours, without its `+` or `-`."""
    coloured = syntax.of(line) if syntax is not None else None
    text = coloured.copy() if coloured is not None else Text(_shown(line.text))
    if line.kind == " ":
        return text
    removed = line.kind == "-"
    text.stylize(look.removed if removed else look.added)
    part = look.removed_part if removed else look.added_part
    whole = len(line.text.strip()) == sum(b - a for a, b in changed)
    for begin, end in () if whole else changed:
        text.stylize(part, len(_shown(line.text[:begin])), len(_shown(line.text[:end])))
    return text


def _half(line: Line | None, pair: Pair, left: bool, width: int, digits: int, look: Look,
          syntax: Syntax | None) -> list[Text]:
    if line is None:
        return []
    number = line.old if left else line.new
    sign = line.kind
    shown = _line(line, pair.left_spans if left else pair.right_spans, look, syntax)
    room = max(4, width - digits - 3)
    texts = []
    for n, piece in enumerate(_folded(shown, room)):
        row = Text(f"{number if n == 0 else '':>{digits}} ", look.number)
        row.append(f"{sign} ", "" if sign == " " else look.removed if sign == "-" else look.added)
        row.append_text(piece)
        texts.append(row)
    return texts


def _folded(text: Text, width: int) -> list[Text]:
    """Split the text into pieces of at most this width."""
    if cell_len(text.plain) <= width:
        return [text]
    offsets: list[int] = []
    for piece in chop_cells(text.plain, width)[:-1]:
        offsets.append((offsets[-1] if offsets else 0) + len(piece))
    return list(text.divide(offsets))
