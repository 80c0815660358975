"""What every screen of coord has: a session with the coordinator, a line where it is said what came
of a key, and verdicts that can be taken back.

Owns these three. What is shown, and by which keys, is each screen's own.
"""

from __future__ import annotations

import asyncio
import os
from typing import TypeVar

from rich.text import Text
from textual.app import App, ReturnType
from textual.widgets import Static

from coordinator.cli.app import person
from coordinator.client.client import Client
from coordinator.commands.lists import in_line
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

R = TypeVar("R")
#: Verdicts of one screen that can be taken back with it.
UNDO_MAX = 100


class SessionApp(App[ReturnType]):
    """A screen with a session. Where verdicts are given, `changed` shows what came of them. The
    line is a `Static` with the id `said`."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, session: Client) -> None:
        # Without it the terminal's own colours are only made grey, not left alone.
        super().__init__(ansi_color=True if os.environ.get("NO_COLOR") else None)
        self.session = session
        self.decided: list[str] = []
        self._one_at_a_time = asyncio.Lock()

    async def changed(self, review: rq.Review) -> None:
        """A verdict was given here, or taken back: show what is so now."""

    async def ask(self, request: rq.Request[R]) -> R | None:
        """The answer; None: it was refused, and that is said. One question at a time, in the order
        of the keys: an answer is what the next key acts on."""
        async with self._one_at_a_time:
            try:
                return await asyncio.to_thread(self.session.call, request)
            except Refusal as refusal:
                sentences = [in_line(refusal.message), in_line(refusal.next)]
                if refusal.code is Code.DAEMON_DOWN:
                    sentences.reverse()  # what is cut off is a path, not what to do
                self.say(" ".join(sentences))
                return None

    def say(self, text: str) -> None:
        """At the bottom, in as many lines as it takes."""
        for result in self.query("#said").results(Static):  # none while it is being closed
            result.update(Text(text))

    def note(self, done: rq.Review) -> None:
        """A verdict that can be taken back."""
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
