"""Sections on what each holder is doing now, for the archive's index: made when that changes."""

from __future__ import annotations

from typing import Any

from coordinator.archive.markdown import Section
from coordinator.store.ledger import View

#: Leases that are told of.
LEASES_MAX = 300


class ActivitySections:
    """What was told last, so that nothing is written where nothing has changed."""

    def __init__(self) -> None:
        self._told: list[tuple[Any, ...]] = []

    def sections(self, view: View) -> list[Section] | None:
        """The sections, if they are not what was told last."""
        rows = [tuple(row[:6])
                for row in view.rows("leases_live", view.now, 0, None, LEASES_MAX)]
        if rows == self._told:
            return None
        self._told = rows
        holders: dict[str, list[tuple[Any, ...]]] = {}
        for row in rows:
            holders.setdefault(row[2], []).append(row)
        return [
            Section(
                source="(living)", number=f"now.{i}", title=f"What {holder} is doing", level=1,
                body=" ".join(
                    f"{holder} holds {row[1]} since {row[3]}"
                    + (f" ({row[4]})." if row[4] else ".") for row in held
                ),
                line=0, paths=tuple(str(row[1]) for row in held),
            )
            for i, (holder, held) in enumerate(sorted(holders.items()), 1)
        ]
