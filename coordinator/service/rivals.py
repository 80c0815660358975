"""Who is near: leases, waiters and reviews that may overlap a resource. Only reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinator.rules import leases as rule
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow
from coordinator.store.statements import many
from coordinator.words.naming import Resource, reach


def near(tx: View, statement: str, asked: Resource) -> list[tuple[Any, ...]]:
    """Rows of a statement that looks where `asked` may overlap."""
    exact, prefix = reach(asked)
    high = prefix[:-1] + "0"  # "0" follows "/": all that begins with the prefix lies below it
    return tx.db.execute(many(statement, len(exact)), (*exact, prefix, high)).fetchall()


def holders_of(view: View, holder: str, wanted: Sequence[tuple[Resource, str]]) -> list[str]:
    """Sentences on who holds what `holder` would need; nothing is closed, nothing changes."""
    out = []
    for asked, mode in wanted:
        for raw in near(view, "rivals", asked):
            lease = LeaseRow(*raw)
            if lease.expires_at > view.now and rule.conflicts(asked, mode, holder, lease):
                out.append(f"{lease.locked_by} holds {lease.file_path} until {lease.expires_at}")
    return out
