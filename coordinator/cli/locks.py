"""`coord lock`, `unlock`, `renew`, `locks`: leases by hand."""

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
from coordinator.cli.definition import typer
from coordinator.commands import leases as bodies

Resources = Annotated[list[str], typer.Argument(help="Paths, `dir/`, globs, `key:a:b`, regions.")]


@app.command("lock")
def lock(
    resources: Resources,
    agent: AgentName = None,
    ttl: Annotated[
        str | None, typer.Option(help="How long: 45s, 30m, 2h; what is held for longer stays so.")
    ] = None,
    mode: Annotated[str, typer.Option(help="exclusive or shared.")] = "exclusive",
    description: Annotated[str, typer.Option("--description", "-m", help="Why.")] = "",
    task: Annotated[str | None, typer.Option(help="The task it is for.")] = None,
    wait: Annotated[str | None, typer.Option(help="Stand in line this long: 10s.")] = None,
    priority: Annotated[int, typer.Option(help="Higher is served first.")] = 0,
    retry: Annotated[
        bool, typer.Option(help="After a refusal stay in line, where the agent is there to hear.")
    ] = True,
    new: Annotated[bool, typer.Option("--new", help="Also regions that are to be added.")] = False,
    as_json: AsJson = False,
) -> None:
    """Lease resources for an agent, all or none."""
    carry_out(bodies.lock, **locals())


@app.command("unlock")
def unlock(
    resources: Annotated[list[str] | None, typer.Argument(help="What to release.")] = None,
    agent: AgentName = None,
    force: Annotated[bool, typer.Option("--force", help="Override another's lease.")] = False,
    acquisition: Annotated[str | None, typer.Option(help="All of one acquisition.")] = None,
    as_json: AsJson = False,
) -> None:
    """Release leases. `--force` overrides, is recorded, and its holder is told."""
    carry_out(bodies.unlock, **locals())


@app.command("renew")
def renew(
    resources: Annotated[list[str] | None, typer.Argument(help="Default: all it holds.")] = None,
    agent: AgentName = None,
    ttl: Annotated[
        str | None, typer.Option(help="From now: 45s, 30m, 2h; what is held for longer stays so.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Extend leases from now, never past max_hold."""
    carry_out(bodies.renew, **locals())


@app.command("locks")
def locks(
    resource: Annotated[str | None, typer.Argument(help="Only what overlaps this.")] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="Only what it holds or waits for.")
    ] = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only who stands in line.")] = False,
    limit: Limit = 1000, quiet: Quiet = False, short: Short = False,
    as_json: AsJson = False,
) -> None:
    """Who holds what, for how long, and who waits."""
    carry_out(bodies.locks, **locals())


