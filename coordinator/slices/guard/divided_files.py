"""Which files may be leased by region, and a region of a file as a place. It does not decide who
gets it.
"""

from __future__ import annotations

import msgspec

from coordinator.kernel.core import Service
from coordinator.regions.languages import language_of
from coordinator.rules import globs
from coordinator.words.resource_names import Located, resource


def may_be_divided(svc: Service, located: Located) -> bool:
    """Whether a file may be leased by region. A file with several links, a file in a working tree
    that no launch made, and whatever the policy names are leased whole."""
    name = located.resource.name
    if (located.worktree is not None and not svc.is_launched_worktree(located.worktree)) or (
            located.links != 1 or located.inode is None or language_of(name) is None):
        return False
    chosen = "region"
    for pattern, by in svc.settings.leases.granularity.items():
        if globs.matches(pattern, name, fold_case=svc.fold_case):
            chosen = by
    return chosen == "region"


def region_place(svc: Service, located: Located, name: str) -> Located:
    """A region of a file, by its name there."""
    made = resource(f"{located.resource.name}::{name}", "region", fold_case=svc.fold_case)
    return msgspec.structs.replace(located, resource=made)
