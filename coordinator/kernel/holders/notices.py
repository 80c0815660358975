"""Messages for a running agent: kept in order until it acknowledges them."""

from __future__ import annotations

from typing import Any

from coordinator.store import events as ev
from coordinator.store.ledger import Tx


def post(tx: Tx, agent: str, about: str, text: str, **facts: Any) -> None:
    """Keep a message for an agent. For an agent that has left nothing is kept."""
    row = tx.agent(agent)
    if row is not None and row.state != "gone":
        tx.record(
            ev.NoticePosted(
                notice=tx.number("notice"), agent=agent, about=about, text=text, facts=facts
            )
        )
