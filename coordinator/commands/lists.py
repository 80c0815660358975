"""Formatting instants, durations, bars, names and tables as plain text. It sends no request."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from coordinator.words import file_names, texts
from coordinator.words.clock import from_iso


def left(expires_at: str, now_ms: int) -> str:
    """Time left, `29m`, `45s`, `2h10m`; `ended` when over."""
    rest = (from_iso(expires_at) - now_ms) / 1000
    return "ended" if rest <= 0 else span(rest)


def ago(at: str, now_ms: int) -> str:
    """Time since, `12s ago`."""
    return span(max(0.0, (now_ms - from_iso(at)) / 1000)) + " ago"


def span(seconds: float) -> str:
    """A duration in at most two units. Ten minutes and more are rounded: a lease for half an hour
    has `30m` left a second later, not `29m`."""
    whole = int(seconds)
    if whole >= 600:
        whole = (whole + 30) // 60 * 60
    if whole < 1:
        return "<1s"
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes}m{rest:02d}s" if minutes < 10 and rest else f"{minutes}m"
    hours, rest = divmod(whole, 3600)
    if hours >= 48:
        return f"{hours // 24}d"
    return f"{hours}h{rest // 60:02d}m" if rest >= 60 else f"{hours}h"


def cell_len(text: str) -> int:
    """The columns of a terminal that a text takes: East Asian characters take two."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich import cells  # its tables take ms to read

    return cells.cell_len(text)


def _head(text: str, width: int) -> str:
    """The beginning of a text that fits, filled up with blanks."""
    if text.isascii() and text.isprintable():
        return text[:width].ljust(width)
    from rich import cells

    return cells.set_cell_size(text, width)


def middle(text: str, width: int) -> str:
    """Cut `text` in the middle to at most `width` columns, because the ends of a path tell most.
    The file name stays whole if it fits; otherwise it is cut, too."""
    if cell_len(text) <= width:
        return text
    if width < 3:
        return _head(text, width)
    slash = text.partition("::")[0].rstrip("/").rfind("/")
    if slash >= 0:
        room = width - 1 - cell_len(text[slash:])
        if room >= 0:
            return _head(text, room).rstrip() + "…" + text[slash:]
        if width >= NAME_MIN:
            return "…/" + middle(text[slash + 1:], width - 2)
    return _ends(text, width)


def _ends(text: str, width: int) -> str:
    """The beginning of a text that is too wide, and more of its end."""
    head = _head(text, (width - 1) // 3).rstrip()
    room, position = width - 1 - cell_len(head), len(text)
    while room >= (wide := cell_len(text[position - 1])):
        position, room = position - 1, room - wide
    return head + "…" + text[position:]


class Names(str):
    """Several paths in one cell of a table. If they do not fit: the first, and how many more there
    are (`a.py +2`)."""

    names: tuple[str, ...]

    def __new__(cls, names: Sequence[str], between: str = ", ") -> Names:
        made = super().__new__(cls, between.join(names))
        made.names = tuple(names)
        return made

    def within(self, width: int) -> str:
        """The names in at most `width` columns."""
        if len(self.names) < 2 or cell_len(in_line(self)) <= width:
            return middle(in_line(self), width)
        more = f" +{len(self.names) - 1}"
        return middle(in_line(self.names[0]), width - len(more)) + more


def paths_within(cells: Sequence[str], width: int) -> list[str]:
    """A column of paths in at most `width` columns: what differs is seen, where two would be cut to
    the same text."""
    result = [names.within(width) if isinstance(names, Names) else middle(names, width) for names
              in cells]
    alike: dict[str, dict[str, None]] = {}
    for cell, text in zip(cells, result, strict=True):
        alike.setdefault(text, {})[cell] = None
    apart = {cell: text for group in alike.values() if len(group) > 1 and width >= NAME_MIN
             for cell, text in zip(group, _told_apart([*group], width), strict=True)}
    return [apart.get(cell, text) for cell, text in zip(cells, result, strict=True)]


def _told_apart(cells: Sequence[str], width: int) -> list[str]:
    """The cells from their first difference on: from the beginning of that name, or word."""
    first, last = min(cells), max(cells)
    position = next((n for n,
                     (name, two) in enumerate(zip(first, last, strict=False)) if name != two),
                    len(first))
    name = first.rfind("/", 0, position) + 1
    if position - name <= width // 3:
        position = name
    while position > name and first[position - 1].isalnum():
        position -= 1
    if not position:
        return [_ends(cell, width) for cell in cells]
    result = []
    for rest in (cell[position:] for cell in cells):
        text = middle(rest, width - 1)
        result.append("…" + (_ends(rest, width - 1) if text.startswith("…") else text))
    return result


def cut(text: str, width: int) -> str:
    """A sentence in at most `width` columns: it ends earlier, and a path that its end would fall in
    is cut in the middle, so that the file's name is seen."""
    if cell_len(text) <= width:
        return text
    used, whole = 0, cell_len(text)
    for word in text.split(" "):
        ends = used + cell_len(word)
        if ends > width - 1:
            more = "…" if ends < whole else ""
            room = width - len(more) - used
            if "/" in word and room >= PATH_MIN:
                return text[: _signs(text, used)] + middle(word, room) + more
            break
        used = ends + 1
    return _head(text, width - 1).rstrip() + "…"


def _signs(text: str, width: int) -> int:
    """How many characters at the beginning of `text` fill `width` columns."""
    position = wide = 0
    while wide < width:
        wide, position = wide + cell_len(text[position]), position + 1
    return position


def columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]], kinds: str, width: int | None
) -> list[str]:
    """A table's lines. `kinds`: one character a column: `=` is never cut (an id, a state, a time),
    `/` is a path, cut in the middle, `~` is text, cut at its end. `width`: of the terminal; None (a
    pipe): nothing is cut."""
    shown = [[in_line(cell) for cell in row] for row in (heads, *rows)]
    wide = [max(cell_len(row[index]) for row in shown) for index in range(len(heads))]
    if width is not None:
        wide = _fitted(wide, kinds, width, _find_least(shown, kinds), _find_own(rows, kinds))
    result = []
    for position, kind in enumerate(kinds):
        if kind == "/" and wide[position]:
            _shorten_paths(shown, rows, position, wide[position])
    for row in shown:
        cells = [cut(cell, most) if kind != "/" else middle(cell, most)
                 for cell, most, kind in zip(row, wide, kinds, strict=True)]
        result.append("  ".join(cell + " " * (most - cell_len(cell)) for cell, most in zip(
            cells, wide, strict=True) if most).rstrip())
    return result


#: An id that a text begins with: it is seen, whatever of the text is cut.
_ID = re.compile(r"[A-Z]-\d+(?= )")


def _id_len(text: str) -> int:
    """The columns for the id at a text's beginning, and for the mark that the text is cut."""
    match = _ID.match(text)
    return 0 if match is None else len(match[0]) + 1


#: The fewest characters of a cut path, and of a cut text; a text with less room is left out.
PATH_MIN, TEXT_MIN = 10, 4
#: With less room than this a path is cut like any other name.
NAME_MIN = 12


def _own_len(cell: str) -> int:
    """The columns for a file's own name, behind the mark that its folders are cut."""
    first = cell.names[0] if isinstance(cell, Names) and cell.names else cell
    more = f" +{len(cell.names) - 1}" if isinstance(cell, Names) and len(cell.names) > 1 else ""
    text = in_line(first)
    slash = text.partition("::")[0].rstrip("/").rfind("/")
    return 1 + cell_len(text[slash:]) + len(more) if slash > 0 else 0


def _find_own(rows: Sequence[Sequence[str]], kinds: str) -> list[int]:
    """The width of each column for the files' own names, and for the ids that texts begin with."""
    lens: dict[str, Callable[[str], int]] = {"/": _own_len, "~": _id_len}
    return [max((lens[kind](row[index]) for row in rows if kind in lens), default=0)
            for index, kind in enumerate(kinds)]


def _find_least(shown: list[list[str]], kinds: str) -> list[int]:
    """The least width of each column: that of its head, and of the ids that texts begin with."""
    return [max([cell_len(shown[0][index]), *(_id_len(row[index]) for row in shown if kind == "~")])
            for index, kind in enumerate(kinds)]


def _shorten_paths(shown: list[list[str]], rows: Sequence[Sequence[str]], position: int,
                   most: int) -> None:
    """Write a column of paths into a table's rows, below its head, each within `most` cells."""
    given = [row[position] for row in rows]
    sentences = [names if isinstance(names, Names) else in_line(names) for names in given]
    for row, text in zip(shown[1:], paths_within(sentences, most), strict=True):
        row[position] = text


class _Stage(NamedTuple):
    """A step in which columns give way, down to a width for all and one for each."""

    columns: Sequence[int]
    least: int
    leasts: Sequence[int]


def _fitted(wide: Sequence[int], kinds: str, width: int, heads: Sequence[int],
            own: Sequence[int]) -> list[int]:
    """The widths of columns that fit a line, as far as possible: paths come before texts, each gets
    its share of the room, and uncut columns stay as wide as they are. `heads`: the widths of their
    titles, and of the ids that texts begin with, which stay whole. `own`: those of the files' own
    names and of the ids, before which folders and texts give way."""
    result = [w if kind == "=" else min(w, width) for w, kind in zip(wide, kinds, strict=True)]
    paths, texts_ = ([position for position, kind in enumerate(kinds) if kind == sign]
                     for sign in "/~")
    names = list(map(max, heads, own))
    stages = [stage for text, path_ in ((6, 4), (2, 3), (1, 1)) for stage in (
        _Stage(texts_, text * TEXT_MIN, heads), _Stage(paths, path_ * PATH_MIN, names))]
    _shrink(result, width, stages)
    for left_out in ([position for position in texts_ if not own[position]], texts_):
        for position in reversed(left_out):  # a text without an id goes before a name is cut
            if _is_wider(result, width):
                result[position] = 0
                _shrink(result, width, stages)
        _shrink(result, width, [_Stage(paths, PATH_MIN, heads)])
    return result


def _is_wider(cells: Sequence[int], width: int) -> bool:
    """Whether these columns, with the blanks between them, are wider than a line."""
    return sum(cells) + 2 * (sum(cell > 0 for cell in cells) - 1) > width


def _shrink(cells: list[int], width: int, stages: Sequence[_Stage]) -> None:
    """Shrink the widest column of the first stage that has room, until all fit or none has."""
    while _is_wider(cells, width):
        for stage in stages:
            giving = [position for position in stage.columns
                      if cells[position] > max(stage.least, stage.leasts[position])]
            if giving:
                cells[max(giving, key=cells.__getitem__)] -= 1
                break
        else:
            return


def bar(done: int, total: int, width: int) -> str:
    """`████░░░░ 12/24`."""
    full = 0 if total == 0 else round(width * done / total)
    return "█" * full + "░" * (width - full) + f" {done}/{total}"


def printable(text: str) -> str:
    """Text of strangers without what could deceive (`texts.harmless`); a byte of a file's name
    that is no UTF-8 as `\\xe4`."""
    return texts.harmless(file_names.shown(text))


def in_line(text: str) -> str:
    """The text in one line."""
    return printable(text).replace("\r\n", " ").replace("\n", " ").replace("\t", " ")


def path(name: str) -> str:
    """The name of a file, in one line."""
    return printable(name).replace("\n", "\\n").replace("\t", "\\t")


def from_root(typed: str | None, meant: str | None) -> str:
    """How to type a printed name from a folder below the root, because printed names begin at the
    root. Empty if the name was not typed from there."""
    if typed is None or meant is None or typed[:1] in ("/", ":", ".") or not meant.endswith(
            f"/{typed}"):
        return ""
    return f" (Names that are printed begin at the root: `:/{in_line(typed)}` from here.)"


def wrapped(text: str, width: int | None, indent: int) -> list[str]:
    """A text in indented lines, folded between words; in a pipe (None) it is one line."""
    before = " " * indent
    if width is None or indent + cell_len(text) <= width:
        return [before + text]
    result, line = [], ""
    for word in text.split(" "):
        while cell_len(word) > max(10, width - indent):  # no blank to fold at
            room = max(10, width - indent) - (cell_len(line) + 1 if line else 0)
            part = _head(word, max(1, room)).rstrip()
            result.append(before + f"{line} {part}".lstrip())
            line, word = "", word[len(part) :]
        if line and indent + cell_len(line) + 1 + cell_len(word) > width:
            result.append(before + line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*result, before + line] if line else result
