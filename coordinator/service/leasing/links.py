"""A typed name that is a symlink's means both: the link itself, and what it leads to. So whoever
holds it may lead it elsewhere, and nobody who types the same name after that gets it meanwhile.

Only reads. (What a command or an edit tool writes is the one or the other, and is leased alone.)
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from coordinator.files.content import is_link
from coordinator.looking.facts import Content, Place
from coordinator.service.core import Service
from coordinator.service.leasing.conflicts import once
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words import file_names
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located, path_scope


def with_links(view: View, located: Sequence[Located]) -> list[Located]:
    """These, and the links by whose names they were typed, each that leads to the next, too.

    Raises:
        Unready: they were not looked at yet.
    """
    needs = {path: Place(path, None, True, "itself") for one in located for path in one.through}
    if not needs:
        return list(located)
    view.looked.require([*needs.values(), *map(Content, needs)])
    out = list(located)
    for need in needs.values():
        with suppress(Refusal):  # it was taken away between two looks
            link = view.looked.located(need)
            if link.is_link:
                out.append(link)
    return once(out)


def as_they_lead(svc: Service, tx: Tx, located: Sequence[Located],
                 asked: Mapping[str, str]) -> list[Located]:
    """What whoever waits for these means by now: where a link leads elsewhere since it asked, what
    that leads to, and not what it led to then. `asked`: what was in them then, by name.

    Raises:
        Unready: that was not looked at yet.
    """
    then = {one.resource.scope: (one.path, asked[one.resource.name]) for one in located
            if one.path is not None and is_link(asked.get(one.resource.name, ""))}
    tx.looked.require([Content(path) for path, _ in then.values()])
    gone: set[str | None] = set()
    todo = [scope for scope, (path, was) in then.items() if _now(tx, path) != was]
    while todo:
        path, was = then.pop(todo.pop())
        led_to = _scope_of(svc, tx, was, path)
        gone.add(led_to)
        todo += [led_to] if led_to in then and led_to not in todo else []
    return _with_what_they_lead_to(tx, [
        one for one in located if one.resource.scope not in gone])


def _now(tx: Tx, path: str) -> str | None:
    try:
        return tx.looked.content(path).hash
    except Refusal:
        return None


def _with_what_they_lead_to(view: View, located: list[Located]) -> list[Located]:
    needs = [Place(one.path, None, True) for one in located if one.is_link and one.path is not None]
    if not needs:
        return located
    view.looked.require(needs)
    found: list[Located] = []
    for need in needs:
        with suppress(Refusal):  # it leads out of the repository, or in a circle
            found.append(view.looked.located(need))
    return once([*located, *with_links(view, found)])


def taken_with(svc: Service, tx: Tx, rows: Iterable[LeaseRow],
               leads_to: str | None = None) -> list[LeaseRow]:
    """What the holders of these leases got together with them, as what their links led to, one
    after the other: then, as far as a link itself tells; else now (`leads_to`, a scope)."""
    out: dict[int, LeaseRow] = {}
    todo = [(row, leads_to) for row in rows]
    while todo:
        row, now = todo.pop()
        if row.kind != "file" or row.content_hash is None or not is_link(row.content_hash):
            continue
        for scope in (_led_to(svc, tx, row), now):
            found = [] if scope in (None, row.scope) else [
                one for raw in tx.rows("leases_at_scope", scope)
                if (one := LeaseRow(*raw)).acquisition_id == row.acquisition_id
                and one.locked_by == row.locked_by and one.kind in ("file", "dir")
                and one.fencing_token not in out]
            if found:
                out |= {one.fencing_token: one for one in found}
                todo += [(one, leads_to) for one in found]
                break
    return list(out.values())


def _led_to(svc: Service, tx: Tx, row: LeaseRow) -> str | None:
    """The scope of what a leased link led to at the grant."""
    return _scope_of(svc, tx, row.content_hash, svc.where(row.worktree, row.file_path))


def _scope_of(svc: Service, tx: Tx, link: str | None, path: str) -> str | None:
    """The scope of what a link of this content leads to from this path, by its letters."""
    target = tx.blob(link)
    if target is None:
        return None
    meant = posixpath.normpath(posixpath.join(
        posixpath.dirname(path), file_names.from_bytes(target)))
    root = svc.tree.worktree_of(meant) or svc.root
    below = meant[len(root) + 1:] if meant.startswith(f"{root}/") else ""
    return path_scope(below, svc.fold_case) if below else None
