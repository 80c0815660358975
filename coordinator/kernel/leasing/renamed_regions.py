"""Regions that their holder has renamed: under the new name they still belong to that holder.

A region is found by its name in the file's bytes, and its holder may change the name while writing.
So a name that appeared while a region of another holder disappeared may be that region, and blocks
as it does. A name that was there before the other lease began blocks nothing. `rules/leases`
decides whether two leases are compatible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import msgspec

from coordinator.kernel.core import Service, family
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words.resource_names import (
    HEADER,
    Located,
    Resource,
    path_of,
    region_of,
    resource,
)

#: The number of a region that has the name of another before it.
_NUMBER = re.compile(r"#\d+(?=\.|$)")


def rivals(svc: Service, tx: Tx, holder: str, located: Located) -> list[tuple[LeaseRow, str]]:
    """Leases of others on what this region may be, each as if it were on it, with its own scope.

    Raises:
        Unready: what the file is divided into, or was, was not looked at.
    """
    mine = family(tx, holder)
    return _called_so(svc, tx, located, lambda row: row.locked_by not in mine)


def is_own(svc: Service, tx: Tx, holder: str, located: Located) -> bool:
    """Whether this region may be what its holder has leased by another name.

    Raises:
        Unready: as above.
    """
    return bool(_called_so(svc, tx, located, lambda row: row.locked_by == holder
                           and row.expires_at > tx.now))


def _called_so(svc: Service, tx: Tx, located: Located, is_meant: Callable[[LeaseRow], bool]
               ) -> list[tuple[LeaseRow, str]]:
    asked, path = located.resource, located.path
    if asked.kind != "region" or path is None or located.inode is None:
        return []
    wanted = region_of(asked.name)
    file = resource(path_of(asked.name, "region"), "file", fold_case=svc.fold_case)
    others = [row for row in leases_near(tx, file) if row.kind == "region"
              and is_meant(row) and row.worktree == located.worktree
              and row.content_hash is not None and region_of(row.file_path) != wanted]
    if not others or wanted == HEADER:
        return []
    now = set(tx.looked.names(path))
    if wanted not in now:
        return []  # it is about to be added
    return [(msgspec.structs.replace(row, scope=asked.scope), row.scope) for row in others
            if _may_be_called(tx, path, row, wanted, now)]


def _may_be_called(tx: Tx, path: str, row: LeaseRow, wanted: str, now: set[str]) -> bool:
    """Whether this may be the present name of a leased region."""
    held = region_of(row.file_path)
    alike = "#" in wanted + held and _alike(wanted, held)
    if held == HEADER or (held in now and not alike):
        return False
    before = _names_before(tx, path, row)
    return (held not in now and wanted not in before) or (
        alike and _numbered(held, now) != _numbered(held, before))


def is_renamed(lease: LeaseRow, asked: Resource) -> bool:
    """Whether a lease blocks this region, because its own region may have this name now."""
    return (lease.kind == asked.kind == "region" and lease.scope == asked.scope
            and lease.file_path != asked.name)


def _names_before(tx: Tx, path: str, row: LeaseRow) -> set[str]:
    """The regions of the file when this lease on a part of it began; empty if unknown."""
    kept = tx.value("baseline_get", row.fencing_token, path_of(row.file_path, "region"))
    if kept is None or not tx.has("blob_has", kept):
        return set()
    return set(tx.looked.names(path, of=kept))


def _alike(name: str, other: str) -> bool:
    """Whether two names differ in numbers only, or one is then a part of the other."""
    first, second = _NUMBER.sub("", name) + ".", _NUMBER.sub("", other) + "."
    return first.startswith(second) or second.startswith(first)


def _numbered(name: str, names: Collection[str]) -> list[str]:
    """All regions of a name, whatever their numbers."""
    bare = _NUMBER.sub("", name)
    return sorted(name for name in names if _NUMBER.sub("", name) == bare)
