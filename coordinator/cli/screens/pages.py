"""The parts that every full screen shares: a session with the coordinator, a status line, verdicts
that can be undone, and pages of text.

A page of text covers the screen until one of the usual keys closes it. Each screen decides its
content and its keys.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult, ReturnType
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from coordinator.cli.app import person
from coordinator.client.client import Client
from coordinator.commands.lists import in_line, path, printable
from coordinator.files.state import StateDir
from coordinator.profiles import agent_logs as run_logs
from coordinator.profiles.agent_logs import Follower
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

KEYS_OF_QUEUE = """\
n, p      the next review, the one before
w         the verdict is on the whole review (so it begins)
f, F      … on a file: the next one, the one before
h, H      … on a hunk: the next one, the one before
k         keep what is chosen as it stands
r         revert it: the bytes that were there before
g         reassign the review: the next agent starts from it
u         take the last verdict back; again: the one before it
e         edit the file ($VISUAL, $EDITOR, git's core.editor)
d         git's difftool (diff.tool)
m         git's mergetool (merge.tool): take the work out by hand
v         below each other, or side by side
t         the task, what happened, what the agent said last
space, b  turn the pages of the difference; arrows scroll it
tab       to the list of reviews (up, down choose), and back
q         end

A verdict on a part leaves the rest open. The task of a review follows
the verdict on what is left of it in the end."""

KEYS_OF_DASHBOARD = """\
1 to 6    agents, leases, backlog, reviews, requests, events
arrows    left, right: the list before, the next one; up, down: a row
enter     all about what is chosen: its story, a review's difference
l         the log of the agent that works, or worked, on it
x         leases: take it from its holder (y: yes); what was changed is kept
a, d      requests: approve, reject in the holder's place (y: yes)
k, r      reviews: keep, revert
u         take the last verdict back
v         work through all reviews, by file and hunk; q comes back
q         end"""
#: How many of a log's last lines are shown.
LOG_LINES = 1_000


class Page(ModalScreen[None]):
    """A text over the whole screen."""

    CSS = """
    Page VerticalScroll { background: $surface; padding: 0 1; scrollbar-size-vertical: 1; }
    Page .title { text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,t,l,enter,question_mark", "dismiss", "back"),
        Binding("space", "page", "page", show=False),
    ]

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self._above, self._below = title, text

    def compose(self) -> ComposeResult:
        """Lay out the text, which can be scrolled."""
        with VerticalScroll():
            yield Static(Text(f"{self._above}   (q, Esc: back)"), classes="title")
            yield Static(self._below, id="text")

    def action_page(self) -> None:
        """Turn the page."""
        self.query_one(VerticalScroll).scroll_page_down(animate=False)


class LogPage(Page):
    """The output of a task's launched agents, continuously."""

    def __init__(self, task: str, root: Path) -> None:
        super().__init__(f"log of {task}", Text("No launched agent has worked on it yet."))
        self._of_task, self._folder = task, StateDir(root)
        self._follower: Follower | None = None
        self._at: Path | None = None
        self._kept: list[str] = []

    def on_mount(self) -> None:
        """Read the present log, and then its growth."""
        self._read()
        self.set_interval(1.0, self._read)

    def _read(self) -> None:
        paths = run_logs.find(self._folder, self._of_task)
        if not paths:
            return
        if self._at != paths[-1]:
            self._at, self._kept = paths[-1], []
            self._follower = Follower(
                paths[-1], run_logs.stream_of(paths[-1], self._folder.root))
        assert self._follower is not None
        fresh = list(self._follower.shown(over=False))
        if not fresh:
            return
        self._kept = [*self._kept, *map(printable, fresh)][-LOG_LINES:]
        pane = self.query_one(VerticalScroll)
        ends = pane.scroll_y >= pane.max_scroll_y
        self.query_one("#text", Static).update(Text("\n".join(self._kept)))
        if ends:
            self.call_after_refresh(pane.scroll_end, animate=False)


def story(row: rq.Review, task: rq.Task | None) -> Text:
    """Return a review's task, its timeline, its files and the agent's last lines."""
    text = Text(in_line(row.summary) + "\n")
    if row.part_of:
        text.append(f"a part of {row.part_of}, decided by itself\n")
    if task is not None:
        _head(text, f"{task.task} {in_line(task.title)} ({task.state})")
        if task.prompt:
            text.append(printable(task.prompt).rstrip() + "\n")
    _head(text, "files")
    for file in row.files:
        hunks = f", {file.hunks} hunks" if (file.hunks or 0) > 1 else ""
        text.append(f"{file.change} {path(file.path)}{hunks}\n")
    for place in dict.fromkeys(file.worktree for file in row.files if file.worktree):
        text.append(f"they lie in {in_line(place)}\n")
    for line in row.saved:
        text.append(in_line(line) + "\n")
    if row.log_tail:
        _head(text, "what the agent said last")
        text.append(printable(row.log_tail).rstrip() + "\n")
    _head(text, "what happened")
    text.append("\n".join(in_line(line) for line in row.timeline))
    return text


def _head(page: Text, text: str) -> None:
    page.append(f"\n{text}\n", "bold")


R = TypeVar("R")
#: Verdicts of one screen that can be taken back with it.
UNDO_MAX = 100


class SessionApp(App[ReturnType]):
    """A screen with a session. Where verdicts are given, `changed` shows their result. The line is
    a `Static` with the id `said`."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(self, session: Client) -> None:
        # Without it the terminal's own colours are only made grey, not left alone.
        super().__init__(ansi_color=True if os.environ.get("NO_COLOR") else None)
        self.session = session
        self.decided: list[str] = []
        self._one_at_a_time = asyncio.Lock()

    async def changed(self, review: rq.Review) -> None:
        """Show the new state after a verdict was given or undone here."""

    async def ask(self, request: rq.Request[R]) -> R | None:
        """The answer; None if the request was refused, which is shown. One question at a time, in
        the order of the keys, because the next key acts on the answer."""
        async with self._one_at_a_time:
            try:
                return await asyncio.to_thread(self.session.call, request)
            except Refusal as refusal:
                sentences = [in_line(refusal.message), in_line(refusal.next)]
                if refusal.code is Code.DAEMON_DOWN:
                    sentences.reverse()  # then the path is cut off, not the next step
                self.say(" ".join(sentences))
                return None

    def say(self, text: str) -> None:
        """Show it at the bottom, in as many lines as needed."""
        for result in self.query("#said").results(Static):  # none while it is being closed
            result.update(Text(text))

    def note(self, done: rq.Review) -> None:
        """Remember a verdict that can be undone."""
        self.decided = [*self.decided, done.review][-UNDO_MAX:]

    async def action_undo(self) -> None:
        """Take the last verdict of this screen back."""
        if not self.decided:
            self.say("No verdict was given here that could be taken back.")
            return
        done = await self.ask(rq.ReviewUndo(review=self.decided[-1], by=person()))
        if done is not None:
            self.decided.pop()
            await self.changed(done)
            self.say(" ".join([f"{done.review} is open again", *map(in_line, done.warnings)]))
