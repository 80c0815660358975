"""`coord attach` with real agents: followed, then taken over in their own interactive mode."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.agents.clis import Extra, merged
from tests.agents.conftest import need
from tests.agents.conversation import Edit, Read, Say, Script, Scripted
from tests.agents.test_launch import hot, launch, report, tasks
from tests.agents.wired import PROFILES, Wired
from tests.terminal import Terminal
from tests.waiting import until

pytestmark = pytest.mark.agents


#: What each shows once a person may type.
SHOWS = {"claude": "/effort", "codex": "--blocked"}
#: With what one is left.
LEAVES = {"claude": "/exit", "codex": "/quit"}


def a_person_knows(agent: str, root: Path) -> dict[str, str]:
    """What each asks a person once, answered: a theme, whether a key may be used, trust, a newer model."""
    claude = {
        "hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": {"approved": ["not-a-key"]},
        "projects": {str(root): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True,
                                 "enabledMcpjsonServers": ["coord"]}},
    }
    codex = '[notice.model_migrations]\n"gpt-5.5" = "gpt-6-sol"\n'
    # (2.1.332 takes the answer on a project's MCP servers from a person's settings.)
    settings = {"enabledMcpjsonServers": ["coord"]}
    return {"claude": {".claude.json": json.dumps(claude), ".claude/settings.json": json.dumps(settings)}, "codex": {".codex/config.toml": codex}}[agent]


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_real_agent_is_followed_and_taken_over(agent: str, wired: Wired, tmp_path: Path) -> None:
    need(agent)
    hot(wired, "hot.txt")
    wired.coord("init", "--agent", PROFILES[agent], "--yes", "--mcp")
    tasks(wired, {"one": ("hot.txt",)})
    reached, go = tmp_path / "reached", tmp_path / "go"

    heard: list[str] = []

    def script(_: Scripted) -> Script:
        yield Read("hot.txt")
        reached.touch()
        until(go.exists, 60)
        said = yield Say("never heard: it was stopped meanwhile")
        heard.append(said.all_text)
        said = yield Say("Somebody")
        heard.append(said.all_text)
        yield Read("hot.txt")
        yield Edit("hot.txt", "last line", "one was here\nlast line")
        yield Say("one is done.")

    own = wired.extra(agent)
    extra = Extra(argv=own.argv, env=own.env,
                  home_files=merged(own.home_files, a_person_knows(agent, wired.root)))
    ready = wired.stand.prepare(agent, wired.root, [], extra=extra, others={"one": script})
    process = launch(wired, ready, agent, "-", "--agents", "1")
    try:
        until(reached.exists, 60)
        _take_over(agent, wired, ready.env | {"TERM": "xterm-256color"}, go)
        made = report(process)
    finally:
        for _ in range(2):
            process.poll() is None and process.terminate()
        process.wait(30)
    # Then what it was told there is part of the conversation, and it finished its task by itself
    assert made["complete"] and [one["outcome"] for one in made["attempts"]] == ["done"], made
    assert "a person has taken T-1 over" in made["stderr"] and "goes on unattended" in made["stderr"]
    assert "who-is-there" in heard[0] and "A person had taken this conversation over" in heard[1], heard
    assert wired.read("hot.txt").count("one was here\n") == 1
    followed = wired.coord("logs", "T-1", "--all")
    assert "one is done." in followed
    with wired.client() as client:
        assert client.call(rq.TaskShow(task="T-1")).attempts == 1
        assert client.call(rq.Reviews()).items == []


def _take_over(agent: str, wired: Wired, env: dict[str, str], go: Path) -> None:
    """A person takes it over, asks something, is answered, and leaves."""
    with Terminal(wired.root, "attach", "--take-over", env=env) as person:
        try:
            until(lambda: f"you are {PROFILES[agent]}-1 now" in person.shown, 30)
            go.touch()
            until(lambda: SHOWS[agent] in person.shown, 30)
            assert "--blocked" in person.shown, "the conversation so far, which begins with its prompt"
            person.types("who-is-there")
            until(lambda: "who-is-there" in person.shown, 30)
            person.types("\r")
            until(lambda: "Somebody" in person.shown, 30)
            person.types(LEAVES[agent])
            until(lambda: LEAVES[agent] in person.shown, 30)
            person.types("\r")
            assert person.process.wait(30) == 0
        except AssertionError:
            print(person.shown[-6000:])
            raise
