"""`coord tell` and `coord messages`: what agents and people say to each other."""

from __future__ import annotations

from typing import Annotated

from coordinator.cli.app import (
    AgentName,
    AsJson,
    Quiet,
    Short,
    app,
    carry_out,
)
from coordinator.cli.definition import typer
from coordinator.commands import messages as bodies

MessageId = Annotated[str | None, typer.Option("--reply", "-r", help="What it answers: M-4.")]


@app.command("tell")
def tell(
    who: Annotated[str, typer.Argument(help="An agent, `all`, or `human`.")],
    text: Annotated[list[str], typer.Argument(help="What to say.")],
    agent: AgentName = None,
    task: Annotated[str | None, typer.Option("--task", "-t", help="What it is about: T-3.")] = None,
    reply: MessageId = None,
    as_json: AsJson = False,
) -> None:
    """Say something to an agent, to all, or to a person. Agents hear it with their next
    call of a tool, or the next `coord` command that they type (but not with --json)."""
    carry_out(bodies.tell, **locals())


@app.command("messages")
def messages(
    search: Annotated[str | None, typer.Option("--search", "-s", help="Words in them.")] = None,
    task: Annotated[str | None, typer.Option("--task", "-t", help="Only on this task.")] = None,
    thread: Annotated[
        str | None, typer.Option(help="Only this message and those that answer it.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only of the last 45s, 10m, 2h, 3d.")] = None,
    human: Annotated[
        bool, typer.Option("--human", help="Only those to people; they count as read then.")
    ] = False,
    peek: Annotated[bool, typer.Option("--peek", help="With --human: leave them unread.")] = False,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="Only what it said or was told.")
    ] = None,
    limit: Annotated[int | None, typer.Option(
        help="At most so many, the newest (50; with --human all that are unread).")] = None,
    quiet: Quiet = False, short: Short = False,
    as_json: AsJson = False,
) -> None:
    """What was said, the newest last."""
    carry_out(bodies.messages, **locals())
