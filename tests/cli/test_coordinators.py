"""`coord ps`, `coord down --all`, and what reading commands do where nothing is prepared."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.cli import coordinators as coordinators_commands
from coordinator.cli.coordinators import stop
from coordinator.files import coordinators
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.terminal import CTRL_C, at_a_terminal
from tests.waiting import until

Make = Callable[..., Repo]
#: Commands that change nothing.
READING = [["status"], ["locks"], ["agents"], ["task", "list"], ["task", "show", "T-1"], ["task", "export"], ["review", "list"],
           ["review", "show", "R-1"], ["request", "list"], ["events"], ["explain", "T-1"], ["archive", "search", "x"],
           ["archive", "show", "1"], ["replay"]]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Only the coordinators of this test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield tmp_path / "state/coord/coordinators"


def listed(repo: Repo) -> list[dict[str, Any]]:
    done = repo.coord("ps", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told) == {"items", "next"} and told["next"] is None
    items: list[dict[str, Any]] = told["items"]
    return items


def test_all_coordinators_are_listed_and_ended(notes: Path, make_repo: Make) -> None:
    one, two = make_repo("one"), make_repo("t w ö")
    assert listed(one) == [] and one.coord("ps").stdout == "No coordinator runs.\n"
    one.coord("lock", "a.py", "--agent", "ann")
    two.coord("up")
    found = listed(one)
    assert [(x["root"], x["pid"], x["leases"]) for x in found] == [(str(one.root), one.pid(), 1), (str(two.root), two.pid(), 0)]
    assert all(x["resident_bytes"] > 1e6 and x["since"] for x in found)
    shown = two.coord("ps", env={"COLUMNS": "200"}).stdout
    assert str(one.root) in shown and str(two.root) in shown and str(one.pid()) in shown
    done = two.coord("down", "--all")
    assert done.returncode == 0 and done.stdout.count("stopped") == 2
    assert listed(one) == []
    assert two.coord("down", "--all").stdout == "No coordinator was running.\n"


def test_one_that_was_started_meanwhile_is_neither_waited_for_nor_killed(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`coord down` meets one that ends, and a client starts the next one at once."""
    state, looked = repo.state, []
    state.create()
    with subprocess.Popen(["sleep", "60"]) as later, state.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("1")
        lock.flush()

        def nobody_answers(there: StateDir) -> None:
            looked.append(there)
            if len(looked) == 2:  # while it is waited for
                lock.seek(0)
                lock.write(str(later.pid))
                lock.flush()

        monkeypatch.setattr(coordinators_commands, "connect", nobody_answers)
        assert stop(state) and len(looked) >= 2
        assert later.poll() is None
        later.kill()


def test_notes_prove_nothing_by_themselves(notes: Path, make_repo: Make) -> None:
    """One of a daemon that was killed, and one that names another's process."""
    one, two = make_repo("one"), make_repo("two")
    one.coord("up")
    two.coord("up")
    os.kill(one.pid(), signal.SIGKILL)
    note = coordinators.find(two.root)
    assert note is not None
    coordinators.put(coordinators.Note(root=str(two.root / "fake"), socket=note.socket, since=note.since, pid=os.getpid()))

    def tidied() -> bool:
        assert [x["root"] for x in listed(one)] == [str(two.root)]
        note = coordinators.find(one.root)
        return note is not None and note.pid is None

    until(tidied)  # at once, or (where its workers still hold its socket) the next time
    assert two.coord("down", "--all", "--json").returncode == 0
    until(lambda: listed(one) == [])


def test_notes_of_roots_that_are_gone_are_removed_after_a_day(notes: Path, make_repo: Make) -> None:
    one = make_repo("one")
    one.coord("up")
    one.coord("down")
    (note,) = notes.iterdir()
    shutil.rmtree(one.root)
    other = make_repo("other")
    listed(other)
    assert note.exists()
    old = note.stat().st_mtime - coordinators.KEPT_S - 1
    os.utime(note, (old, old))
    listed(other)
    assert not note.exists()


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_reading_outside_a_prepared_repository_starts_and_makes_nothing(notes: Path, repo: Repo, words: list[str]) -> None:
    before = sorted(repo.root.iterdir())
    done = repo.coord(*words)
    assert done.returncode == 5 and done.stdout == ""
    assert "is not prepared for coord" in done.stderr and "next: `coord init`" in done.stderr
    done = repo.coord(*words, "--json")
    assert done.returncode == 5 and "DAEMON_DOWN" in done.stdout + done.stderr
    assert sorted(repo.root.iterdir()) == before and not notes.exists()


def test_the_rest_makes_nothing_there_either(notes: Path, repo: Repo) -> None:
    assert repo.coord("doctor").returncode == 1
    assert repo.coord("ps").returncode == 0
    assert repo.coord("down").stdout == "No coordinator was running.\n"
    assert repo.coord("logs", "T-1").returncode == 7
    assert not repo.state.path.exists()
    assert "is not prepared" in at_a_terminal(repo.root, "status", "--watch")[1]
    assert not repo.state.path.exists()


def test_reading_in_a_prepared_one_starts_it(repo: Repo) -> None:
    assert repo.coord("init").returncode == 0
    assert repo.coord("status").returncode == 0
    assert repo.pid()


def test_home_and_shared_folders_are_not_prepared_by_the_way(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    at_home = Repo(home)
    done = at_home.coord("lock", "a.py", "--agent", "ann", env={"HOME": str(home)})
    assert done.returncode == 2 and "holds more than one repository" in done.stderr and "coord init" in done.stderr
    assert not at_home.state.path.exists()
    assert at_home.coord("init", env={"HOME": str(home)}).returncode == 0
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for words in (["lock", "a.py", "--agent", "ann"], ["init"]):
        done = Repo(shared).coord(*words)
        assert done.returncode == 2 and "Everybody on this machine may write into" in done.stderr and "chmod o-w" in done.stderr
    assert not (shared / ".coord").exists()


def test_a_bare_git_repository_gets_none(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "b.git"], check=True)
    for words in (["init", "--yes"], ["lock", "a.py", "--agent", "ann"], ["up"]):
        done = Repo(tmp_path / "b.git").coord(*words)
        assert done.returncode == 2 and "is a bare git repository" in done.stderr, done
        assert done.stderr.count("starting") <= 1, "it is not tried twice"
    assert not (tmp_path / "b.git/.coord").exists() and not (tmp_path / "b.git/coord.toml").exists()


def test_the_doctor_tells_each_problem_once(repo: Repo) -> None:
    (repo.root / ".coord").mkdir()
    repo.write("coord.toml", "[leases]\nttl_s = 'soon'\n")
    done = repo.coord("doctor")
    problems = [line for line in done.stdout.splitlines() if line.startswith("problem: ")]
    assert done.returncode == 1 and len(problems) == 1 and "`leases.ttl_s` must be a number of seconds, not a text" in problems[0], done
    assert done.stderr.count("starting the coordinator") <= 1, done


@pytest.mark.parametrize("there", ["missing", "a-file"])
def test_a_mistyped_root_is_an_error(repo: Repo, there: str) -> None:
    """It does not mean the folder above."""
    (repo.root / "a-file").write_text("")
    for words in (["lock", "a.py", "--agent", "ann"], ["status"], ["up"], ["init"], ["down"], ["doctor"]):
        done = repo.coord(*words, env={"COORD_ROOT": str(repo.root / there)})
        assert done.returncode == 2 and f"COORD_ROOT is {repo.root / there}" in done.stderr, (words, done.stderr)
    assert not repo.state.path.exists()


def test_watching_does_not_start_what_somebody_stopped(repo: Repo) -> None:
    repo.coord("up")
    pid = repo.pid()
    seen: list[str] = []

    def stop() -> None:
        seen.append(repo.coord("down").stdout)

    _, shown = at_a_terminal(repo.root, "status", "--watch", at={
        "nothing is held": stop, "This waits until it runs again": CTRL_C})
    assert seen == ["The coordinator has stopped.\n"]
    assert "watching ended" in shown and repo.pid() == pid, "no other has been started"
    assert repo.coord("down").stdout == "No coordinator was running.\n"
    assert repo.client().call(rq.Health()).pid != pid


def test_an_agent_stops_no_coordinator_and_takes_no_settings_out(repo: Repo) -> None:
    assert repo.coord("init", "--agent", "claude-code", "--yes").returncode == 0
    assert repo.coord("up").returncode == 0
    with repo.client("ann") as ann:
        ann.register()
        env = {"COORD_AGENT": "ann", "COORD_AGENT_TOKEN": str(ann.token)}
    for words in (("down",), ("down", "--all"), ("init", "--agent", "claude-code", "--remove", "--yes"),
                  ("guard", "remove"), ("shims", "remove")):
        done = repo.coord(*words, env=env)
        assert done.returncode == 6 and "is for people. Nothing was changed." in done.stderr, done
    assert repo.coord("doctor").returncode == 0 and "wired;" in repo.coord("doctor").stdout
