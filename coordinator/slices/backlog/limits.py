"""Who rests, for its provider's limit is reached, and which tasks its profile leaves to others.

That is a preference: where nobody of another profile is there to take them, they are offered as
ever. Reads only; how a rest begins is `limit_reached`.
"""

from __future__ import annotations

from coordinator.store.ledger import View
from coordinator.store.rows import AgentRow


def rest_of(view: View, agent: str) -> str | None:
    """Until when the agent, or the one whose sub-agent it is, rests; None: it does not."""
    row = view.agent(agent)
    above = view.agent(row.parent) if row is not None and row.parent else None
    ends = [agent.rests_until for agent in (row, above) if agent is not None and agent.rests_until]
    last = max(ends, default=None)
    return last if last is not None and last > view.now else None


def profile_of(row: AgentRow | None) -> str:
    """The profile whose provider has the limit; empty: a person acts, or nobody said."""
    return "" if row is None or row.is_label else row.profile


def left_to_others(view: View, agent: str) -> frozenset[str]:
    """Ready tasks that this agent leaves to those of other profiles, who are there."""
    profile = profile_of(view.agent(agent))
    if not profile:
        return frozenset()
    avoided = view.values("tasks_avoided", profile, view.now)
    if not avoided or not view.has("agents_of_others", profile, view.now):
        return frozenset()
    return frozenset(avoided)
