"""The parameters of a callable: whether a call fits, and whether a change takes anything away.

Owns the two decisions, on parameters and shapes of calls alone. Pure. The rules are in Python's
reference, "Calls". A call with `*more` fits if some `more` makes it fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from coordinator.meaning.facts import Param, Shape

_PLACED, _NAMED = ("/", ""), ("", "=")


def misfit(params: Sequence[Param], shape: Shape) -> str:
    """Return why a call of this shape is refused, as the end of a sentence; empty if it may fit.

    Args:
        params: without the implicit first parameter of a method.
    """
    placed = [parameter for parameter in params if parameter.kind in _PLACED]
    kinds = {parameter.kind for parameter in params}
    if shape.positional > len(placed) and "*" not in kinds:
        most = f"{len(placed)} positional argument{'s' * (len(placed) != 1)}"
        return f"it takes {most if placed else 'no positional argument'} now"
    by_name = {parameter.name for parameter in params if parameter.kind in _NAMED}
    if "**" not in kinds:
        for name in shape.keywords:
            if name not in by_name:
                return f"it has no argument {name!r} now"
    filled = [parameter.name for parameter in placed[:shape.positional]]
    twice = by_name.intersection(filled).intersection(shape.keywords)
    if twice:
        return f"it would get {min(twice, key=filled.index)!r} twice now"
    given = {*filled, *by_name.intersection(shape.keywords)}
    missing = _list_missing(params, shape, given)
    return f"it needs {' and '.join(map(repr, missing))} now" if missing else ""


def _list_missing(params: Sequence[Param], shape: Shape, given: Collection[str]) -> list[str]:
    """Return the names that a call still has to pass, and that its `*more` cannot bring."""
    open_ = (*(_PLACED if shape.star else ()), *(_NAMED if shape.stars else ()))
    return [parameter.name for parameter in params
            if parameter.required and parameter.kind in ("/", "", "=")
            and parameter.name not in given and parameter.kind not in open_]


def swapped(old: Sequence[Param], new: Sequence[Param], shape: Shape) -> str:
    """Return why a call that fits both versions gives its arguments to other parameters, as the end
    of a sentence; otherwise empty.

    A parameter with another name at its place counts as renamed, unless either name is at another
    place in the other version.
    """
    before = [param.name for param in old if param.kind in _PLACED]
    after = [param.name for param in new if param.kind in _PLACED]
    for place, (was, is_now) in enumerate(zip(before, after, strict=False)):
        if place >= shape.positional:
            break
        if was != is_now and (was in {param.name for param in new} or is_now in before):
            return f"its argument {place + 1} was {was!r} and is {is_now!r} now"
    return ""


def narrower(old: Sequence[Param], new: Sequence[Param]) -> bool:
    """Whether a call that fits `old` does not fit `new`, or means something else there."""
    return any(
        not misfit(old, shape) and (misfit(new, shape) or swapped(old, new, shape))
        for shape in _witnesses(old, new)
    )


def _witnesses(old: Sequence[Param], new: Sequence[Param]) -> Iterator[Shape]:
    """Yield calls of which at least one is refused if any call is: each number of positional
    arguments, with the fewest names that go with it, and with each other name. A call is refused
    for its number, for one name, or for a missing argument. The fewest names miss the most."""
    placed = [param for param in old if param.kind in _PLACED]
    most = max(len(placed), sum(param.kind in _PLACED for param in new)) + 1
    names = {param.name for param in (*old, *new) if param.kind not in ("*", "**")} | {"\0"}
    for count in range(most + 1):
        filled = {param.name for param in placed[:count]}
        fewest = [param.name for param in old
                  if param.required and param.kind in ("", "=") and param.name not in filled]
        yield Shape(count, tuple(fewest))
        for name in sorted(names.difference(fewest)):
            yield Shape(count, (*fewest, name))


def overrides(base: Sequence[Param], sub: Sequence[Param]) -> bool:
    """Whether every call that fits `base` fits `sub`, if it passes arguments by place or by common
    names. As in type checkers, a parameter that only has another name at its place is ignored."""
    places = [param for param in sub if param.kind in _PLACED]
    renamed = {param.name: places[position].name for position, param in enumerate(
        [param for param in base if param.kind in _PLACED]) if position < len(places)}
    return not narrower(
        [Param(renamed.get(param.name, param.name), param.kind, param.required) for param in base],
        sub,
    )
