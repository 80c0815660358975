"""How a file differs from an earlier content: as a text, and in which parts of it.

The answer comes from what was looked at. It says nothing about who wrote the parts.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.files.content import unified
from coordinator.kernel.core import Service
from coordinator.looking.facts import Between, Bytes
from coordinator.store.ledger import Tx
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Resource, resource


def needs(svc: Service, tx: Tx, files: Iterable[tuple[str, str | None]]) -> list[Between]:
    """What is looked at for these pairs of path and earlier content, for several at once."""
    return [Between(svc.where(None, path), before) for path, before in files
            if before is not None and tx.has("blob_has", before)]


def since(svc: Service, tx: Tx, path: str, before: str | None) -> list[Resource] | None:
    """The parts in which the main tree's file differs from a kept content. None if more than single
    parts differ, or if the content is not kept.

    Raises:
        Unready: the file has to be looked at.
    """
    (look,) = needs(svc, tx, [(path, before)]) or (None,)
    if look is None:
        return None
    tx.looked.require([look])
    try:
        names = tx.looked.parts(look).names
    except Refusal:
        return None
    return None if names is None else [
        resource(f"{path}::{name}", "region", fold_case=svc.fold_case) for name in names]


#: A longer difference (characters) is cut, and the agent is told to read the file again.
DIFF_CHARS_MAX = 6_000
#: Regions that one sentence names.
REGIONS_TOLD = 8


def make_difference(tx: Tx, name: str, before: str | None, now: Bytes) -> str | None:
    """The change of a file as a unified diff; None if the bytes are not kept or it is long."""
    old, new = tx.blob(before), now.data if now.data is not None else tx.blob(now.hash)
    if (before is not None and old is None) or (now.hash is not None and new is None):
        return None
    text = unified(name, old, new)
    return text if text and len(text) <= DIFF_CHARS_MAX else None
