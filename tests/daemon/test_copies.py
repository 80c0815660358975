"""A copy of a repository is another one: no command in it acts on the original's coordinator."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator import _command, _enter
from coordinator.plugins import coord_plain
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.effort import crossed

#: As it is typed (tests/cli/test_quick_commands.py).
QUICK = [sys.executable, "-I", "-S", _command.__file__]
#: The socket of a root with a longer path lies elsewhere.
LONG = "a-long-name-of-a-folder/" * 6


@pytest.mark.parametrize(("where", "stopped"), crossed(["", LONG], [False, True]))
def test_a_copy_is_on_its_own(make_repo: Callable[..., Repo], tmp_path: Path, where: str, stopped: bool) -> None:
    first = make_repo(f"{where}one")
    first.write("f", "x\n")
    assert first.coord("lock", "f", "--agent", "ann").returncode == 0
    copy = first.root.with_name("two")
    shutil.copytree(first.root, copy, symlinks=True, ignore=lambda folder, names: {"socket"} & set(names))
    if stopped:
        first.down()
    second = Repo(copy)
    try:
        for line in ("locks", "lock g --agent eve", "task add here"):
            done = subprocess.run([*QUICK, *line.split()], cwd=copy, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, (line, done)
        with second.client() as there:
            assert {one.resource for one in there.call(rq.Locks()).items} == {"f", "g"}
        with first.client() as here:
            assert {one.resource for one in here.call(rq.Locks()).items} == {"f"}
            assert here.call(rq.Tasks()).items == []
    finally:
        second.down()


@pytest.mark.parametrize("where", ["", LONG], ids=["short", "long"])
def test_what_finds_the_socket_by_itself_finds_a_copys_own(
    make_repo: Callable[..., Repo], where: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plugin for Python agents; and a command's way into its agent's session."""
    first = make_repo(f"{where}one")
    assert first.coord("up").returncode == 0
    socket = str(first.state.socket())
    copy = first.root.with_name("two")
    shutil.copytree(first.root, copy, symlinks=True, ignore=lambda folder, names: {"socket"} & set(names))
    monkeypatch.delenv("COORD_SOCKET", raising=False)
    for root, found in ((first.root, socket), (copy, str(copy / ".coord/socket"))):
        monkeypatch.chdir(root)
        assert coord_plain._socket() == found
        assert _enter.originals(str(root), socket) is (root == copy or not where)


def test_a_repository_that_was_moved_is_guarded_as_before(make_repo: Callable[..., Repo]) -> None:
    first = make_repo("one")
    assert first.coord("init", "--agent", "claude-code", "--yes").returncode == 0
    first.down()
    moved = Repo(first.root.rename(first.root.with_name("moved")))
    try:
        assert moved.coord("lock", "f", "--agent", "ann").returncode == 0
        settings = json.loads(moved.read(".claude/settings.local.json"))
        command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        call = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(moved.root), "tool_name": "Write",
                "tool_input": {"file_path": str(moved.root / "f"), "content": "x"}}
        for again in (False, True):
            done = subprocess.run(shlex.split(command), cwd=moved.root, input=json.dumps(call),
                                  capture_output=True, text=True, timeout=60)
            assert (done.returncode, "f is leased by ann" in done.stdout) == (0, True), done
            if not again:
                moved.down()  # it is started where it is now
        told = moved.coord("doctor")
        assert f"its hooks name {first.root}: this folder was moved" in told.stdout + told.stderr
        assert moved.coord("init", "--agent", "claude-code", "--yes").returncode == 0
        assert moved.coord("doctor").returncode == 0
    finally:
        moved.down()


def wired(repo: Repo) -> tuple[str, str]:
    """All that names coord in its settings and in git's hooks."""
    settings = repo.root / ".claude/settings.local.json"
    hooks = [path for path in (repo.root / ".git/hooks").glob("pre-*") if path.suffix != ".sample"]
    return settings.read_text() if settings.exists() else "", "".join(path.read_text() for path in sorted(hooks))


def prepared(make_repo: Callable[..., Repo], name: str) -> tuple[Repo, tuple[str, str], str]:
    """A repository with settings and a hook of its person's own, and coord in them; how they were before."""
    repo = make_repo(name)
    subprocess.run(["git", "init", "-q", repo.root], check=True)
    repo.write(".claude/settings.local.json", '{\n  "permissions": {"allow": ["Bash(ls)"]}\n}\n')
    repo.write(".git/hooks/pre-push", "#!/bin/sh\ntrue\n")
    (repo.root / ".git/hooks/pre-push").chmod(0o755)
    exclude = (repo.root / ".git/info/exclude").read_text()
    before = wired(repo)
    assert repo.coord("init", "--agent", "claude-code", "--yes").returncode == 0
    assert "_hook.py" in wired(repo)[0] and "coord" in wired(repo)[1]
    return repo, before, exclude


@pytest.mark.parametrize("again", [False, True], ids=["as it was", "wired again"])
@pytest.mark.parametrize("older", [False, True], ids=["new", "older"])
def test_of_a_repository_that_was_moved_all_is_taken_out(make_repo: Callable[..., Repo], again: bool, older: bool) -> None:
    first, before, exclude = prepared(make_repo, "one")
    first.down()
    assert not list((first.root / ".coord").rglob("*.json"))
    if older:  # earlier versions recorded whole paths
        record = first.root / ".coord/wired"
        record.write_text(json.dumps([{**one, "path": str(first.root / one["path"])} for one in json.loads(record.read_text())]))
        record = first.root / ".coord/guarded"
        record.write_text(json.dumps([str(first.root / one) for one in json.loads(record.read_text())]))
        for name in ("wired", "guarded"):  # and called them so, which formatters took for the project's
            (first.root / ".coord" / name).rename(first.root / f".coord/{name}.json")
    moved = Repo(first.root.rename(first.root.with_name("moved")))
    try:
        if again:
            assert moved.coord("init", "--agent", "claude-code", "--yes").returncode == 0
        done = moved.coord("init", "--remove", "--yes")
        assert done.returncode == 0 and "guard: taken out" in done.stdout, done
        assert wired(moved) == before and not (moved.root / ".mcp.json").exists()
        assert (moved.root / ".git/info/exclude").read_text() == exclude
    finally:
        moved.down()


@pytest.mark.parametrize("again", [False, True], ids=["as it was", "wired again"])
def test_what_is_taken_out_of_a_copy_stays_in_the_original(make_repo: Callable[..., Repo], again: bool) -> None:
    first, before, _ = prepared(make_repo, "one")
    first.down()
    original = wired(first)
    copy = first.root.with_name("two")
    shutil.copytree(first.root, copy, symlinks=True, ignore=lambda folder, names: {"socket"} & set(names))
    second = Repo(copy)
    try:
        if again:
            assert second.coord("init", "--agent", "claude-code", "--yes").returncode == 0
            assert f"{first.root}/.coord" not in wired(second)[0]
        assert second.coord("init", "--remove", "--yes").returncode == 0
        assert wired(second) == before
        assert wired(first) == original
        assert first.coord("doctor").returncode == 0
    finally:
        second.down()
