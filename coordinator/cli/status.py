"""`coord status`: the dashboard. One snapshot; live with `--watch`; plain when piped."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from coordinator.cli.app import carry_out, client, complain, out
from coordinator.commands.signatures import in_program
from coordinator.slices.story import dashboard as bodies
from coordinator.slices.story.commands import status
from coordinator.words import requests as rq
from coordinator.words import texts
from coordinator.words.clock import utc_offset_s
from coordinator.words.refusals import Code, Refusal

#: Rich's style of each kind of line.
STYLES = {"title": "bold cyan"}


@in_program("status")
def show_status(**values: Any) -> None:
    """The dashboard: one snapshot, or live."""
    if not values["watch"] or values["as_json"]:
        carry_out(status, **values)
    else:
        _watch(values["events"])


def _watch(events: int) -> None:
    """Redraw in place each second until `q` or Ctrl-C. A stopped coordinator is not started again,
    because a person meant to stop it. The screen continues if another command starts it."""
    console = out()
    if not console.is_terminal and not sys.stdout.isatty():
        raise Refusal(Code.INVALID, "--watch needs a terminal.", next="`coord status`, or --json.")
    waited: set[str] | None = None
    with client() as session, watched_keys() as key, _drawing(console) as draw:
        try:
            while True:
                try:
                    reply = session.call(rq.Status(events=events))
                    session._wire.autostart = False
                    waits = waiting(reply)
                    if waited is not None and waits - waited:
                        console.bell()
                    waited = waits
                    draw(dashboard(reply, *console.size), _moved(reply))
                except Refusal as refusal:
                    if session._wire.autostart:  # it could not even be begun with
                        raise
                    draw(Text(
                        f"{refusal.message}\nThis waits until it runs again (`coord up`); "
                        "q or Ctrl-C ends the watching."
                    ), refusal.message)
                if key(1.0) in ("q", "Q"):
                    break
        except KeyboardInterrupt:
            pass
    complain("coord: watching ended")


@contextlib.contextmanager
def _drawing(console: Console) -> Iterator[Callable[[Text, str], None]]:
    """Gives a function that draws a picture with its subject: in place; or, on a terminal that
    cannot, below the last one if the subject is new."""
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        last = ""

        def below(picture: Text, about: str) -> None:
            nonlocal last
            if about != last:
                console.print(picture)
                console.print()
            last = about

        yield below
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda picture, about: live.update(picture, refresh=True)


def _moved(reply: rq.StatusReply) -> str:
    """A fingerprint that changes when something happens, not when only time passes."""
    return repr([[row.text for row in reply.events], sorted(reply.tasks.items()), waiting(reply),
                 [(row.agent, row.state) for row in reply.agents],
                 [row.resource for row in reply.leases]])


@contextlib.contextmanager
def watched_keys() -> Iterator[Callable[[float], str]]:
    """Gives a function that waits so many seconds for a key (empty: none came). Without a terminal
    it only waits."""
    if not sys.stdin.isatty():
        def none(seconds: float) -> str:
            time.sleep(seconds)
            return ""

        yield none
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number)
        yield lambda seconds: (os.read(number, 1).decode("latin-1")
                               if select.select([number], [], [], seconds)[0] else "")
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def waiting(reply: rq.StatusReply) -> set[str]:
    """Return the names of all that waits for a person: reviews, requests, silent agents, messages.
    """
    return {*(row.review for row in reply.reviews), *(row.request for row in reply.requests),
            *(f"{row.agent} is silent" for row in reply.agents if row.state == "stale"),
            *(f"message {n}" for n in range(1, reply.messages + 1))}


def dashboard(reply: rq.StatusReply, width: int | None, height: int | None) -> Text:
    """Return the whole picture, as Rich prints it."""
    picture = Text(no_wrap=True, overflow="ellipsis")
    for line, style in bodies.lines(reply, width, height, utc_offset_s()):
        picture.append(texts.harmless(line) + "\n", STYLES.get(style, style))
    picture.rstrip()
    return picture


def svg(reply: rq.StatusReply, path: str, width: int = 100) -> None:
    """Write the dashboard as an SVG picture, for the README."""
    console = Console(record=True, width=width, force_terminal=True, file=io.StringIO(),
                      highlight=False)
    console.print(Panel(dashboard(reply, width - 4, None), border_style="dim", padding=(0, 1)))
    console.save_svg(path, title="coord status")
