"""`coord limit`: an agent says that its provider's limit is reached, and rests."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.cli.app import (
    AgentName,
    AsJson,
    agent_or_refuse,
    app,
    ask,
    print_json,
    say,
    seconds,
)
from coordinator.words import requests as rq


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
    done = ask(
        rq.LimitReached(agent=agent_or_refuse(agent), until=until, for_s=seconds(for_), note=note)
    )
    if as_json:
        print_json(done)
    elif done.rests_until is None:
        say(f"{done.agent} goes on.")
    else:
        back = f" Given back: {', '.join(done.given_back)}." if done.given_back else ""
        kept = f" What it had begun is kept: {', '.join(done.reviews)}." if done.reviews else ""
        say(f"{done.agent} rests until {done.rests_until[:16]}Z.{back}{kept}")
