"""`coord status` as lines of plain text: agents, leases and waiters, backlog, reviews, events.

`lines` fits the whole picture into the lines of a screen, each with the name of a style. The
program that prints them decides what a style looks like.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from coordinator.commands.leases import copies
from coordinator.commands.lists import ago, bar, columns, in_line, left, path, span, wrapped
from coordinator.commands.review_page import files_in_line, what_happened
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, local_time
from coordinator.words.resource_names import WINDOW, path_of, region_of

ORDER = ("claimed", "ready", "pending", "failed", "review", "blocked", "dead", "done", "cancelled")
#: Text and style.
Line = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Room:
    """Rows that each list may take; None if unlimited. `tight`: no blank lines between."""

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


def lines(reply: rq.StatusReply, width: int | None, height: int | None,
          utc_offset_s: int = 0) -> list[Line]:
    """The whole picture; with `height` (lines) the lists are cut so that it fits a screen."""
    rows = room(reply, height)
    result = _drawn(reply, width, rows, utc_offset_s)
    while height is not None and len(result) >= height and (less := _with_less(rows)) is not None:
        rows = less
        result = _drawn(reply, width, rows, utc_offset_s)
    return result


def _with_less(rows: Room) -> Room | None:
    """One row less. Dispensable rows go first, and rows that wait for a person go last. A list
    without rows has no heading. None if nothing can be removed."""
    events, agents, leases = rows.events or 0, rows.agents or 0, rows.leases or 0
    if events:
        return replace(rows, events=events - 1)
    if max(agents, leases) > 1:
        return (replace(rows, agents=agents - 1) if agents >= leases
                else replace(rows, leases=leases - 1))
    for name, least in (("requests", 1), ("reviews", 1), ("agents", 0), ("leases", 0),
                        ("requests", 0)):
        if (getattr(rows, name) or 0) > least:
            return replace(rows, **{name: getattr(rows, name) - 1})
    return None


def _drawn(reply: rq.StatusReply, width: int | None, rows: Room, utc_offset_s: int) -> list[Line]:
    now = from_iso(reply.at)
    parts = [_backlog(reply, width), _reviews(reply, now, width, rows.reviews)]
    if reply.requests and rows.requests != 0:
        parts.insert(0, _requests(reply, now, width, rows.requests))
    if not reply.leases or rows.leases != 0:
        parts.insert(0, _leases(reply, now, width, rows.leases))
    if not reply.agents or rows.agents != 0:
        parts.insert(0, _agents(reply, now, width, rows.agents))
    if not reply.events or rows.events != 0:
        parts.append(_events(reply, width, rows.events, utc_offset_s))
    result = _head(reply, now, width)
    for part in parts:
        if not rows.tight:
            result.append(("", ""))
        result += part
    return result


def _head(reply: rq.StatusReply, now: int, width: int | None) -> list[Line]:
    health = reply.health
    up = span((now - from_iso(str(health.get("started_at", reply.at)))) / 1000)
    watcher = health.get("watcher") or {}
    result = [(part.strip(), "bold") for part in wrapped(in_line(reply.root), width, 0)]
    result.append((
        f"coord {health.get('version', '?')}  pid {health.get('pid', '?')}  up {up}  "
        f"{int(health.get('resident_bytes', 0)) / 1e6:.0f} MB  watcher {watcher.get('mode', '?')}",
        "dim"))
    for warning in list(health.get("warnings", []))[:3]:
        result += [(part, "yellow") for part in
                wrapped(f"warning: {in_line(str(warning))}", width, 0)]
    if reply.messages:
        wait = "messages wait" if reply.messages > 1 else "message waits"
        result.append((f"{reply.messages} {wait} for you: coord messages --human", "bold"))
    return result


def _agents(reply: rq.StatusReply, now: int, width: int | None, most: int | None) -> list[Line]:
    if not reply.agents:
        return _section("agents", [("none registered", "dim")])
    busy = sorted(reply.agents, key=lambda a: (a.state != "active", not a.tasks, not a.leases))
    rows, styles = [], []
    for row in busy[:most]:
        doing = " ".join(p for p in (", ".join(row.tasks), row.progress) if p)
        if row.waiting_for:
            doing = "waits for " + ", ".join(row.waiting_for)
        state = f"rests {left(row.rests_until, now)}" if row.rests_until else row.state
        rows.append((row.agent, state, ago(row.seen_at, now), str(row.leases), doing))
        odd = row.waiting_for or row.rests_until or row.state == "stale"
        styles.append("yellow" if odd else "")
    return _table(f"agents ({len(reply.agents)})", ("agent", "state", "seen", "holds", "doing"),
                  rows, "/===~", width, styles, len(busy) - len(rows))


def _lease_name(lease: rq.Lease, is_part: bool) -> str:
    """The name of a lease; `is_part`: it is shown below its file."""
    name = "  " + _part(lease) if is_part else path(lease.resource)
    return name + (" (shared)" if lease.mode == "shared" else "")


def _leases(reply: rq.StatusReply, now: int, width: int | None, most: int | None) -> list[Line]:
    if not reply.leases and not reply.waiters:
        return _section("leases", [("nothing is held", "dim")])
    waits = defaultdict[str, list[str]](list)
    for waiter in reply.waiters:
        for name in waiter.resources:
            waits[name].append(waiter.agent)
    ranked = sorted(reply.leases, key=lambda x: (x.resource not in waits, x.expires_at))
    shown = _below_their_files(ranked)[:most]
    if shown and shown[-1][1] is None:
        shown.pop()
    rows: list[tuple[str, ...]] = []
    styles, above, trees = [], "", copies(reply.leases)
    for file, lease in shown:
        if lease is None:
            above = file
            rows.append((path(file), "", "", "", ""))
            styles.append("")
            continue
        behind = ", ".join(waits.pop(lease.resource, []))
        rows.append((_lease_name(lease, bool(file) and file == above), lease.locked_by,
                     left(lease.expires_at, now), behind, " ".join(filter(None, (
                         trees.get(lease.fencing_token, ""), lease.task, lease.description)))))
        soon = from_iso(lease.expires_at) - now < 60_000
        styles.append("yellow" if soon or behind else "")
    for name, agents in list(waits.items())[:5]:
        rows.append((path(name), "", "", ", ".join(agents), ""))
        styles.append("yellow")
    title = f"leases ({len(reply.leases)})"
    if reply.waiters:
        title += f", {len(reply.waiters)} waiting"
    return _table(title, ("resource", "holder", "left", "waiting", "for"), rows, "//=~~", width,
                  styles, len(ranked) - sum(lease is not None for _, lease in shown))


def _below_their_files(leases: Sequence[rq.Lease]) -> list[tuple[str, rq.Lease | None]]:
    """Leases in rows, each with the file that it is a part of (empty if of none). Several leases of
    one file are shown together, below a row of the file."""
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
            rows += [(_file(lease), None),
                     *((_file(lease), other_lease) for other_lease in together)]
    return rows


def _part(lease: rq.Lease) -> str:
    """The part of its file that a lease is on, in a word; empty if it is on no part."""
    if lease.kind == "region":
        return region_of(lease.resource)
    return "(is being written)" if lease.resource.startswith(WINDOW) else ""


def _file(lease: rq.Lease) -> str:
    return path_of(lease.resource, lease.kind).removeprefix(WINDOW)


def _requests(reply: rq.StatusReply, now: int, width: int | None, most: int | None) -> list[Line]:
    rows = [(row.request, ago(row.requested_at, now), row.holder, row.requested_by,
             in_line(row.resource), row.reason) for row in reply.requests[:most]]
    return _table(f"unlock requests ({len(reply.requests)})",
                  ("request", "age", "asked", "by", "for", "why"), rows, "==///~", width,
                  ["yellow"] * len(rows), len(reply.requests) - len(rows))


def _backlog(reply: rq.StatusReply, width: int | None) -> list[Line]:
    total = sum(n for state, n in reply.tasks.items() if state != "cancelled")
    if not reply.tasks:
        return _section("backlog", [("empty: `coord task add TITLE`", "dim")])
    sentences = [bar(reply.tasks.get("done", 0), total, 24)]
    sentences += [f"{reply.tasks[state]} {state}" for state in ORDER if reply.tasks.get(state)]
    result = [(part, "") for part in _joined(sentences, width)]
    if reply.verified is not None:
        result.append((_verified(reply.verified), ""))
    return _section("backlog", result)


def _joined(words: Sequence[str], width: int | None) -> list[str]:
    """Words with two blanks between, in as many lines as that takes."""
    result: list[str] = []
    for word in words:
        if result and (width is None or len(result[-1]) + 2 + len(word) <= width):
            result[-1] += "  " + word
        else:
            result.append(word)
    return result


def _verified(verification_list: rq.VerificationList) -> str:
    waiting = sum(finished_work.state == "waiting" for finished_work in verification_list.left)
    line = "verification  "
    for verification in verification_list.items[:1]:
        line += f"{verification.verification} {verification.state}"
        line += f" {in_line(', '.join(verification.tasks))}" if verification.tasks else ""
        line += "  "
    return line + (f"{waiting} finished since" if waiting or not verification_list.items else "")


def _reviews(reply: rq.StatusReply, now: int, width: int | None, most: int | None) -> list[Line]:
    if not reply.reviews:
        return _section("reviews", [("nothing waits for a verdict", "dim")])
    rows = [(row.review, ago(row.opened_at, now), files_in_line(row),
             what_happened(row)) for row in reply.reviews[:most]]
    return _table(f"reviews waiting ({len(reply.reviews)})",
                  ("review", "age", "files", "what happened"), rows, "==/~", width,
                  ["magenta"] * len(rows), len(reply.reviews) - len(rows))


def _events(reply: rq.StatusReply, width: int | None, most: int | None,
            utc_offset_s: int) -> list[Line]:
    shown = reply.events[-most:] if most else reply.events
    rows = [(local_time(row.at, utc_offset_s), row.text) for row in shown]
    sentences = columns(("", ""), rows, "=~", width)[1:]
    gap = [(row.replace("  ", " ", 1), "") for row in sentences]
    return _section("recent", gap or [("nothing yet", "dim")])


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], kinds: str,
           width: int | None, styles: Sequence[str], more: int) -> list[Line]:
    head, *body = columns(heads, rows, kinds, width)
    return _section(title, [(head, "bold"), *zip(body, styles, strict=True)], more)


def _section(title: str, body: Sequence[Line], more: int = 0) -> list[Line]:
    result = [(title, "title"), *body]
    if more > 0:
        result.append((f"… and {more} more", "dim"))
    return result
