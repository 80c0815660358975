"""What waits for a person is told on this machine: bounded, once trusted, and nobody waits for it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.daemon import notifications
from coordinator.settings import Notifying, Settings
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import gone, until
from tests.world import World


def left(repo: Repo, name: str) -> None:
    """An agent ends in the middle of an edit: a review waits."""
    agent = repo.client(name)
    agent.acquire(f"{name}.py")
    (repo.root / f"{name}.py").write_text("half\n")
    agent.call(rq.Leave(agent=name, clean=False))


def heard(note: Path) -> list[Any]:
    return [json.loads(line) for line in note.read_text().splitlines()] if note.exists() else []


def test_a_command_is_told_what_waits(make_repo: Callable[..., Repo], tmp_path: Path) -> None:
    note = tmp_path / "note"
    repo = make_repo(config=f"[notify]\nevery_s = 0.1\ncommand = \"cat >> {note}; echo >> {note}\"\n")
    boss = repo.client()
    boss.call(rq.TaskAdd(title="nobody waits for this"))
    left(repo, "ann")
    until(lambda: heard(note))
    (first,) = heard(note)
    assert first["repository"] == str(repo.root) and "R-1 was opened: ann changed ann.py" in first["text"]
    assert [one["kind"] for one in first["events"]] == ["review_opened"]
    # A message to people, too
    bob = repo.client("bob")
    bob.call(rq.MessageSend(agent="bob", to="human", text="may I?"))
    until(lambda: len(heard(note)) == 2)
    assert heard(note)[1]["events"][0]["kind"] == "message_sent"


def test_what_comes_at_once_is_told_in_one_go_and_not_too_often(
    make_repo: Callable[..., Repo], tmp_path: Path
) -> None:
    note = tmp_path / "note"
    repo = make_repo(config=f"[notify]\nevery_s = 0.1\nper_hour_max = 2\ncommand = \"cat >> {note}; echo >> {note}\"\n")
    left(repo, "first")
    until(lambda: heard(note))
    for n in range(5):
        left(repo, f"agent{n}")
    until(lambda: len(heard(note)) == 2)
    left(repo, "last")
    repo.down()  # it ends in order: whatever it was about to tell is told
    assert len(heard(note)) == 2, "more often than it may"
    assert 2 <= sum(len(one["events"]) for one in heard(note)) <= 6


def test_a_command_that_hangs_or_fails_holds_nobody_up(make_repo: Callable[..., Repo], tmp_path: Path) -> None:
    note = tmp_path / "pids"
    repo = make_repo(config=f"[notify]\nevery_s = 0.01\ncommand = \"echo $$ >> {note}; exec sleep 300\"\n")
    left(repo, "ann")
    until(note.exists)
    for n in range(5):
        left(repo, f"agent{n}")
    assert len(repo.client().call(rq.Reviews()).items) == 6
    assert len(note.read_text().splitlines()) == 1, "one at a time"
    hanging = int(note.read_text())
    repo.down()  # which it is not held up by, and after which nobody would end it any more
    assert gone(hanging)
    failing = make_repo(config="[notify]\nevery_s = 0.01\ncommand = \"exit 3\"\n")
    left(failing, "zoe")
    until(lambda: "ended with exit code 3" in (failing.root / ".coord/daemon.log").read_text())
    assert failing.client().call(rq.Reviews()).items


def test_a_command_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notifications, "TOLD_S", 0.3)
    note = tmp_path / "pids"
    command = f"trap '' TERM; sleep 300 & echo $$ $! >> {note}; wait"
    world = World(tmp_path / "repo", Settings(notify=Notifying(desktop=False, every_s=0.01, command=command)))
    told = notifications.Notifications(world.service, lambda reading: reading(world.view()))
    told.begin()

    def pids() -> list[int]:
        told.tend()
        return [int(one) for one in note.read_text().split()] if note.exists() else []

    for number, name in enumerate(("ann", "bob"), 1):  # what comes after one that hung is told
        world.acquire(name, f"{name}.py")
        world.write(f"{name}.py", "half\n")
        world.ask(rq.Leave(agent=name, clean=False))
        told.events_came()
        until(lambda want=2 * number: len(pids()) == want)  # type: ignore[misc]
        until(lambda: all(map(gone, pids())))
    until(lambda: caplog.text.count("took longer than") == 2)
    world.close()


def test_a_command_that_came_with_the_repository_is_not_run(make_repo: Callable[..., Repo], tmp_path: Path) -> None:
    note = tmp_path / "note"
    repo = make_repo()
    (repo.root / "coord.toml").write_text(f"[notify]\nevery_s = 0.01\ncommand = \"touch {note}\"\n")
    left(repo, "ann")
    assert any("notify.command" in one for one in repo.client().call(rq.Health()).warnings)
    assert "coord runs this command when something waits for you" in repo.coord("trust", "--list").stdout
    assert not note.exists()


@pytest.mark.usefixtures("from_nothing")
def test_the_desktop_is_told_where_there_is_one(
    make_repo: Callable[..., Repo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, place = tmp_path / "note", tmp_path / "bin"
    place.mkdir()
    (place / "notify-send").write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {note}\n')
    (place / "notify-send").chmod(0o755)
    for name, value in {"PATH": f"{place}:{os.environ['PATH']}", "DISPLAY": ":9", "COORD_NOTIFY_DESKTOP": "true"}.items():
        monkeypatch.setenv(name, value)
    repo = make_repo()
    left(repo, "ann")
    until(note.exists)
    until(lambda: note.read_text().endswith("|"))
    assert note.read_text().startswith(f"--app-name=coord|--|coord: {repo.root.name}|R-1 was opened: ann changed")
