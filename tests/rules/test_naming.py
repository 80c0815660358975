"""Attacks on the syntax of resources and on their scopes, whose prefix order is containment."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.rules.globs import overlaps
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import (
    Kind,
    Resource,
    ancestors,
    escape,
    file_scope,
    kind_of,
    literal_prefix,
    parse,
    path_in,
    reach,
    resource,
    unescape,
)


@pytest.mark.parametrize(
    ("typed", "kind", "path", "rest"),
    [
        ("utils/constants.py", "file", "utils/constants.py", ""),
        ("parsers/", "dir", "parsers/", ""),
        (".", "dir", ".", ""),
        ("./", "dir", "./", ""),
        ("..", "dir", "..", ""),
        ("src/..", "dir", "src/..", ""),
        ("src/**/*.sql", "glob", "src/**/*.sql", ""),
        ("a?.py", "glob", "a?.py", ""),
        ("app/[id].tsx", "file", "app/[id].tsx", ""), ("app/[id]*.tsx", "glob", "app/[id]*.tsx", ""), ("app/[id]/", "dir", "app/[id]/", ""),
        ("src/pay.py::Processor.charge", "region", "src/pay.py", "Processor.charge"),
        ("src/pay.py::<header>", "region", "src/pay.py", "<header>"),
        ("app/[id].tsx::Page", "region", "app/[id].tsx", "Page"),
        ("key:account:12345", "key", "", "key:account:12345"),
        ("git:index", "key", "", "git:index"),
        ("key:https:example.org/a", "key", "", "key:https:example.org/a"),
        ("makefile::all", "region", "makefile", "all"),
        ("src/key:1", "file", "src/key:1", ""),
        ("./::odd", "file", "./::odd", ""),
        ("Straße/ä b.py", "file", "Straße/ä b.py", ""),
        ("...", "file", "...", ""),
    ],
)
def test_what_is_typed_is_taken_apart(typed: str, kind: Kind, path: str, rest: str) -> None:
    assert kind_of(typed) == kind
    assert parse(typed) == (kind, path, rest)


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("a\0b", "NUL"),
        ("a\nb", "U+000A"),
        ("a\x7fb", "U+007F"),
        ("a\u2028b", "U+2028"),
        ("x" * 4097, "4096"),
        ("ä" * 2049, "4096"),
        ("a\udce4.py", "UTF-8"),
        ("::f", "one side"),
        ("a.py::", "one side"),
        ("a.py::C..m", "empty part"),
        ("a.py::.m", "empty part"),
        ("a.py::b::c", "more than one"),
        ("src/*.py::C", "wildcard"),
        ("key:", "empty part"),
        ("key:a::b", "empty part"),
        ("key:a:", "empty part"),
        ("key:account:*", "no wildcards"),
    ],
)
def test_what_can_name_nothing_is_refused_in_words(typed: str, word: str) -> None:
    with pytest.raises(Refusal) as no:
        parse(typed)
    assert no.value.code is Code.INVALID
    assert word in no.value.message
    no.value.message.encode()  # the refusal itself must be printable


@pytest.mark.parametrize(
    ("name", "kind", "shown", "scope"),
    [
        ("./", "dir", "./", "p/"),
        ("", "dir", "./", "p/"),
        ("a", "dir", "a/", "p/a/"),
        ("a/", "dir", "a/", "p/a/"),
        ("a/b.py", "file", "a/b.py", "p/a/b.py/"),
        ("a/b.py::C.m", "region", "a/b.py::C.m", "p/a/b.py/::C/m/"),
        ("a/b.py::<header>", "region", "a/b.py::<header>", "p/a/b.py/::<header>/"),
        ("key:account:1", "key", "key:account:1", "k/key/account/1/"),
        ("key:a/b:1", "key", "key:a/b:1", "k/key/a\\sb/1/"),
        ("git:index", "key", "git:index", "k/git/index/"),
        ("src/**/*.sql", "glob", "src/**/*.sql", "p/src/"),
        ("*.sql", "glob", "*.sql", "p/"),
        ("app/\\[id\\]/*", "glob", "app/\\[id\\]/*", "p/app/[id]/"),
        ("a/::x", "file", "a/::x", "p/a/\\::x/"),
        ("\\x", "file", "\\x", "p/\\\\x/"),
        (unicodedata.normalize("NFD", "ä.py"), "file", unicodedata.normalize("NFD", "ä.py"),
         "p/ä.py/"),
    ],
)
def test_scopes(name: str, kind: Kind, shown: str, scope: str) -> None:
    assert resource(name, kind) == Resource(shown, kind, scope)


def test_case_is_folded_in_paths_but_not_in_regions_and_keys() -> None:
    assert resource("A/B.py", "file", fold_case=True).scope == "p/a/b.py/"
    assert resource("A/B.py", "file", fold_case=True).name == "A/B.py"
    assert resource("A.py::Cls", "region", fold_case=True).scope == "p/a.py/::Cls/"
    assert resource("key:A", "key", fold_case=True).scope == "k/key/A/"
    assert resource("Src/*.PY", "glob", fold_case=True) == Resource("src/*.py", "glob", "p/src/")


PART = st.text(st.sampled_from("ab:\\.<é"), min_size=1, max_size=4).filter(
    lambda part: part not in (".", "..")
)
PATH = st.lists(PART, min_size=1, max_size=4).map("/".join)


@given(PATH, PATH)
def test_a_scope_is_a_prefix_exactly_when_the_path_contains(one: str, two: str) -> None:
    one_scope, two_scope = resource(one, "file").scope, resource(two, "file").scope
    contains = (unicodedata.normalize("NFC", two) + "/").startswith(
        unicodedata.normalize("NFC", one) + "/"
    )
    assert two_scope.startswith(one_scope) == contains
    assert path_in(one_scope) == unicodedata.normalize("NFC", one)


@given(PATH)
def test_no_path_reads_as_a_region(path: str) -> None:
    scope = resource(path, "file").scope
    assert file_scope(scope) == scope
    assert file_scope(scope + "::C/m/") == scope


@given(st.lists(PART, max_size=5), st.booleans())
def test_ancestors_are_all_proper_prefixes(parts: list[str], region: bool) -> None:
    scope = resource("/".join(parts), "dir").scope + ("::C/m/" if region and parts else "")
    cut = [scope[: i + 1] for i, sign in enumerate(scope) if sign == "/"]
    assert ancestors(scope) == tuple(cut[:-1])


@given(st.text(st.sampled_from("ab*?[]\\/"), max_size=8))
def test_an_escaped_path_is_a_literal_glob(path: str) -> None:
    assert unescape(escape(path)) == path
    assert literal_prefix(escape(path)) == path.rpartition("/")[0]


@given(st.data())
def test_reach_misses_nothing_that_overlaps(data: st.DataObject) -> None:
    kinds: list[tuple[Kind, list[str]]] = [
        ("file", ["a", "a/b", "b"]),
        ("dir", ["./", "a", "a/b"]),
        ("region", ["a::C", "a::C.m", "a::<header>", "a/b::C", "a/b::<header>"]),
        ("glob", ["*", "a/*", "**", "**/b", "a/**"]),
        ("key", ["key:a", "key:a:b", "git:a"]),
    ]
    pool = [resource(name, kind) for kind, names in kinds for name in names]
    asked, held = data.draw(st.sampled_from(pool)), data.draw(st.sampled_from(pool))
    exact, prefix = reach(asked.kind, asked.scope)
    if overlaps(asked, held):
        assert held.scope in exact or held.scope.startswith(prefix)
