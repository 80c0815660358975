"""A path in a line that is too short for it: what is left of it fits, and tells which file it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.commands import lists


@pytest.mark.parametrize(("width", "shown"), [
    (60, "src/main/java/org/DataSourceProperties.java::Pool.size"), (44, "src/ma…/DataSourceProperties.java::Pool.size"),
    (38, "…/DataSourceProperties.java::Pool.size"), (30, "…/DataSourc…es.java::Pool.size"), (11, "src…ol.size")])
def test_the_name_of_the_file_is_kept_longest(width: int, shown: str) -> None:
    assert lists.middle("src/main/java/org/DataSourceProperties.java::Pool.size", width) == shown


@given(st.text(st.sampled_from("ab/.:字é"), max_size=40), st.integers(3, 30))
def test_what_is_cut_fits_and_keeps_its_end(text: str, width: int) -> None:
    cut = lists.middle(text, width)
    assert lists.cell_len(cut) <= width and (cut == text or ("…" in cut and text.endswith(cut.rpartition("…")[2])))
