"""Real agents and the guard in git's hooks: each commits its own, none commits another's."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.agents.conftest import need
from tests.agents.conversation import Edit, Read, Result, Say, Script, Scripted, Shell
from tests.agents.test_coordination import AGENTS
from tests.agents.wired import PROFILES, Wired

pytestmark = pytest.mark.agents


#: Gemini CLI switches git's hooks off in the commands that it runs, whosever they are.
GUARDED = [agent for agent in AGENTS if agent != "gemini"]


@pytest.mark.parametrize("agent", GUARDED)
def test_it_commits_its_own_work_and_nobody_elses(agent: str, wired: Wired) -> None:
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    for key, value in (("user.name", "Agent"), ("user.email", "agent@localhost")):
        subprocess.run(["git", "-C", str(wired.root), "config", key, value], check=True)
    heard: dict[str, Result] = {}
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["lib/sum.py"], description="rewriting it"))
        (wired.root / "lib/sum.py").write_text("half of it\n")

        def script(_: Scripted) -> Script:
            yield Read("notes.txt")
            yield Edit("notes.txt", "second line", "a better line")
            heard["own"] = yield Shell("git commit -m 'A better line' -- notes.txt")
            heard["ann's"] = yield Shell("git commit -m 'The sum' -- lib/sum.py")
            yield Say("done")

        ran = wired.run(agent, script)
        assert ran.code == 0, ran.tail()
    said = subprocess.run(["git", "log", "--format=%s", "--name-only"], cwd=wired.root, capture_output=True,
                          text=True, check=True).stdout
    assert said.split("\n")[:3] == ["A better line", "", "notes.txt"], heard["own"].text
    assert "The sum" not in said
    assert "held by ann until" in heard["ann's"].text


WIRED = ".claude/settings.local.json"


@pytest.mark.parametrize("write", [
    lambda root: (root / WIRED).unlink(), lambda root: (root / WIRED).write_text("{}"),
    lambda root: (root / ".claude/settings.json").write_text('{"disableAllHooks": true}'),
], ids=["gone", "emptied", "switched off"])
def test_a_claude_that_runs_keeps_its_hooks(write: Callable[[Path], object], wired: Wired) -> None:
    need("claude")
    wired.coord("init", "--agent", "claude-code", "--yes")
    heard: dict[str, Result] = {}
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["lib/sum.py"], description="rewriting it"))

        def script(_: Scripted) -> Script:
            yield Read("lib/sum.py")
            write(wired.root)
            time.sleep(3.0)  # Claude reads its settings anew a second later, without a word
            heard["edit"] = yield Edit("lib/sum.py", "a - b", "a + b")
            yield Say("done")

        ran = wired.run("claude", script)
    assert ran.code == 0, ran.tail()
    assert not heard["edit"].ok and "rewriting it" in heard["edit"].text and "a - b" in wired.read("lib/sum.py")
