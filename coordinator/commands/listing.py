"""The commands that are carried out without a terminal, by the words that they are typed with.

Their options are told by the program itself (`coordinator.cli`); `options.json` is made from that.
"""

from __future__ import annotations

from collections.abc import Callable

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
from coordinator.commands.shell import Asking

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
