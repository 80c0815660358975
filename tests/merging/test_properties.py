"""What holds of every merge, tried on files and edits made at random."""

from __future__ import annotations

import ast
import warnings
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coordinator.merging.items import items, walk
from tests.merging.asked import GIT, merged
from tests.regions.asked import read
from tests.regions.samples import SAMPLES

NAMES = ["alpha", "beta", "gamma", "delta", "eps", "zeta", "eta", "theta"]


def function(name: str, indent: str = "") -> st.SearchStrategy[str]:
    return st.builds(
        lambda value, doc, lead: "".join(f"{indent}{line}\n" for line in (
            *([f"# About {name}."] if lead else []), f"def {name}(*a):",
            *([f'    """Says {value}."""'] if doc else []), f"    x = {value}", f"    return x + {value}")),
        st.integers(0, 9), st.booleans(), st.booleans())


def klass(name: str) -> st.SearchStrategy[str]:
    members = st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=4).flatmap(
        lambda names: st.tuples(*(
            st.one_of(function(one, "    "), st.integers(0, 9).map(lambda n, one=one: f"    {one} = {n}\n"))
            for one in names)))
    return members.map(lambda made: f"class {name}:\n" + "\n".join(made))


def named(name: str) -> st.SearchStrategy[str]:
    return st.one_of(function(name), klass("C" + name), st.integers(0, 9).map(lambda n: f"{name} = {n}\n"))


@st.composite
def module(draw: st.DrawFn) -> list[str]:
    """The items of a module: imports, then definitions with names of their own."""
    imports = draw(st.lists(st.sampled_from(["import os\n", "import re\n", "from x import a, b\n"]), unique=True))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=2, max_size=6))
    return [*imports, *(draw(named(name)) for name in names)]


@st.composite
def edited(draw: st.DrawFn, before: list[str]) -> list[str]:
    """The same module after one to three edits: one changed, one added, one deleted, one moved."""
    made = list(before)
    for _ in range(draw(st.integers(1, 3))):
        what = draw(st.sampled_from(["change", "add", "delete", "move"]))
        at = draw(st.integers(0, len(made) - 1))
        if what == "add":
            name = draw(st.sampled_from(["new", "fresh", "late"]))
            if not any(name in one for one in made):
                made.insert(at, draw(named(name)))
        elif what == "delete" and len(made) > 1:
            del made[at]
        elif what == "move" and not made[at].startswith(("import", "from")):
            made.append(made.pop(at))
        elif what == "change":
            lines = made[at].split("\n")
            row = draw(st.integers(0, len(lines) - 1))
            lines[row] = lines[row].replace("0", "10").replace("x", "y") + draw(st.sampled_from(["", "  # so"]))
            made[at] = "\n".join(lines)
    return made


def text(made: list[str]) -> str:
    return "\n\n".join(made)


@st.composite
def versions(draw: st.DrawFn) -> tuple[str, str, str]:
    base = draw(module())
    return text(base), text(draw(edited(base))), text(draw(edited(base)))


def lines(data: str | bytes) -> Counter[str]:
    raw = data.decode() if isinstance(data, bytes) else data
    return Counter(one.strip() for one in raw.split("\n") if one.strip())


@settings(max_examples=8)
@given(versions())
def test_one_side_alone(three: tuple[str, str, str]) -> None:
    """What only one side changed is taken as it is; what both changed alike, too."""
    base, ours, theirs = three
    assert merged(base, ours, base).data.decode() == ours
    assert merged(base, base, theirs).data.decode() == theirs
    assert merged(base, ours, ours).data.decode() == ours


@settings(max_examples=40)
@given(versions())
def test_nothing_is_lost_or_doubled(three: tuple[str, str, str]) -> None:
    base, ours, theirs = three
    done = merged(base, ours, theirs)
    was, mine, other, made = (lines(one) for one in (base, ours, theirs, done.data))
    if done.by != "conflict":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(done.data)
        for line in was | mine | other | made:
            if line.startswith("from x import"):
                continue  # a set: what it comes to is in no version
            counts = (was[line], mine[line], other[line])
            most = mine[line] + other[line] - was[line] if max(counts) > was[line] else max(counts)
            least = min(0 if min(counts) < was[line] else min(counts), most)
            assert min(least, max(0, mine[line] + other[line] - was[line])) <= made[line] <= max(most, max(counts)), line
            if was[line] == mine[line] == other[line]:
                assert made[line] == was[line], line
            if was[line] == 0 and (mine[line] or other[line]):
                assert made[line], line
            if was[line] and not mine[line] and not other[line]:
                assert not made[line], line
        if done.by == "regions":
            kept = [one for one in ast.parse(done.data).body if isinstance(one, ast.FunctionDef | ast.ClassDef)]
            assert len({one.name for one in kept}) == len(kept)
    else:
        assert done.markers == done.data.count(b"\n<<<<<<< ") + done.data.startswith(b"<<<<<<< ") > 0


@settings(max_examples=20)
@given(versions())
def test_the_sides_may_change_places(three: tuple[str, str, str]) -> None:
    """The same outcome, but for the order of additions."""
    base, ours, theirs = three
    one, other = merged(base, ours, theirs), merged(base, theirs, ours)
    assert (one.by == "conflict") == (other.by == "conflict"), (one, other)
    if one.by != "conflict":
        assert _names(lines(one.data)) == _names(lines(other.data))


def _names(found: Counter[str]) -> Counter[str]:
    return Counter({" ".join(sorted(line.replace(",", " ").split())): count for line, count in found.items()})


@settings(max_examples=15)
@given(versions())
def test_never_more_conflicts_than_git(three: tuple[str, str, str]) -> None:
    base, ours, theirs = three
    git = GIT(*(one.encode() for one in three))
    done = merged(base, ours, theirs)
    if git.conflicts:
        assert done.markers <= git.conflicts
    elif done.by == "conflict":
        assert done.notes, "what git calls clean is a conflict for a reason only"


@pytest.mark.parametrize("language", sorted(SAMPLES))
@settings(max_examples=2)
@given(data=st.data())
def test_items_are_the_file(language: str, data: st.DataObject) -> None:
    """Also of what is broken: no byte is lost between items, or in two of them."""
    raw = SAMPLES[language][1].encode()
    at = data.draw(st.integers(0, len(raw)))
    put = data.draw(st.sampled_from([b"", b"\n", b"# so\n", b"(", b"}", b"'", b"\xff", b"if x:\n"]))
    raw = raw[:at] + put + raw[at:]
    found = items(raw, read(raw, language))
    if found is None:
        return
    assert b"".join(one.text + one.blank for one in found) == raw
    for one in walk(found):
        if one.items is not None:
            assert b"".join(inner.text + inner.blank for inner in one.items) == one.text


@settings(max_examples=10)
@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_whatever_the_bytes_there_is_an_answer(base: bytes, ours: bytes, theirs: bytes) -> None:
    assume(b"\0" not in base + ours + theirs)  # git refuses what is no text
    done = merged(base, ours, theirs)
    assert done.by == "conflict" or not done.markers
