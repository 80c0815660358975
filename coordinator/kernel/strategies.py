"""By which strategy each resource is shared here, and what follows for claims, hooks and landings.

Decides nothing about who holds what: it says which leases are not asked for (isolated work, and
optimistic work while it is thought about). Those that end with their write: `optimistic_writes`.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel.core import Service
from coordinator.kernel.leasing.located import Wanted
from coordinator.rules.strategies import Strategy, find_named_strategy, strategy_of
from coordinator.words.resource_names import Located, Resource


def find_strategy(svc: Service, asked: Resource) -> Strategy:
    """The strategy of a resource."""
    by_glob = svc.settings.strategies.by_glob
    return strategy_of(asked, by_glob, svc.fold_case) if by_glob else "pessimistic"


def claimed(svc: Service, wanted: Sequence[Wanted]) -> list[Wanted]:
    """What a claim has to lease. The rest is leased at its write, or not at all."""
    if not svc.settings.strategies.by_glob:
        return list(wanted)
    return [(located, mode) for located,
            mode in wanted if find_strategy(svc, located.resource) == "pessimistic"]


def written(svc: Service, wanted: Sequence[Located]) -> list[Located]:
    """What a write has to lease. In a launch's worktree nothing that is shared by branches."""
    if not svc.settings.strategies.by_glob:
        return list(wanted)
    return [located for located in wanted if not (
        find_strategy(svc, located.resource) == "isolated"
        and svc.is_launched_worktree(located.worktree))]


def is_refused_everywhere(svc: Service, wanted: Sequence[Located]) -> bool:
    """Whether what a hook takes of these is refused to others in all working trees: by the setting,
    or because a person has named one of them pessimistic."""
    by_glob = svc.settings.strategies.by_glob
    return svc.settings.worktrees.overlap == "refuse" or (bool(by_glob) and any(
        find_named_strategy(located.resource, by_glob, svc.fold_case) == "pessimistic"
        for located in wanted))


def lands_free(svc: Service, asked: Resource) -> bool:
    """Whether this lands by merging alone if nobody holds it."""
    return bool(svc.settings.strategies.by_glob) and find_strategy(svc, asked) == "isolated"


def for_the_write(svc: Service, wanted: Sequence[Located]) -> bool:
    """Whether all of these are leased for the moment of a write only."""
    return bool(svc.settings.strategies.by_glob) and bool(wanted) and all(
        find_strategy(svc, located.resource) == "optimistic" for located in wanted)
