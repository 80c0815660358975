"""`coord request …`: ask a holder to release what it holds; answer for oneself, or as a person."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from coordinator.cli.app import (
    AgentName,
    AsJson,
    agent_or_refuse,
    app,
    ask,
    one_of,
    out,
    person,
    print_json,
    say,
)
from coordinator.cli.render import ago, in_line
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock
from coordinator.words.refusals import Code, Refusal

request_app = typer.Typer(
    name="request", help="Ask a holder to let go; answer who asks you.", no_args_is_help=True
)
app.add_typer(request_app)
RequestId = Annotated[str, typer.Argument(help="U-3, or 3.", metavar="REQUEST")]
Answer = Annotated[str, typer.Option("--answer", "-m", help="What the asker is told.")]
Force = Annotated[bool, typer.Option("--force", help="As a person, in the holder's place.")]
STATES = ("pending", "approved", "narrowed", "coexisting", "rejected", "withdrawn", "all")


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
    if mode not in ("exclusive", "shared"):
        raise Refusal(Code.INVALID, f"--mode is exclusive or shared, not {mode!r}.")
    made = ask(
        rq.RequestFile(
            agent=agent_or_refuse(agent), resource=resource, reason=reason, holder=holder,
            mode="shared" if mode == "shared" else "exclusive",
            cwd=os.getcwd(),  # noqa: PTH109
        )
    )
    if as_json:
        print_json(made)
        return
    say(f"{made.request}  {made.holder} is asked to release {made.resource}")
    say("You stand in line for it, and are told the answer. Do other work meanwhile.")


@request_app.command("list")
def listing(
    state: Annotated[str, typer.Option(help=", ".join(STATES))] = "pending",
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="Only what it asks or is asked.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What waits for a holder's answer."""
    which = one_of(state, STATES, f"No request is ever {state!r}")
    found = ask(rq.Requests(state=which, agent=agent))
    if as_json:
        print_json(found)
        return
    if not found.items:
        say("Nobody waits for an answer." if state == "pending" else "There is none.")
        return
    now = SystemClock().now_ms()
    for row in found.items:
        table = Table(box=None, pad_edge=False, show_header=False, expand=True)
        for ratio in (None, None, 2, 2, 3):
            table.add_column(no_wrap=True, overflow="ellipsis", ratio=ratio)
        table.add_row(row.request, f"{row.status} {ago(row.responded_at or row.requested_at, now)}",
                      f"{row.requested_by}", f"asks {row.holder}", in_line(row.resource))
        out().print(table)
        said = [row.reason]
        if row.responded_by:
            by = f"{row.responded_by} (override)" if row.override else row.responded_by
            said.append(f"{row.status} by {by}" + (f": {row.answer}" if row.answer else ""))
        elif row.releases not in ([], [row.resource]):
            said.append(f"approving releases {', '.join(row.releases)}")
        for line in said:
            out().print(Padding(Text(in_line(line)), (0, 0, 0, 5)))


@request_app.command("approve")
def approve(
    request: RequestId, agent: AgentName = None, force: Force = False, answer: Answer = "",
    as_json: AsJson = False,
) -> None:
    """Release it, and grant it to whoever asked, in one step."""
    _answer(request, "approve", agent, force, answer, as_json)


@request_app.command("narrow")
def narrow(
    request: RequestId,
    keep: Annotated[
        list[str], typer.Option("--keep", "-k", help="A part to keep: a file of a directory, "
                                "`file::region` of a file. Repeat it for more.")],
    agent: AgentName = None, force: Force = False, answer: Answer = "", as_json: AsJson = False,
) -> None:
    """Keep parts of what you hold, and grant what is asked to whoever asked, in one step."""
    _answer(request, "narrow", agent, force, answer, as_json, keep)


@request_app.command("coexist")
def coexist(
    request: RequestId, agent: AgentName = None, force: Force = False, answer: Answer = "",
    as_json: AsJson = False,
) -> None:
    """Share it with whoever asked: both write it, one edit at a time, and are told of each."""
    _answer(request, "coexist", agent, force, answer, as_json)


@request_app.command("reject")
def reject(
    request: RequestId, agent: AgentName = None, force: Force = False, answer: Answer = "",
    as_json: AsJson = False,
) -> None:
    """Keep it, and say why."""
    _answer(request, "reject", agent, force, answer, as_json)


def _answer(
    request: str, verdict: rq.UnlockVerdict, agent: str | None, force: bool, answer: str,
    as_json: bool, keep: Sequence[str] = (),
) -> None:
    who = agent or person() if force else agent_or_refuse(agent)
    done = ask(
        rq.RequestAnswer(agent=who, request=request, verdict=verdict, answer=answer, force=force,
                         keep=list(keep), cwd=os.getcwd() if keep else None)  # noqa: PTH109
    )
    if as_json:
        print_json(done)
    else:
        say(f"{done.unlock.request} {done.unlock.status}. {done.message}")


@request_app.command("withdraw")
def withdraw(request: RequestId, agent: AgentName = None, as_json: AsJson = False) -> None:
    """Take your request back, and leave the line."""
    done = ask(rq.RequestWithdraw(agent=agent_or_refuse(agent), request=request))
    if as_json:
        print_json(done)
    else:
        say(f"{done.request} withdrawn; {done.requested_by} stands in line for "
            f"{done.resource} no more.")
