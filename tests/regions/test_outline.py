"""The rule by which a file is divided: partition, names, what belongs to what."""

from __future__ import annotations

import random
import unicodedata
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.regions import names
from coordinator.regions.languages import language_of, languages
from coordinator.regions.outline import Outline, Region
from tests.regions.asked import outline
from tests.regions.held import definitions, divided, held
from tests.regions.samples import SAMPLES

BY_LANGUAGE = sorted(SAMPLES)


def by_name(found: Outline) -> dict[str, Region]:
    return {region.name: region for region in found.regions}


def own(data: bytes, region: Region) -> bytes:
    return b"".join(data[start:end] for start, end in region.spans)


def test_each_language_has_a_sample() -> None:
    assert set(SAMPLES) == set(languages())


@pytest.mark.parametrize("language", BY_LANGUAGE)
def test_what_is_in_a_sample(language: str) -> None:
    file, text, expected = SAMPLES[language]
    assert language_of(file) == language
    for data in (text.encode(), text.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + text.encode()):
        found = outline(data, language)
        held(data, found)
        if language != "markdown" or data == text.encode():
            assert [f"{one.kind} {one.name}" for one in found.regions] == expected.split("\n")


@pytest.mark.parametrize("language", BY_LANGUAGE)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(data=st.data())
def test_edits_at_random_keep_a_partition(language: str, data: st.DataObject) -> None:
    """Also broken code, and bytes that are no text, have regions; whoever was not touched keeps its name."""
    text = SAMPLES[language][1].encode()
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(len(text), at + 30)))
    put = data.draw(st.one_of(
        st.binary(max_size=8), st.sampled_from([b"\0", b"{", b"}", b'"', b"'''", b"(", b"\n\n", b"\r", b"\t", b"#2", b"::", b"\xff"]),
        st.text(max_size=6).map(str.encode),
    ))
    changed = text[:at] + put + text[until:]
    held(changed, outline(changed, language))
    held(changed, outline(changed, language, nested=True))


@pytest.mark.parametrize("language", [one for one in BY_LANGUAGE if one not in ("json",)])
def test_what_is_added_renames_nobody(language: str) -> None:
    """Each region doubled in its place: all others keep name and bytes (json has commas)."""
    text = SAMPLES[language][1].encode()
    before = outline(text, language)
    for region in before.regions:
        if len(region.spans) != 1 or region.kind == "header":
            continue
        start, end = region.spans[0]
        changed = text[:end] + text[start:end] + text[end:]
        held(changed, outline(changed, language))
        after = by_name(outline(changed, language))
        base = region.name.partition("#")[0]
        for other in before.regions:
            if other.name != "<header>" and not other.name.startswith(base) and not base.startswith(other.name + "."):
                assert other.name in after, (language, region.name, other.name)
                assert after[other.name].hash == other.hash, (language, region.name, other.name)


@pytest.mark.parametrize("language", BY_LANGUAGE)
def test_a_region_put_back_gives_the_file(language: str) -> None:
    data = SAMPLES[language][1].encode()
    for region in outline(data, language, nested=True).regions:
        for start, end in region.spans:
            assert data[:start] + data[start:end] + data[end:] == data
    assert outline(data, language) == outline(bytes(data), language)


def test_what_belongs_to_what() -> None:
    _, text, _ = SAMPLES["python"]
    data = text.encode()
    found = by_name(outline(data, "python"))
    assert own(data, found["g"]).startswith(b"# About g.\n@decorate(\n    1,\n)\ndef g(x):")
    assert own(data, found["g"]).endswith(b"return inner  # end\n\n"), "blank lines below, not above"
    assert own(data, found["C.m"]).startswith(b"    # About m.\n    @property\n")
    assert own(data, found["C"]) == b'class C(Base):\n    """Doc."""\n    x = 1\n\n    y = 2\n\n    class D:\n'.replace(b"    class D:\n", b"")
    assert own(data, found["ALL"]) == b"ALL = []\nALL += [1]\n"
    assert own(data, found["<header>"]) == b'#!/usr/bin/env python\n"""What it is."""\nimport os\n\nprint("between")\n\n'
    assert found["LIMIT"].first_line == 5 and found["LIMIT"].line == 6
    assert (found["C"].start, found["C"].end) == (text.index("class C"), text.index('print("between'))
    nested = by_name(outline(data, "python", nested=True))
    assert nested["g.inner"].kind == "nested" and b"inner():" not in own(data, nested["g"])


def test_several_on_one_line_are_apart() -> None:
    data = b"function f() {} function g() {}\nclass A { m() {} n() {} } // end\n"
    found = by_name(outline(data, "javascript"))
    assert own(data, found["f"]) == b"function f() {} "
    assert own(data, found["g"]) == b"function g() {}\n"
    assert own(data, found["A"]) == b"class A { } // end\n".replace(b"{ }", b"{  }")
    assert own(data, found["A.m"]) == b"m() {} " and own(data, found["A.n"]) == b"n() {}"


def test_a_comment_that_stands_apart_stays_apart() -> None:
    data = b"# License\n\ndef f(): pass\n# after f\n\n# about g\n# more\ndef g(): pass\n"
    found = by_name(outline(data, "python"))
    assert own(data, found["<header>"]) == b"# License\n\n# after f\n\n"
    assert own(data, found["g"]) == b"# about g\n# more\ndef g(): pass\n"


@pytest.mark.parametrize(("data", "language"), [
    (b"", "python"), (b"\n\n", "python"), (b"   ", "json"), (b"\0\0", "python"), (b"\xff\xfe\x00a", "yaml"),
    (b"a = 1\0\ndef f(): pass\n\0", "python"), (b"\tdef f():\r\n\t\tpass\r\n", "python"), (b"def f():\r  pass\r", "python"),
    (b"def f(:\n  pass\nclass A\n def g(self): pass\n", "python"), (b"def f(): pass", "python"),
    (b"{" * 3000, "c"), (b"[" * 3000, "json"), (b'{"a":' * 3000, "json"), (b"# a\n" * 300, "markdown"),
    (b"".join(b" " * i + b"class A:\n" for i in range(80)) + b" " * 80 + b"x = 1\n", "python"),
    ("def été(): pass\ndef e\u0301te\u0301(): pass\n".encode(), "python"), (b'{"\\ud800": 1, "\xff": 2, "\xff": 3}', "json"),
    (b'{"' + b"k" * 5000 + b'": 1, "' + b"k" * 5001 + b'": 1}', "json"), (b'{"<header>": 1, "a#2": 1, "a": 1, "a": 2}', "json"),
])
def test_odd_files_are_divided(data: bytes, language: str) -> None:
    found = outline(data, language)
    held(data, found)
    assert found.regions[0].name == "<header>" and not found.note


def test_ten_thousand_functions() -> None:
    data = b"".join(b"def f%d():\n    return %d\n\n" % (i, i) for i in range(10_000))
    found = outline(data, "python")
    held(data, found)
    assert len(found.regions) == 10_001


def test_an_unknown_language_is_one_region() -> None:
    for language in (None, "klingon"):
        found = outline(b"a\nb\n", language)
        held(b"a\nb\n", found)
        assert [one.kind for one in found.regions] == ["file"]
    assert outline(b"x" * 5_000_001, "python").note


def test_languages_are_known_by_name_or_first_line() -> None:
    for path, data, language in (
        ("a/b.PY", b"", "python"), ("x", b"#!/usr/bin/env python3\n", "python"), ("run", b"#!/bin/bash -e\n", "bash"),
        ("run", b"#!/usr/bin/env -S node --x\n", "javascript"), ("Gemfile", b"", "ruby"), ("a.txt", b"#!/bin/sh\n", None),
        ("x", b"", None), ("run", b"#!/usr/bin/python3.11\n", "python"), ("a.h", b"", "cpp"), ("run", b"#!", None),
    ):
        assert language_of(path, data) == language, path


@given(st.binary(max_size=200))
def test_any_bytes_make_a_lawful_part(raw: bytes) -> None:
    made = names.part(raw)
    assert made and not set(made) & set("./:#<>\\\0\n") and unicodedata.is_normalized("NFC", made)
    assert len(made.encode()) <= names.PART_BYTES_MAX
    assert all(names.parts(raw))


def test_the_nearest_names() -> None:
    known = ["<header>", "LIMIT", "A.charge", "A.refund", "B.charge", "top"]
    assert names.nearest("charg", known)[:2] == ["A.charge", "B.charge"]
    assert names.nearest("A.charges", known)[0] == "A.charge"
    assert names.nearest("x", ["<header>"]) == ["<header>"]
    assert names.is_known("A", known) and names.is_known("<header>", []) and not names.is_known("A.c", known)


def test_a_sample_of_installed_python(corpus: list[Path]) -> None:
    """As Python's own parser finds them; `make regions-corpus` takes all files."""
    chosen = random.Random(7).sample([file for file in corpus if file.stat().st_size < 60_000], 80)
    for file in chosen:
        data = file.read_bytes()
        found = outline(data, "python")
        held(data, found)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = definitions(data)
            except (SyntaxError, ValueError):
                continue
        assert divided(found) >= expected, file
