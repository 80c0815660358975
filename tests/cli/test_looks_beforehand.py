"""What a person looks at before anything is made, and what is told where something is."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Repo
from tests.waiting import until


def test_a_preview_writes_nothing_and_ends_well(repo: Repo) -> None:
    done = repo.coord("init", "--diff")
    assert done.returncode == 0 and "`coord init` would make .coord/, coord.toml, context_archive/" in done.stdout
    done = repo.coord("init", "--agent", "claude-code", "--diff")
    assert done.returncode == 0 and "+++ .claude/settings.local.json" in done.stdout.replace(f"{repo.root}/", "")
    assert done.stdout.endswith("note: nothing was written; with --yes it is\n"), done
    assert {one.name for one in repo.root.iterdir()} <= {".git"}
    repo.coord("init")
    assert "is there already" in repo.coord("init", "--diff").stdout


def test_who_writes_to_a_file_is_asked_all_the_same(repo: Repo) -> None:
    master, slave = pty.openpty()
    kept = repo.root / "kept"
    with kept.open("wb") as out:
        asked = subprocess.Popen([sys.executable, "-m", "coordinator.cli.main", "init", "--agent", "claude-code", "--no-shims"],
                                 cwd=repo.root, stdin=slave, stderr=slave, stdout=out)
        os.close(slave)
        seen = b""
        while b"[y/N]" not in seen:
            seen += os.read(master, 1000)
        os.write(master, b"n\n")
        assert b"Write this for claude-code?" in seen and asked.wait(30) == 0
    os.close(master)
    assert b"?" not in kept.read_bytes() and b"left as it was" in kept.read_bytes()


def test_a_folder_that_gets_a_coordinator_is_told_of(tmp_path: Path, repo: Repo) -> None:
    done = repo.coord("up")
    assert f"it keeps its files in {repo.root}/.coord, which it has made." in done.stdout
    assert "made" not in repo.coord("up").stdout
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run([sys.executable, "-m", "coordinator.cli.main", "up"], cwd=home, capture_output=True, text=True, check=False,
                          env={**os.environ, "HOME": str(home)})
    assert done.returncode == 2 and not (home / ".coord").exists(), done


@pytest.mark.parametrize("asked", [["--http", "1"], ["--http", "65000"]])
def test_a_door_at_another_port_is_not_the_one_that_was_asked_for(repo: Repo, asked: list[str]) -> None:
    repo.coord("up", "--http", "0")
    assert repo.coord("up", "--http", "0").returncode == 0
    done = repo.coord("up", *asked)
    assert done.returncode == 1 and f"is not at port {asked[1]}" in done.stderr, done


def test_the_log_keeps_its_form_after_a_crash(repo: Repo) -> None:
    repo.coord("up", "--log-format", "json")
    pid = repo.pid()
    os.kill(pid, signal.SIGKILL)
    until(lambda: repo.coord("locks").returncode == 0)
    assert {line[:1] for line in repo.state.log.read_text().splitlines()} == {"{"}
    repo.down()
    repo.coord("up")
    assert repo.state.log.read_text()[:1] != "{"


def test_of_many_that_are_held_as_many_are_told(repo: Repo) -> None:
    repo.coord("lock", *(f"f{n}" for n in range(30)), "--agent", "ann")
    done = repo.coord("lock", "./", "--agent", "bob", "--no-retry")
    assert "29 more of what you asked for are held" in done.stderr and "  … and more: `coord locks` lists them\n" in done.stderr, done
    repo.coord("lock", *(f"g{n}" for n in range(30)), "--agent", "ann")
    assert "At least 49 more of what you asked for" in repo.coord("lock", "./", "--agent", "bob", "--no-retry").stderr


@pytest.mark.parametrize("words", ["", "--diff", "--agent claude-code --diff", "--agent claude-code", "--agent claude-code --yes", "--remove --yes", "--remove"])
def test_what_is_prepared_is_one_object_for_programs(repo: Repo, words: str) -> None:
    done = repo.coord("init", *words.split(), "--json")
    told = json.loads(done.stdout)
    if done.returncode:
        assert done.returncode == 2 and told["error"]["code"] == "INVALID", done
    else:
        assert told["root"] == str(repo.root) and ("removed" if "--remove" in words else "made") in told, told
    again = repo.coord("init", *words.split(), "--json")
    assert json.loads(again.stdout) and again.returncode == done.returncode
