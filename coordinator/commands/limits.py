"""`coord limit`: an agent rests until its provider lets it go on."""

from __future__ import annotations

from typing import Annotated

from coordinator.commands.shell import Asking, Shell, ask, seconds
from coordinator.commands.signatures import AgentName, AsJson, Option, command
from coordinator.words import requests as rq


@command("limit")
def limit(
    shell: Shell, *, agent: AgentName = None,
    for_: Annotated[str | None, Option("45m, 5h; at most 7d. 0: it goes on now.")] = None,
    until: Annotated[str | None, Option("Or the instant: 2026-11-21T14:32:00Z.")] = None,
    note: Annotated[str, Option("What the provider said.", "-m")] = "",
    as_json: AsJson = False,
) -> Asking:
    """Rest until the provider's limit is over; tasks go back, to agents of other profiles first."""
    done = yield from ask(
        rq.LimitReached(
            agent=(yield from shell.acting(agent)), until=until,
            for_s=seconds(for_, "--for"), note=note,
        )
    )
    if as_json:
        shell.json(done)
    elif done.rests_until is None:
        shell.say(f"{done.agent} goes on.")
    else:
        back = f" Given back: {', '.join(done.given_back)}." if done.given_back else ""
        kept = f" What it had begun is kept: {', '.join(done.reviews)}." if done.reviews else ""
        shell.say(f"{done.agent} rests until {done.rests_until[:16]}Z.{back}{kept}")
