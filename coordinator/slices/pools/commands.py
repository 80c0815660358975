"""`coord ports`: who has which port, and who listens on it."""

from __future__ import annotations

from typing import Annotated

from coordinator.commands import forms
from coordinator.commands.lists import ago
from coordinator.commands.shell import Asking, Shell, ask
from coordinator.commands.signatures import AsJson, Limit, Option, Quiet, Short, command
from coordinator.words import requests as rq


def _is_in_use(item: rq.PoolValue) -> bool:
    return item.locked_by is not None or item.listened


@command("ports")
def ports(
    shell: Shell, *,
    pool: Annotated[str | None, Option("Only of this pool.")] = None,
    everything: Annotated[bool, Option("Free ports, too.", "--all")] = False,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """Who has which port of the pools, since when, what for, and which program listens there."""
    reply = yield from ask(rq.PoolValues(pool=pool))
    values = [item for item in reply.items if item.is_port]
    shown = [item for item in values if everything or _is_in_use(item)]
    reply.items = shown[:limit]
    if forms.printed(shell, reply, [item.value for item in reply.items], quiet=quiet, short=short,
                     as_json=as_json, limit=limit):
        return
    if not values:
        shell.say("There is no pool of ports. `[pools.port]` in coord.toml makes one.")
        return
    if shown:
        rows = [_describe(item, shell.now_ms) for item in reply.items]
        forms.table(shell, ("port", "pool", "by", "task", "since", "listens", "for"), "======~",
                    rows, len(shown) > limit, f"coord ports --limit {limit * 10}")
    if not everything:
        shell.say(f"Free of them: {len(values) - len(shown)}.")


def _describe(item: rq.PoolValue, now_ms: int) -> tuple[str, ...]:
    listener = "somebody" if item.pid is None else f"{item.program} ({item.pid})"
    return (item.value, item.pool, item.locked_by or "-", item.task or "-",
            ago(item.locked_at, now_ms) if item.locked_at else "-",
            listener if item.listened else "-", item.description)
