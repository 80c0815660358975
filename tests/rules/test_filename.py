"""File names as text: one text for each name, one name for each text, always valid UTF-8."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import parse

NAMES = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.lists(st.sampled_from([b"a", b"\xe4", b"\xff", b"/", "ü".encode(), "\uef80".encode(),
                              "\uefff".encode(), "\uef7f".encode(), "\U0001f600".encode(),
                              b"\xee", b"\xbe", b"\x80", b"\\", b"\n"]), max_size=8).map(b"".join),
)


@given(NAMES)
@example("\uef80".encode())
@example(b"\xee\xbe\x80"[:2])
def test_each_name_has_one_text_that_leads_back(name: bytes) -> None:
    text = file_names.from_bytes(name)
    text.encode()
    assert file_names.to_bytes(text) == name
    assert file_names.from_bytes(file_names.to_bytes(text)) == text
    if "\uef80" not in name.decode(errors="replace") and b"\xee" not in name and b"\xef" not in name:
        try:
            assert text == name.decode()
        except UnicodeDecodeError:
            assert file_names.hides_bytes(text)


@given(NAMES, NAMES)
def test_two_names_never_have_one_text(one: bytes, other: bytes) -> None:
    assert (file_names.from_bytes(one) == file_names.from_bytes(other)) == (one == other)


def test_people_are_shown_the_byte() -> None:
    assert file_names.shown(file_names.from_bytes(b"b\xe4d \xc3\xbc")) == "b\\xe4d ü"


@pytest.mark.parametrize("text", ["b\uefe4d", "\uef80", "d/\uefff"])
def test_no_lease_can_name_it(text: str) -> None:
    with pytest.raises(Refusal) as no:
        parse(text)
    assert no.value.code is Code.INVALID and "no UTF-8" in no.value.message
    no.value.message.encode()
