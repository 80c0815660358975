"""A difference with long lines, as people are shown it."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from coordinator.files.content import unified
from coordinator.files.long_lines import AROUND, GAP, SHOWN_MAX, shortened
from coordinator.words import requests as rq
from tests.world import World

LONG = "".join(f"function f{n}(){{return {n}}};" for n in range(12_000))


def test_what_differs_in_a_long_line_is_shown(world: World) -> None:
    world.write("min.js", LONG + "\n")
    world.acquire("ann", "min.js", ttl_s=60)
    world.write("min.js", LONG.replace("return 6000}", "return 0x1}") + "\n")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    (file,) = world.ask(rq.ReviewShow(review="R-1")).files
    assert file.cut and file.hunks == 1 and len(file.diff) < 1000
    assert re.search(r"^-…f?.*f6000\(\)\{return 6000\}.*…$", file.diff, re.MULTILINE), file.diff
    assert re.search(r"^\+….*f6000\(\)\{return 0x1\}.*…$", file.diff, re.MULTILINE), file.diff


texts = st.text(alphabet="ab\n\f\r-+", max_size=30) | st.builds(
    lambda n, m, mark: "x" * n + mark + "y" * m, st.integers(0, 3 * SHOWN_MAX), st.integers(0, 3 * SHOWN_MAX),
    st.sampled_from(["", "A", "B\n", "C" * 3000]))


@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4))
@example(["x" * 5000], ["x" * 5000 + "\n"])
@example(["x" * 2500 + "\f" + "y" * 2500], ["x" * 2500 + "\f-" + "y" * 2500])
def test_lines_stay_as_many_and_short_ones_as_they_are(before: list[str], after: list[str]) -> None:
    diff = unified("a.py", "\n".join(before).encode(), "\n".join(after).encode())
    lines, shown = diff.split("\n"), shortened(diff).split("\n")
    assert len(lines) == len(shown)
    for whole, part in zip(lines, shown, strict=True):
        assert part[:1] == whole[:1] and len(part) <= SHOWN_MAX + 2 * AROUND + 3
        if len(whole) <= SHOWN_MAX:
            assert part == whole
        else:
            assert part[1:].strip(GAP) in whole
