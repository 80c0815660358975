"""The pane that shows the difference of one file: its hunks below each other, one of them chosen.

The pane knows its difference and the chosen hunk. It decides nothing and sends no request.
"""

from __future__ import annotations

from dataclasses import replace

from rich.text import Text
from textual.containers import VerticalScroll
from textual.widgets import Static

from coordinator.cli import difference_views as views
from coordinator.commands.differences import Hunk, split
from coordinator.commands.lists import path
from coordinator.words import requests as rq

#: On a dark ground, where the words have the colours of their language.
LOOK = views.Look(removed="on #3c1a1d", added="on #14301c", removed_part="on #7d2a30",
                  added_part="on #1d6b35", at="bold cyan")
#: Hunks of one file that are drawn; a file that has more is read in an editor.
HUNKS_MAX = 200
#: The most lines drawn of one file, and the fewest for each of its hunks. Ten thousand take
#: seconds, in which no key is answered.
LINES_MAX, HUNK_LINES_MIN = 1_500, 40


class HunkPane(VerticalScroll):
    """The difference of one file. `chosen`: the number of a hunk, from 1; None if none is chosen.
    """

    DEFAULT_CSS = """
    HunkPane { height: 1fr; scrollbar-size-vertical: 1; }
    HunkPane .hunk, HunkPane .head { border-left: blank; height: auto; }
    HunkPane .chosen { border-left: thick $accent; }
    """
    can_focus = True

    def __init__(self, **more: str) -> None:
        super().__init__(**more)  # type: ignore[arg-type]  # handed on as given
        self.chosen: int | None = None
        self.beside = False
        self.hunks: list[Hunk] = []
        self._file: rq.ReviewFile | None = None

    async def show(self, file: rq.ReviewFile | None, title: str) -> None:
        """Draw this file; no hunk is chosen."""
        self._file, self.chosen = file, None
        head, self.hunks = split(file.diff) if file is not None else ([], [])
        top = Text(title, "bold")
        for line in views.head_lines(head):
            if not line.plain.startswith(("--- ", "+++ ")):
                top.append("\n").append_text(line)
        if file is not None and not self.hunks and file.note:
            top.append(f"\n{file.note}")
        parts = [Static(top, classes="head")]
        for hunk in self.hunks[:HUNKS_MAX]:
            parts.append(Static(self._drawn(hunk), classes="hunk", id=f"hunk-{hunk.number}"))
        if len(self.hunks) > HUNKS_MAX or (file is not None and file.cut):
            parts.append(Static(Text("… and more: `e` opens the file", "dim")))
        async with self.batch():
            await self.remove_children()
            await self.mount_all(parts)
        self.scroll_home(animate=False)

    def choose(self, number: int | None) -> None:
        """Choose a hunk, and have it in sight."""
        self.chosen = number
        for widget in self.query(".hunk"):
            widget.set_class(widget.id == f"hunk-{number}", "chosen")
            if widget.id == f"hunk-{number}":
                self.scroll_to_widget(widget, animate=False, top=True)

    def mark_file(self, chosen: bool) -> None:
        """Show whether the whole file is chosen."""
        for widget in self.query(".head"):
            widget.set_class(chosen, "chosen")

    def redraw(self) -> None:
        """Draw again everything that depends on the width, or on the kind of view."""
        for hunk in self.hunks[:HUNKS_MAX]:
            self.query_one(f"#hunk-{hunk.number}", Static).update(self._drawn(hunk))

    def on_resize(self) -> None:
        """Make two columns as wide as the pane."""
        if self.beside:
            self.redraw()

    def _drawn(self, hunk: Hunk) -> Text:
        file = self._file
        assert file is not None
        most = max(HUNK_LINES_MIN, LINES_MAX // min(len(self.hunks), HUNKS_MAX))
        left = len(hunk.lines) - most
        if left > 0:
            hunk = replace(hunk, lines=hunk.lines[:most])
        words = views.Syntax(path(file.path), hunk)
        wide = max(views.NARROWEST, self.size.width - 3)
        lines = [views.title(hunk, file.hunks or 0, LOOK)]
        lines += (views.beside_hunk(hunk, wide, LOOK, words) if self.beside
                  else views.unified_hunk(hunk, LOOK, words))
        if left > 0:
            lines.append(Text(f"… {left:,} more lines; a verdict is on all of them, `e` opens the "
                              "file", "dim"))
        return Text("\n").join(lines)
