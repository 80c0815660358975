"""`coord dead …`: what was tried as often as it may be, and is given up until a person acts."""

from __future__ import annotations

from typing import Annotated

from coordinator.cli.app import AsJson, Limit, Quiet, Short, app, carry_out
from coordinator.cli.definition import Listed, typer
from coordinator.commands import dead_letters as bodies

dead_app = typer.Typer(
    cls=Listed, name="dead", help="Dead letters: retry or drop what was given up.",
    no_args_is_help=True,
)
app.add_typer(dead_app)
Id = Annotated[str, typer.Argument(help="T-3, K-3 or S-3.", metavar="ID")]
Ids = Annotated[list[str], typer.Argument(help="T-3, K-3, S-3, …", metavar="ID…")]


@dead_app.command("list")
def listing(
    kind: Annotated[
        str | None, typer.Option(help="task, change, call, acquire, propose or webhook.")
    ] = None,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False,
    as_json: AsJson = False,
) -> None:
    """Tasks, changes of keys and steps that were given up, the newest first."""
    carry_out(bodies.listing, **locals())


@dead_app.command("show")
def show(letter: Id, as_json: AsJson = False) -> None:
    """One of them, whole."""
    carry_out(bodies.show, **locals())


@dead_app.command("retry")
def retry(letters: Ids, as_json: AsJson = False) -> None:
    """Let them be tried again, from the first attempt on."""
    carry_out(bodies.retry, **locals())


@dead_app.command("drop")
def drop(letters: Ids, as_json: AsJson = False) -> None:
    """Give them up for good; whoever had asked is told."""
    carry_out(bodies.drop, **locals())


