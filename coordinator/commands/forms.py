"""The forms in which a reading command answers: a table, JSON, short JSON, or ids only.

The module decides what the short form leaves out. It sends no request and prints nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from coordinator.commands.lists import columns
from coordinator.commands.shell import Shell
from coordinator.words.refusals import Code, Refusal

#: The fields in the short form of these shapes (`words.requests`): those that a caller acts on.
#: Other shapes keep all fields. Fields without a value are always left out.
ACTED_ON: dict[str, tuple[str, ...]] = {
    "Lease": ("resource", "locked_by", "expires_at", "task", "description", "agreed_as"),
    "Waiter": ("acquisition_id", "agent", "resources", "position", "held_by"),
    "Task": ("task", "state", "title", "prompt", "priority", "resources", "after", "claimed_by",
             "claim_until", "partial", "result", "explanation"),
    "Unlock": ("request", "status", "requested_by", "holder", "resource", "reason", "answer"),
    "Message": ("message", "sender", "to", "task", "reply_to", "text"),
    "Review": ("review", "state", "agent", "task", "summary", "files", "part_of", "under_way"),
    "ReviewFile": ("path", "change", "note"),
    "AgentRow": ("agent", "state", "progress", "leases", "tasks", "waiting_for", "rests_until"),
    "EventRow": ("seq", "at", "text"),
    "DeadLetter": ("id", "kind", "what", "agent", "why"),
    "Signal": ("subject", "name", "strength", "agent", "note"),
    "StatusReply": ("agents", "leases", "waiters", "tasks", "reviews", "requests", "messages"),
}


def printed(
    shell: Shell, reply: Any, ids: Sequence[str], *, quiet: bool, short: bool, as_json: bool,
    limit: int | None = None,
) -> bool:
    """Print a reply in the requested form. False: the caller has to print a table. `limit`: of a
    list; a reader of ids alone is told if there are more.

    Raises:
        Refusal: INVALID: two forms at once.
    """
    if quiet and (short or as_json):
        raise Refusal(Code.INVALID, "-q prints ids, and --json and --short print JSON: choose "
                      "one. Nothing was printed.", next="Leave out -q, or the other.")
    if quiet:
        for text in ids:
            shell.say(text)
        if limit is not None and getattr(reply, "next", None) is not None:
            cut(shell, limit)
    elif short:
        shell.compact(in_short(reply))
    elif as_json:
        shell.json(reply)
    else:
        return False
    return True


def cut(shell: Shell, limit: int) -> None:
    """Say beside a list, which a program may read, that there are more."""
    shell.complain(f"coord: {limit} are shown, and there are more (`--limit {limit * 10}`)")


#: Long texts, which a list leaves out and the command for one item shows.
_LONG = frozenset({"prompt", "explanation"})
#: An instant to the millisecond. The short form has it to the minute.
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d):\d\d\.\d{3}Z")


def in_short(value: Any, *, is_listed: bool = False) -> Any:
    """Reduce a reply to what a caller acts on: plain lists, dicts and values."""
    if isinstance(value, msgspec.Struct):
        names = ACTED_ON.get(type(value).__name__) or value.__struct_fields__
        fields = ((name, in_short(getattr(value, name))) for name in names
                  if not (is_listed and name in _LONG))
        return {name: item for name, item in fields  # a list is one, though it be empty
                if name == "items" or item not in (None, "", [], {}, False)}
    if isinstance(value, list | tuple):
        return [in_short(item, is_listed=True) for item in value]
    if isinstance(value, dict):
        return {key: in_short(item) for key, item in value.items()}
    return _INSTANT.sub(r"\1Z", value) if isinstance(value, str) and len(value) == 24 else value


def table(
    shell: Shell, heads: Sequence[str], kinds: str, rows: Sequence[Sequence[str]], more: bool,
    wider: str,
) -> None:
    """Print a table, one row a line. `more`: there are more than was asked for, which `wider`
    (a command) shows."""
    for line in columns(heads, rows, kinds, shell.width):
        shell.say(line)
    if more:
        shell.say(f"… {len(rows)} shown, and there are more: `{wider}`")
