"""Functions that turn the names in a request into resources, and tell where each resource lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coordinator.kernel.core import Service
from coordinator.looking.facts import Place
from coordinator.rules import leases as rule
from coordinator.store.ledger import View
from coordinator.words import resource_names
from coordinator.words.file_names import shown
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import (
    Link,
    Located,
    Resource,
    resource,
)

#: A resource, and the mode in which a request wants it.
Wanted = tuple[Located, str]


def check_count(svc: Service, count: int) -> None:
    """Refuse a request for more resources than one request may name.

    Raises:
        Refusal: LIMIT.
    """
    limit = svc.settings.leases.resources_max
    if count > limit:
        raise Refusal(
            Code.LIMIT, f"{count} resources in one request; the limit is {limit} "
            "(leases.resources_max). Nothing was leased.", next="Lease the directory instead.",
        )


def locate(svc: Service, view: View, texts: Sequence[str], cwd: str | None) -> list[Located]:
    """Find the resources that the typed texts mean. A resource that is named twice counts once.

    Raises:
        Refusal: INVALID, OUTSIDE_REPO, LIMIT.
        Unready: nobody has looked yet at the place that one of the texts names.
    """
    if not texts:
        raise Refusal(Code.INVALID, "Name at least one resource.")
    check_count(svc, len(texts))
    if len(texts) == 1:
        text = texts[0]
        key = _read_key(text) if ":" in text else None
        return [key or view.looked.located(Place(text, cwd))]
    keys = {text: _read_key(text) for text in texts}
    view.looked.require(Place(text, cwd) for text, key in keys.items() if key is None)
    places = [keys[text] or view.looked.place(text, cwd) for text in texts]
    result = once(places)
    worktrees = {located.resource.scope: located.worktree for located in result}
    other_copy = next((
        located for located in places if located.worktree != worktrees[located.resource.scope]
        and located.resource.name in {other.resource.name for other in result}), None)
    if other_copy is not None:
        raise Refusal(
            Code.INVALID, f"{shown(other_copy.resource.name)} is named in two working trees: one "
            "request means one of its copies. Nothing was changed.",
            next="Name each in a request of its own.", resource=other_copy.resource.name)
    return result


def _read_key(text: str) -> Located | None:
    """Read a text as a semantic key, which lies nowhere on the disk; None for all other texts."""
    if ":" not in text or resource_names.kind_of(text) != "key":
        return None
    resource_names.parse(text)  # raises a refusal unless the text is well formed
    return Located(resource(text, "key"), None, None)


def place(name: str, kind: str, worktree: str | None = None, link: Link = "itself") -> Place:
    """Make the place that must be looked at to locate a resource of this canonical name. A symlink
    at a file's name is itself the resource: otherwise the canonical name would be its target's."""
    return Place(name, worktree, kind in ("file", "dir"), link if kind == "file" else "followed")


def locate_name(
    view: View, name: str, kind: str, scope: str, worktree: str | None = None,
    link: Link = "itself",
) -> Located:
    """Find where a resource of this canonical name lies now. If a file stands where the name needs
    a directory, the resource lies nowhere: work that turns one into the other leases both names.

    Raises:
        Refusal: OUTSIDE_REPO, LIMIT, STORAGE.
        Unready: nobody has looked at its place yet.
    """
    try:
        return view.looked.located(place(name, kind, worktree, link))
    except Refusal as refusal:
        if refusal.code is not Code.INVALID:
            raise
        return Located(rule.as_resource(name, kind, scope), None, None, worktree)


def once(places: Iterable[Located]) -> list[Located]:
    """Keep each resource once, however many of the given names mean it."""
    found: dict[str, Located] = {}
    for located in places:
        found.setdefault(own_key(located.resource), located)
    return list(found.values())


def once_wanted(wanted: Iterable[Wanted]) -> list[Wanted]:
    """Keep each resource once, with its mode. The exclusive mode wins over the shared one."""
    found: dict[str, Wanted] = {}
    for located, mode in wanted:
        key = own_key(located.resource)
        if key not in found or mode == "exclusive":
            found[key] = (located, mode)
    return list(found.values())


def own_key(asked: Resource) -> str:
    """Make the key under which a holder has a resource only once. A file and a directory of one
    name have one key, for either may be leased before it exists. Globs of one directory share its
    scope, so the key of a glob holds its name, too."""
    return asked.scope + "\n" + (asked.name if asked.kind == "glob" else "")
