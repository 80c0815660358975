"""How instants, columns and bars look on a terminal. Formats only; asks nobody."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

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
    """A duration in at most two units."""
    whole = int(seconds)
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


def middle(text: str, width: int) -> str:
    """`text` in at most `width` signs: what is cut is cut in the middle, for a path tells most at
    its ends."""
    if len(text) <= width:
        return text
    if width < 3:
        return text[:width]
    head = (width - 1) // 3
    return text[:head] + "…" + text[len(text) - (width - 1 - head):]


def columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]], kinds: str, width: int | None
) -> list[str]:
    """A table's lines. `kinds`: one sign a column: `=` is never cut (an id, a state, a time), `/`
    is a path, cut in the middle, `~` is text, cut at its end. `width`: of the terminal; None (a
    pipe): nothing is cut."""
    shown = [[in_line(cell) for cell in row] for row in (heads, *rows)]
    wide = [max(cell_len(row[at]) for row in shown) for at in range(len(heads))]
    if width is not None:
        left = width - 2 * (len(heads) - 1) - sum(
            w for w, kind in zip(wide, kinds, strict=True) if kind == "=")
        soft = [at for at, kind in enumerate(kinds) if kind != "="]
        # Paths before texts, and each by what it wants.
        for kind in "/~":
            alike = [at for at in soft if kinds[at] == kind]
            room = left - (8 * kinds.count("~") if kind == "/" else 0)
            wanted = sum(wide[at] for at in alike)
            for at in alike if wanted > room else ():
                wide[at] = min(wide[at], max(8, room * wide[at] // wanted))
            left -= sum(wide[at] for at in alike)
    out = []
    for row in shown:
        cells = []
        for cell, most, kind in zip(row, wide, kinds, strict=True):
            if kind == "/" and cell_len(cell) > most:
                cell = middle(cell, most)
            elif cell_len(cell) > most:
                cell = set_cell_size(cell, max(0, most - 1)).rstrip() + "…"
            cells.append(cell + " " * (most - cell_len(cell)))
        out.append("  ".join(cells).rstrip())
    return out


def bar(done: int, total: int, width: int) -> str:
    """`████░░░░ 12/24`."""
    full = 0 if total == 0 else round(width * done / total)
    return "█" * full + "░" * (width - full) + f" {done}/{total}"


def printable(text: str) -> str:
    """Text of strangers without what could deceive (`texts.harmless`); a byte of a file's name
    that is no UTF-8 as `\\xe4`."""
    return texts.harmless(file_names.shown(text))


def in_line(text: str) -> str:
    """The same in one line."""
    return printable(text).replace("\r\n", " ").replace("\n", " ").replace("\t", " ")


def path(name: str) -> str:
    """The name of a file, in one line."""
    return printable(name).replace("\n", "\\n").replace("\t", "\\t")
