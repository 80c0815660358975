"""A typed name that is a symlink's means both: the link itself, and what it leads to. So whoever
holds it may lead it elsewhere, and nobody who types the same name after that gets it meanwhile.

Only reads. (What a command or an edit tool writes is the one or the other, and is leased alone.)
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from coordinator.files.content import is_link
from coordinator.looking.facts import Place
from coordinator.service.core import Service
from coordinator.service.leasing.conflicts import once
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words import file_names
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located, path_scope


def with_links(view: View, located: Sequence[Located]) -> list[Located]:
    """These, and the links by whose names they were typed.

    Raises:
        Unready: they were not looked at yet.
    """
    needs = {one.through: Place(one.through, None, True, "itself")
             for one in located if one.through is not None}
    if not needs:
        return list(located)
    view.looked.require(needs.values())
    out = list(located)
    for need in needs.values():
        try:
            link = view.looked.located(need)
        except Refusal:
            continue  # it was taken away between two looks
        if link.is_link:
            out.append(link)
    return once(out)


def taken_with(svc: Service, tx: Tx, rows: Iterable[LeaseRow],
               leads_to: str | None = None) -> list[LeaseRow]:
    """What the holders of these leases got together with them, as what their links led to: then,
    as far as the link itself tells; else now (`leads_to`, a scope)."""
    out: list[LeaseRow] = []
    for row in rows:
        if row.kind != "file" or row.content_hash is None or not is_link(row.content_hash):
            continue
        for scope in (_led_to(svc, tx, row), leads_to):
            found = [] if scope in (None, row.scope) else [
                one for raw in tx.rows("leases_at_scope", scope)
                if (one := LeaseRow(*raw)).acquisition_id == row.acquisition_id
                and one.locked_by == row.locked_by and one.kind in ("file", "dir")]
            out += found
            if found:
                break
    return out


def _led_to(svc: Service, tx: Tx, row: LeaseRow) -> str | None:
    """The scope of what a leased link led to at the grant, by the letters of its target."""
    target = tx.blob(row.content_hash)
    if target is None:
        return None
    root = row.worktree or svc.root
    path = posixpath.normpath(posixpath.join(
        root, posixpath.dirname(row.file_path), file_names.from_bytes(target)))
    below = path[len(root) + 1:] if path.startswith(f"{root}/") else ""
    return path_scope(below, svc.fold_case) if below else None
