"""Writes to files that agents hold and have read, made while no coordinator ran.

Usually a holder counts as the writer of its file. After a pause nobody knows. So a difference from
the last seen content is recorded as nobody's, and an agent that has not seen a person's lines does
not overwrite them. The caller looks at the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coordinator.kernel.core import Service
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.slices.guard.attribution import Running
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import AgentNameRow, LeaseRow, VersionRow
from coordinator.words.resource_names import Resource, ancestors, file_scope, path_scope, resource

#: Leases, and files that their holders have read.
LEASES_MAX, READS_MAX = 10_000, 10_000


def to_look_at(svc: Service, view: View, running: Sequence[Running]) -> list[str]:
    """The files in question, in the main working tree. A file that a running call of its holder may
    be writing is left out."""
    leases = [row for row in view.each(LeaseRow, "leases_live", view.now, 0, None, LEASES_MAX)
              if row.worktree is None and row.kind != "key"]
    if not leases:
        return []
    held = {file_scope(row.scope) for row in leases if row.kind != "glob"}
    globs = [as_resource(row.file_path, row.kind, row.scope) for row in leases
             if row.kind == "glob"]
    paths: dict[str, None] = {}
    for row in view.each(AgentNameRow, "reads_of_holders", view.now, READS_MAX):
        agent, path = row.agent, row.name
        if any(run.holder == agent and run.may_have_written(path, svc.fold_case)
               for run in running):
            continue
        scope = path_scope(path, svc.fold_case)
        if held.isdisjoint((scope, *ancestors(scope))) and not _is_among(svc, path, globs):
            continue
        paths[str(path)] = None
    return list(paths)


def _is_among(svc: Service, path: str, globs: Sequence[Resource]) -> bool:
    asked = resource(path, "file", fold_case=svc.fold_case) if globs else None
    return asked is not None and any(overlaps(asked, glob) for glob in globs)


def note(tx: Tx, contents: Iterable[tuple[str, str | None]]) -> None:
    """Record the present contents (paths, and the names of their contents)."""
    versions: list[tuple[str, str | None, str | None]] = []
    for path, digest in contents:
        last = tx.first(VersionRow, "version_get", path)
        if last is not None and last.hash != digest:
            versions.append((path, digest, None))
    if versions:
        tx.record(ev.VersionsSeen(versions=versions))
