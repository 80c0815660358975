"""Leases that a rename has made beside another: they are renewed and released with it.

Owns which belong together: by the name that a lease was made for (`file_locks.goes_with`). Makes
none itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel.core import Service
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow
from coordinator.words.resource_names import Kind, Resource, resource


def with_other_names(svc: Service, view: View, rows: Sequence[LeaseRow]) -> list[LeaseRow]:
    """These leases, and what their holders have beside them because something was renamed: under
    its new names, and under the first one of what is here under a new one."""
    if not view.present().renamed:
        return list(rows)
    made = view.each(LeaseRow, "leases_renamed")
    result = {row.fencing_token: row for row in rows}
    for row in rows:
        if row.goes_with is None:
            continue
        for first in view.each(LeaseRow, "leases_at_scope", made_for(svc, row).scope):
            if first.locked_by == row.locked_by and first.kind != "key":
                result.setdefault(first.fencing_token, first)
    for row in [row for row in result.values() if row.kind != "key"]:
        held = rule.as_resource(row.file_path, row.kind, row.scope)
        for lease in made:
            if lease.locked_by == row.locked_by and overlaps(held, made_for(svc, lease)):
                result.setdefault(lease.fencing_token, lease)
    return list(result.values())


def made_for(svc: Service, row: LeaseRow) -> Resource:
    """The resource that a rename made this lease for."""
    kind: Kind = "region" if row.kind == "region" else "file"
    return resource((row.goes_with or "").rstrip("/"), kind, fold_case=svc.fold_case)
