"""What changed in a file between an agent's request and its grant.

A waiter read the file, was refused, and is granted later what others have written meanwhile. Its
answer tells the change, by region and as a difference, so that it does not write from memory. The
module decides nothing about grants.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel.core import listed
from coordinator.kernel.leasing.changed_parts import REGIONS_TOLD, make_difference
from coordinator.kernel.leasing.located import Wanted
from coordinator.looking.facts import AnyNeed, Between, Content
from coordinator.store.ledger import Tx
from coordinator.store.rows import ContentRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located, Resource, region_of

#: How many files of one acquisition have their changes told.
FILES_MAX = 20


def contents(tx: Tx, located: Sequence[Located], before: str | None) -> dict[str, str]:
    """The kept content of each requested file, by the resource's name: as it was when the agent
    first asked (`before`: its place in the queue), otherwise as it was looked at now.

    Raises:
        Unready: the file of a region was not looked at.
    """
    result: dict[str, str] = {}
    if before is not None:
        result = then(tx, before)
    for located_resource in located[:FILES_MAX]:
        name = located_resource.resource.name
        if (name in result or located_resource.path is None or not located_resource.has_content):
            continue
        whole = located_resource.resource.kind == "file"
        if located_resource.resource.kind not in ("file", "region") or (
                whole and not tx.looked.has(Content(located_resource.path))):
            continue
        try:
            content = tx.looked.content(located_resource.path)
        except Refusal:
            continue
        if content.hash is not None and tx.keep_found(content):
            result[located_resource.resource.name] = content.hash
    return result


def then(tx: Tx, acquisition: str) -> dict[str, str]:
    """The contents of the files that a waiter asked for when it asked, by name."""
    return {file.path: str(file.hash)
            for file in tx.each(ContentRow, "waiter_contents_of", acquisition)}


def changed(tx: Tx, acquisition: str, wanted: Sequence[Wanted]) -> list[rq.ChangedSince]:
    """What has changed since this waiter asked.

    Raises:
        Unready: it was not looked at.
    """
    asked = then(tx, acquisition)
    files = [(located_resource, str(located_resource.path), asked[located_resource.resource.name])
             for located_resource, _ in wanted
             if located_resource.resource.name in asked and located_resource.path is not None]
    needs: list[AnyNeed] = [Content(path) for _, path, _ in files]
    tx.looked.require(needs)
    moved = [(located_resource, path, before) for located_resource, path,
             before in files if _now(tx, path) != before]
    tx.looked.require([Between(path, before) for _, path, before in moved])
    changed_sinces = []
    for located, path, before in moved:
        regions = _regions(tx, path, before)
        if not _concerns(located.resource, regions):
            continue  # the rest of the file is none of its business
        try:
            diff = make_difference(tx, located.resource.name, before, tx.looked.content(path)) or ""
        except Refusal:
            diff = ""
        changed_sinces.append(rq.ChangedSince(resource=located.resource.name, regions=regions or [],
                                              diff=diff))
    return changed_sinces


def _concerns(asked: Resource, regions: Sequence[str] | None) -> bool:
    """Whether a change of these regions of its file is one of what is asked for."""
    own = region_of(asked.name)
    return asked.kind != "region" or regions is None or any(
        f"{own}.".startswith(f"{region}.") or f"{region}.".startswith(f"{own}.")
        for region in regions)


def describe(changed_sinces: Sequence[rq.ChangedSince]) -> str:
    """The changes in a sentence for a notice; empty if nothing changed."""
    if not changed_sinces:
        return ""
    parts = []
    for changed_since in changed_sinces[:3]:
        names = listed(changed_since.regions, REGIONS_TOLD)
        parts.append(f"{changed_since.resource} changed since you asked"
                     + (f" ({names})" if names else "")
                     + (f":\n{changed_since.diff}" if changed_since.diff else "."))
    more = f"\nSo did {len(changed_sinces) - 3} more." if len(changed_sinces) > 3 else ""
    return " " + "\n".join(parts) + more


def _now(tx: Tx, path: str) -> str | None:
    try:
        return tx.looked.content(path).hash
    except Refusal:
        return None


def _regions(tx: Tx, path: str, before: str) -> list[str] | None:
    try:
        return tx.looked.parts(Between(path, before)).names
    except Refusal:
        return None
