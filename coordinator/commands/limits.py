"""`coord limit`: an agent rests until its provider lets it go on."""

from __future__ import annotations

from coordinator.commands.shell import Asking, Shell, ask, seconds
from coordinator.words import requests as rq


def limit(
    shell: Shell,
    *,
    agent: str | None,
    for_: str | None,
    until: str | None,
    note: str,
    as_json: bool,
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
