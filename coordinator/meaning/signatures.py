"""What a callable accepts: whether a call fits, and whether a change takes anything away.

Owns the two decisions, on parameters and shapes of calls alone. Pure. The rules are those of
Python's reference, "Calls"; a call with `*more` fits wherever some `more` would make it fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    return any(
        not misfit(old, shape) and (misfit(new, shape) or swapped(old, new, shape))
        for shape in _witnesses(old, new)
    )


def _witnesses(old: Sequence[Param], new: Sequence[Param]) -> Iterator[Shape]:
    """Calls of which one is refused if any is: each number of arguments by place, the fewest names
    that go with it, and these with each other name. (A call is refused for its number, for one
    name, or for what is missing; the fewest names miss the most.)"""
    placed = [one for one in old if one.kind in _PLACED]
    most = max(len(placed), sum(one.kind in _PLACED for one in new)) + 1
    names = {one.name for one in (*old, *new) if one.kind not in ("*", "**")} | {"\0"}
    for count in range(most + 1):
        filled = {one.name for one in placed[:count]}
        fewest = [one.name for one in old
                  if one.required and one.kind in ("", "=") and one.name not in filled]
        yield Shape(count, tuple(fewest))
        for name in sorted(names.difference(fewest)):
            yield Shape(count, (*fewest, name))


def overrides(base: Sequence[Param], sub: Sequence[Param]) -> bool:
    """Whether what fits `base` by place, or by a name that both have, fits `sub`. (A parameter that
    has only another name at its place is passed over, as type checkers do.)"""
    places = [one for one in sub if one.kind in _PLACED]
    renamed = {one.name: places[at].name for at, one in enumerate(
        [one for one in base if one.kind in _PLACED]) if at < len(places)}
    return not narrower(
        [Param(renamed.get(one.name, one.name), one.kind, one.required) for one in base], sub,
    )
