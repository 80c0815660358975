"""Dynamic uses: computed names, and text that is run as code.

Owns the judgement which dynamic uses may mean a changed name. A look-up on a value of another known
type does not. A look-up on an unknown value does only if the literal beginning of its name fits.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.meaning import sentences as words
from coordinator.meaning.facts import Facts, Marker
from coordinator.meaning.outcomes import Unseen
from coordinator.meaning.resolving import Resolver
from coordinator.meaning.values import Hit, Place

#: The least length (characters) of a name's beginning that identifies it.
PREFIX_MIN = 3


def through_markers(
    file: str, facts: Facts, gone: Sequence[Place], old: Resolver, here: Resolver,
) -> list[Unseen]:
    """Find the dynamic uses in a file that may mean one of these places.

    Args:
        old: the files as they were. `here`: as this file is to be seen.
    """
    unseens: list[Unseen] = []
    for marker in facts.markers:
        if marker.kind == "getattr":
            reached, does = _find_lookup(file, marker, gone, old, here), "looks up a computed name"
        elif marker.kind in ("eval", "exec"):
            reached, does = _find_run(file, marker, gone, old), f"runs text by {marker.kind}()"
        else:
            continue
        if reached is not None:
            line = marker.line
            unseens.append(Unseen(
                f"{file}::{facts.region(line)}", file, line,
                f"{words.where(facts, line, file)} {does}, and may mean {words.spelt(reached)}",
            ))
    return unseens


def named(resolver: Resolver, file: str, scope: str, name: str) -> list[Hit] | None:
    """Follow a bare name, seen from a scope, or from the innermost existing scope around it."""
    scopes = resolver.world.facts(file).scopes
    while scope and scope not in scopes:
        scope = scope.rpartition(".")[0]
    return resolver.names(file, scope, name)


def _find_lookup(
    file: str, marker: Marker, gone: Sequence[Place], old: Resolver, here: Resolver,
) -> Place | None:
    meant = [place for place in gone if place.name.startswith(marker.prefix)]
    if not meant:
        return None
    values = here.evaluate(file, marker.scope, marker.text)
    if not values:
        return meant[0] if len(marker.prefix) >= PREFIX_MIN else None
    return next(
        (place for place in meant for value in values
         if any(hit.place == place for hit in old.members(value, place.name)[0])), None,
    )


def _find_run(file: str, marker: Marker, gone: Sequence[Place], old: Resolver) -> Place | None:
    return next(
        (place for place in gone if not place.scope and any(
            hit.place == place for hit in named(old, file, marker.scope, place.name) or [])), None,
    )
