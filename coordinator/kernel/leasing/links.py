"""A typed name of a symlink means both: the link itself, and the file that it leads to.

So the holder may point the link elsewhere, and nobody who types the same name gets it meanwhile.
The module only reads. A command or an edit tool writes only one of the two, which is leased alone.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from contextlib import suppress

from coordinator.files.content import is_link
from coordinator.kernel.core import Service
from coordinator.kernel.leasing.located import Wanted, once
from coordinator.looking.facts import Content, Place
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words import file_names
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located


def with_links(view: View, located: Sequence[Located]) -> list[Located]:
    """These, and the links by whose names they were typed, with each that these lead through.

    Raises:
        Unready: they were not looked at yet.
    """
    needs: dict[str, Place] = {}
    for place in located:
        for path in place.through:
            needs[path] = Place(path, None, True, "itself")
    if not needs:
        return list(located)
    view.looked.require([*needs.values(), *map(Content, needs)])
    result = list(located)
    for need in needs.values():
        with suppress(Refusal):  # it was taken away between two looks
            link = view.looked.located(need)
            if link.is_link:
                result.append(link)
    return once(result)


def noted_links(view: View, noted: Sequence[Wanted]) -> list[Wanted]:
    """Like `with_links` for a stored list: links on the way are listed already, and their targets
    are not added again.

    Raises:
        Unready: they were not looked at yet.
    """
    passed = {path for located, _ in noted for path in located.through[1:]}
    return [(link, mode) for located,
            mode in noted if not located.through or located.through[0] not in passed
            for link in with_links(view, [located])]


def as_they_lead(tx: Tx, located: Sequence[Located],
                 asked: Mapping[str, str]) -> list[Located]:
    """What the waiters for these mean now. If a link leads elsewhere since they asked, its present
    target counts and not the former one. `asked`: the former contents, by name.

    Raises:
        Unready: that was not looked at yet.
    """
    then = {located_resource.path: was for located_resource in located
            if located_resource.path is not None
            and is_link(was := asked.get(located_resource.resource.name, ""))}
    tx.looked.require(map(Content, then))
    changed = {path for path, was in then.items() if _now(tx, path) != was}
    targets = _targets(tx, then)
    gone: set[str] = set()
    for path in targets if changed else ():
        way = [path, *_way(targets, path)]
        first = next((position for position, name in enumerate(way) if name in changed), len(way))
        gone.update(way[first + 1:])
    return _with_what_they_lead_to(tx, [located_resource for located_resource in located
                                        if located_resource.path not in gone])


def _now(tx: Tx, path: str) -> str | None:
    try:
        return tx.looked.content(path).hash
    except Refusal:
        return None


def _with_what_they_lead_to(view: View, located: list[Located]) -> list[Located]:
    needs = [Place(located_resource.path, None, True) for located_resource in located
             if located_resource.is_link and located_resource.path is not None]
    if not needs:
        return located
    view.looked.require(needs)
    matches: list[Wanted] = []
    for need in needs:
        with suppress(Refusal):  # it leads out of the repository, or in a loop
            matches.append((view.looked.located(need), ""))
    return once([*located, *(located for located, _ in noted_links(view, matches))])


def taken_with(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> list[LeaseRow]:
    """What the holders of these leases got together with them, because their links led there then.
    """
    result: dict[int, LeaseRow] = {}
    for row in rows:
        if row.content_hash is None or not is_link(row.content_hash):
            continue
        held = tx.each(LeaseRow, "leases_of_holder", row.locked_by)
        places = {svc.where(lease.worktree, lease.file_path.rstrip("/")): lease for lease in held
                  if lease.kind in ("file", "dir")}
        targets = _targets(tx, {path: lease.content_hash or "" for path, lease in places.items()
                                if is_link(lease.content_hash or "")})
        for path in _way(targets, svc.where(row.worktree, row.file_path)):
            lease = places.get(path)
            if lease is not None and lease.acquisition_id == row.acquisition_id:
                result[lease.fencing_token] = lease
    return list(result.values())


def _targets(tx: Tx, links: Mapping[str, str]) -> dict[str, str]:
    """The targets of links with these contents, as written, by the paths of the links."""
    matches = {path: tx.blob(was) for path, was in links.items()}
    return {path: file_names.from_bytes(target) for path, target in matches.items()
            if target is not None}


def _way(targets: Mapping[str, str], path: str) -> list[str]:
    """The links that are passed from a link on, by their paths, and where they lead to in the end:
    by the letters of what they say."""
    result: list[str] = []
    instant, rest = posixpath.dirname(path), [posixpath.basename(path)]
    while rest:
        part = rest.pop(0)
        if part == "..":
            instant = posixpath.dirname(instant)
        elif part not in ("", "."):
            instant = posixpath.join(instant, part)
        if instant in targets:
            if instant in result:
                return result  # in a loop
            result.append(instant)
            target = targets[instant]
            instant = "/" if target.startswith("/") else posixpath.dirname(instant)
            rest = [*target.split("/"), *rest]
    return [*result[1:], instant]
