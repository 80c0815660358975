"""The queue of reviews on a terminal: the waiting ones, the difference, and a verdict by a key.

Owns the keys, and the choice: a whole review, a file, or a hunk. Verdicts are the operations that
the commands use (`requests.ReviewDecide`); nothing is decided here.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from coordinator.cli.app import client, person
from coordinator.cli.screens import tools
from coordinator.cli.screens.hunk_pane import HunkPane
from coordinator.cli.screens.pages import KEYS_OF_QUEUE, Page, SessionApp, story
from coordinator.client.client import Client
from coordinator.commands.lists import ago, in_line, path
from coordinator.commands.review_page import what_happened
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock
from coordinator.words.refusals import Refusal

#: The list is read again so often (seconds).
EVERY_S = 3.0


class ReviewQueue(SessionApp[None]):
    """Work through the reviews that wait for a verdict."""

    CSS = """
    Screen { layout: vertical; }
    #reviews {
        height: auto; max-height: 5; border: none; padding: 0; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    #said { height: auto; min-height: 1; max-height: 40%; background: $panel; padding: 0 1; }
    OptionList:nocolor > .option-list--option-highlighted { text-style: bold underline !important; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [  # a narrow screen cuts the last ones off
        Binding("question_mark", "keys", "keys"),
        Binding("q", "quit", "end"),
        Binding("k", "decide('keep')", "keep"),
        Binding("r", "decide('revert')", "revert"),
        Binding("g", "decide('reassign')", "reassign"),
        Binding("u", "undo", "undo"),
        Binding("n", "step_review(1)", "next"),
        Binding("p", "step_review(-1)", "previous", show=False),
        Binding("w", "whole", "whole", show=False),
        Binding("f", "step_file(1)", "file"),
        Binding("F", "step_file(-1)", "file before", show=False),
        Binding("h", "step_hunk(1)", "hunk"),
        Binding("H", "step_hunk(-1)", "hunk before", show=False),
        Binding("v", "view", "view", show=False),
        Binding("t", "story", "log"),
        Binding("e", "edit", "edit"),
        Binding("d", "tool('difftool')", "difftool", show=False),
        Binding("m", "tool('mergetool')", "mergetool", show=False),
        Binding("space", "page(1)", "page", show=False),
        Binding("b", "page(-1)", "page back", show=False),
    ]

    def __init__(self, session: Client) -> None:
        super().__init__(session)
        self.rows: list[rq.Review] = []
        self.shown: rq.Review | None = None
        self.file = 0
        self.by_file = False  # a file or a hunk is chosen; otherwise the whole review

    def compose(self) -> ComposeResult:
        """Lay out the list, the difference, the last message, the keys."""
        yield OptionList(id="reviews")
        yield HunkPane(id="pane")
        yield Static(id="said")
        yield Footer(compact=True, show_command_palette=False)

    async def on_mount(self) -> None:
        """Begin with the oldest one."""
        self.query_one(HunkPane).focus()
        await self._refresh()
        self.set_interval(EVERY_S, self._look_again)

    # ------------------------------------------------------------ what is shown

    async def _refresh(self, wanted: str | None = None, *, hunk: int | None = None) -> None:
        review_list = await self.ask(rq.Reviews())
        if review_list is None:
            return
        self.rows = review_list.items
        names = [row.review for row in self.rows]
        name = wanted or (self.shown.review if self.shown else None)
        if name not in names:
            name = names[min(self._find_position(), len(names) - 1)] if names else None
        self._list(name)
        await self._show(name, hunk=hunk)

    def _find_position(self) -> int:
        return self.query_one("#reviews", OptionList).highlighted or 0

    def _list(self, name: str | None) -> None:
        now = SystemClock().now_ms()
        listed = self.query_one("#reviews", OptionList)
        listed.clear_options()
        for row in self.rows:
            listed.add_option(Option(_line(row, now), id=row.review))
        names = [row.review for row in self.rows]
        listed.highlighted = names.index(name) if name in names else None

    async def _show(self, name: str | None, *, hunk: int | None = None) -> None:
        """Show this review; if it is visible already, the choice in it stays."""
        pane = self.query_one(HunkPane)
        if name is None:
            self.shown, self.by_file = None, False
            await pane.show(None, "Nothing waits for a verdict.")
            self.say("u takes the last verdict back, q ends" if self.decided else "q ends")
            return
        row = await self.ask(rq.ReviewShow(review=name))
        if row is None:
            return
        before = self.shown
        again = before is not None and before.review == name
        self.shown = row
        self.file = min(self.file, max(0, len(row.files) - 1)) if again else 0
        self.by_file = self.by_file and again
        await self._show_file(hunk=hunk if again else None)

    async def _show_file(self, *, hunk: int | None = None) -> None:
        row = self.shown
        if row is None:
            return
        pane = self.query_one(HunkPane)
        if not row.files:
            await pane.show(None, "No file is left in it.")
        else:
            file = row.files[self.file]
            title = f"{file.change} {path(file.path)}  (file {self.file + 1} of {len(row.files)})"
            await pane.show(file, title)
            pane.choose(min(hunk, len(pane.hunks)) if hunk and pane.hunks else None)
            pane.mark_file(self.by_file and pane.chosen is None)
        self._say_choice()

    def _say_choice(self) -> None:
        row = self.shown
        if row is None:
            return
        pane = self.query_one(HunkPane)
        what = f"all of {row.review}"
        if self.by_file and row.files:
            what = path(row.files[self.file].path)
            if pane.chosen is not None:
                what = f"hunk {pane.chosen} of {what}"
        text = f"verdict on {what}"
        if row.under_way:
            text = f"its {row.under_way} is being carried out"
        self.say(text)

    # ------------------------------------------------------------ choosing

    async def action_step_review(self, by: int) -> None:
        """Show the next review, or the one before."""
        if self.rows:
            listed = self.query_one("#reviews", OptionList)
            listed.highlighted = (self._find_position() + by) % len(self.rows)
            self.by_file = False
            await self._show(self.rows[self._find_position()].review)

    async def on_option_list_option_highlighted(self, _: OptionList.OptionHighlighted) -> None:
        """Show the highlighted row. Verdicts are on it."""
        lit = self._lit()
        if lit is not None and (self.shown is None or self.shown.review != lit):
            self.by_file = False
            await self._show(lit)

    def _lit(self) -> str | None:
        listed = self.query_one("#reviews", OptionList)
        return None if listed.highlighted is None else listed.get_option_at_index(
            listed.highlighted).id

    async def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Show the row that is chosen with Enter or the mouse."""
        self.by_file = False
        await self._show(event.option.id)
        self.query_one(HunkPane).focus()

    def action_whole(self) -> None:
        """Choose the whole review for the verdict again."""
        self.by_file = False
        pane = self.query_one(HunkPane)
        pane.choose(None)
        pane.mark_file(False)
        self._say_choice()

    async def action_step_file(self, by: int) -> None:
        """Choose a file: first the one in sight, then the next."""
        if self.shown is None or not self.shown.files:
            return
        pane = self.query_one(HunkPane)
        if self.by_file and pane.chosen is None:
            self.file = (self.file + by) % len(self.shown.files)
        self.by_file = True
        await self._show_file()

    async def action_step_hunk(self, by: int) -> None:
        """Choose a hunk of the file in sight; after its last one, the next file's first."""
        row, pane = self.shown, self.query_one(HunkPane)
        if row is None or not row.files:
            return
        position = pane.chosen or (0 if by > 0 else len(pane.hunks) + 1)
        if self.by_file and not 1 <= position + by <= len(pane.hunks) and len(row.files) > 1:
            self.file = (self.file + by) % len(row.files)
            await self._show_file()
            position = 0 if by > 0 else len(pane.hunks) + 1
        self.by_file = True
        pane.choose(position + by if 1 <= position + by <= len(pane.hunks) else pane.chosen)
        pane.mark_file(pane.chosen is None)
        self._say_choice()

    def action_page(self, by: int) -> None:
        """Turn the pages of the difference."""
        pane = self.query_one(HunkPane)
        (pane.scroll_page_down if by > 0 else pane.scroll_page_up)(animate=False)

    def action_view(self) -> None:
        """Switch between lines below each other, and two columns."""
        pane = self.query_one(HunkPane)
        pane.beside = not pane.beside
        pane.redraw()

    # ------------------------------------------------------------ acting

    async def action_decide(self, verdict: rq.Verdict) -> None:
        """Give a verdict on the choice."""
        row, pane = self.shown, self.query_one(HunkPane)
        if row is None:
            return
        if self._lit() not in (None, row.review):
            await self._show(self._lit())
            self.say(f"{row.review} was in sight, and another is lit. Nothing was done; look "
                     "again.")
            return
        part = self.by_file and row.files and verdict != "reassign"  # (that is of all of it)
        files = [row.files[self.file].path] if part else []
        hunks = [pane.chosen] if files and pane.chosen is not None else []
        self.say(f"{verdict} …")
        if hunks and not await self._is_as_shown(row):
            return
        done = await self.ask(rq.ReviewDecide(review=row.review, verdict=verdict, by=person(),
                                              files=files, hunks=hunks))
        if done is None:
            return
        self.note(done)
        await self._refresh(hunk=hunks[0] if hunks else None)
        text = f"{done.review} {done.state}: {', '.join(path(f.path) for f in done.files)}"
        self.say(" ".join([text, *map(in_line, done.warnings)]) + "  (u takes it back)")

    async def _is_as_shown(self, row: rq.Review) -> bool:
        """Whether the numbers of the visible hunks are still right. If not, that is shown."""
        now = await self.ask(rq.ReviewShow(review=row.review))
        if now is None:
            return False
        sides = [[(file.path, file.baseline_hash, file.flagged_hash) for file in review.files]
                 for review in (now, row)]
        if sides[0] == sides[1]:
            return True
        await self._show(row.review)
        self.say(f"{row.review} was changed by somebody else meanwhile. Nothing was done; look "
                 "again.")
        return False

    async def changed(self, review: rq.Review) -> None:
        """Show the new state."""
        await self._refresh(review.review)

    async def action_edit(self) -> None:
        """Open the file in sight in the person's editor, at the hunk that is chosen."""
        pane = self.query_one(HunkPane)
        hunk = next((hunk for hunk in pane.hunks if hunk.number == pane.chosen), None)
        line = next((line.new for line in hunk.lines if line.kind == "+"), None) if hunk else None
        await self._outside(lambda place, file: tools.edit(place, line))

    async def action_tool(self, name: str) -> None:
        """Open the file in sight in git's own tool."""
        run = tools.difftool if name == "difftool" else tools.mergetool

        def both(place: Path, file: rq.ReviewFile) -> int:
            return run(place, _data(file.baseline), _data(file.flagged))

        await self._outside(both)

    async def _outside(self, run: Callable[[Path, rq.ReviewFile], int]) -> None:
        """Leave the terminal to another program for a while."""
        if self.shown is None or not self.shown.files:
            return
        row = await self.ask(rq.ReviewShow(review=self.shown.review, content=True))
        if row is None:
            return
        file = row.files[self.file]
        name = os.fsdecode(file_names.to_bytes(file.path))
        place = Path(file.worktree or self.session.root) / name
        before = _stamp(place)
        refused = None
        with self.suspend():
            try:  # in here: an error that leaves this block leaves the screen suspended
                code = run(place, file)
            except Refusal as refusal:
                refused = refusal
        self.refresh()
        if refused is not None:
            self.say(f"{refused.message} {refused.next}")
            return
        if code:
            how = f"it ended with exit code {code}" if code > 0 else f"signal {-code} ended it"
            self.say(f"{how}; {path(file.path)} "
                     + ("is as it was" if _stamp(place) == before else "was written all the same"))
        elif _stamp(place) != before:
            self.say(f"{path(file.path)} was written; above is what the agent left")
        else:
            self._say_choice()

    async def action_story(self) -> None:
        """Show the agent's task, its story, and its last words."""
        row = self.shown
        if row is None:
            return
        task = None
        if row.task:
            task = await self.ask(rq.TaskShow(task=row.task))
        await self.push_screen(Page(f"{row.review}: what happened", story(row, task)))

    async def action_keys(self) -> None:
        """Show all keys."""
        await self.push_screen(Page("keys", Text(KEYS_OF_QUEUE)))

    # ------------------------------------------------------------ asking

    async def _look_again(self) -> None:
        """Load reviews that others have opened or decided meanwhile. The visible one stays."""
        if self._one_at_a_time.locked() or len(self.screen_stack) > 1:
            return
        try:
            review_list = await asyncio.to_thread(self.session.call, rq.Reviews())
        except Refusal:
            return
        if not self.query("#reviews"):
            return  # it is being closed
        names = [row.review for row in review_list.items]
        if self.shown is None or self.shown.review not in names:
            await self._refresh()
        elif names != [row.review for row in self.rows]:
            self.rows = review_list.items
            self._list(self.shown.review)
        else:
            self._age()

    def _age(self) -> None:
        """Show how long each has waited until now."""
        now, listed = SystemClock().now_ms(), self.query_one("#reviews", OptionList)
        for position, row in enumerate(self.rows[: listed.option_count]):
            line = _line(row, now)
            if listed.get_option_at_index(position).prompt != line:
                listed.replace_option_prompt_at_index(position, line)


def _line(row: rq.Review, now_ms: int) -> Text:
    """Return a review's line in the list."""
    task = f"{row.task}  " if row.task else ""
    line = Text(f"{row.review:<6} {ago(row.opened_at, now_ms):<12} ", no_wrap=True,
                overflow="ellipsis")
    return line.append(f"{task}{in_line(what_happened(row))}")


def _stamp(place: Path) -> tuple[int, int, int] | None:
    try:
        status = place.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def run() -> None:
    """Open the queue, until it is closed."""
    with client() as session:
        session.call(rq.Reviews(limit=1))  # refused in words, before the screen is taken
        ReviewQueue(session).run()


