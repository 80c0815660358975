"""`coord status --watch`: for those who only look. It tells by a bell, and `q` ends it."""

from __future__ import annotations

import termios

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.terminal import Terminal
from tests.waiting import until


def left(repo: Repo, name: str) -> None:
    agent = repo.client(name)
    agent.acquire(f"{name}.py")
    (repo.root / f"{name}.py").write_text("half\n")
    agent.call(rq.Leave(agent=name, clean=False))


def test_q_ends_it_and_a_review_rings_the_bell(repo: Repo) -> None:
    left(repo, "ann")
    with Terminal(repo.root, "status", "--watch") as terminal:
        until(lambda: "R-1" in terminal.shown)
        assert "\a" not in terminal.shown, "what waited already is no news"
        left(repo, "bob")
        until(lambda: "\a" in terminal.shown)
        terminal.types("q")
        assert terminal.process.wait(20) == 0
        assert termios.tcgetattr(terminal._ours)[3] & termios.ICANON, "the terminal is left as it was"


def test_a_terminal_that_can_only_go_on_gets_what_changed(repo: Repo) -> None:
    left(repo, "ann")
    with Terminal(repo.root, "status", "--watch", env={"TERM": "dumb"}) as terminal:
        until(lambda: "R-1" in terminal.shown)
        left(repo, "bob")
        until(lambda: "R-2" in terminal.shown)
        assert "\x1b" not in terminal.shown and terminal.shown.count("reviews waiting (1)") == 1
        terminal.types("q")
        assert terminal.process.wait(20) == 0
