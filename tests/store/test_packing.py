"""Kept bytes: whatever reads a zlib stream reads them, short or long."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from coordinator.store.statements import DEFLATED_FROM, packed


@given(st.binary(max_size=3 * DEFLATED_FROM))
def test_what_is_packed_comes_out(data: bytes) -> None:
    assert zlib.decompress(packed(data)) == data
    assert len(packed(data)) <= len(data) + 16
