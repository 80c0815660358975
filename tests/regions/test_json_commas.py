"""Commas of JSON: found, taken out and put in, whatever strings and comments look like."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.regions.json_commas import bare, ended, mended, put_in, signs

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.sampled_from(
        [",", "a, // b", "/* , */", "},", "[,", '"', "\\"]),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(), some, max_size=3), max_leaves=12)
INDENT = st.sampled_from([None, 0, 2])


@given(VALUES, INDENT, st.booleans())
def test_what_is_right_stays_and_what_was_ended_is_right_again(value: object, indent: int | None, plain: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    assert mended(text) == text and mended(ended(text)) == text


@given(st.dictionaries(st.text(), VALUES, min_size=1, max_size=4), st.data())
def test_members_that_are_taken_out_and_put_in_leave_it_readable(members: dict[str, object], data: st.DataObject) -> None:
    """Each member stands with its comma, or without: what is between them is put right."""
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in members.items()]
    text = "{\n" + "\n".join(f"{line}{data.draw(st.sampled_from([',', '']))}" for line in lines) + "\n}\n"
    assert json.loads(mended(text.encode())) == members
    for line in lines:
        assert bare(f"{line},\n".encode()) == bare(f"{line}\n".encode()) == f"{line}\n".encode()


@pytest.mark.parametrize(("text", "told"), [
    (b'{\n  "a": 1 // x, y\n  "b": 2,\n}\n', b'{\n  "a": 1, // x, y\n  "b": 2\n}\n'),
    (b'{\n  "a": 1, /* , */\n}\n', b'{\n  "a": 1 /* , */\n}\n'),
    (b'{,"a": 1,, "b": 2}', b'{"a": 1, "b": 2}'),
    (b"", b""), (b"[", b"["), (b'{"a', b'{"a'), (b"{}", b"{}"),
])
def test_comments_and_odd_ends(text: bytes, told: bytes) -> None:
    assert mended(text) == told


@pytest.mark.parametrize("sign", [b"/*", b"//", b'"', b'"\\', b"[", b",", b"{,", b'"a"', b"/"])
def test_a_hostile_file_is_read_through_once(sign: bytes) -> None:
    """What looked through the rest of it at each sign would not come to an end here."""
    text = sign * 100_000
    for told in (mended(text), ended(text), bare(text + b",")):
        assert len(told) <= 2 * len(text)


@pytest.mark.parametrize("text", [b"// a, b\n", b"/* , */", b"}", b",", b'"', b"\xff, \xfe"])
def test_what_is_no_member_is_looked_at_all_the_same(text: bytes) -> None:
    bare(text)
    put_in(text, b'"a": 1', b"\n")
    assert isinstance(signs(text), bytes)
