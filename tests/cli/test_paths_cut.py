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


FILE = "src/main/java/com/example/account/AccountService.java"


def table(cells: list[str], width: int | None) -> list[str]:
    return lists.columns(("resource", "state"), [(cell, "ready") for cell in cells], "/=", width)[1:]


@pytest.mark.parametrize("width", [46, 60, 80])
def test_no_two_rows_are_cut_to_the_same(width: int) -> None:
    rows = table([f"services/customer-account-{n}/{FILE}" for n in range(1, 31)], width)
    assert len({*rows}) == 30 and all(lists.cell_len(row) <= width for row in rows) and "30/s" in rows[-1]
    assert all("AccountService.java" in row for row in rows)


def test_of_several_names_the_first_is_shown_and_how_many_more() -> None:
    both = lists.Names([f"a/{FILE}", "b/Other.java"])
    assert table([both], None) == [f"a/{FILE}, b/Other.java  ready"]
    assert table([both], 40) == ["a/src/mai…/AccountService.java +1  ready"]
    assert table([lists.Names(["a.py", "b.py"])], 40) == ["a.py, b.py  ready"] and table([lists.Names([])], 40) == ["          ready"]


@given(st.lists(st.text(st.sampled_from("abc/1."), min_size=1, max_size=30), min_size=1, max_size=6), st.integers(3, 30))
def test_a_column_fits_and_each_cell_is_of_its_own_path(cells: list[str], width: int) -> None:
    for cell, shown in zip(cells, lists.paths_within(cells, width), strict=True):
        assert lists.cell_len(shown) <= width and (shown == cell or "…" in shown)
        pieces, at = shown.replace("…/", "…").split("…"), 0
        for piece in pieces:
            at = cell.index(piece, at) + len(piece)


def test_an_id_that_a_text_begins_with_is_never_cut() -> None:
    rows = [(f"deep/folder/with/long/name/file_{n}.py", f"agent-with-long-name-{n}", "30m", "exclusive", f"T-{n} Task with a title")
            for n in range(8, 13)]
    lines = lists.columns(("resource", "holder", "left", "mode", "for"), rows, "//==~", 60)
    assert all(len(line) <= 60 for line in lines)
    assert [f"T-{n}…" in line for n, line in zip(range(8, 13), lines[1:], strict=True)] == [True] * 5, lines
