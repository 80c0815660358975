"""Leases on regions: whether the file, as it was looked at, has such a region.

A region is a part of its file, found by its name in the file's bytes each time. A region that is
not there can be leased only by an edit that is about to add it. A name alone is refused, because it
is nearly always a slip.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel.core import Service
from coordinator.kernel.leasing.typed_names import to_typed
from coordinator.regions.names import is_known, nearest
from coordinator.store.ledger import Tx
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import HEADER, Located, path_of, region_of


def check_known(svc: Service, tx: Tx, places: Sequence[Located], agent: str, cwd: str | None, *,
                new: bool = False, proposed: bool = False) -> None:
    """Refuse regions that their files, as they are, do not have. A file that is not there has
    whatever is asked for.

    Args:
        cwd: where what is advised is typed.
        new: what is not there is about to be added.
        proposed: they are to be written without a lease, not to be leased.

    Raises:
        Refusal: REGION_UNKNOWN, with the nearest names; or the file has none at all.
        Unready: a file was not looked at.
    """
    for located in places:
        name = located.resource.name
        if located.resource.kind != "region" or located.inode is None or located.path is None:
            continue
        wanted = region_of(name)
        known_names = tx.looked.names(located.path)
        if known_names and (new or wanted == HEADER or is_known(wanted, known_names)
                            or tx.looked.part(located.path, wanted).hash is not None):
            continue
        raise _unknown(svc, name, known_names, agent, cwd, proposed)


def _unknown(svc: Service, name: str, region_names: Sequence[str], agent: str, cwd: str | None,
             proposed: bool) -> Refusal:
    """REGION_UNKNOWN. `region_names`: what the file has."""
    nothing = f"Nothing was {'written' if proposed else 'leased'}."
    path, wanted = path_of(name, "region"), region_of(name)
    if not region_names:
        return Refusal(
            Code.REGION_UNKNOWN,
            f"{file_names.shown(path)} has no regions: it is "
            f"{'proposed' if proposed else 'leased'} as a whole. {nothing}",
            next=f"`coord {'propose' if proposed else 'lock'} {to_typed(svc, path, 'file', cwd)} "
            f"--agent {agent}`",
            resource=name, nearest=[path],
        )
    near = nearest(wanted, region_names)
    return Refusal(
        Code.REGION_UNKNOWN,
        f"{file_names.shown(path)} has no region {wanted!r}. The nearest: "
        f"{', '.join(near)}. {nothing}",
        next=f"`coord regions {to_typed(svc, path, 'file', cwd)}` lists them; " + (
            "one that is to be added has no version." if proposed else
            f"`coord lock --new {to_typed(svc, name, 'region', cwd)} --agent {agent}` is for "
            "one that is to be added."),
        resource=name, nearest=[f"{path}::{text}" for text in near],
    )
