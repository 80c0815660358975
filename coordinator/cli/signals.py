"""`coord signal …`: hints on tasks and resources, which fade and never block."""

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
from coordinator.commands import signals as bodies

signal_app = typer.Typer(
    cls=Listed, name="signal", help="Hints on tasks and files, which fade.",
    no_args_is_help=True,
)
app.add_typer(signal_app)


@signal_app.command("add")
def add(
    subject: Annotated[str, typer.Argument(help="T-3, or a path, `dir/`, glob, key or region.")],
    name: Annotated[str, typer.Argument(help="priority, saturation, warning, or your own word.")],
    agent: AgentName = None,
    strength: Annotated[float, typer.Option(help="More than 0, at most 10.")] = 1.0,
    half_life: Annotated[
        str | None, typer.Option(help="Half of it is gone after this: 45s, 10m, 2h.")
    ] = None,
    note: Annotated[str, typer.Option("--note", "-m", help="Why, for those who read it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Leave a hint, or add to the one that is there."""
    carry_out(bodies.add, **locals())


@signal_app.command("list")
def listing(
    subject: Annotated[
        str | None, typer.Argument(help="Only on this task or resource, and below it.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Only signals of this name.")] = None,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False,
    as_json: AsJson = False,
) -> None:
    """Hints with their strength now."""
    carry_out(bodies.listing, **locals())
