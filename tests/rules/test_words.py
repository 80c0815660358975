"""Every no of the rules and names, whole."""

from __future__ import annotations

import pytest

from coordinator.rules.landing import Change, Facts, Right, decide
from coordinator.words import resource_names
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Kind, parse, resource
from coordinator.words.texts import figures
from tests.golden import assert_golden, said

NOW, LATER = "2026-11-21T12:00:00.000Z", "2026-11-21T12:00:00.001Z"


def facts(paths: str, rights: str = "./", until: str = LATER, **more: object) -> Facts:
    held = [Right(7, resource(name, "dir"), "exclusive", until) for name in rights.split()]
    changes = [Change(path.strip("@"), resource_names.path_scope(path.strip("@")), path[0] == "@") for path in paths.split()]
    return Facts(agent="me", task="T-1", target="main", now=NOW, changes=changes, leases=held, **more)  # type: ignore[arg-type]


def test_numbers_are_told_in_plain_figures() -> None:
    assert [figures(one) for one in (8_553_600.0, 0.5, 86400.0, 1e12, -2e6, 0.0, 1e300, float("inf"), 999999.0)] == [
        "8553600", "0.5", "86400", "1000000000000", "-2000000", "0", "1e+300", "inf", "999999"]


def test_why_nothing_may_land() -> None:
    many, others = "a b c d e f g", dict.fromkeys("bcdefg", "you")
    text = ""
    for case, given in {
        "private": facts("ok .Coord/x a/.GIT/y"),
        "one submodule": facts("@m ok"),
        "all at once": facts("@m a", "d/", moved=["p/a/"], dirty=["a"]),
        "one not leased": facts("a b", "b/"),
        "many not leased": facts(many, "", others=others),
        "six not leased": facts("a b c d e f", ""),
        "five not leased": facts("a b c d e", ""),
        "ended": facts("a b", until=NOW),
        "one unleased, one ended": facts("a b/c", "b/", until=NOW),
        "moved": facts(many, moved=["p/a/", "p/b/", "p/g/"]),
        "dirty": facts("a", dirty=["a", "b"]),
        "very many": facts(" ".join(f"f{n:03}" for n in range(201)), ""),
    }.items():
        refusal = decide(given)
        assert isinstance(refusal, Refusal)
        text += said(case, refusal)
    assert_golden("landing.txt", text)
    for mine in (facts(".coordinates a.git git/.gitignore x/.coord/y"), facts("a", moved=["p/b/"])):
        assert decide(mine) == (7,)
    assert decide(facts("a b", "a/ ./")) == (7,)


def test_why_a_text_names_nothing() -> None:
    text = ""
    for typed in ("", " ", "x" * 4097, "ä" * 2049, "ä/" * 256, "a/" * 256, "a:" * 256, "a\0b", "ab\nc", "a\x85", "a\u2029", "a\udce4.py",
                  "\uefe4.py", "::", "::f", "a.py::", "a.py::C..m", "a.py::.m", "a.py::b::c", "a:::b", "src/*.py::C", "key:", "key:a::b",
                  "key:a:", "key:*", "key:a:**", "a.py::" + "x." * 256, "key" + ":a" * 256):
        with pytest.raises(Refusal) as no:
            parse(typed)
        text += said(ascii(typed if len(typed) < 40 else typed[:9] + "…"), no.value)
    assert_golden("names.txt", text)


@pytest.mark.parametrize(("typed", "kind"), [
    ("x" * 4096, "file"), ("ä" * 2048, "file"), ("/".join("a" * 256), "file"), ("ä/" * 255 + "b", "file"), ("a.py::" + ".".join("x" * 256), "region"),
    ("key" + ":a" * 255, "key"), ("a.py::*", "region"), ("a:b*", "key"), ("A:b*", "glob"), ("1:b", "file"), ("a-_9:b", "key"),
    ("a::b/c", "file"), ("a/::b", "file"), ("a/b::c", "region"), ("[a", "file"), ("\\[a", "glob"), ("[a?", "glob"), ("a/..", "dir"), ("a..", "file"), ("", "dir"), ("key:a*:b", "key"),
    ("a::b:", "region"), ("é::b", "region"), ("a b::", "file"),
])
def test_what_is_just_allowed(typed: str, kind: Kind) -> None:
    assert resource_names.kind_of(typed) == kind
    if typed and not typed.endswith("b::"):
        assert parse(typed)[0] == kind
