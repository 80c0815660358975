"""What a callable accepts: whether a call fits, and whether a change takes anything away.

Owns the two decisions, on parameters and shapes of calls alone. Pure. The rules are those of
Python's reference, "Calls"; a call with `*more` fits wherever some `more` would make it fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.meaning.facts import Param, Shape

_PLACED = ("/", "")


def misfit(params: Sequence[Param], shape: Shape) -> str:
    """Why a call of this shape is refused, as the end of a sentence; empty if it may fit.

    Args:
        params: without the one that a method gets of itself.
    """
    placed = [one for one in params if one.kind in _PLACED]
    rest = any(one.kind == "*" for one in params)
    if shape.positional > len(placed) and not rest:
        most = f"{len(placed)} positional argument{'s' * (len(placed) != 1)}"
        return f"it takes {most if placed else 'no positional argument'} now"
    by_name = {one.name for one in params if one.kind in ("", "=")}
    if not any(one.kind == "**" for one in params):
        for name in shape.keywords:
            if name not in by_name:
                return f"it has no argument {name!r} now"
    given = {one.name for one in placed[:shape.positional]}
    for one in placed[:shape.positional]:
        if one.kind == "" and one.name in shape.keywords:
            return f"it would get {one.name!r} twice now"
    given |= by_name & set(shape.keywords)
    missing = [
        one.name for one in params
        if one.required and one.kind in ("/", "", "=") and one.name not in given
        and not (shape.star and one.kind in _PLACED)
        and not (shape.stars and one.kind in ("", "="))
    ]
    if missing:
        return f"it needs {' and '.join(repr(one) for one in missing)} now"
    return ""


def swapped(old: Sequence[Param], new: Sequence[Param], shape: Shape) -> str:
    """Why a call that fits both gives its arguments to others, as the end of a sentence; or empty.

    A parameter that has another name at its place is taken for renamed, unless one of the two names
    stands at another place in the other version.
    """
    before = [one.name for one in old if one.kind in _PLACED]
    after = [one.name for one in new if one.kind in _PLACED]
    for place, (was, is_now) in enumerate(zip(before, after, strict=False)):
        if place >= shape.positional:
            break
        if was != is_now and (was in {one.name for one in new} or is_now in before):
            return f"its argument {place + 1} was {was!r} and is {is_now!r} now"
    return ""


def narrower(old: Sequence[Param], new: Sequence[Param]) -> bool:
    """Whether some call that fits `old` does not fit `new`, or means something else there."""
    kinds = {one.kind for one in new}
    placed = [one for one in new if one.kind in _PLACED]
    by_name = {one.name: one for one in new if one.kind in ("", "=")}
    was = {one.name: one for one in old}
    place = 0
    for one in old:
        if one.kind in _PLACED:
            if place < len(placed):
                meant = placed[place]
                if meant.required and not one.required:
                    return True
                if meant.name != one.name and one.kind == "" and one.name not in by_name:
                    if "**" not in kinds:
                        return True
                elif meant.name != one.name and (
                        one.name in {other.name for other in new} or meant.name in was):
                    return True
            elif "*" not in kinds:
                return True
            place += 1
        if one.kind in ("", "="):
            kept = by_name.get(one.name)
            if kept is None and "**" not in kinds:
                return True
            if kept is not None and kept.required and not one.required:
                return True
        if one.kind in ("*", "**") and one.kind not in kinds:
            return True
    for at, one in enumerate(placed):
        if one.required and at >= place and not (one.name in was and was[one.name].required):
            return True
    for one in new:
        if one.kind == "=" and one.required:
            before = was.get(one.name)
            if before is None or not before.required or before.kind != "=":
                return True
    return False


def overrides(base: Sequence[Param], sub: Sequence[Param]) -> bool:
    """Whether what fits `base` by place, or by a name that both have, fits `sub`. (A parameter that
    has only another name at its place is passed over, as type checkers do.)"""
    places = [one for one in sub if one.kind in _PLACED]
    renamed = {one.name: places[at].name for at, one in enumerate(
        [one for one in base if one.kind in _PLACED]) if at < len(places)}
    return not narrower(
        [Param(renamed.get(one.name, one.name), one.kind, one.required) for one in base], sub,
    )
