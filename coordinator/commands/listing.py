"""The commands that are carried out without a terminal, by the words that they are typed with.

Their options are told by the program itself (`coordinator.cli`); `options.json` is made from that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from coordinator.commands import (
    agents,
    backlog,
    completion,
    dashboard,
    dead_letters,
    leases,
    limits,
    messages,
    requests,
    reviews,
    signals,
    state,
    story,
)
from coordinator.commands.parsing import values
from coordinator.commands.shell import Asking
from coordinator.commands.tables import table

#: What a command is carried out by: it is given a `Shell`, and its parameters by name.
Body = Callable[..., Asking]
COMMANDS: dict[str, Body] = {
    "lock": leases.lock,
    "unlock": leases.unlock,
    "renew": leases.renew,
    "locks": leases.locks,
    "task add": backlog.add,
    "task list": backlog.listing,
    "task show": backlog.show,
    "task claim": backlog.claim,
    "task done": backlog.done,
    "task fail": backlog.fail,
    "task retry": backlog.retry,
    "task cancel": backlog.cancel,
    "task outcome": backlog.outcome,
    "request file": requests.file,
    "request list": requests.listing,
    "request approve": requests.approve,
    "request narrow": requests.narrow,
    "request coexist": requests.coexist,
    "request reject": requests.reject,
    "request withdraw": requests.withdraw,
    "signal add": signals.add,
    "signal list": signals.listing,
    "tell": messages.tell,
    "messages": messages.messages,
    "limit": limits.limit,
    "dead list": dead_letters.listing,
    "dead show": dead_letters.show,
    "dead retry": dead_letters.retry,
    "dead drop": dead_letters.drop,
    "review list": reviews.listing,
    "review show": reviews.show,
    "sweep": agents.sweep,
    "agents": agents.registered,
    "lost-writes": agents.lost_writes,
    "state get": state.get,
    "state list": state.listing,
    "state put": state.put,
    "state patch": state.patch,
    "state delete": state.delete,
    "state history": state.history,
    "state changes": state.changes,
    "state next": state.next_,
    "state done": state.done,
    "state fail": state.fail,
    "events": story.events,
    "explain": story.explain,
    "status": dashboard.status,
    "archive search": story.search,
    "archive show": story.section,
    "__complete": completion.complete,
}
#: Of each of them what may be typed (`parsing.values`).
TABLE = table("options.json")
#: Commands that read a value from standard input where it is typed as `-`: only the program can.
READ_INPUT = frozenset({"state put", "state patch", "state done"})


class Typed(NamedTuple):
    """A command that was understood: its name, and its parameters."""

    name: str
    values: dict[str, Any]


def parsed(words: Sequence[str]) -> Typed | None:
    """What these words say; None: not understood."""
    if not words:
        return None
    if words[0] == "__complete":  # (the words of another command line, as far as it was typed)
        return Typed("__complete", {"words": list(words[1:]) or [""]})
    for count in (2, 1):
        name = " ".join(words[:count])
        if len(words) >= count and name in TABLE:
            if name in READ_INPUT and "-" in words[count:]:
                return None
            given = values(TABLE[name], words[count:])
            return Typed(name, given) if given is not None else None
    return None
