"""Which events wait for a person: a review, an agent that hangs, a question, what was given up.

Owns that one judgement, for the webhooks and for what is told on this machine. Looks at one event
of the log; asks nobody.
"""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.store.rows import LogRow

#: Kinds of events that may wait for a person; for some it depends on what they say (`waits`).
FOR_PEOPLE = frozenset({"review_opened", "candidate_judged", "step_moved", "change_moved",
                        "task_changed", "unlock_asked", "set_aside", "agent_state", "message_sent"})
#: Those that a person is told of at once: nobody else goes on with them.
AT_ONCE = FOR_PEOPLE - {"unlock_asked", "set_aside", "step_moved", "change_moved"}
#: (kind, field) -> the one value of it that waits for a person.
_ONLY = {("step_moved", "state"): "dead", ("change_moved", "state"): "dead",
         ("task_changed", "state"): "dead", ("candidate_judged", "remedy"): "person",
         ("agent_state", "state"): "stale", ("message_sent", "to"): "human"}


def waits(row: LogRow) -> bool:
    """Whether this event waits for a person."""
    if row.kind not in FOR_PEOPLE:
        return False
    data: dict[str, Any] = msgspec.json.decode(row.data)
    return all(data.get(field) == value for (kind, field), value in _ONLY.items()
               if kind == row.kind)
