"""Locating what a request names: the resources, and what has to be looked at for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coordinator.kernel.core import Service
from coordinator.looking.facts import Place
from coordinator.rules import leases as rule
from coordinator.store.ledger import View
from coordinator.words import resource_names
from coordinator.words.file_names import shown
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Link, Located, Resource, resource

#: A resource and the mode it is wanted in.
Wanted = tuple[Located, str]


def check_count(svc: Service, count: int) -> None:
    """Whether one request may be for so many resources.

    Raises:
        Refusal: LIMIT.
    """
    most = svc.settings.leases.resources_max
    if count > most:
        raise Refusal(
            Code.LIMIT, f"{count} resources in one request; the limit is {most} "
            "(leases.resources_max). Nothing was leased.", next="Lease the directory instead.",
        )


def locate(svc: Service, view: View, texts: Sequence[str], cwd: str | None) -> list[Located]:
    """Locate the typed names as they were looked at. The same resource twice counts once.

    Raises:
        Refusal: INVALID, OUTSIDE_REPO, LIMIT.
        Unready: one of them was not looked at yet.
    """
    if not texts:
        raise Refusal(Code.INVALID, "Name at least one resource.")
    check_count(svc, len(texts))
    if len(texts) == 1:
        text = texts[0]
        key = _key(text) if ":" in text else None
        return [key or view.looked.located(Place(text, cwd))]
    keys = {text: _key(text) for text in texts}
    view.looked.require(Place(text, cwd) for text, key in keys.items() if key is None)
    places = [keys[text] or view.looked.place(text, cwd) for text in texts]
    result = once(places)
    _check_one_tree(places, result)
    return result


def _check_one_tree(places: Iterable[Located], each_once: Iterable[Located]) -> None:
    """Whether no resource is named in two working trees."""
    trees = {located.resource.scope: located.worktree for located in each_once}
    names = {located.resource.name for located in each_once}
    twice = next((located for located in places if located.resource.name in names
                  and located.worktree != trees[located.resource.scope]), None)
    if twice is not None:
        raise Refusal(
            Code.INVALID, f"{shown(twice.resource.name)} is named in two working trees: one "
            "request means one of its copies. Nothing was changed.",
            next="Name each in a request of its own.", resource=twice.resource.name)


def _key(text: str) -> Located | None:
    """A semantic key for which nothing has to be looked at."""
    if ":" not in text or resource_names.kind_of(text) != "key":
        return None
    resource_names.parse(text)  # whether it is well formed
    if resource_names.may_be_file(text):
        return None
    return Located(resource(text, "key"), None, None)


def place(name: str, kind: str, worktree: str | None = None, link: Link = "itself") -> Place:
    """What to look at to locate a resource of this canonical name. A link at a file's name is that
    file; otherwise the name would have been another from the start."""
    return Place(name, worktree, kind in ("file", "dir"), link if kind == "file" else "followed")


def locate_name(
    view: View, name: str, kind: str, scope: str, worktree: str | None = None,
    link: Link = "itself",
) -> Located:
    """Locate a resource of this canonical name. If a file stands in place of a directory above it,
    the name alone counts, because work that changes one into the other leases both.

    Raises:
        Refusal: OUTSIDE_REPO, LIMIT, STORAGE.
        Unready: it was not looked at.
    """
    try:
        return view.looked.located(place(name, kind, worktree, link))
    except Refusal as refusal:
        if refusal.code is not Code.INVALID:
            raise
        return Located(rule.as_resource(name, kind, scope), None, None, worktree)


def once(places: Iterable[Located]) -> list[Located]:
    """Each resource once, however many of the names given mean it."""
    matches: dict[str, Located] = {}
    for located in places:
        matches.setdefault(own_key(located.resource), located)
    return list(matches.values())


def once_wanted(wanted: Iterable[Wanted]) -> list[Wanted]:
    """The same resources, each once with its mode. A resource wanted in both modes is wanted
    exclusively."""
    matches: dict[str, Wanted] = {}
    for located, mode in wanted:
        key = own_key(located.resource)
        if key not in matches or mode == "exclusive":
            matches[key] = (located, mode)
    return list(matches.values())


def own_key(asked: Resource) -> str:
    """The key under which a holder has a resource once. A resource is the same before it is made,
    as a file and as a directory. Globs of one directory share its scope."""
    return asked.scope + "\n" + (asked.name if asked.kind == "glob" else "")
