"""The queue of reviews, worked through by keys at 80x24, before a real coordinator."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList, Static
from textual.widgets._footer import FooterKey

from coordinator.cli.screens.hunk_pane import HunkPane
from coordinator.cli.screens.review_queue import ReviewQueue
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock
from tests.conftest import Repo
from tests.terminal import CTRL_C, Terminal, at_a_terminal
from tests.waiting import patience, until

LINES = [f"line {n} = {n}\n" for n in range(60)]
Keys = Callable[[Pilot[None], ReviewQueue], Awaitable[None]]


@pytest.fixture
def busy(repo: Repo) -> Iterator[Repo]:
    """Two reviews: R-1 of three files for a task, R-2 of one."""
    (repo.root / "two.py").write_text("".join(LINES))
    (repo.root / "gone.py").write_text("bye\n")
    (repo.root / "z.py").write_text("z = 1\n")
    repo.client().call(rq.TaskAdd(title="Do it well", prompt="Read the format first.",
                                  resources=["two.py", "gone.py", "new.py"]))
    ann = repo.client("ann")
    ann.claim()
    changed = list(LINES)
    changed[4], changed[50] = "line 4 = four\n", "line 50 = fifty\n"
    (repo.root / "two.py").write_text("".join(changed))
    (repo.root / "gone.py").unlink()
    (repo.root / "new.py").write_text("def hello():\n    return 'world'\n")
    ann.call(rq.Leave(agent="ann", clean=False, log_tail="half of it is done\n"))
    bob = repo.client("bob")
    bob.acquire("z.py")
    (repo.root / "z.py").write_text("z = 2\n")
    bob.call(rq.Leave(agent="bob", clean=False))
    yield repo


def worked(repo: Repo, keys: Keys, size: tuple[int, int] = (80, 24)) -> None:
    """Have the screen open, and these keys pressed."""
    async def all_of_it() -> None:
        with repo.client() as session:
            app = ReviewQueue(session)
            async with app.run_test(size=size) as pilot:
                await settled(pilot)
                await keys(pilot, app)

    asyncio.run(all_of_it())


async def settled(pilot: Pilot[None]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def press(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


def said(app: ReviewQueue) -> str:
    return str(app.query_one("#said", Static).render())


def drawn(app: ReviewQueue) -> list[str]:
    """The lines on the screen."""
    return ["".join(segment.text for segment in strip).rstrip()
            for strip in app.screen._compositor.render_strips(app.screen.size)]


def test_it_opens_with_the_oldest_and_tells_the_keys(busy: Repo) -> None:
    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        lines = drawn(app)
        assert len(lines) == 24 and all(len(line) <= 80 for line in lines)
        assert lines[0].startswith("R-1") and "T-1" in lines[0] and lines[1].startswith("R-2")
        assert any("deleted gone.py  (file 1 of 3)" in line for line in lines)
        assert "k keep" in lines[-1] and "r revert" in lines[-1] and "q end" in lines[-1], lines[-1]
        assert "all of R-1" in said(app)
        await press(pilot, "t")
        shown = "\n".join(drawn(app))
        assert "Do it well" in shown and "Read the format first." in shown and "half of it is done" in shown
        await press(pilot, "q", "n")
        assert "all of R-2" in said(app) and any("z = 2" in line for line in drawn(app))
        await press(pilot, "question_mark")
        assert any("side by side" in line for line in drawn(app))

    worked(busy, keys)


def test_a_whole_review_is_decided_and_taken_back(busy: Repo) -> None:
    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        await press(pilot, "n", "r")
        assert (busy.root / "z.py").read_text() == "z = 1\n" and "R-2 reverted" in said(app)
        assert app.query_one(OptionList).option_count == 1 and "R-1" in drawn(app)[0]
        await press(pilot, "u")
        assert (busy.root / "z.py").read_text() == "z = 2\n" and "R-2 is open again" in said(app)
        await press(pilot, "k", "k")
        assert "Nothing waits for a verdict" in "\n".join(drawn(app))
        assert busy.client().call(rq.TaskShow(task="T-1")).state == "done"
        await press(pilot, "u", "u", "u")
        assert "could be taken back" in said(app)
        assert [one.review for one in busy.client().call(rq.Reviews()).items] == ["R-1", "R-2"]

    worked(busy, keys)


def test_files_and_hunks_are_decided_by_themselves(busy: Repo) -> None:
    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        await press(pilot, "f", "k")  # gone.py
        assert not (busy.root / "gone.py").exists() and "kept: gone.py" in said(app)
        # The next file is chosen then, and shown as chosen
        assert any(line.startswith("█created new.py") for line in drawn(app)), drawn(app)
        await press(pilot, "r")
        assert not (busy.root / "new.py").exists()
        await press(pilot, "w", "h", "h")
        assert "verdict on hunk 2 of two.py" in said(app), said(app)
        assert app.query_one(HunkPane).chosen == 2
        await press(pilot, "r")
        text = (busy.root / "two.py").read_text()
        assert "line 50 = 50\n" in text and "line 4 = four\n" in text
        assert app.query_one(HunkPane).chosen == 1, "another key would be about the whole file"
        (rest,) = [one for one in busy.client().call(rq.Reviews()).items if one.review == "R-1"]
        assert [one.path for one in rest.files] == ["two.py"]
        await press(pilot, "u", "u")
        assert (busy.root / "new.py").exists() and "fifty" in (busy.root / "two.py").read_text()

    worked(busy, keys)


def test_a_refusal_is_said_and_nothing_is_lost(busy: Repo) -> None:
    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        busy.client("zoe").acquire("z.py")
        await press(pilot, "n", "r")
        assert "leased by zoe" in said(app) and (busy.root / "z.py").read_text() == "z = 2\n"
        await press(pilot, "g")
        assert "nothing to reassign" in said(app)

    worked(busy, keys)


def test_a_change_of_ten_thousand_lines_is_drawn_in_part_and_decided_whole(repo: Repo) -> None:
    big = repo.root / "big.txt"
    big.write_text("".join(f"line {n}\n" for n in range(10_000)))
    ann = repo.client("ann")
    ann.acquire("big.txt")
    big.write_text("".join(f"LINE {n}\n" for n in range(10_000)))
    ann.call(rq.Leave(agent="ann", clean=False))

    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        drawn = str(app.query_one("#hunk-1", Static).render())
        assert len(drawn.splitlines()) < 2_000  # each key waits until all of it is laid out
        assert "more lines; a verdict is on all of them" in drawn.splitlines()[-1]
        await press(pilot, "h", "r")
        assert big.read_text().startswith("line 0\n") and "LINE" not in big.read_text()

    worked(repo, keys)


@pytest.mark.parametrize("size", [(80, 24), (60, 15)])
def test_a_narrow_screen_names_the_keys_that_help_and_end(busy: Repo, size: tuple[int, int]) -> None:
    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        # The footer is made after the screen is there, and laid out after that.
        deadline = time.monotonic() + patience(15)
        shown: list[str] = []
        while shown[:2] != ["keys", "end"] and time.monotonic() < deadline:
            await pilot.pause(0.02)
            shown = [key.description for key in app.query(FooterKey) if key.region.right <= size[0]]
        assert shown[:2] == ["keys", "end"]

    worked(busy, keys, size)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 20)])
def test_side_by_side_fits_the_screen(busy: Repo, size: tuple[int, int]) -> None:
    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        await press(pilot, "f", "f", "f", "v")
        rows = [line for line in drawn(app) if "│" in line]
        (row,) = [line for line in rows if "= four" in line]
        assert "- line 4 = 4" in row.split("│")[0] and "+ line 4 = four" in row.split("│")[1]

    worked(busy, keys, size)


def test_the_editor_and_gits_tools_get_the_file(
    busy: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=busy.root, check=True)
    note = tmp_path / "note"
    editor = tmp_path / "vi"
    editor.write_text(f'#!/bin/sh\necho "$@" > {note}\nfor it; do :; done\necho edited >> "$it"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    config = [("diff.tool", "mine"), ("difftool.mine.cmd", f"cat $LOCAL $REMOTE > {note}"),
              ("merge.tool", "ours"), ("mergetool.ours.cmd", f"cat $BASE $REMOTE > {note}; echo merged > $MERGED"),
              ("mergetool.ours.trustExitCode", "true")]
    for name, value in config:
        subprocess.run(["git", "config", name, value], cwd=busy.root, check=True)

    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        monkeypatch.setattr(type(app), "suspend", lambda self: __import__("contextlib").nullcontext())
        await press(pilot, "f", "f", "f", "h", "h", "e")
        assert note.read_text() == f"+51 {busy.root / 'two.py'}\n"
        assert (busy.root / "two.py").read_text().endswith("edited\n")
        assert said(app) == "two.py was written; above is what the agent left"
        await press(pilot, "n", "d")
        assert note.read_text() == "z = 1\nz = 2\n" and "ended with" not in said(app)
        await press(pilot, "m")
        assert note.read_text() == "z = 2\nz = 1\n" and (busy.root / "z.py").read_text() == "merged\n"

    worked(busy, keys)


def test_a_review_is_reassigned_as_a_whole_whatever_is_in_sight(busy: Repo) -> None:
    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        await press(pilot, "f", "h", "g")
        assert "reassigned" in said(app), said(app)

    worked(busy, keys)


@pytest.mark.parametrize(("editor", "told"), [
    ("false", "it ended with exit code 1; new.py is as it was"), ("/no/such/editor", "it ended with exit code 127; new.py is as it was"),
    ("sh -c 'echo x >> $0; exit 3'", "it ended with exit code 3; new.py was written all the same"), ("true", "verdict on all of R-1"),
])
def test_how_a_program_ended_stays_in_sight(
    busy: Repo, monkeypatch: pytest.MonkeyPatch, editor: str, told: str
) -> None:
    monkeypatch.delenv("GIT_EDITOR", raising=False)
    monkeypatch.setenv("VISUAL", editor)
    (busy.root / "gone.py").write_text("again\n")

    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        monkeypatch.setattr(type(app), "suspend", lambda self: __import__("contextlib").nullcontext())
        await press(pilot, "f", "f", "w", "e")
        assert told in said(app)

    worked(busy, keys)


@pytest.mark.parametrize(("key", "editor", "typed", "told"), [
    ("m", "true", {}, "git has no merge tool here"),
    ("e", "sh -c 'echo RUNS; exec sleep 60'", {"RUNS": CTRL_C}, "signal 2 ended it"),
])
def test_the_screen_comes_back_whatever_the_program_did(
    busy: Repo, key: str, editor: str, typed: dict[str, str], told: str
) -> None:
    env = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_EDITOR": "", "VISUAL": editor}
    code, shown = at_a_terminal(busy.root, "review", env=env, at={"verdict on all": key, told: "q", **typed})
    assert code == 0 and told in shown, shown[-3000:]


def test_ages_in_the_list_grow_while_it_is_open(busy: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        later = SystemClock().now_ms() + 7_200_000
        monkeypatch.setattr(SystemClock, "now_ms", lambda self: later)
        await app._look_again()
        await settled(pilot)
        listed = app.query_one("#reviews", OptionList)
        assert "2h ago" in str(listed.get_option_at_index(0).prompt) and listed.highlighted == 0
        assert any("2h ago" in line for line in drawn(app))

    worked(busy, keys)


def test_on_a_terminal_it_opens_and_in_a_pipe_it_lists(busy: Repo) -> None:
    with Terminal(busy.root, "review") as terminal:
        until(lambda: "R-2" in terminal.shown and "revert" in terminal.shown)
        assert "\x1b[?1049h" in terminal.shown, "no screen of its own"
        terminal.types("q")
        assert terminal.process.wait(20) == 0
    piped = busy.coord("review")
    assert piped.returncode == 0 and "R-1     open" in piped.stdout
    assert len(piped.stdout.splitlines()) == len(busy.coord("review", "list").stdout.splitlines()) > 2
    code, shown = at_a_terminal(busy.root, "review", env={"TERM": "dumb"})
    assert code == 0 and "R-1     open" in shown and "\x1b[?1049h" not in shown


def test_without_textual_it_says_how_to_have_it_and_lists(busy: Repo, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nreal = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'textual' else real(name, *more)\n")
    code, shown = at_a_terminal(busy.root, "review", env={"PYTHONPATH": str(tmp_path)})
    assert code == 0 and "pip install textual" in shown and "R-1     open" in shown


def test_ordinary_commands_do_not_load_textual(busy: Repo) -> None:
    code = ("import sys; from coordinator.cli.main import main; main(['review', 'list']); main(['status']); "
            "assert not [m for m in sys.modules if m.startswith(('textual', 'pygments', 'coordinator.cli.screens'))]")
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=busy.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("at_once", [False, True])
def test_the_review_that_is_lit_in_the_list_is_the_one_that_is_shown_and_judged(busy: Repo, at_once: bool) -> None:
    async def keys(pilot: Pilot[None], app: ReviewQueue) -> None:
        await press(pilot, "tab")
        if at_once:  # whoever types faster than it draws
            await pilot.press("down", "k")
            await settled(pilot)
        else:
            await press(pilot, "down")
            assert app.shown is not None and app.shown.review == "R-2" and "verdict on all of R-2" in said(app)
            await press(pilot, "k")

    worked(busy, keys)
    assert {one.review: one.state for one in busy.client().call(rq.Reviews(state="all")).items} == {"R-1": "open", "R-2": "kept"}
