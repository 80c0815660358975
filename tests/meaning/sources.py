"""Python files that Hypothesis makes: definitions, branches and uses of one another's names."""

from __future__ import annotations

import textwrap

from hypothesis import strategies as st

NAMES = ("alpha", "beta", "gamma", "Delta", "Épsilon")
MODULES = ("one", "two", "three")
names = st.sampled_from(NAMES)
expressions = st.deferred(lambda: st.one_of(
    names, st.just("(1)"), st.just("'text'"),
    st.builds("{}.{}".format, expressions, names),
    st.builds("{}({})".format, names, st.sampled_from(("", "1", "1, 2", "alpha=3", "*beta", "**gamma"))),
    st.builds("[x.{} for x in {}]".format, names, expressions),
    st.builds("{}[{}]".format, names, expressions),
    st.builds("({} or {})".format, expressions, expressions),
    st.builds("(lambda y: y.{}())".format, names),
))
arguments = st.sampled_from(("", "a", "a, b=1", "a, *, b", "*a, **b", "a: Delta", "a, /, b: 'Delta | None' = None"))
simple = st.one_of(
    expressions, st.builds("{} = {}".format, names, expressions), st.builds("{}: {}".format, names, names),
    st.builds("from .{} import {}".format, st.sampled_from(MODULES), names),
    st.builds("from .{} import {} as {}".format, st.sampled_from(MODULES), names, names),
    st.builds("import {}".format, st.sampled_from(MODULES)), st.builds("global {}".format, st.just("Total")),
    st.builds("{}, {} = {}".format, names, names, expressions), st.builds("{} += 1".format, names),
    st.builds("from .{} import *".format, st.sampled_from(MODULES)),
)


def _inside(lines: list[str]) -> str:
    return textwrap.indent("\n".join(lines), "    ")


def blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map(_inside)
    plain = body.map(lambda text: "\n".join(
        line for line in text.split("\n") if "import *" not in line) + "\n    pass")
    return st.one_of(
        st.builds("@{}\ndef {}({}):\n{}".format, names, names, arguments, plain),
        st.builds("def {}({}) -> {}:\n{}".format, names, arguments, names, plain),
        st.builds("class {}({}):\n{}".format, names, st.sampled_from(("", *NAMES)), plain),
        st.builds("if {}:\n{}\nelse:\n{}".format, names, plain, plain),
        st.builds("for {} in {}:\n{}".format, names, expressions, plain),
        st.builds("with {} as {}:\n{}".format, expressions, names, plain),
    )


def sources() -> st.SearchStrategy[str]:
    """A file of a few statements."""
    statement = st.recursive(simple, blocks, max_leaves=6)
    return st.lists(statement, max_size=6).map(lambda found: "\n".join(found) + "\n")
