"""A fix that one side has, and the other has, too, with more: the text of the one that has all is taken."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.merging import near_lines
from tests.effort import examples
from tests.merging.asked import by_regions, conflict

BODY = "def f(items):\n    total = 0\n    for item in items:\n        total += item\n    return total\n"
FIXED = BODY.replace("    total = 0\n", "    items = list(items)\n    total = sum(items[:1])\n")
MORE = FIXED.replace("    total = sum(items[:1])\n", "    total = sum(items[:1])\n    log.debug('begun')\n")


@pytest.mark.parametrize("turned", [False, True])
def test_who_has_all_of_the_other_is_taken(turned: bool) -> None:
    sides = (MORE, FIXED) if turned else (FIXED, MORE)
    assert by_regions(BODY, *sides) == MORE


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("one", "other"), [
    (FIXED, MORE.replace("    items = list(items)\n", "    items = tuple(items)\n")),  # the fix is another
    (FIXED, MORE.replace("    total = sum(items[:1])\n", "    total = 0\n")),  # half of it
    (BODY.replace("        total += item\n", ""), BODY.replace("        total += item\n", "        total += 2 * item\n")),  # taken out is not fixed
    (BODY.replace("    total = 0\n", "    )\n"), BODY.replace("    total = 0\n", "    )\n    total = (\n")),  # it says nothing of its own
    (FIXED, MORE.replace("    log.debug('begun')\n", "    log.debug('begun')\n    total = 0\n")),  # what was replaced is there again
])
def test_who_has_not_stays_in_conflict(one: str, other: str, turned: bool) -> None:
    conflict(BODY, *((other, one) if turned else (one, other)))


@pytest.mark.parametrize("turned", [False, True])
def test_of_what_both_added_too(turned: bool) -> None:
    base = "import os\n"
    one = base + "\n\ndef f():\n    return os.name\n"
    more = base + "\n\n# It tells.\ndef f():\n    return os.name\n"
    assert by_regions(base, *((more, one) if turned else (one, more))) == more
    conflict(base, *((more, one.replace("os.name", "os.sep")) if turned else (one.replace("os.name", "os.sep"), more)))


@settings(max_examples=examples(200))
@given(
    base=st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "}"]), min_size=1, max_size=8),
    ours=st.lists(st.sampled_from(["alpha", "beta", "gamma", "mine", "both"]), max_size=8),
    theirs=st.lists(st.sampled_from(["alpha", "beta", "delta", "theirs", "both"]), max_size=8),
)
def test_whatever_is_merged_has_what_each_side_put_in(base: list[str], ours: list[str], theirs: list[str]) -> None:
    texts = ["".join(f"{line}\n" for line in side).encode() for side in (base, ours, theirs)]
    done = near_lines.merged(*texts)
    assert (done is None) == (near_lines.merged(texts[0], texts[2], texts[1]) is None)
    if done is None:
        return
    lines = done.decode().split("\n")
    assert lines.count("mine") == ours.count("mine") and lines.count("theirs") == theirs.count("theirs")
    assert max(ours.count("both"), theirs.count("both")) <= lines.count("both") <= ours.count("both") + theirs.count("both")
