"""Leases on regions: whether there is such a region, in the file as it was looked at.

A region is a part of its file, told by its name in the file's own bytes each time. What is not
there can be leased by whoever is about to add it (a tool's edit says so); by name alone nobody is
taken at his word, for it is nearly always a slip.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from coordinator.regions.names import is_known, nearest
from coordinator.store.ledger import Tx
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import HEADER, Located, path_of, region_of


def check_known(tx: Tx, places: Sequence[Located], agent: str) -> None:
    """Refuse regions that their files, as they are, do not have. A file that is not there, or is
    not divided, has whatever is asked for.

    Raises:
        Refusal: REGION_UNKNOWN, with the nearest names.
        Unready: a file was not looked at.
    """
    for located in places:
        name = located.resource.name
        if located.resource.kind != "region" or located.inode is None or located.path is None:
            continue
        wanted = region_of(name)
        if wanted == HEADER or tx.looked.part(located.path, wanted).hash is not None:
            continue
        known = tx.looked.names(located.path)
        if not known or is_known(wanted, known):
            continue
        path = path_of(name, "region")
        near = nearest(wanted, known)
        raise Refusal(
            Code.REGION_UNKNOWN,
            f"{file_names.shown(path)} has no region {wanted!r}. The nearest: "
            f"{', '.join(near)}. Nothing was leased.",
            next=f"`coord regions {shlex.quote(path)}` lists them; `coord lock --new "
            f"{shlex.quote(path + '::' + wanted)} --agent {agent}` is for one that "
            "is to be added.",
            resource=name, nearest=[f"{path}::{one}" for one in near],
        )
