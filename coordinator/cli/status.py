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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from coordinator.cli.app import AsJson, app, ask, client, complain, out, print_json, width
from coordinator.cli.render import ago, bar, in_line, left, middle, path, span
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import WINDOW, path_of, region_of

ORDER = ("claimed", "ready", "pending", "failed", "review", "blocked", "dead", "done", "cancelled")
STYLES = {"claimed": "cyan", "ready": "green", "done": "green", "failed": "yellow",
          "review": "magenta", "blocked": "red", "dead": "red", "stale": "yellow"}
VERIFIED = {"running": "cyan", "good": "green", "flaky": "yellow", "untold": "yellow"}


@app.command("status")
def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Live, once a second.")] = False,
    events: Annotated[int, typer.Option(help="Recent events shown.")] = 8,
    as_json: AsJson = False,
) -> None:
    """Agents, leases and who waits, the backlog, reviews, recent events, health."""
    if not watch or as_json:
        reply = ask(rq.Status(events=events))
        if as_json:
            print_json(reply)
        else:
            out().print(dashboard(reply, None))
        return
    _watch(events)


def _watch(events: int) -> None:
    """Redraw in place each second until `q` or Ctrl-C. A coordinator that was stopped is not
    started again: whoever stopped it meant it. If another hand starts it, the watching goes on."""
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
                    draw(dashboard(reply, console.size.height), _moved(reply))
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
def _drawing(console: Console) -> Iterator[Callable[[RenderableType, str], None]]:
    """Draws a picture, given with what it is about: in place; or, on a terminal that can only go
    on, below the last one when it is about something else."""
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        last = ""

        def below(picture: RenderableType, about: str) -> None:
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
    """What is another when something has happened: not the instants that only pass."""
    return repr([[row.text for row in reply.events], sorted(reply.tasks.items()), waiting(reply),
                 [(row.agent, row.state) for row in reply.agents],
                 [row.resource for row in reply.leases]])


@contextlib.contextmanager
def watched_keys() -> Iterator[Callable[[float], str]]:
    """Gives what waits so many seconds for a key (empty: none came). Without a terminal to type at
    it waits only."""
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
    """What waits for a person, by name: reviews, requests, silent agents, messages."""
    return {*(row.review for row in reply.reviews), *(row.request for row in reply.requests),
            *(f"{row.agent} is silent" for row in reply.agents if row.state == "stale"),
            *(f"message {n}" for n in range(1, reply.messages + 1))}


@dataclass(frozen=True, slots=True)
class Room:
    """Rows that each list may take; None: as many as it has. `tight`: no blank lines between."""

    agents: int | None = None
    leases: int | None = None
    reviews: int | None = 5
    requests: int | None = 5
    events: int | None = None
    tight: bool = False


def room(reply: rq.StatusReply, height: int | None) -> Room:
    """Share the lines of a screen: titles first, then a little for each list, the rest to leases
    and agents, which are what one watches."""
    if height is None:
        return Room()
    tight = height < 45
    titles = 2 + 2 + 2 + 2 + 2 + 1 + (0 if tight else 5)  # head, four headed lists, events
    titles += 1 if reply.messages else 0
    rest = max(4, height - 1 - titles - 3)  # three lines "… and N more"
    reviews = min(len(reply.reviews), 2 if tight else 5)
    rest -= reviews
    requests = min(len(reply.requests), 2 if tight else 5)
    rest -= requests + (1 if requests else 0) + (1 if requests and not tight else 0)
    events = min(len(reply.events), max(2, rest // 4))
    rest -= events
    agents = min(len(reply.agents), max(2, rest // 2))
    leases = max(2, rest - agents)
    return Room(agents, leases, reviews, requests, events, tight)


def dashboard(reply: rq.StatusReply, height: int | None) -> RenderableType:
    """The whole picture; with `height` (lines) the lists are cut so that it fits a screen."""
    now = from_iso(reply.at)
    rows = room(reply, height)
    parts = [
        _agents(reply, now, rows.agents), _leases(reply, now, rows.leases), _backlog(reply),
        _reviews(reply, now, rows.reviews), _events(reply, rows.events),
    ]
    if reply.requests:
        parts.insert(2, _requests(reply, now, rows.requests))
    shown: list[RenderableType] = [_head(reply, now)]
    for part in parts:
        if not rows.tight:
            shown.append(Text(""))
        shown.append(part)
    return Group(*shown)


def _head(reply: rq.StatusReply, now: int) -> RenderableType:
    health = reply.health
    up = span((now - from_iso(str(health.get("started_at", reply.at)))) / 1000)
    watcher = health.get("watcher") or {}
    parts = [
        f"coord {health.get('version', '?')}", f"pid {health.get('pid', '?')}", f"up {up}",
        f"{int(health.get('resident_bytes', 0)) / 1e6:.0f} MB",
        f"watcher {watcher.get('mode', '?')}",
    ]
    text = Text(reply.root + "\n", style="bold", overflow="fold")
    text.append("  ".join(parts), style="dim")
    for warning in list(health.get("warnings", []))[:3]:
        text.append(f"\nwarning: {in_line(str(warning))}", style="yellow")
    if reply.messages:
        text.append(f"\n{reply.messages} message{'s wait' if reply.messages > 1 else ' waits'} for "
                    "you: coord messages --human", style="bold")
    return text


def _table(*columns: tuple[str, int | None]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=width() is not None)
    for name, ratio in columns:
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=ratio)
    return table


def _agents(reply: rq.StatusReply, now: int, most: int | None) -> RenderableType:
    if not reply.agents:
        return _section("agents", Text("none registered", style="dim"))
    table = _table(("agent", 2), ("state", None), ("seen", None), ("holds", None), ("doing", 4))
    busy = sorted(reply.agents, key=lambda a: (a.state != "active", not a.tasks, not a.leases))
    for row in busy[:most]:
        if row.waiting_for:
            doing = Text("waits for " + ", ".join(row.waiting_for), style="yellow")
        else:
            doing = Text(in_line(" ".join(p for p in (", ".join(row.tasks), row.progress) if p)))
        state = f"rests {left(row.rests_until, now)}" if row.rests_until else row.state
        table.add_row(row.agent, Text(state, style=STYLES.get(state, "yellow" * bool(
            row.rests_until))),
                      ago(row.seen_at, now), str(row.leases), doing)
    more = len(busy) - len(busy[:most])
    return _section(f"agents ({len(reply.agents)})", table, more)


def _leases(reply: rq.StatusReply, now: int, most: int | None) -> RenderableType:
    if not reply.leases and not reply.waiters:
        return _section("leases", Text("nothing is held", style="dim"))
    waits: dict[str, list[str]] = {}
    for waiter in reply.waiters:
        for name in waiter.resources:
            waits.setdefault(name, []).append(waiter.agent)
    table = _table(("resource", 4), ("holder", 2), ("left", None), ("waiting", 2), ("for", 3))
    ranked = sorted(reply.leases, key=lambda x: (x.resource not in waits, x.expires_at))
    most_wide = width()
    room_for_path = 4096 if most_wide is None else max(16, most_wide * 4 // 11 - 4)
    above = ""
    shown = _below_their_files(ranked)[:most]
    if shown and shown[-1][1] is None:
        shown.pop()
    for file, lease in shown:
        if lease is None:
            above = file
            table.add_row(middle(path(file), room_for_path), "", "", "", "")
            continue
        soon = from_iso(lease.expires_at) - now < 60_000
        own = _part(lease) if file and file == above else path(lease.resource)
        name = ("  " if file and file == above else "") + middle(own, room_for_path) + (
            " (shared)" if lease.mode == "shared" else "")
        why = " ".join(p for p in (lease.task or "", lease.description) if p)
        table.add_row(
            name, lease.locked_by,
            Text(left(lease.expires_at, now), style="yellow" if soon else ""),
            Text(", ".join(waits.pop(lease.resource, [])), style="yellow"), in_line(why),
        )
    for name, agents in list(waits.items())[:5]:
        table.add_row(Text(name, style="dim"), "", "", Text(", ".join(agents), style="yellow"), "")
    title = f"leases ({len(reply.leases)})"
    if reply.waiters:
        title += f", {len(reply.waiters)} waiting"
    return _section(title, table, len(ranked) - sum(lease is not None for _, lease in shown))


def _below_their_files(leases: Sequence[rq.Lease]) -> list[tuple[str, rq.Lease | None]]:
    """Leases in rows, each with the file that it is about a part of (empty: of none). Where there
    are several of one file they stand together, below a row of its own."""
    parts: dict[str, list[rq.Lease]] = {}
    for lease in leases:
        if _part(lease):
            parts.setdefault(_file(lease), []).append(lease)
    rows: list[tuple[str, rq.Lease | None]] = []
    for lease in leases:
        together = parts.get(_file(lease), []) if _part(lease) else []
        if len(together) < 2:
            rows.append(("", lease))
        elif together[0] is lease:
            rows += [(_file(lease), None), *((_file(lease), one) for one in together)]
    return rows


def _part(lease: rq.Lease) -> str:
    """What of its file a lease is about, in a word; empty: no part of one."""
    if lease.kind == "region":
        return region_of(lease.resource)
    return "(is being written)" if lease.resource.startswith(WINDOW) else ""


def _file(lease: rq.Lease) -> str:
    return path_of(lease.resource, lease.kind).removeprefix(WINDOW)


def _requests(reply: rq.StatusReply, now: int, most: int | None) -> RenderableType:
    table = _table(("request", None), ("age", None), ("asked", 2), ("by", 2), ("for", 3),
                   ("why", 3))
    for row in reply.requests[:most]:
        table.add_row(Text(row.request, style="yellow"), ago(row.requested_at, now), row.holder,
                      row.requested_by, in_line(row.resource), in_line(row.reason))
    return _section(f"unlock requests ({len(reply.requests)})", table,
                    len(reply.requests) - len(reply.requests[:most]))


def _backlog(reply: rq.StatusReply) -> RenderableType:
    total = sum(n for state, n in reply.tasks.items() if state != "cancelled")
    if not reply.tasks:
        return _section("backlog", Text("empty: `coord task add TITLE`", style="dim"))
    done = reply.tasks.get("done", 0)
    line = Text(bar(done, total, 24) + "  ")
    for state in ORDER:
        if reply.tasks.get(state):
            line.append(f"{reply.tasks[state]} {state}  ", style=STYLES.get(state, "dim"))
    if reply.verified is not None:
        line.append(_verified(reply.verified))
    return _section("backlog", line)


def _verified(found: rq.VerificationList) -> Text:
    waiting = sum(one.state == "waiting" for one in found.left)
    line = Text("\nverification  ")
    for one in found.items[:1]:
        line.append(f"{one.verification} {one.state}", style=VERIFIED.get(one.state, "red"))
        line.append(f" {in_line(', '.join(one.tasks))}" if one.tasks else "")
        line.append("  ")
    line.append(f"{waiting} finished since" if waiting or not found.items else "")
    return line


def _reviews(reply: rq.StatusReply, now: int, most: int | None) -> RenderableType:
    if not reply.reviews:
        return _section("reviews", Text("nothing waits for a verdict", style="dim"))
    table = _table(("review", None), ("age", None), ("files", 3), ("what happened", 4))
    for row in reply.reviews[:most]:
        table.add_row(Text(row.review, style="magenta"), ago(row.opened_at, now),
                      ", ".join(path(f.path) for f in row.files), in_line(row.summary))
    return _section(f"reviews waiting ({len(reply.reviews)})", table,
                    len(reply.reviews) - len(reply.reviews[:most]))


def _events(reply: rq.StatusReply, most: int | None) -> RenderableType:
    text = Text(no_wrap=True, overflow="ellipsis")
    shown = reply.events[-most:] if most else reply.events
    for row in shown:
        text.append(f"{row.at[11:19]} ", style="dim")
        text.append(in_line(row.text) + "\n")
    text.rstrip()
    return _section("recent", text if shown else Text("nothing yet", style="dim"))


def _section(title: str, body: RenderableType, more: int = 0) -> RenderableType:
    lines: list[RenderableType] = [Text(title, style="bold cyan"), body]
    if more > 0:
        lines.append(Text(f"… and {more} more", style="dim"))
    return Group(*lines)


def svg(reply: rq.StatusReply, path: str, width: int = 100) -> None:
    """The dashboard as an SVG picture, for the README."""
    console = Console(record=True, width=width, force_terminal=True, file=io.StringIO(),
                      highlight=False)
    console.print(Panel(dashboard(reply, None), border_style="dim", padding=(0, 1)))
    console.save_svg(path, title="coord status")
