"""The dashboard at 80x24, before a real coordinator: what is shown, and what its keys do."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterator

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from coordinator.cli.app import person
from coordinator.cli.screens.dashboard import Dashboard
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.terminal import Terminal, at_a_terminal
from tests.waiting import until

Keys = Callable[[Pilot[str | None], Dashboard], Awaitable[None]]
DEEP = "src/main/java/org/example/boot/autoconfigure/jdbc/DataSourceProperties.java"


@pytest.fixture
def busy(repo: Repo) -> Iterator[Repo]:
    """Agents, a deep lease that somebody waits for, a request, tasks, a review."""
    boss = repo.client()
    boss.call(rq.TaskAdd(title="Make it faster", resources=["fast.py"]))
    boss.call(rq.TaskAdd(title="Make it slower", resources=["slow.py"]))
    repo.client("worker").claim()
    (repo.root / "half.py").write_text("one\n")
    left = repo.client("left")
    left.acquire("half.py")
    (repo.root / "half.py").write_text("two\n")
    left.call(rq.Leave(agent="left", clean=False, log_tail="said last\n"))
    repo.client("holder").acquire(DEEP, description="the data source")
    repo.client("asker").call(rq.RequestFile(agent="asker", resource=DEEP, reason="I need it"))
    yield repo


def looked(repo: Repo, keys: Keys, size: tuple[int, int] = (80, 24)) -> None:
    """Have the screen open, and these keys pressed."""
    async def all_of_it() -> None:
        with repo.client() as session:
            app = Dashboard(session)
            async with app.run_test(size=size) as pilot:
                await pilot.pause()
                await keys(pilot, app)

    asyncio.run(all_of_it())


async def press(pilot: Pilot[str | None], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


def said(app: Dashboard) -> str:
    return str(app.query_one("#said", Static).render())


def drawn(app: Dashboard) -> list[str]:
    return ["".join(segment.text for segment in strip).rstrip()
            for strip in app.screen._compositor.render_strips(app.screen.size)]


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (120, 40)])
def test_each_list_fits_and_keeps_ids_and_file_names(busy: Repo, size: tuple[int, int]) -> None:
    name = ["/Data", "ties.java"]  # of DataSourceProperties.java, where it has no room

    async def keys(pilot: Pilot[str | None], app: Dashboard) -> None:
        for key, words in (("1", ["worker", "active", "T-1"]), ("2", [*name, "holder", "asker"]),
                           ("3", ["T-1", "claimed", "T-2", "ready"]), ("4", ["R-1", "left"]),
                           ("5", ["U-1", "asker", "holder"]), ("6", ["R-1 was opened", *name])):
            await press(pilot, key)
            lines = drawn(app)
            assert len(lines) == size[1] and all(len(line) <= size[0] for line in lines)
            text = "\n".join(lines)
            assert all(word in text for word in words), (key, text)
        await press(pilot, "right")
        assert app.chosen == "agents"

    looked(busy, keys, size)


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
def test_who_waits_by_another_name_than_it_is_held_by_is_seen_and_questions_keep_their_key(repo: Repo, size: tuple[int, int]) -> None:
    repo.client("claude-code-1f3a9c2b").acquire("docs/")
    repo.there("bob")
    repo.coord("lock", "docs/a.md", "--agent", "bob")

    async def keys(pilot: Pilot[str | None], app: Dashboard) -> None:
        await press(pilot, "2")
        assert any("docs/a.md" in line and "bob" in line for line in drawn(app)), drawn(app)
        await press(pilot, "enter")
        assert "bob stands in line as W-1" in " ".join(" ".join(drawn(app)).split())
        await press(pilot, "escape", "down", "x")
        assert ("Press y to take it from claude-code-1f3a9c2b (changes are kept for a review): docs/" in " ".join(
            " ".join(drawn(app)).split())), "in as many lines as it takes"
        await press(pilot, "n")
        assert said(app) == "Nothing was done."

    looked(repo, keys, size)


def test_a_lease_is_taken_only_after_a_yes(busy: Repo) -> None:
    busy.client().call(rq.Register(agent=person()))  # a person may be an agent, too

    async def keys(pilot: Pilot[str | None], app: Dashboard) -> None:
        await press(pilot, "x")
        assert "Choose a lease" in said(app)
        await press(pilot, "2")
        assert app.rows[0].about.locked_by == "holder", "what somebody waits for comes first"
        await press(pilot, "x")
        assert "from holder (" in said(app)
        await press(pilot, "n", "y")
        assert "holder" in {one.locked_by for one in busy.client().call(rq.Locks()).items}
        await press(pilot, "x", "y")
        assert "released" in said(app)
        until(lambda: "holder" not in {one.locked_by for one in busy.client().call(rq.Locks()).items})

    looked(busy, keys)


def test_a_request_is_answered(busy: Repo) -> None:
    async def keys(pilot: Pilot[str | None], app: Dashboard) -> None:
        await press(pilot, "5", "a", "y")
        assert "approve" in said(app)
        (lease,) = [one for one in busy.client().call(rq.Locks()).items if one.resource == DEEP]
        assert lease.locked_by == "asker"

    looked(busy, keys)


def test_a_review_is_read_decided_and_taken_back(busy: Repo) -> None:
    async def keys(pilot: Pilot[str | None], app: Dashboard) -> None:
        await press(pilot, "4", "enter")
        assert "+two" in "\n".join(drawn(app))
        await press(pilot, "q", "r")
        assert (busy.root / "half.py").read_text() == "one\n" and "R-1 reverted" in said(app)
        await press(pilot, "u")
        assert (busy.root / "half.py").read_text() == "two\n"

    looked(busy, keys)


def test_the_log_of_an_agent_is_followed(busy: Repo) -> None:
    run = busy.root / ".coord/runs/run-1"
    run.mkdir(parents=True)
    (run / "T-1-1.log").write_text("I begin\nI read \x1b[31mred\n")

    async def keys(pilot: Pilot[str | None], app: Dashboard) -> None:
        await press(pilot, "3", "l")
        assert "I begin" in "\n".join(drawn(app)) and "I read \\x1b[31mred" in "\n".join(drawn(app))
        with (run / "T-1-1.log").open("a") as file:
            file.write("I go on\n")
        for _ in range(200):
            await pilot.pause(0.05)
            if "I go on" in "\n".join(drawn(app)):
                break
        assert "I go on" in "\n".join(drawn(app))
        await press(pilot, "q", "1", "enter")
        assert "worker registered" in "\n".join(drawn(app))

    looked(busy, keys)


def test_coord_alone_opens_it_on_a_terminal_and_helps_anywhere_else(busy: Repo) -> None:
    with Terminal(busy.root) as terminal:
        until(lambda: "worker" in terminal.shown and "\x1b[?1049h" in terminal.shown)
        terminal.types("v")
        until(lambda: "verdict on" in terminal.shown)
        terminal.types("q")
        until(lambda: terminal.shown.count("\x1b[?1049h") >= 3)
        terminal.types("q")
        assert terminal.process.wait(20) == 0
    assert "Usage" in busy.coord().stdout
    code, shown = at_a_terminal(busy.root, env={"TERM": "dumb"})
    assert "cannot draw a screen; `coord status`" in shown, shown
    assert code == 0 and "Usage" in shown


def test_where_nothing_is_prepared_it_says_so_and_helps(busy: Repo, tmp_path_factory: pytest.TempPathFactory) -> None:
    code, shown = at_a_terminal(tmp_path_factory.mktemp("bare"))
    assert code == 0 and "is not prepared" in shown and "Usage" in shown and "Traceback" not in shown


@pytest.mark.parametrize("size", [(80, 24), (60, 15)])
def test_all_lists_are_named_on_a_narrow_screen(busy: Repo, size: tuple[int, int]) -> None:
    for n in range(100, 160):
        busy.client(f"agent-{n}").acquire(f"many/{n}.py", f"more/{n}.py")
    for n in range(120):
        busy.client().call(rq.TaskAdd(title=f"part {n}"))

    async def keys(pilot: Pilot[str | None], app: Dashboard) -> None:
        tabs = app.query_one("#tabs", Static)
        text = str(tabs.render())
        assert "6 events" in text and len(text) <= tabs.content_size.width, text

    looked(busy, keys, size)


@pytest.mark.parametrize("words", [(), ("review",)])
def test_no_colour_is_none_and_what_is_chosen_is_seen_all_the_same(busy: Repo, words: tuple[str, ...]) -> None:
    with Terminal(busy.root, *words, env={"NO_COLOR": "1"}) as terminal:
        until(lambda: ("R-1" if words else "worker") in terminal.shown)
        marks = re.findall(r"\x1b\[([0-9;]*)m", terminal.shown)
        numbers = {int(one) for mark in marks for one in mark.split(";") if one}
        assert numbers <= {0, 1, 2, 3, 4, 7, 22, 23, 24, 27, 39, 49}, numbers
        assert 7 in numbers or 4 in numbers
        terminal.types("q")


#: A shell, as far as its jobs go: it says that its job was stopped, and takes it up again.
SHELL = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
def lead():
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
job = subprocess.Popen(sys.argv[1:], preexec_fn=lead)
_, status = os.waitpid(job.pid, os.WUNTRACED)
os.tcsetpgrp(0, os.getpgrp())
print("STOPPED" if os.WIFSTOPPED(status) else "ENDED", flush=True)
os.tcsetpgrp(0, job.pid)
os.kill(job.pid, signal.SIGCONT)
sys.exit(job.wait())
"""


@pytest.mark.parametrize("words", [(), ("review",)])
def test_ctrl_z_gives_the_shell_back_and_fg_the_screen(busy: Repo, words: tuple[str, ...]) -> None:
    shown = "half.py" if words else "holder"
    with Terminal(busy.root, *words, under=(sys.executable, "-c", SHELL)) as terminal:
        until(lambda: shown in terminal.shown)
        terminal.types("\x1a")
        until(lambda: "STOPPED" in terminal.shown)
        until(lambda: shown in terminal.shown.partition("STOPPED")[2])
        terminal.types("q")
        assert terminal.process.wait(30) == 0
