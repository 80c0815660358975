"""Small repositories in memory, and signatures that Hypothesis makes."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from itertools import pairwise

from hypothesis import strategies as st

from coordinator.meaning.facts import Param, Shape
from coordinator.meaning.file_facts import facts_of
from coordinator.meaning.heads import parameters
from coordinator.meaning.index import Index
from coordinator.meaning.judging import judge
from coordinator.meaning.outcomes import Outcome

ORDER = ("/", "", "*", "=", "**")
NAMES = ("a", "b", "c", "d", "e")


def indexed(files: Mapping[str, str]) -> Index:
    """An index in memory of these texts."""
    index = Index(":memory:")
    for path, text in files.items():
        index.put(path, b"", facts_of(path, textwrap.dedent(text).encode()))
    return index


def judged(files: Mapping[str, str], path: str, before: str, after: str, *held: str) -> Outcome:
    """What comes of writing `after` in the place of `before` in one of these files."""
    old = textwrap.dedent(files[path])
    assert before in old, before
    with indexed(files) as index:
        return judge(index, path, old.encode(), old.replace(before, after).encode(), held)


def broken(outcome: Outcome) -> set[tuple[str, str]]:
    """(resource, kind) of all that breaks."""
    return {(one.resource, one.kind) for one in outcome.breaks}


@st.composite
def signatures(draw: st.DrawFn) -> list[Param]:
    """Parameters that Python would take."""
    kinds = sorted(draw(st.lists(st.sampled_from(ORDER), max_size=5)), key=ORDER.index)
    kinds = [kind for at, kind in enumerate(kinds) if kind not in ("*", "**") or kinds.index(kind) == at]
    names = draw(st.permutations(NAMES))
    found: list[Param] = []
    for kind, name in zip(kinds, names, strict=False):
        optional = kind in ("*", "**") or draw(st.booleans())
        if kind in ("/", "") and any(not one.required for one in found):
            optional = True
        found.append(Param(name, kind, not optional))  # type: ignore[arg-type]
    return found


def written(params: list[Param]) -> str:
    """The parameters as they stand between the brackets of a `def`."""
    out: list[str] = []
    for before, one in pairwise([Param("", "/"), *params]):
        if before.kind == "/" and before.name and one.kind != "/":
            out.append("/")
        if one.kind == "=" and before.kind not in ("*", "="):
            out.append("*")
        star = one.kind if one.kind in ("*", "**") else ""
        out.append(star + one.name + ("=0" if not one.required and not star else ""))
    if params and params[-1].kind == "/":
        out.append("/")
    return ", ".join(out)


def parsed(text: str) -> list[Param]:
    """The parameters of `def f(text)`."""
    (function,) = ast.parse(f"def f({text}): pass").body
    assert isinstance(function, ast.FunctionDef)
    return parameters(function.args)


SHAPES = st.builds(
    Shape, st.integers(0, 5), st.lists(st.sampled_from((*NAMES, "z")), unique=True, max_size=4).map(tuple),
)
