"""The earlier content of files whose lease does not record it.

These are parts of what is leased, files that another was moved over, and the other names of a file.
The module decides nothing and never looks at the disk in a transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from coordinator.kernel import repository_files
from coordinator.kernel.core import Service
from coordinator.kernel.leasing.grant import baselines
from coordinator.looking.facts import Content, Place, Rewound, Twins
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, VersionRow
from coordinator.words import resource_names
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located, Resource, region_of

#: The content of a file or region when its lease began, and the contents below a directory. For a
#: region also its whole file.
Was = tuple[str | None, list[tuple[str, str]] | None]

#: A file's content before its holder leased more of it, by the token of the wider lease and the
#: path.
Further = dict[tuple[int, str], Rewound]
#: Leases on parts of files, by the scope of the file and its working tree.
_Parts = dict[tuple[str, str | None], list[LeaseRow]]


def was_there(svc: Service, tx: Tx, lease: LeaseRow, part: Located) -> Was:
    """What this part of a leased resource held when its lease began. A wider part gets the present
    content with this part put back.

    Raises:
        Unready: it was not looked at. Refusal: what the look met.
    """
    asked = part.resource
    around = baselines(tx, lease)
    if asked.kind in ("dir", "glob") or asked.scope == lease.scope:
        below = None if asked.kind not in ("dir", "glob") else [
            (path, digest) for path, digest in around or ()
            if overlaps(asked, _as_file(svc, path))]
        return lease.content_hash, around if asked.kind == "region" else below
    path = svc.where(lease.worktree, resource_names.path_of(asked.name, asked.kind))
    if lease.kind == "region":
        if asked.kind == "region":  # a part of it: as it is, for it has not changed
            return tx.looked.part(path, region_of(asked.name)).hash, around
        made = tx.looked.made(Rewound(path, newest_first([lease]), wholes=wholes_of(tx, [lease])))
        tx.keep_found(made)
        return made.hash, None
    whole = lease.content_hash
    if lease.kind != "file":
        name = resource_names.path_of(asked.name, asked.kind)
        whole = tx.value("baseline_get", lease.fencing_token, name)
    if asked.kind == "file" or whole is None:
        return whole, None
    content = tx.looked.part(path, region_of(asked.name), of=whole)
    tx.keep_found(content)
    return content.hash, [(resource_names.path_of(asked.name, asked.kind), whole)]


def stood_there(svc: Service, tx: Tx, paths: Sequence[str]) -> dict[str, str | None]:
    """The content of files before others were moved over or linked to them, by path: as last seen,
    otherwise as git has it. None if nothing is known.

    If the last seen content is also the present one, it may be the moved file, because the watcher
    may see the next change while it reports the first. Then git is asked, too.

    Raises:
        Unready: the files have to be looked at, or git has to be asked.
    """
    result, unsure = _see_last(svc, tx, paths)
    names = sorted(unsure)
    asked = {} if not names else tx.looked.after(
        "committed " + "\n".join(names), lambda: repository_files.committed(svc, names))
    for path, last in unsure.items():
        committed = asked.get(path, repository_files.NOTHING)
        moved_there = last is not None and tx.has("blob_has", last)
        if last is None or committed.hash == last or moved_there:
            repository_files.keep(tx, committed)
        # Later changes are known by the name of their content alone. Their bytes were not kept.
        result[path] = (committed.hash or last) if moved_there else last or committed.hash
    return result


def _see_last(svc: Service, tx: Tx, paths: Sequence[str]
              ) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """As files were last seen, by path: those of which that is enough, and those that git is to be
    asked about."""
    sure: dict[str, str | None] = {}
    unsure: dict[str, str | None] = {}
    rows = {path: tx.first(VersionRow, "version_get", path) for path in paths}
    tx.looked.require(Content(svc.where(None, path)) for path, seen in rows.items()
                      if seen is not None and seen.hash is not None)
    for path, seen in rows.items():
        last = None if seen is None else seen.hash
        is_kept = seen is not None and (last is None or tx.has("blob_has", last))
        if is_kept and (last is None or _content(tx, svc.where(None, path)) != last):
            sure[path] = last
        else:
            unsure[path] = last
    return sure, unsure


def _content(tx: Tx, path: str) -> str | None:
    try:
        return tx.looked.content(path).hash
    except Refusal:
        return None


def is_part(row: LeaseRow) -> bool:
    """Whether a lease is on a part of a file. A lease on a region of a missing file makes the file.
    """
    return row.kind == "region" and row.inode is not None


def newest_first(regions: Iterable[LeaseRow]) -> tuple[tuple[str, str | None], ...]:
    """Regions as they were: what was leased last is put back first, for it may contain others."""
    return tuple((region_of(row.file_path), row.content_hash)
                 for row in sorted(regions, key=age, reverse=True))


def age(row: LeaseRow) -> tuple[str, int]:
    """The order in which the work on leases began. What was seen of a file before it was leased
    contains the earlier work in its parts."""
    return row.began or row.locked_at, row.fencing_token


def further_back(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> Further:
    """Files that are leased in parts, and then, by the same holder, whole or with all that is
    around: of these the work began with the parts. By the token of the wider lease, and the
    path."""
    result: Further = {}
    parts: _Parts = {}
    for row in rows:
        if is_part(row):
            parts.setdefault((resource_names.file_scope(row.scope), row.worktree), []).append(row)
    for wide in rows if parts else ():
        for of_file in _parts_in(wide, parts):
            path = _path(of_file[0])
            theirs = [row for row in of_file if age(row) < age(wide)]
            if not theirs:
                continue
            whole = whole_of(tx, max(theirs, key=age))
            baseline = tx.value("baseline_get", wide.fencing_token, path)
            was = wide.content_hash if wide.kind == "file" else baseline
            alone = svc.is_launched_worktree(wide.worktree)
            first = whole_of(tx, min(theirs, key=age)) if alone else None
            base = first or was or whole
            if base is not None:
                result[wide.fencing_token, path] = Rewound(
                    svc.where(wide.worktree, path), () if first else newest_first(theirs),
                    wholes=wholes_of(tx, theirs), of=base)
    return result


def _parts_in(wide: LeaseRow, parts: _Parts) -> list[list[LeaseRow]]:
    """The parts that lie in this lease's resource, file by file."""
    if wide.kind == "file":
        return [parts[wide.scope, wide.worktree]] if (wide.scope, wide.worktree) in parts else []
    if wide.kind not in ("dir", "glob"):
        return []
    around = rule.as_resource(wide.file_path, wide.kind, wide.scope)
    return [rows for (scope, tree), rows in parts.items() if tree == wide.worktree
            and overlaps(around, rule.as_resource(_path(rows[0]), "file", scope))]


def whole_of(view: View, region: LeaseRow) -> str | None:
    """The file of a region at the time of the lease, if it is kept."""
    digest: str | None = view.value("baseline_get", region.fencing_token, _path(region))
    return digest if digest is not None and view.has("blob_has", digest) else None


def wholes_of(tx: Tx, regions: Iterable[LeaseRow]) -> tuple[str | None, ...]:
    """The files of several regions, in the order of `newest_first`."""
    return tuple(whole_of(tx, row) for row in sorted(regions, key=age, reverse=True))


def _path(row: LeaseRow) -> str:
    return resource_names.path_of(row.file_path, row.kind)


def linked(
    svc: Service, tx: Tx, now: Sequence[tuple[LeaseRow, str | None]], rows: Sequence[LeaseRow],
) -> list[tuple[LeaseRow, str, str | None]]:
    """Other names of leased files, which none of these leases (`rows`) is on: linked in the course
    of the work, so that what was written to the one is in the other.

    Args:
        now: leases on files, and the hashes of what is there.

    Returns:
        The lease, the other name, and the hash of what that was before.

    Raises:
        Unready: not all was looked at.
    """
    held = [rule.as_resource(row.file_path, row.kind, row.scope) for row in rows]
    names: dict[str, LeaseRow] = {}
    for path, row in _list_linked(svc, tx, now).items():
        with contextlib.suppress(Refusal):
            names |= {name: row for name in tx.looked.twins(path)
                      if not any(overlaps(_as_file(svc, name), resource) for resource in held)}
    result = []
    for name, was in stood_there(svc, tx, list(names)).items():
        row = names[name]
        file = _located(svc, tx, row)
        born = None if file is None else born_ms(file.inode)
        # The file may have existed before with unknown content.
        if was is not None or (born is not None and born >= from_iso(row.locked_at)):
            result.append((row, name, was))
    return result


def _list_linked(svc: Service, tx: Tx, now: Sequence[tuple[LeaseRow, str | None]]
                 ) -> dict[str, LeaseRow]:
    """The changed files, by path, that have other names, which were looked for."""
    changed = [row for row, digest in now
               if digest not in (None, row.content_hash) and row.worktree is None]
    tx.looked.require(_place(svc, row) for row in changed)
    # A revert of an unchanged file writes to all its names.
    linked = {_place(svc, row).text: row for row in changed
              if (file := _located(svc, tx, row)) is not None
              and file.links > 1 and file.inode != row.inode}
    tx.looked.require(Twins(path) for path in linked)
    return linked


def _place(svc: Service, row: LeaseRow) -> Place:
    path = resource_names.path_of(row.file_path, row.kind)
    return Place(svc.where(row.worktree, path), None, True, "itself")


def _located(svc: Service, tx: Tx, row: LeaseRow) -> Located | None:
    try:
        return tx.looked.located(_place(svc, row))
    except Refusal:
        return None


def born_ms(inode: str | None) -> int | None:
    """When a file was made (Unix ms), to within some 20 ms before; None where its disk does not
    tell."""
    parts = (inode or "").split(":")
    return int(float(parts[2]) * 1000) if len(parts) == 3 else None


def _as_file(svc: Service, path: str) -> Resource:
    return resource_names.resource(path, "file", fold_case=svc.fold_case)
