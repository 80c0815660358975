"""Notices that say what is not so any more: an agent that has not heard them need not, and to do
what they advise would be refused, or do harm.

Decides; the notices themselves are kept by `notices`, and told by `notice_delivery` and heartbeats.
"""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.service.leasing import circles
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow, UnlockRow

#: Notices of leases that ended by others' doing.
LOSSES = ("lapsed", "overridden")


def is_settled(view: View, agent: str, kind: str, data: bytes | str) -> bool:
    """Whether a notice asks for an answer that was given, or for way where nobody waits any more;
    or tells of a grant that the agent has given back. (What it has lost, it is told in order.)"""
    if kind == "gives_way":
        return circles.is_over(view, agent, kind, data)
    if kind not in ("asked", "granted"):
        return False
    facts: dict[str, Any] = msgspec.json.decode(data)
    if kind == "asked":
        raw = view.row("unlock_get", facts.get("request"))
        return raw is not None and UnlockRow(*raw).status != "pending"
    if any(told in LOSSES for _, _, told, *_ in view.rows("notices_of", agent, 0)):
        return False
    return not any(
        row.acquisition_id == facts.get("acquisition_id") or row.file_path in facts["resources"]
        for row in (LeaseRow(*raw) for raw in view.rows("leases_of_holder", agent)))
