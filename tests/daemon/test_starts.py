"""A coordinator that many miss at once is started once, and who hangs or fails holds nobody up."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import coordinator._hook as hook_file
from coordinator._hook_seldom import TURN_S
from coordinator.client import starting
from coordinator.files.state import StateDir
from tests.conftest import Repo
from tests.waiting import gone, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("from_nothing")]

MANY = 6
#: Notes each start of a program of coord's.
NOTES = """import os, sys
if any(word.startswith("coordinator.") for word in sys.orig_argv):
    with open({file!r}, "a") as file:
        file.write(" ".join(sys.orig_argv[1:]) + "\\n")
"""


@pytest.fixture
def starts(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What was started since, a line each; nobody serves, but somebody did."""
    repo.coord("up")
    pid = repo.pid()
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))
    noted, folder = tmp_path / "starts", tmp_path / "path"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NOTES.format(file=str(noted)))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return noted


def commands(repo: Repo, count: int) -> list[subprocess.CompletedProcess[str]]:
    every = [subprocess.Popen([sys.executable, "-P", "-m", "coordinator.cli.main", "locks"], cwd=repo.root, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(count)]
    return list(ended(every))


def hooks(repo: Repo, count: int) -> list[subprocess.CompletedProcess[str]]:
    call = {"cwd": str(repo.root), "hook_event_name": "PreToolUse", "permission_mode": "default", "tool_name": "Write",
            "tool_use_id": "t"}
    every = []
    for number in range(count):
        every.append(subprocess.Popen(
            [sys.executable, "-I", "-S", "-E", hook_file.__file__, str(repo.state.socket()), "claude-code", "closed", "60"],
            cwd=repo.root, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        pipe = every[-1].stdin
        assert pipe is not None
        pipe.write(json.dumps(call | {"session_id": f"s-{number}", "tool_input": {
            "file_path": str(repo.root / f"f{number}"), "content": ""}}))
        pipe.flush()
        pipe.close()
        every[-1].stdin = None
    return list(ended(every))


def ended(every: list[subprocess.Popen[str]]) -> Iterator[subprocess.CompletedProcess[str]]:
    for one in every:
        out, err = one.communicate(timeout=60)
        yield subprocess.CompletedProcess([], one.returncode, out, err)


def daemons(starts: Path) -> int:
    return sum(" -m coordinator.daemon " in f" {line} " for line in starts.read_text().splitlines())


def test_commands_that_find_nobody_start_one(repo: Repo, starts: Path) -> None:
    done = commands(repo, MANY)
    assert [one.returncode for one in done] == [0] * MANY, done
    assert daemons(starts) == 1


def test_hooks_that_find_nobody_start_one(repo: Repo, starts: Path) -> None:
    began = time.monotonic()
    done = hooks(repo, MANY)
    took = time.monotonic() - began
    assert [one.returncode for one in done] == [0] * MANY, done
    assert not any("deny" in one.stdout for one in done)
    assert daemons(starts) == 1
    # (Nobody waits longer than that for another who starts one: on a busy machine more may try.)
    assert len(starts.read_text().splitlines()) == 2 or took > TURN_S, "one command, and what it starts"
    assert repo.coord("locks", "--json").stdout.count('"resource": "') == MANY


@pytest.mark.parametrize("what", ["commands", "hooks"])
def test_why_it_cannot_start_is_told_to_all(repo: Repo, starts: Path, what: str) -> None:
    repo.state.database.write_bytes(b"not a database" * 1000)
    if what == "commands":
        done = commands(repo, MANY)
        assert [one.returncode for one in done] == [9] * MANY and all("doctor --restore" in one.stderr for one in done)
    else:
        done = hooks(repo, MANY)
        assert [one.returncode for one in done] == [2] * MANY and all("cannot start" in one.stderr for one in done), done
    assert daemons(starts) <= 2, "who came later may try again; nobody tries for all"


def test_who_hangs_while_it_starts_one_holds_nobody_up(repo: Repo, starts: Path) -> None:
    for place, ask in ((repo.state.path, commands), (repo.state.path / ".gitignore", hooks)):
        hung = os.open(place, os.O_RDONLY)
        try:
            fcntl.flock(hung, fcntl.LOCK_EX)
            assert [one.returncode for one in ask(repo, 2)] == [0, 0]
        finally:
            os.close(hung)
        repo.down()


def test_who_is_killed_while_it_starts_one_holds_nobody_up(repo: Repo, starts: Path) -> None:
    first = subprocess.Popen([sys.executable, "-P", "-m", "coordinator.cli.main", "locks"], cwd=repo.root,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: starts.exists() and daemons(starts) == 1)
    first.kill()
    first.wait()
    assert [one.returncode for one in commands(repo, 2)] == [0, 0]


def test_who_has_one_started_outside_of_its_session_keeps_nobody_from_starting_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that starts it there needs the turn that whoever asked for it had."""
    state = StateDir(tmp_path)
    state.create()
    free: list[bool] = []

    def outside(*_: object) -> None:
        raise starting._Outside

    def awaited(state: StateDir) -> None:
        turn = os.open(state.path, os.O_RDONLY)
        free.append(starting._try_lock(turn))
        os.close(turn)

    monkeypatch.setattr(starting, "_start", outside)
    monkeypatch.setattr(starting, "_await_outside", awaited)
    starting.start(state)
    assert free == [True]
