"""`coord explain`, `archive search|show`: what happened, and what explains it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from coordinator.commands import forms
from coordinator.commands.lists import (
    in_line,
    printable,
)
from coordinator.commands.shell import Asking, Shell, ask
from coordinator.commands.signatures import (
    Argument,
    AsJson,
    Option,
    Quiet,
    Short,
    command,
    declare_group,
)
from coordinator.slices.story import dashboard
from coordinator.words import requests as rq
from coordinator.words.clock import local_time
from coordinator.words.refusals import Code, Refusal

declare_group("archive", "The Markdown that explains the code to agents.")


@command("explain")
def explain(
    shell: Shell, *,
    subject: Annotated[str, Argument("T-3, R-1, U-1, M-4, W-2, an agent, or a path.")],
    as_json: AsJson = False,
) -> Asking:
    """The story of one task, review, request, message, agent or file, in sentences."""
    story = yield from ask(rq.Explain(subject=subject, cwd=shell.cwd))
    if as_json:
        shell.json(story)
        return
    for sentence in story.sentences:
        shell.say(in_line(sentence))


@command("archive search")
def search(
    shell: Shell, *,
    words: Annotated[list[str], Argument()],
    limit: Annotated[int, Option("", "-n")] = 10,
    quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """Find sections by words."""
    reply = yield from ask(rq.ArchiveSearch(query=" ".join(words), limit=limit))
    ids = [f"{hit.number}@{hit.source}" for hit in reply.items]
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json):
        return
    if not reply.items:
        shell.say("Nothing in the context archive matches. `coord archive index` reads it again.")
        return
    rows = [(hit.number, hit.title, hit.source, hit.snippet) for hit in reply.items]
    forms.table(shell, ("section", "title", "file", "says"), "=~/~", rows, False, "")


@command("archive show")
def section(
    shell: Shell, *,
    ref: Annotated[str, Argument("4.2, 4.2@file.md, or a title.")],
    as_json: AsJson = False,
) -> Asking:
    """One section whole."""
    reply = yield from ask(rq.ArchiveShow(ref=ref))
    if as_json:
        shell.json(reply)
        return
    shell.say(f"{reply.number} {reply.title}  ({reply.source})")
    if reply.paths:
        shell.say(f"explains: {', '.join(reply.paths)}")
    shell.say("")
    shell.say(printable(reply.body))


@command("events")
def events(
    shell: Shell, *,
    follow: Annotated[bool, Option("Go on as they happen.", "-f", needs_program=True)] = False,
    limit: Annotated[int, Option("The last so many.", "-n")] = 50,
    agent: Annotated[str | None, Option("Only what it did.", "-a")] = None,
    task: Annotated[str | None, Option("Only this task.")] = None,
    resource: Annotated[str | None, Option("Only this resource.")] = None,
    kind: Annotated[str | None, Option("Only this kind.")] = None,
    quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """The log. With --json one event a line."""
    reply = yield from ask(
        rq.Events(limit=limit, tail=True, agent=agent, task=task, resource=resource, kind=kind,
                  cwd=shell.cwd)
    )
    for row in reply.items:
        if short and not quiet:
            shell.compact(forms.in_short(row))
        else:
            shell.say(str(row.seq) if quiet else event_line(row, as_json, shell.utc_offset_s))
    is_narrowed = any((agent, task, resource, kind))
    if is_narrowed and not any((reply.items, follow, quiet, short, as_json)):
        shell.say("No event fits." if reply.resource is None else
                  f"No event of {in_line(reply.resource)} fits.")


def event_line(row: rq.EventRow, as_json: bool, utc_offset_s: int) -> str:
    """One event as a line, with its local time."""
    if as_json:
        return msgspec.json.encode(row).decode()
    return f"{row.seq:>6}  {local_time(row.at, utc_offset_s)}  {in_line(row.text)}"


@command("status")
def status(
    shell: Shell, *,
    watch: Annotated[bool, Option("Live, once a second.", "-w", needs_program=True)] = False,
    events: Annotated[int, Option("Recent events shown.")] = 8,
    short: Short = False, as_json: AsJson = False,
) -> Asking:
    """Agents, leases and who waits, the backlog, reviews, recent events, health."""
    if events < 0:
        raise Refusal(Code.INVALID, f"--events is {events}; it counts what is shown: 0 or more.")
    reply = yield from ask(rq.Status(events=events))
    if forms.printed(shell, reply, (), quiet=False, short=short, as_json=as_json):
        return
    for text, style in dashboard.lines(reply, shell.width, None, shell.utc_offset_s):
        shell.say(text, style)
