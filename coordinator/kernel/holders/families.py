"""Which agents belong together: a session and its sub-agents, which write the same files."""

from __future__ import annotations

from coordinator.store.ledger import View


def owner(view: View, agent: str) -> str:
    """The session that an agent works in. For a sub-agent it is its parent's."""
    row = view.agent(agent)
    return row.parent if row is not None and row.parent else agent


def family(view: View, agent: str) -> set[str]:
    """An agent, and the one whose sub-agent it is."""
    return {agent, owner(view, agent)}
