"""`coord request …`: ask a holder to release what it holds; answer for oneself, or as a person."""

from __future__ import annotations

from typing import Annotated

from coordinator.cli.app import (
    AgentName,
    AsJson,
    Limit,
    Quiet,
    Short,
    app,
    carry_out,
)
from coordinator.cli.definition import Listed, typer
from coordinator.commands import requests as bodies

request_app = typer.Typer(
    cls=Listed, name="request", help="Ask a holder to let go; answer who asks you.",
    no_args_is_help=True,
)
app.add_typer(request_app)
RequestId = Annotated[str, typer.Argument(help="U-3, or 3.", metavar="REQUEST")]
PlaceId = Annotated[str, typer.Argument(
    help="U-3, or 3; or a place in line, W-3.", metavar="REQUEST")]
Answer = Annotated[str, typer.Option("--answer", "-m", help="What the asker is told.")]
Force = Annotated[bool, typer.Option("--force", help="As a person, in the holder's place.")]


@request_app.command("file")
def file(
    resource: Annotated[str, typer.Argument(help="A path, `dir/`, glob, key or region.")],
    reason: Annotated[str, typer.Option("--reason", "-m", help="Why you need it now.")],
    agent: AgentName = None,
    holder: Annotated[
        str | None, typer.Option(help="Whom to ask, where several hold parts of it.")
    ] = None,
    mode: Annotated[str, typer.Option(help="exclusive or shared.")] = "exclusive",
    as_json: AsJson = False,
) -> None:
    """Ask whoever holds a resource to release it, and stand in line for it."""
    carry_out(bodies.file, **locals())


@request_app.command("list")
def listing(
    state: Annotated[str, typer.Option(help=", ".join(bodies.STATES))] = "pending",
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="Only what it asks or is asked.")
    ] = None,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False,
    as_json: AsJson = False,
) -> None:
    """What waits for a holder's answer."""
    carry_out(bodies.listing, **locals())


@request_app.command("approve")
def approve(
    request: RequestId, agent: AgentName = None, force: Force = False, answer: Answer = "",
    as_json: AsJson = False,
) -> None:
    """Release it, and grant it to whoever asked, in one step."""
    carry_out(bodies.approve, **locals())


@request_app.command("narrow")
def narrow(
    request: RequestId,
    keep: Annotated[
        list[str], typer.Option("--keep", "-k", help="A part to keep: a file of a directory, "
                                "`file::region` of a file. Repeat it for more.")],
    agent: AgentName = None, force: Force = False, answer: Answer = "", as_json: AsJson = False,
) -> None:
    """Keep parts of what you hold, and grant what is asked to whoever asked, in one step."""
    carry_out(bodies.narrow, **locals())


@request_app.command("coexist")
def coexist(
    request: RequestId, agent: AgentName = None, force: Force = False, answer: Answer = "",
    as_json: AsJson = False,
) -> None:
    """Share it with whoever asked: both write it, one edit at a time, and are told of each."""
    carry_out(bodies.coexist, **locals())


@request_app.command("reject")
def reject(
    request: RequestId, agent: AgentName = None, force: Force = False, answer: Answer = "",
    as_json: AsJson = False,
) -> None:
    """Keep it, and say why."""
    carry_out(bodies.reject, **locals())




@request_app.command("withdraw")
def withdraw(request: PlaceId, agent: AgentName = None, as_json: AsJson = False) -> None:
    """Take your request back, and leave the line."""
    carry_out(bodies.withdraw, **locals())
