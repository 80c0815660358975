"""What a callable accepts, held against Python's own binding of arguments."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.meaning.facts import Param, Shape
from coordinator.meaning.signatures import misfit, narrower, overrides, swapped
from tests.effort import examples
from tests.meaning.made import NAMES, SHAPES, parsed, signatures, written

EVERY = [Shape(count, names) for count in range(5) for names in (
    (), *((one,) for one in (*NAMES, "z")), *((one, two) for one in NAMES for two in NAMES if one < two),
    ("a", "b", "c"), ("b", "c", "d"), ("a", "c", "e"))]


def bound(params: list[Param], shape: Shape) -> bool:
    """Whether Python itself takes such a call. (Not by `inspect`: of some signatures it is wrong.)"""
    space: dict[str, Any] = {}
    exec(f"def f({written(params)}): pass", space)  # the texts are made above
    try:
        space["f"](*range(shape.positional), **dict.fromkeys(shape.keywords))
    except TypeError:
        return False
    return True


@settings(max_examples=examples(60))
@given(signatures(), SHAPES)
def test_a_call_fits_where_python_takes_it(params: list[Param], shape: Shape) -> None:
    assert parsed(written(params)) == params
    assert (misfit(params, shape) == "") == (bound(params, shape))


@settings(max_examples=examples(50))
@given(signatures(), SHAPES, st.integers(0, 3), st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
def test_a_starred_call_that_is_refused_fits_in_no_way(
    params: list[Param], shape: Shape, more: int, names: list[str],
) -> None:
    starred = Shape(shape.positional, shape.keywords, star=True, stars=True)
    if misfit(params, starred):
        whole = Shape(shape.positional + more, tuple({*shape.keywords, *names}))
        assert not bound(params, whole)


@settings(max_examples=examples(40))
@given(signatures(), signatures())
def test_what_is_no_narrower_takes_all_that_fitted_and_means_the_same(old: list[Param], new: list[Param]) -> None:
    taken_away = [
        shape for shape in EVERY
        if not misfit(old, shape) and (misfit(new, shape) or swapped(old, new, shape))
    ]
    if not narrower(old, new):
        assert not taken_away
    assert not narrower(old, old)


@settings(max_examples=examples(50))
@given(signatures(), st.data())
def test_what_only_adds_is_no_narrower(params: list[Param], data: st.DataObject) -> None:
    """A new optional parameter, by place at the end or by name, a default more, names in another order."""
    free = [one for one in params if one.kind in ("/", "")]
    rest = [one for one in params if one.kind not in ("/", "")]
    by_name = [one for one in rest if one.kind == "="]
    others = [one for one in rest if one.kind != "="]
    wider = [*free, *([Param("new", "", False)] if not any(one.kind == "*" for one in rest) else []),
             *(one for one in others if one.kind == "*"), *data.draw(st.permutations(by_name)),
             Param("also", "=", False), *(one for one in others if one.kind == "**")]
    assert not narrower(params, wider)
    eased = [Param(one.name, one.kind, False) for one in params]
    assert not narrower(params, eased) and overrides(params, eased)


@settings(max_examples=examples(50))
@given(signatures())
def test_one_required_parameter_more_is_narrower(params: list[Param]) -> None:
    at = next((at for at, one in enumerate(params) if one.kind == "**"), len(params))
    more = [*params[:at], Param("new", "=", True), *params[at:]]
    assert narrower(params, more) and not overrides(params, more)
