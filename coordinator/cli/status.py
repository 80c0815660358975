"""`coord status`: the dashboard. One snapshot; live with `--watch`; plain when piped."""

from __future__ import annotations

import io
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from coordinator.cli.app import AsJson, app, carry_out, client, complain, out
from coordinator.commands import dashboard as bodies
from coordinator.words import requests as rq
from coordinator.words import texts
from coordinator.words.refusals import Code, Refusal

#: What the styles of lines are to Rich.
STYLES = {"title": "bold cyan"}


@app.command("status")
def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Live, once a second.")] = False,
    events: Annotated[int, typer.Option(help="Recent events shown.")] = 8,
    as_json: AsJson = False,
) -> None:
    """Agents, leases and who waits, the backlog, reviews, recent events, health."""
    if not watch or as_json:
        carry_out(bodies.status, **locals())
        return
    _watch(events)


def _watch(events: int) -> None:
    """Redraw in place each second until Ctrl-C. A coordinator that was stopped is not started
    again: whoever stopped it meant it. If another hand starts it, the watching goes on."""
    console = out()
    if not console.is_terminal:
        raise Refusal(Code.INVALID, "--watch needs a terminal.", next="`coord status`, or --json.")
    with client() as session, Live(console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                try:
                    reply = session.call(rq.Status(events=events))
                    session._wire.autostart = False
                    live.update(dashboard(reply, *console.size), refresh=True)
                except Refusal as refusal:
                    if session._wire.autostart:  # it could not even be begun with
                        raise
                    live.update(Text(
                        f"{refusal.message}\nThis waits until it runs again (`coord up`); "
                        "Ctrl-C ends the watching."
                    ), refresh=True)
                time.sleep(1)
        except KeyboardInterrupt:
            pass
    complain("coord: watching ended")


def dashboard(reply: rq.StatusReply, width: int | None, height: int | None) -> Text:
    """The whole picture, as Rich prints it."""
    picture = Text(no_wrap=True, overflow="ellipsis")
    for line, style in bodies.lines(reply, width, height):
        picture.append(texts.harmless(line) + "\n", STYLES.get(style, style))
    picture.rstrip()
    return picture


def svg(reply: rq.StatusReply, path: str, width: int = 100) -> None:
    """The dashboard as an SVG picture, for the README."""
    console = Console(record=True, width=width, force_terminal=True, file=io.StringIO(),
                      highlight=False)
    console.print(Panel(dashboard(reply, width - 4, None), border_style="dim", padding=(0, 1)))
    console.save_svg(path, title="coord status")
