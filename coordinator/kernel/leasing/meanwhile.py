"""What others leased, or wrote without a lease, since an agent began to work on a file.

A region that appeared under a name leased by others belongs to them, however much it resembles
something that the agent renamed. What a person or an unknown program wrote is mixed into the
agent's work. The module reads the log outside of the transaction. Where the log was cut, it reports
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.kernel.core import Service, last_before, owner
from coordinator.kernel.leasing import earlier_content
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.store.ledger import Tx, View
from coordinator.store.rebuild import apart
from coordinator.store.rows import AgentNameRow, LeaseRow, Row
from coordinator.words.resource_names import path_of, region_of, resource


def leased_by_others(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> tuple[str, ...]:
    """The names of these regions, sorted. `rows`: one holder's leases on parts of one file.

    Raises:
        Unready: the log is read first.
    """
    path, since = path_of(rows[0].file_path, "region"), min(rows, key=earlier_content.age)
    mine = owner(tx, rows[0].locked_by)

    def leased(view: View) -> list[tuple[str, str]]:
        began = since.began or since.locked_at
        return [(row.agent, row.name) for row in view.each(
            AgentNameRow, "regions_leased_since", last_before(view, began), began, path)]

    file = resource(path, "file", fold_case=svc.fold_case)
    held = [(row.locked_by, row.file_path) for row in leases_near(tx, file)
            if row.kind == "region"]
    meanwhile = tx.looked.after(f"leased of {path} since {since.fencing_token}", apart(tx, leased))
    return tuple(sorted({region_of(name) for agent, name in (*held, *meanwhile)
                         if owner(tx, agent) != mine}))


class WrittenRow(Row, frozen=True):
    """A file that somebody changed without a lease, and when last."""

    resource: str
    at: str


def written_by_nobody(tx: Tx, since: Mapping[str, str]) -> dict[str, str]:
    """Those of these files, and when that was last (UTC). `since`: by path, from which instant on.

    Raises:
        Unready: the log is read first.
    """
    if not since:
        return {}
    first = min(since.values())

    def written(view: View) -> dict[str, str]:
        result: dict[str, str] = {}
        for row in view.each(
                WrittenRow, "unleased_last_since", last_before(view, first), first):
            name = row.resource
            path = name if name in since else name.rpartition("::")[0]  # or of a part of it
            result[path] = max(result.get(path, ""), row.at)
        return result

    last = tx.looked.after(f"written without a lease since {first}", apart(tx, written))
    return {path: last[path] for path in sorted(since) if last.get(path, "") >= since[path]}
