"""The strategy by which a resource is shared: one for each glob, and the last glob that matches
counts. Pure.

* `pessimistic`: the resource is leased before the work and held until the work is done.
* `optimistic`: nobody holds it during the work. The first writer has written it, and a later writer
  is told what is there now. After several losses in a row the loser gets a lease.
* `isolated`: the work is done on a branch of its own, without a lease, and lands by merging.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from coordinator.rules import globs
from coordinator.words.resource_names import Resource, path_of

Strategy = Literal["pessimistic", "optimistic", "isolated"]


def strategy_of(asked: Resource, by_glob: Mapping[str, Strategy], fold_case: bool) -> Strategy:
    """The strategy of a file, a directory, a region (its file's) or a key. A glob is always
    pessimistic, because it may match files of several strategies."""
    return find_named_strategy(asked, by_glob, fold_case) or "pessimistic"


def find_named_strategy(asked: Resource, by_glob: Mapping[str, Strategy],
                        fold_case: bool) -> Strategy | None:
    """The strategy that a person has named for a resource; None if there is none."""
    chosen: Strategy | None = None
    if asked.kind == "glob":
        return chosen
    for pattern, strategy in by_glob.items():
        if asked.kind == "key":
            meant = fnmatchcase(asked.name, pattern) or asked.name.startswith(
                f"{pattern.removesuffix('*').removesuffix(':')}:")
        elif asked.kind == "dir":
            meant = globs.matches(pattern, f"{asked.name}any", fold_case=fold_case) and (
                pattern.endswith("**"))
        else:
            meant = globs.matches(pattern, path_of(asked.name, asked.kind), fold_case=fold_case)
        if meant:
            chosen = strategy
    return chosen
