"""`coord dead …`: what was tried as often as it may be, and is given up until a person acts."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from coordinator.cli.app import AsJson, app, ask, print_json, say, width
from coordinator.cli.render import ago, columns
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock

dead_app = typer.Typer(
    name="dead", help="Dead letters: retry or drop what was given up.", no_args_is_help=True
)
app.add_typer(dead_app)
Id = Annotated[str, typer.Argument(help="T-3, K-3 or S-3.", metavar="ID")]
Ids = Annotated[list[str], typer.Argument(help="T-3, K-3, S-3, …", metavar="ID…")]


@dead_app.command("list")
def listing(
    kind: Annotated[
        str | None, typer.Option(help="task, change, call, acquire, propose or webhook.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tasks, changes of keys and steps that were given up, the newest first."""
    found = ask(rq.Dead(kind=kind, limit=1000))
    if as_json:
        print_json(found)
        return
    if not found.items:
        say("Nothing was given up.")
        return
    now = SystemClock().now_ms()
    rows = [(one.id, one.kind, one.what, one.agent or "", str(one.attempts), ago(one.since, now),
             one.why) for one in found.items]
    heads = ("id", "kind", "what", "agent", "tries", "since", "why")
    for line in columns(heads, rows, "==/===~", width()):
        say(line)


@dead_app.command("show")
def show(letter: Id, as_json: AsJson = False) -> None:
    """One of them, whole."""
    found = ask(rq.DeadShow(id=letter))
    if as_json:
        print_json(found)
        return
    by = f" by {found.agent}" if found.agent else ""
    say(f"{found.id}  {found.kind}: {found.what}{by}")
    say(f"given up at {found.since} after {found.attempts} tries: {found.why or 'no reason'}")
    say(msgspec.json.format(bytes(found.content), indent=2).decode())
    say(f"  next: coord dead retry {found.id}, or coord dead drop {found.id}")


@dead_app.command("retry")
def retry(letters: Ids, as_json: AsJson = False) -> None:
    """Let them be tried again, from the first attempt on."""
    _each([rq.DeadRetry(id=one) for one in letters], "is tried again", as_json)


@dead_app.command("drop")
def drop(letters: Ids, as_json: AsJson = False) -> None:
    """Give them up for good; whoever had asked is told."""
    _each([rq.DeadDrop(id=one) for one in letters], "is dropped", as_json)


def _each(requests: list[rq.DeadRetry] | list[rq.DeadDrop], did: str, as_json: bool) -> None:
    for request in requests:
        told = ask(request)
        if as_json:
            print_json(told)
        else:
            say(f"{told.id} {did}: {told.what}")
