"""The guard of sessions that run is looked at all the time: what takes it out does not take effect in a session that runs, a file of
coord's that is gone is written anew, and the rest is said within a second, by name."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.conftest import Repo
from tests.hook.test_session_processes import Session
from tests.waiting import until

WIRED = ".claude/settings.local.json"
#: What Claude has read.
SETTINGS: dict[str, Any] = {}
#: The session of each repository.
SESSIONS: dict[Path, Session] = {}


@pytest.fixture
def guarded(repo: Repo) -> Repo:
    """A wired repository with a typed session of Claude Code; ann holds a file."""
    repo.coord("init", "--agent", "claude-code", "--agent", "codex", "--yes", "--no-guard")
    repo.write("a.py", "1\n")
    with repo.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["a.py"]))
    SESSIONS[repo.root] = Session(repo, "one").begins()
    return repo


def warned(repo: Repo) -> str:
    with repo.client() as client:
        return "\n".join(client.call(rq.Health()).warnings)


def told(repo: Repo, agent: str) -> str:
    with repo.client() as client:
        return "\n".join(one.text for one in client.call(rq.Heartbeat(agent=agent)).notices)


def leased(repo: Repo, task: bool = False) -> str:
    """The code of the refusal of a lease that the session asks for, or of a task."""
    with repo.client() as client:
        try:
            if task:
                client.call(rq.TaskClaim(agent="claude-code-one", task=client.call(rq.TaskAdd(title="x")).task))
            else:
                client.call(rq.Acquire(agent="claude-code-one", resources=[f"{time.monotonic_ns()}.py"]))
        except Refusal as refusal:
            return refusal.code.value
    return ""


def emptied(repo: Repo) -> None:
    repo.write(WIRED, "{}\n")


def unhooked(repo: Repo) -> None:
    found = json.loads(repo.read(WIRED))
    del found["hooks"]["PreToolUse"]
    repo.write(WIRED, json.dumps(found))


def switched_off(repo: Repo) -> None:
    repo.write(WIRED, json.dumps(json.loads(repo.read(WIRED)) | {"disableAllHooks": True}))


def switched_off_beside(repo: Repo) -> None:
    repo.write(".claude/settings.json", '{"disableAllHooks": true}')


def keeps(repo: Repo) -> tuple[int, str]:
    """What the wired hook says, as Claude runs it, once settings have changed: the exit code, and why."""
    (entry,) = SETTINGS["hooks"]["ConfigChange"]
    said = {"session_id": "one", "cwd": str(repo.root), "hook_event_name": "ConfigChange", "source": "local_settings",
            "file_path": str(repo.root / WIRED)}
    done = subprocess.run(entry["hooks"][0]["command"], shell=True, cwd=repo.root, input=json.dumps(said), capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("taken", [emptied, unhooked, switched_off, switched_off_beside])
def test_what_takes_the_guard_out_is_said_and_what_puts_it_back(guarded: Repo, taken: Callable[[Repo], None]) -> None:
    until(lambda: warned(guarded) == "")
    before = guarded.read(WIRED)
    SETTINGS.update(json.loads(before))
    assert keeps(guarded) == (0, "")
    taken(guarded)
    until(lambda: "claude-code-one is unguarded" in warned(guarded))
    assert leased(guarded) == "UNGUARDED" and leased(guarded, task=True) == "UNGUARDED", "it could write without being asked"
    code, why = keeps(guarded)
    assert code == 2 and "keeps the settings" in why and "coord init --remove --agent claude-code" in why, "Claude goes on with what it had"
    until(lambda: "agents of claude-code that start now are unguarded" in warned(guarded))
    assert leased(guarded) == "", "it keeps its hooks"
    assert "claude-code-one is unguarded" in told(guarded, "ann") and "unguarded" in told(guarded, "claude-code-one")
    assert "claude-code that start now are unguarded" in guarded.coord("doctor").stdout and "unguarded" in guarded.coord("status").stdout
    with guarded.client() as client:
        assert sum("claude-code is unguarded" in str(one.data["what"]) for one in client.call(rq.Events(kind="noted")).items) == 1
    guarded.write(WIRED, before)
    (guarded.root / ".claude/settings.json").unlink(missing_ok=True)
    until(lambda: warned(guarded) == "")
    assert keeps(guarded) == (0, "")


def test_a_session_that_asks_all_the_same_is_guarded(guarded: Repo) -> None:
    """Some CLIs read their settings once, at the start: what asks before its calls gets its leases."""
    until(lambda: warned(guarded) == "")
    emptied(guarded)
    until(lambda: leased(guarded) == "UNGUARDED")
    SESSIONS[guarded.root].hook("PreToolUse", tool_name="Write", tool_use_id="w", tool_input={"file_path": str(guarded.root / "c.py"), "content": "1"})
    assert leased(guarded) == ""
    until(lambda: "agents of claude-code that start now are unguarded" in warned(guarded))


def test_what_persons_change_there_is_theirs(guarded: Repo) -> None:
    """Their own settings, an editor that replaces the file, and taking coord out."""
    until(lambda: warned(guarded) == "")
    mine = json.loads(guarded.read(WIRED)) | {"model": "x", "disableAllHooks": False}
    for text in (json.dumps(mine), json.dumps(mine, indent=4)):
        guarded.write(f"{WIRED}.new", text)
        (guarded.root / WIRED).unlink()
        (guarded.root / f"{WIRED}.new").rename(guarded.root / WIRED)
    SETTINGS.update(mine)
    assert keeps(guarded) == (0, "")
    guarded.coord("init", "--remove", "--agent", "claude-code", "--yes")
    assert keeps(guarded) == (0, ""), "a person took coord out"
    guarded.write(".codex/hooks.json", "{}")
    until(lambda: "codex" in warned(guarded))
    assert "claude" not in warned(guarded) and told(guarded, "ann").count("unguarded") == 1


def cleaned(repo: Repo) -> None:
    """An everyday command; it spares repositories of others, and so the coordinator's folder here."""
    subprocess.run(["git", "init", "-q"], cwd=repo.root, check=True)
    subprocess.run(["git", "clean", "-fdxq", "-e", ".coord"], cwd=repo.root, check=True)


def removed(repo: Repo) -> None:
    shutil.rmtree(repo.root / ".claude")


@pytest.mark.parametrize("taken", [cleaned, removed])
def test_a_file_of_coords_that_is_gone_is_written_anew(guarded: Repo, taken: Callable[[Repo], None]) -> None:
    until(lambda: warned(guarded) == "")
    before = json.loads(guarded.read(WIRED))
    taken(guarded)
    until(lambda: (guarded.root / WIRED).exists())
    assert json.loads(guarded.read(WIRED)) == before
    until(lambda: warned(guarded) == "")
    assert told(guarded, "ann") == "", "nothing is missing"
    with guarded.client() as client:
        until(lambda: any("claude-code: " in str(one.data["what"]) and "written anew" in str(one.data["what"])
                          for one in client.call(rq.Events(kind="noted")).items))
    (guarded.root / WIRED).unlink()
    until(lambda: "claude-code-one is unguarded" in warned(guarded))
    assert not (guarded.root / WIRED).exists(), "somebody wants it away"
    assert guarded.coord("init", "--agent", "claude-code", "--yes", "--no-guard").returncode == 0
    assert guarded.coord("init", "--remove", "--yes").returncode == 0
    assert not (guarded.root / ".claude").exists() and not (guarded.root / ".codex").exists()


@pytest.mark.parametrize(("agent", "file", "switch"), [
    ("gemini", ".gemini/settings.json", {"hooksConfig": {"enabled": False}}), ("qwen", ".qwen/settings.json", {"disableAllHooks": True}),
    ("codex", ".codex/config.toml", "[features]\nhooks = false\n"),
])
def test_each_agents_own_switch(repo: Repo, agent: str, file: str, switch: Any) -> None:
    repo.coord("init", "--agent", agent, "--yes", "--no-guard")
    until(lambda: repo.coord("up").returncode == 0)
    wired = repo.read(file)
    repo.write(file, wired.replace("[features]\n", switch) if isinstance(switch, str) else json.dumps(json.loads(wired) | switch))
    until(lambda: f"{file} switches its hooks off" in warned(repo))
    repo.write(file, wired)
    until(lambda: warned(repo) == "")


def test_what_is_gone_from_a_persons_home_stays_gone(repo: Repo, tmp_path: Path) -> None:
    """Another repository may have taken coord out there."""
    home = {"HOME": str(tmp_path / "home"), "XDG_DATA_HOME": str(tmp_path / "home/data")}
    repo.coord("init", "--agent", "claude-code", "--user", "--yes", "--no-guard", env=home)
    wired = tmp_path / "home/.claude/settings.json"
    assert wired.exists() and repo.coord("up", env=home).returncode == 0
    until(lambda: warned(repo) == "")
    wired.unlink()
    until(lambda: "agents of claude-code that start now are unguarded" in warned(repo))
    assert not wired.exists()


def set_aside(repo: Repo) -> None:
    """As husky does at each `npm install`."""
    repo.write(".husky/_/pre-commit", "#!/bin/sh\n")
    git(repo, "config", "core.hooksPath", ".husky/_")


def replaced(repo: Repo) -> None:
    """As lefthook does."""
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n")


def not_executable(repo: Repo) -> None:
    (repo.root / ".git/hooks/pre-commit").chmod(0o644)


def deleted(repo: Repo) -> None:
    (repo.root / ".git/hooks/pre-push").unlink()


def without_hooks(repo: Repo) -> None:
    git(repo, "config", "core.hooksPath", "/dev/null")


def git(repo: Repo, *words: str) -> None:
    subprocess.run(["git", *words], cwd=repo.root, check=True)


@pytest.mark.parametrize("taken", [set_aside, replaced, not_executable, deleted, without_hooks])
def test_a_guard_of_commits_that_is_gone_is_said_until_it_is_back(repo: Repo, taken: Callable[[Repo], None]) -> None:
    git(repo, "init", "-q")
    repo.coord("init")
    repo.coord("guard", "install")
    repo.write("a.py", "1\n")
    with repo.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["a.py"]))
    until(lambda: warned(repo) == "")
    before = {path: (path.read_bytes(), path.stat().st_mode) for path in (repo.root / ".git/hooks").iterdir()}
    taken(repo)
    until(lambda: "commits and pushes of what others hold are unguarded" in warned(repo))
    for command in ("doctor", "status"):
        assert repo.coord(command).stdout.count("are unguarded") == 1
    assert "`coord guard install` puts it right" in told(repo, "ann")
    for path, (data, mode) in before.items():
        path.write_bytes(data)
        path.chmod(mode)
    subprocess.run(["git", "config", "--unset", "core.hooksPath"], cwd=repo.root, check=False)
    until(lambda: warned(repo) == "")
    with repo.client() as client:
        noted = [str(event.data["what"]) for event in client.call(rq.Events(kind="noted")).items]
    assert len([what for what in noted if "git is unguarded" in what]) == 1, noted


def test_a_guard_that_a_person_takes_out_is_no_loss(repo: Repo) -> None:
    git(repo, "init", "-q")
    repo.coord("init", "--agent", "claude-code", "--yes")
    until(lambda: warned(repo) == "")
    repo.coord("guard", "remove")
    assert "unguarded" not in repo.coord("doctor").stdout
    until(lambda: len(list(repo.root.glob(".git/hooks/pre-push"))) == 0)
    assert warned(repo) == ""
    repo.coord("guard", "install")
    until(lambda: warned(repo) == "")
    replaced(repo)
    assert "commits and pushes of what others hold are unguarded" in repo.coord("doctor").stdout, "also before the coordinator has looked"
    until(lambda: "are unguarded" in warned(repo))
