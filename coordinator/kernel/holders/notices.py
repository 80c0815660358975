"""Messages for a running agent: kept in order until it acknowledges them."""

from __future__ import annotations

from typing import Any

from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import AgentRow


def may_return(row: AgentRow) -> bool:
    """Whether this is a program, which has its name again when it is run again. A sub-agent has
    what it has by chance."""
    return row.origin == "program" and row.parent is None


def post(tx: Tx, agent: str, about: str, text: str, **facts: Any) -> None:
    """Keep a message for an agent. For an agent that has left nothing is kept, but what others tell
    a program: its next life hears it."""
    row = tx.agent(agent)
    if row is not None and (row.state != "gone" or (about == "message" and may_return(row))):
        tx.record(
            ev.NoticePosted(
                notice=tx.number("notice"), agent=agent, about=about, text=text, facts=facts
            )
        )
