"""Differences as a person reads them: hunks, lines beside each other, what changed within a line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from coordinator.cli import difference_views as views
from coordinator.commands.differences import Pair, pairs, split, within
from coordinator.files import hunks
from coordinator.files.content import unified
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.terminal import at_a_terminal

TEXTS = st.lists(st.sampled_from(["", "a", "b = 1", "b = 2", "\tc(a, b)", "c(a, bb)", "--- x", "+++ y",
                                  "@@ -1 +1 @@", "\\ No", "form\x0cfeed", "ü" * 30]), max_size=25)


def whole(lines: list[str], ended: bool) -> bytes:
    return ("\n".join(lines) + ("\n" if ended and lines else "")).encode()


@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_a_difference_is_read_back_as_it_was(
    before: list[str], after: list[str], ends: bool, ended: bool
) -> None:
    was, now = whole(before, ends), whole(after, ended)
    head, found = split(unified("f", was, now))
    assert len(found) == hunks.count(was, now)
    old, new = was.decode().split("\n"), now.decode().split("\n")
    for hunk in found:
        for line in hunk.lines:
            assert line.old is None or old[line.old - 1] == line.text
            assert line.new is None or new[line.new - 1] == line.text
            assert {" ": (True, True), "-": (True, False), "+": (False, True)}[line.kind] == (
                line.old is not None, line.new is not None)
        stood = [(p.left, p.right) for p in pairs(hunk)]
        assert [x for x, _ in stood if x] == [x for x in hunk.lines if x.kind != "+"], "in order, each once"
        assert [x for _, x in stood if x] == [x for x in hunk.lines if x.kind != "-"]
    for text in views.beside(unified("f", was, now), len(found), 80):
        assert cell_len(text.plain) <= 80 or text.plain in head
    assert "".join(t.plain for t in views.unified(unified("f", was, now), len(found))).count("@@") >= len(found)


@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_all_hunks_make_the_whole_change_and_none_makes_nothing(
    before: list[str], after: list[str], ends: bool, ended: bool
) -> None:
    was, now = whole(before, ends), whole(after, ended)
    count = hunks.count(was, now)
    assert hunks.with_hunks(was, now, range(1, count + 1)) == now
    assert hunks.with_hunks(was, now, []) == was
    for n in range(1, count + 1):  # what is left after one is the change without it
        rest = hunks.with_hunks(was, now, [m for m in range(1, count + 1) if m != n])
        assert hunks.with_hunks(was, now, [n]) != was and rest != now


def test_what_changed_within_a_line_is_told_in_whole_words() -> None:
    assert within("return rest", "return remaining") == ([(7, 11)], [(7, 16)])
    assert within("f(a)", "f(a, b)") == ([], [(3, 6)])


def test_a_line_stands_beside_the_one_that_it_became() -> None:
    _, (hunk,) = split(unified("f", b"one = compute(a)\nkeep\n", b"new line here\none = compute(b)\nkeep\n"))
    shown = [(p.left and p.left.text, p.right and p.right.text) for p in pairs(hunk)]
    assert shown == [(None, "new line here"), ("one = compute(a)", "one = compute(b)"), ("keep", "keep")]
    assert [p.right_spans for p in pairs(hunk) if isinstance(p, Pair)][1] == [(14, 15)]


@pytest.fixture
def left(repo: Repo) -> Iterator[Repo]:
    """A review of three files: with two changes far from each other, a new and a removed one."""
    lines = [f"line {n} = {n}\n" for n in range(60)]
    (repo.root / "two.py").write_text("".join(lines))
    (repo.root / "gone.py").write_text("bye\n")
    ann = repo.client("ann")
    ann.acquire("two.py", "gone.py", "new.py")
    lines[4], lines[50] = "line 4 = four\n", "line 50 = fifty\n"
    (repo.root / "two.py").write_text("".join(lines))
    (repo.root / "gone.py").unlink()
    (repo.root / "new.py").write_text("hello\n")
    ann.call(rq.Leave(agent="ann", clean=False, log_tail="half of it is done\n"))
    yield repo


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_side_by_side_shows_only_what_changed(left: Repo, columns: int) -> None:
    shown = left.coord("review", "show", "R-1", "-y", env={"COLUMNS": str(columns)}).stdout
    rows = [line for line in shown.splitlines() if "│" in line]
    assert max(map(cell_len, rows)) <= columns and "\x1b" not in shown
    assert len(rows) < 25, "whole files"
    (row,) = [line for line in rows if "line 4 =" in line]
    assert row.split("│")[0].split() == ["5", "-", "line", "4", "=", "4"]
    assert row.split("│")[1].split() == ["5", "+", "line", "4", "=", "four"]
    assert "hunk 2 of 2" in shown and "half of it is done" in shown


def test_it_is_paged_and_coloured_as_git_would(left: Repo, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=left.root, check=True)
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\necho "PAGED with $LESS"\ncat\n')
    pager.chmod(0o755)
    subprocess.run(["git", "config", "core.pager", str(pager)], cwd=left.root, check=True)
    code, shown = at_a_terminal(left.root, "review", "show", "R-1")
    assert code == 0 and "PAGED with FRX" in shown
    assert "\x1b[31m-" in shown and "\x1b[32m+" in shown, "not in git's colours"
    assert "\x1b[7;32mfour" in shown, "what changed within the line does not stand out"
    _, bare = at_a_terminal(left.root, "review", "show", "R-1", env={"GIT_PAGER": "cat", "NO_COLOR": "1"})
    assert "PAGED" not in bare and "\x1b[31m" not in bare and "+line 4 = " in bare
    _, missing = at_a_terminal(left.root, "review", "show", "R-1", env={"GIT_PAGER": "no-such-pager-here"})
    assert "line 50" in missing, "a pager that cannot be started costs the answer"
    assert "PAGED" not in left.coord("review", "show", "R-1").stdout, "into a pipe"


def test_verdicts_on_several_and_on_parts_as_typed(left: Repo) -> None:
    assert "2 hunks" in left.coord("review", "keep", "R-1", "--file", "two.py", "--hunk", "3").stderr
    done = left.coord("review", "revert", "R-1", "--file", "two.py", "--hunk", "2")
    assert done.stdout.startswith("R-2 reverted: two.py\n  a part of R-1, which stays open for gone.py, new.py, two.py\n"), done.stdout
    text = (left.root / "two.py").read_text()
    assert "line 50 = 50\n" in text and "line 4 = four\n" in text
    (left.root / "d").mkdir()
    done = left.coord("review", "keep", "R-1", "-f", "../new.py", "-f", ":/gone.py", "--json", cwd=left.root / "d")
    assert '"part_of": "R-1"' in done.stdout
    for words in (["--hunk", "x"], ["--hunk", "2-"], ["-f", "no.py"]):
        assert left.coord("review", "keep", "R-1", *words).returncode == 2
    assert left.coord("review", "keep", "R-1", "R-2", "-f", "two.py").returncode == 2
    # Several at once: what is refused leaves the others alone
    both = left.coord("review", "undo", "R-2", "R-1", "R-3")
    assert both.stdout == "R-2 is open again\nR-3 is open again\n" and "R-1 is open" in both.stderr
    assert both.returncode != 0
    assert left.coord("review", "keep", "1", "R-2", "R-3").returncode == 0
    assert left.coord("review", "list").stdout == "Nothing waits for a verdict.\n"
