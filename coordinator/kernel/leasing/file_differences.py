"""Wording the difference between two contents of a file for an agent."""

from __future__ import annotations

from coordinator.files.content import unified
from coordinator.looking.facts import Bytes
from coordinator.store.ledger import Tx

#: A longer difference (characters) is cut, and the agent is told to read the file again.
DIFF_CHARS_MAX = 6_000
#: Regions that one sentence names.
REGIONS_TOLD = 8


def make_difference(tx: Tx, name: str, before: str | None, now: Bytes) -> str | None:
    """The change of a file as a unified diff; None if the bytes are not kept or it is long."""
    old, new = tx.blob(before), now.data if now.data is not None else tx.blob(now.hash)
    if (before is not None and old is None) or (now.hash is not None and new is None):
        return None
    text = unified(name, old, new)
    return text if text and len(text) <= DIFF_CHARS_MAX else None
