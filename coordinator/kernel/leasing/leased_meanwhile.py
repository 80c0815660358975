"""Which regions of a file others have leased since an agent began to work on parts of it.

What appeared under such a name belongs to them, however much it resembles something that the agent
renamed. The module reads the leases, and the log outside of the transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel.core import Service, last_before
from coordinator.kernel.holders.families import owner
from coordinator.kernel.leasing import earlier_content
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.store.ledger import Tx, View
from coordinator.store.rebuild import apart
from coordinator.store.rows import AgentNameRow, LeaseRow
from coordinator.words.resource_names import path_of, region_of, resource


def by_others(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> tuple[str, ...]:
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
