"""`coord events`, `explain`, `replay`, `archive`: what happened, and what explains it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec

from coordinator.cli.app import ask, carry_out, client, print_json, say
from coordinator.commands.lists import in_line
from coordinator.commands.signatures import AsJson, Option, command, in_program
from coordinator.slices.story import commands as bodies
from coordinator.words import requests as rq
from coordinator.words.clock import utc_offset_s
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import counted


@in_program("events")
def print_events(**values: Any) -> None:
    """Print the log, and follow it if that is wanted."""
    if not values["follow"]:
        carry_out(bodies.events, **values)
        return
    names = ("limit", "agent", "task", "resource", "kind")
    as_json = values["as_json"]
    with client() as session:
        reply = session.call(rq.Events(tail=True, cwd=str(Path.cwd()),
                                       **{name: values[name] for name in names}))
        for row in reply.items:
            say(bodies.event_line(row, as_json, utc_offset_s()))
        last = reply.items[-1].seq if reply.items else 0
        sys.stdout.flush()
        for raw in session._wire.events(last or None):
            row = msgspec.json.decode(raw, type=rq.EventRow)
            wanted = ((values["agent"], row.agent), (reply.task, row.task),
                      (reply.resource, row.resource), (values["kind"], row.kind))
            if row.seq > last and all(want in (None, have) for want, have in wanted):
                say(bodies.event_line(row, as_json, utc_offset_s()))
                sys.stdout.flush()


@command("replay")
def replay(
    until: Annotated[
        int | None, Option("Tell how things were after this event (`coord events`).", least=0)
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


@command("archive index")
def index(as_json: AsJson = False) -> None:
    """Read changed Markdown again now."""
    done = ask(rq.ArchiveIndexNow())
    if as_json:
        print_json(done)
        return
    say(f"{counted(done.added, 'file')} added, {done.changed} changed, {done.removed} removed")
    for warning in done.warnings:
        say(f"warning: {warning}")
