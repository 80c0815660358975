"""The hunks of a file of a review, by parts, also of one that is too large to be shown whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.files import large_hunks
from coordinator.settings import Reviewing, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World

MB = 1 << 20


def lines(count: int, *changed: int) -> str:
    return "".join(f"line {n}{' changed' if n in changed else ''}\n" for n in range(count))


def flagged(world: World, before: str | bytes, after: str | bytes | None) -> None:
    """R-1: the change of one file."""
    place = world.root / "big.txt"
    place.write_bytes(before if isinstance(before, bytes) else before.encode())
    world.acquire("ann", "big.txt", ttl_s=5)
    if after is None:
        place.unlink()
    else:
        place.write_bytes(after if isinstance(after, bytes) else after.encode())
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())


def hunks(world: World, **more: int) -> rq.HunkList:
    return world.ask(rq.ReviewHunks(review="R-1", file="big.txt", **more))


#: As many lines as a file of more than 5 MB has.
MANY = 450_000
CHANGED = range(1000, 390_000, 5000)


def test_a_file_of_five_megabytes_is_shown_hunk_by_hunk(world: World) -> None:
    before = lines(MANY)
    assert len(before) > 5 * MB
    flagged(world, before, lines(MANY, *CHANGED))
    (file,) = world.ask(rq.ReviewShow(review="R-1")).files
    assert "Large files" in file.diff and file.hunks == 0
    first = hunks(world, limit=3)
    assert (first.total, first.next, first.divided) == (len(CHANGED), 3, False)
    assert [hunk.number for hunk in first.items] == [1, 2, 3]
    assert first.items[0].text == (
        "@@ -998,7 +998,7 @@ line 996\n line 997\n line 998\n line 999\n-line 1000\n+line 1000 changed\n"
        " line 1001\n line 1002\n line 1003\n")
    last = hunks(world, skip=len(CHANGED) - 1)
    assert [hunk.number for hunk in last.items] == [len(CHANGED)] and last.next is None
    assert f"+line {CHANGED[-1]} changed\n" in last.items[0].text and not last.items[0].cut


def test_hunks_of_a_small_file_are_those_that_a_verdict_names(world: World) -> None:
    flagged(world, lines(60), lines(60, 3, 30, 55))
    found = hunks(world, skip=1)
    assert (found.total, found.divided, [hunk.number for hunk in found.items]) == (3, True, [2, 3])
    (file,) = world.ask(rq.ReviewShow(review="R-1")).files
    assert "".join(hunk.text for hunk in hunks(world).items) == file.diff.split("+++ b/big.txt\n")[1]
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert", files=["big.txt"], hunks=[2]))
    assert (world.root / "big.txt").read_text() == lines(60, 3, 55)


def test_what_was_made_or_removed_is_one_hunk_that_is_cut(world: World) -> None:
    flagged(world, lines(MANY), None)
    (hunk,) = hunks(world).items
    assert hunk.cut and len(hunk.text) <= large_hunks.HUNK_BYTES_MAX
    assert hunk.text.startswith(f"@@ -1,{MANY} +0,0 @@\n-line 0\n-line 1\n")


def test_lines_without_end_are_cut_and_the_next_hunk_is_there(world: World) -> None:
    middle = "".join(f"{n}\n" for n in range(100))
    flagged(world, "x" * 3 * MB + f"\n{middle}end\n", "y" * 3 * MB + f"\n{middle}END\n")
    first, second = hunks(world).items
    assert first.cut and len(first.text) < 3 * large_hunks.LINE_BYTES_MAX
    assert second.text.endswith("-end\n+END\n") and not second.cut


def test_what_is_no_text_has_none(world: World) -> None:
    flagged(world, bytes(3 * MB), bytes(3 * MB) + b"\1")
    found = hunks(world)
    assert (found.items, found.total, found.said) == ([], 0, "It is no text.")


def test_what_cannot_be_compared_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path / "repo", Settings(review=Reviewing(kept_bytes_max=4 * MB)))
    flagged(world, lines(MANY), lines(MANY, 7))
    refusal = world.refused(rq.ReviewHunks(review="R-1", file="big.txt"))
    assert refusal.code is Code.INVALID and "not kept" in refusal.message
    assert world.refused(rq.ReviewHunks(review="R-1", file="other.txt")).code is Code.INVALID
    world.close()
    world = World(tmp_path / "other")
    flagged(world, lines(MANY), lines(MANY, 7))
    monkeypatch.setattr(large_hunks, "SIDE_BYTES_MAX", MB)
    assert world.refused(rq.ReviewHunks(review="R-1", file="big.txt")).code is Code.LIMIT
    monkeypatch.undo()
    monkeypatch.setattr(large_hunks, "SECONDS", 0.0)
    assert world.refused(rq.ReviewHunks(review="R-1", file="big.txt")).code is Code.LIMIT
    world.close()
