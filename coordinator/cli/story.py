"""`coord events`, `explain`, `replay`, `archive`: what happened, and what explains it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec

from coordinator.cli.app import (
    AsJson,
    Quiet,
    Short,
    app,
    ask,
    carry_out,
    client,
    print_json,
    say,
)
from coordinator.cli.definition import Listed, typer
from coordinator.commands import story as bodies
from coordinator.commands.lists import in_line
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import counted

archive_app = typer.Typer(
    cls=Listed, name="archive", help="The Markdown that explains the code to agents.",
    no_args_is_help=True,
)
app.add_typer(archive_app)


@app.command("events")
def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they happen.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="The last so many.")] = 50,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="Only what it did.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    resource: Annotated[str | None, typer.Option(help="Only this resource.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
    quiet: Quiet = False, short: Short = False,
    as_json: AsJson = False,
) -> None:
    """The log. With --json one event a line."""
    if not follow:
        carry_out(bodies.events, **locals())
        return
    with client() as session:
        found = session.call(
            rq.Events(limit=limit, tail=True, agent=agent, task=task, resource=resource, kind=kind,
                      cwd=str(Path.cwd()))
        )
        for row in found.items:
            say(bodies.event_line(row, as_json))
        last = found.items[-1].seq if found.items else 0
        sys.stdout.flush()
        for raw in session._wire.events(last or None):
            row = msgspec.json.decode(raw, type=rq.EventRow)
            wanted = ((agent, row.agent), (found.task, row.task), (found.resource, row.resource),
                      (kind, row.kind))
            if row.seq > last and all(want in (None, have) for want, have in wanted):
                say(bodies.event_line(row, as_json))
                sys.stdout.flush()


@app.command("explain")
def explain(
    subject: Annotated[str, typer.Argument(help="T-3, R-1, U-1, M-4, W-2, an agent, or a path.")],
    as_json: AsJson = False,
) -> None:
    """The story of one task, review, request, message, agent or file, in sentences."""
    carry_out(bodies.explain, **locals())


@app.command("replay")
def replay(
    until: Annotated[
        int | None,
        typer.Option(help="Tell how things were after this event (`coord events`).", min=0)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the state from the log into a fresh database, and compare."""
    if until is not None:
        _tell_moment(ask(rq.Moment(event=until)), as_json)
        return
    done = ask(rq.Replay())
    if as_json:
        print_json(done)
    elif done.equal:
        say(f"{counted(done.events, 'event')} replayed: the state is the same.")
    for line in () if as_json else done.differences:
        say(line)
    if not done.equal:
        raise Refusal(
            Code.INTERNAL, f"The log and the state differ in "
            f"{counted(len(done.differences), 'place')}; "
            "nothing was changed.", next="Please report it; `coord doctor` checks the database.",
        )


def _tell_moment(then: rq.MomentReply, as_json: bool) -> None:
    if as_json:
        print_json(then)
        return
    for sentence in then.sentences:
        say(in_line(sentence))
    if not then.sentences:
        say("No task, lease or review was there then.")


@archive_app.command("search")
def search(
    words: Annotated[list[str], typer.Argument()],
    limit: Annotated[int, typer.Option("--limit", "-n")] = 10,
    quiet: Quiet = False, short: Short = False,
    as_json: AsJson = False,
) -> None:
    """Find sections by words."""
    carry_out(bodies.search, **locals())


@archive_app.command("show")
def show(
    ref: Annotated[str, typer.Argument(help="4.2, 4.2@file.md, or a title.")],
    as_json: AsJson = False,
) -> None:
    """One section whole."""
    carry_out(bodies.section, **locals())


@archive_app.command("index")
def index(as_json: AsJson = False) -> None:
    """Read changed Markdown again now."""
    done = ask(rq.ArchiveIndexNow())
    if as_json:
        print_json(done)
        return
    say(f"{counted(done.added, 'file')} added, {done.changed} changed, {done.removed} removed")
    for warning in done.warnings:
        say(f"warning: {warning}")
