"""Facts follow from bytes alone, whatever these are, and name regions as `coordinator.regions` does."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.meaning.facts import Facts
from coordinator.meaning.reading import FILE_BYTES_MAX, read
from coordinator.meaning.terms import term
from tests.effort import examples
from tests.meaning.sources import sources
from tests.regions.asked import outline
from tests.regions.conftest import corpus, python_files

__all__ = ["corpus"]


def held(data: bytes) -> None:
    facts = read(data)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(facts), type=Facts) == facts == read(data)
    if facts.note:
        assert not facts.scopes and not facts.sites
        return
    regions = [one for one in outline(data, "python").regions if one.name != "<header>"]
    assert {one.name for one in regions} == {name for _, _, name in facts.regions}
    starts: dict[int, list[str]] = {}
    for one in regions:
        starts.setdefault(one.line, []).append(one.name)
    for line, names in starts.items():
        assert facts.region(line) in names
    for site in facts.sites:
        assert site.scope in facts.scopes
        assert term(site.text).kind in ("name", "attribute"), site.text
    for scope in facts.scopes.values():
        assert scope.above is None or scope.above in facts.scopes


@settings(max_examples=examples(15))
@given(sources())
def test_of_made_files(text: str) -> None:
    held(text.encode())
    assert not read(text.encode()).note
    for other in (text.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + text.encode()):
        assert [name for _, _, name in read(other).regions] == [name for _, _, name in read(text.encode()).regions]
        assert len(read(other).sites) == len(read(text.encode()).sites)


def test_of_files_that_people_wrote() -> None:
    files = python_files()
    for file in random.Random(75).sample(files, examples(4)):
        if file.stat().st_size < 30_000:
            held(file.read_bytes())


@settings(max_examples=examples(60))
@given(st.binary(max_size=200))
def test_of_any_bytes(data: bytes) -> None:
    read(data)


@pytest.mark.parametrize("data", [
    b"def f(:\n", b"\0", b"x = '\xff'\n", b"# coding: no-such\nx=1\n", b"(" * 5000, b"x" + b".a" * 20_000,
    b"a" + b"+a" * 50_000, b"-" * 100_000 + b"1", b"x=1\n" * (FILE_BYTES_MAX // 4 + 1),
    b"__all__ = ['\\ud800']\ndef f(a: '\\ud800', *b): getattr(a, '\\ud800' + b); import_module('\\ud800')\n",
    b"f(" * 90 + b")" * 90, b"if x:\n" + b"".join(b" " * n + b"if x:\n" for n in range(1, 99)),
], ids=lambda data: repr(data[:12]))
def test_of_hostile_bytes(data: bytes) -> None:
    found = read(data)
    assert found.note or found.scopes
    assert len(msgspec.msgpack.encode(found)) < 10 * len(data) + 1000


def test_dynamic_uses_are_marked(tmp_path: Path) -> None:
    facts = read(b"""
from x import *
def f(a, n):
    getattr(a, "on_" + n)(); setattr(a, n, 1); eval(n); exec(n); __import__(n); f(*a); getattr(a, "plain")
""")
    assert [one.kind for one in facts.markers] == [
        "wildcard", "getattr", "setattr", "eval", "exec", "__import__", "starred"]
    assert facts.markers[1].prefix == "on_"
    assert "a.plain" in {site.text for site in facts.sites}
