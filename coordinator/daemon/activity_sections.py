"""Sections on what each holder is doing now, for the archive's index: made when that changes."""

from __future__ import annotations

from coordinator.archive.markdown import Section
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow
from coordinator.words.texts import quoted

#: Leases that are told of.
LEASES_MAX = 300


class ActivitySections:
    """What was told last, so that nothing is written where nothing has changed."""

    def __init__(self) -> None:
        self._told: list[tuple[object, ...]] = []

    def sections(self, view: View) -> list[Section] | None:
        """The sections, if they are not what was told last."""
        leases = view.each(LeaseRow, "leases_live", view.now, 0, None, LEASES_MAX)
        told = [(lease.fencing_token, lease.file_path, lease.task_description) for lease in leases]
        if told == self._told:
            return None
        self._told = list(told)
        holders: dict[str, list[LeaseRow]] = {}
        for lease in leases:
            holders.setdefault(lease.locked_by, []).append(lease)
        return [
            Section(
                source="(living)", number=f"now.{i}", title=f"What {holder} is doing", level=1,
                body=" ".join(
                    f"{holder} holds {lease.file_path} since {lease.locked_at}"
                    + (f" ({quoted(lease.task_description)})." if lease.task_description else ".")
                    for lease in held
                ),
                line=0, paths=tuple(lease.file_path for lease in held),
            )
            for i, (holder, held) in enumerate(sorted(holders.items()), 1)
        ]
