"""The guard of sessions that run is looked at all the time: what takes it out is said within a second, by name."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.hook.test_session_processes import Session
from tests.waiting import until

WIRED = ".claude/settings.local.json"


@pytest.fixture
def guarded(repo: Repo) -> Repo:
    """A wired repository with a typed session of Claude Code; ann holds a file."""
    repo.coord("init", "--agent", "claude-code", "--agent", "codex", "--yes", "--no-guard")
    repo.write("a.py", "1\n")
    with repo.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["a.py"]))
    Session(repo, "one").begins()
    return repo


def warned(repo: Repo) -> str:
    with repo.client() as client:
        return "\n".join(client.call(rq.Health()).warnings)


def told(repo: Repo, agent: str) -> str:
    with repo.client() as client:
        return "\n".join(one.text for one in client.call(rq.Heartbeat(agent=agent)).notices)


def gone(repo: Repo) -> None:
    (repo.root / WIRED).unlink()


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


@pytest.mark.parametrize("taken", [gone, emptied, unhooked, switched_off, switched_off_beside])
def test_what_takes_the_guard_out_is_said_and_what_puts_it_back(guarded: Repo, taken: Callable[[Repo], None]) -> None:
    until(lambda: warned(guarded) == "")
    before = guarded.read(WIRED)
    taken(guarded)
    until(lambda: "claude-code-one is unguarded" in warned(guarded))
    assert "claude-code-one is unguarded" in told(guarded, "ann") and "unguarded" in told(guarded, "claude-code-one")
    assert "claude-code-one is unguarded" in guarded.coord("doctor").stdout and "unguarded" in guarded.coord("status").stdout
    with guarded.client() as client:
        assert sum("claude-code is unguarded" in str(one.data["what"]) for one in client.call(rq.Events(kind="noted")).items) == 1
    guarded.write(WIRED, before)
    (guarded.root / ".claude/settings.json").unlink(missing_ok=True)
    until(lambda: warned(guarded) == "")


def test_what_persons_change_there_is_theirs(guarded: Repo) -> None:
    """Their own settings, an editor that replaces the file, and taking coord out."""
    until(lambda: warned(guarded) == "")
    mine = json.loads(guarded.read(WIRED)) | {"model": "x", "disableAllHooks": False}
    for text in (json.dumps(mine), json.dumps(mine, indent=4)):
        guarded.write(f"{WIRED}.new", text)
        (guarded.root / WIRED).unlink()
        (guarded.root / f"{WIRED}.new").rename(guarded.root / WIRED)
    guarded.coord("init", "--remove", "--agent", "claude-code", "--yes")
    (guarded.root / ".codex/hooks.json").unlink()
    until(lambda: "codex" in warned(guarded))
    assert "claude" not in warned(guarded) and told(guarded, "ann").count("unguarded") == 1
