"""`coord limit`: an agent says that its provider's limit is reached, and rests."""

from __future__ import annotations

from typing import Annotated

from coordinator.cli.app import (
    AgentName,
    AsJson,
    app,
    carry_out,
)
from coordinator.cli.definition import typer
from coordinator.commands import limits as bodies


@app.command("limit")
def limit(
    agent: AgentName = None,
    for_: Annotated[
        str | None, typer.Option("--for", help="45m, 5h; at most 7d. 0: it goes on now.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Or the instant: 2026-11-21T14:32:00Z.")
    ] = None,
    note: Annotated[str, typer.Option("--note", "-m", help="What the provider said.")] = "",
    as_json: AsJson = False,
) -> None:
    """Rest until the provider's limit is over; tasks go back, to agents of other profiles first."""
    carry_out(bodies.limit, **locals())
