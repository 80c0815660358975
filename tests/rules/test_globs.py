"""Attacks on globs and on the overlap rule: tables for people, brute force for the rest."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.rules.globs import (
    PATTERN_CHARS_MAX,
    intersect,
    literal_prefix,
    matches,
    overlaps,
    reaches,
)
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Kind, Resource, kind_of, resource
from tests.steps import steps


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", ".py"], ["a/b.py", "a.pyc"]),
        ("**/*.py", ["a.py", "x/a.py", "x/y/a.py"], ["a.sql"]),
        ("src/**/*.sql", ["src/a.sql", "src/x/y/a.sql"], ["a.sql", "xsrc/a.sql"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "ab"]),
        ("a/*/", ["a/b/c", "a/b/c/d"], ["a/b"]),
        ("**", ["a", "a/b"], []),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("a?c", ["abc", "a.c"], ["ac", "a/c"]),
        ("[abc].py", ["a.py"], ["d.py", "[abc].py"]),
        ("[!abc].py", ["d.py"], ["a.py", "/.py"]),
        ("[^abc].py", ["d.py"], ["a.py"]),
        ("[a-c-]", ["b", "-"], ["d"]),
        ("[]x]", ["]", "x"], ["y"]),
        ("[\\]]", ["]"], ["\\"]),
        ("[z-a]", [], ["a", "z", "-"]),
        ("a[", ["a["], ["a"]),
        ("\\*.py", ["*.py"], ["a.py"]),
        ("a.b", ["a.b"], ["axb"]),
        ("**/a/**/b", ["a/b", "x/a/y/b", "a/a/b/b"], ["a", "b/a"]),
        ("a\n*", ["a\nb"], ["ab"]),
        ("[[]x", ["[x"], ["x"]),
    ],
)
def test_what_a_glob_matches(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in yes if not matches(pattern, path)] == []
    assert [path for path in no if matches(pattern, path)] == []


def test_case_can_be_folded() -> None:
    assert not matches("*.PY", "a.py")
    assert matches("*.PY", "a.py", fold_case=True)
    assert matches("[A-C]*", "b", fold_case=True)


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [("src/db/*.sql", "src/db"), ("*.sql", ""), ("a/b", "a"), ("a/**", "a"), ("a/[b]/c/d", "a")],
)
def test_literal_prefix(pattern: str, prefix: str) -> None:
    assert literal_prefix(pattern) == prefix


@pytest.mark.parametrize(
    ("one", "two", "meet"),
    [
        ("src/*.py", "src/*.sql", False),
        ("src/**", "**/*.sql", True),
        ("a/*/c", "a/b/*", True),
        ("a/*", "a/*/*", False),
        ("*a", "b*", True),
        ("[a-c]x", "[d-f]x", False),
        ("[!a]", "a", False),
        ("**/x/**", "**/y/**", True),
        ("**/x", "**/y", False),
        ("a?", "?", False),
        ("\\*", "[*]", True),
        ("*a*b*", "*c*", True),
        ("ab*", "ba*", False),
    ],
)
def test_which_globs_meet(one: str, two: str, meet: bool) -> None:
    assert intersect(one, two) is meet
    assert intersect(two, one) is meet


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("*" * (PATTERN_CHARS_MAX + 1), Code.LIMIT),
        ("a/" * 64 + "b", Code.LIMIT),
        ("[[:alpha:]]", Code.INVALID),
    ],
)
def test_bad_patterns_are_refused(pattern: str, code: Code) -> None:
    with pytest.raises(Refusal) as no:
        matches(pattern, "a")
    assert no.value.code is code


def test_hostile_patterns_take_no_exponential_time() -> None:
    stars, parts = "*a" * 200 + "b", "**/a*a*a/" * 30 + "b"

    def ask() -> None:
        assert not matches(stars, "a" * 255)
        assert not matches(parts, "/".join(["aaaa"] * 400))
        assert not matches("**/*/" * 30 + "b", "/".join(["aaaa"] * 400))
        assert not intersect(stars, "*a" * 200 + "c")
        assert not intersect(parts, "**/*aa*/" * 31 + "c")
        assert reaches(parts, "/".join(["b"] * 400))

    steps(ask)


# --- the overlap rule -----------------------------------------------------------------------


def of(text: str) -> Resource:
    return resource(text, kind_of(text))


@pytest.mark.parametrize(
    ("one", "two", "meet"),
    [
        ("a.py", "a.py", True),
        ("a.py", "b.py", False),
        ("a.py", "a.pyc", False),
        ("a/", "a/b/c.py", True),
        ("a/", "ab.py", False),
        ("./", "a/b.py", True),
        ("./", "key:a", False),
        ("./", "**/*.py", True),
        ("a.py", "a.py::C", True),
        ("a.py", "a.py::<header>", True),
        ("a.py::C", "a.py::C.m", True),
        ("a.py::C", "a.py::Cx", False),
        ("a.py::C.m", "a.py::C.n", False),
        ("a.py::<header>", "a.py::C.m", True),
        ("a.py::<header>", "a.py::<header>", True),
        ("a.py::<header>", "b.py::C", False),
        ("a/", "a/b.py::C", True),
        ("key:account", "key:account:1", True),
        ("key:account:1", "key:account:2", False),
        ("key:account:1", "key:account:12", False),
        ("key:a", "git:a", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a.py::C.m", True),
        ("src/*.py", "src/a.sql::C.m", False),
        ("src/*.py", "src/a.py::<header>", True),
        ("src/*.py", "src/a/", False),
        ("src/**", "src/a/", True),
        ("src/*.py", "src/", True),
        ("src/*.py", "./", True),
        ("src/*/x/*.py", "src/a/", True),
        ("src/*/x/*.py", "src/a/y/", False),
        ("src/*.py", "src/*.sql", False),
        ("src/*.py", "src/a*", True),
        ("**", "key:a", False),
        ("*", "git:index", False),
    ],
)
def test_overlap(one: str, two: str, meet: bool) -> None:
    assert overlaps(of(one), of(two)) is meet
    assert overlaps(of(two), of(one)) is meet


def test_overlap_respects_folded_scopes() -> None:
    held = resource("Src/A.PY", "file", fold_case=True)
    for name, kind in [("sRC/a.py", "file"), ("SRC/*.py", "glob"), ("*/?.Py", "glob")]:
        assert overlaps(held, resource(name, kind, fold_case=True))  # type: ignore[arg-type]
    assert not overlaps(of("Src/A.PY"), of("src/*.py"))


def test_overlap_of_composed_and_decomposed_spellings() -> None:
    assert overlaps(of("a\u0308/x"), of("\u00e4/*"))
    assert overlaps(of("\u00e4/x"), of("a\u0308/*"))


ALPHABET = "ab"
NAMES = ["".join(n) for size in (1, 2, 3) for n in itertools.product(ALPHABET, repeat=size)]
SHORT = [name for name in NAMES if len(name) < 3]
UNIVERSE = [
    *NAMES,
    *("/".join(p) for p in itertools.product(SHORT, repeat=2)),
    *("/".join(p) for p in itertools.product(ALPHABET, repeat=3)),
    *("/".join(p) for p in itertools.product(ALPHABET, repeat=4)),
]
GLOB_PART = st.one_of(
    st.just("**"),
    st.lists(
        st.sampled_from(["a", "b", "?", "*", "[a]", "[!a]", "[ab]"]), min_size=1, max_size=2
    ).map("".join),
)
GLOB = st.lists(GLOB_PART, min_size=1, max_size=2).map("/".join)


def naive(pattern: list[str], path: list[str]) -> bool:
    """The definition, written down once more as plainly as can be."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(path)
        return naive(pattern[1:], path) or (bool(path) and naive(pattern, path[1:]))
    return bool(path) and naive_part(pattern[0], path[0]) and naive(pattern[1:], path[1:])


def naive_part(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return naive_part(pattern[1:], text) or (bool(text) and naive_part(pattern, text[1:]))
    if pattern[0] == "[":
        end = pattern.index("]")
        members = pattern[1:end]
        hit = bool(text) and (text[0] in members) != members.startswith("!")
        return hit and naive_part(pattern[end + 1 :], text[1:])
    return bool(text) and pattern[0] in ("?", text[0]) and naive_part(pattern[1:], text[1:])


@settings(max_examples=150, deadline=None)
@given(GLOB)
def test_matching_is_what_the_definition_says(pattern: str) -> None:
    glob = resource(pattern, "glob")
    for path in UNIVERSE:
        says = naive(pattern.split("/"), path.split("/"))
        assert matches(pattern, path) is says
        assert overlaps(glob, resource(path, "file")) is says


@settings(max_examples=150, deadline=None)
@given(GLOB, GLOB)
def test_intersection_is_what_brute_force_finds(one: str, two: str) -> None:
    # Parts of at most two signs over two letters: what they share shows within the universe, but
    # for `[!a]` and `?`, which also match letters outside of it; with `b` they match one inside.
    found = any(matches(one, path) and matches(two, path) for path in UNIVERSE)
    assert intersect(one, two) is found
    assert overlaps(resource(one, "glob"), resource(two, "glob")) is found


@settings(max_examples=150, deadline=None)
@given(GLOB, st.sampled_from(["", "a", "b", "ab", "a/a", "a/b"]))
def test_reaching_below_a_directory_is_what_brute_force_finds(pattern: str, below: str) -> None:
    start = f"{below}/" if below else ""
    tails = [*UNIVERSE]
    found = any(matches(pattern, start + tail) for tail in tails)
    assert reaches(pattern, below) is found
    assert overlaps(resource(below, "dir"), resource(pattern, "glob")) is found


ANY = st.one_of(
    GLOB.map(lambda text: resource(text, "glob")),
    st.sampled_from(UNIVERSE).flatmap(
        lambda path: st.sampled_from(
            [
                resource(path, "file"),
                resource(path, "dir"),
                resource(f"{path}::a.b", "region"),
                resource(f"{path}::a", "region"),
                resource(f"{path}::<header>", "region"),
            ]
        )
    ),
    st.sampled_from(["key:a", "key:a:b", "key:b"]).map(lambda text: resource(text, "key")),
    st.just(resource("./", "dir")),
)


@settings(max_examples=400, deadline=None)
@given(ANY, ANY)
def test_overlap_is_symmetric_and_reflexive(one: Resource, two: Resource) -> None:
    assert overlaps(one, one)
    assert overlaps(one, two) is overlaps(two, one)


@pytest.mark.parametrize("kind", ["file", "dir"])
def test_a_file_and_a_directory_of_one_path_are_one(kind: Kind) -> None:
    assert overlaps(resource("a/b", kind), resource("a/b", "file"))
