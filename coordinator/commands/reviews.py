"""`coord review list`: flagged work that waits for a verdict."""

from __future__ import annotations

from coordinator.commands.lists import ago, in_line, path
from coordinator.commands.shell import Asking, Shell, ask, one_of
from coordinator.words import requests as rq

STATES = ("open", "kept", "reverted", "reassigned", "all")


def listing(shell: Shell, *, state: str, as_json: bool) -> Asking:
    """What waits for a verdict."""
    which = one_of(state, STATES, f"No review is ever {state!r}")
    found = yield from ask(rq.Reviews(state=which))
    if as_json:
        shell.json(found)
        return
    if not found.items:
        shell.say("Nothing waits for a verdict." if state == "open" else f"No review is {state}.")
        return
    now = shell.now_ms
    for row in found.items:
        doing = f"  ({row.under_way} under way)" if row.under_way else ""
        said = in_line(row.summary)
        shell.say(f"{row.review}  {row.state}{doing}  {ago(row.opened_at, now)}  {said}")
        for file in row.files[:10]:
            note = f"  ({file.note})" if file.note else ""
            shell.say(f"    {file.change:<9}{path(file.path)}{note}")
        if len(row.files) > 10:
            shell.say(f"    … and {len(row.files) - 10} more")
    if state == "open":
        shell.say(f"next: coord review show {found.items[0].review}")
