"""`coord overlap`: what two working trees change both."""

from __future__ import annotations

from typing import Annotated

from coordinator.commands import forms
from coordinator.commands.shell import Asking, Shell, ask
from coordinator.commands.signatures import Argument, AsJson, Limit, Quiet, Short, command
from coordinator.words import requests as rq


@command("overlap")
def overlap(
    shell: Shell, *,
    branch: Annotated[str | None, Argument("Only of the tree with this branch.")] = None,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """What two working trees change both and have not landed, and whether it merges."""
    reply = yield from ask(rq.Overlaps(branch=branch, limit=limit))
    names = [name for item in reply.items for name in item.names]
    if forms.printed(shell, reply, names, quiet=quiet, short=short, as_json=as_json, limit=limit):
        return
    if not reply.items:
        shell.say("No two working trees change the same." if branch is None else
                  f"No working tree changes what {branch} changes.")
        return
    rows = [(name, *(side.describe() for side in item.sides), item.together)
            for item in reply.items for name in item.names]
    forms.table(shell, ("what", "in", "and in", "together"), "/~~~", rows, reply.cut,
                f"coord overlap --limit {limit * 10}")
