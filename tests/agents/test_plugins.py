"""Real agents with coord's plugin, installed by their own commands: what it stops, and what it lets be."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.agents.conftest import need
from tests.agents.conversation import Create, Edit, Mcp, Read, Result, Say, Script, Scripted
from tests.agents.plugged import SERVER, Plugged, no_coord_on_path
from tests.agents.wired import PROFILES, Wired

pytestmark = pytest.mark.agents

AGENTS = ["claude", "gemini", "opencode"]
SAID = "is not on this machine"


def _plugged(agent: str, wired: Wired, folder: Path, *, has_coord: bool = True) -> Plugged:
    need(agent)
    made = Plugged(agent, wired, folder / "person" / "home", has_coord)
    made.install()
    return made


@pytest.mark.parametrize("agent", AGENTS)
def test_a_plugin_refuses_what_another_holds(agent: str, wired: Wired, tmp_path: Path) -> None:
    plugged = _plugged(agent, wired, tmp_path)
    wired.coord("init")
    heard: dict[str, Result] = {}
    claimed: list[str] = []
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="reordering them"))
        client.call(rq.TaskAdd(title="Add the sum", resources=["lib/sum.py"]))

        def script(_: Scripted) -> Script:
            yield Read("notes.txt")
            heard["edit"] = yield Edit("notes.txt", "second line", "HACK")
            heard["free"] = yield Create("free.txt", "free\n")
            heard["task"] = yield Mcp(SERVER.get(agent, "coord"), "next_task", {})
            claimed.append(str(client.call(rq.TaskShow(task="T-1")).claimed_by))  # its end gives it back
            yield Say("done")

        argv = ("--allowedTools=mcp__plugin_coord_coord",) if agent == "claude" else ()
        ran = plugged.run(script, argv=argv)
        assert ran.code == 0, ran.tail()
        assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n", ran.tail()
        assert wired.read("free.txt") == "free\n", heard["free"].text
        assert "ann" in heard["edit"].text and "reordering them" in heard["edit"].text, heard["edit"].text
        assert "Add the sum" in heard["task"].text, heard["task"].text
        sessions = {one.agent for one in client.call(rq.Agents(all=True)).items if one.hooked_at}
        assert len(sessions) == 1 and sessions.pop().startswith(PROFILES[agent])
        assert len(claimed) == 1 and claimed[0].startswith(PROFILES[agent]), f"{claimed}: the session's, not the server's"


@pytest.mark.parametrize("agent", AGENTS)
def test_with_both_each_call_is_asked_about_once(agent: str, wired: Wired, tmp_path: Path) -> None:
    plugged = _plugged(agent, wired, tmp_path)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    heard: dict[str, Result] = {}
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="reordering them"))

        def script(_: Scripted) -> Script:
            yield Read("notes.txt")
            yield Read("lib/sum.py")
            heard["refused"] = yield Edit("notes.txt", "second line", "HACK")
            heard["region"] = yield Edit("lib/sum.py", "    return a - b", "    return a + b")
            heard["again"] = yield Edit("lib/sum.py", "def add(a, b)", "def add(a, b, c=0)")
            heard["free"] = yield Create("free.txt", "free\n")
            yield Say("done")

        ran = plugged.run(script)
        assert ran.code == 0, ran.tail()
        assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n", ran.tail()
        assert wired.read("lib/sum.py") == "def add(a, b, c=0):\n    return a + b\n", heard
        assert wired.read("free.txt") == "free\n", heard["free"].text
        assert "reordering them" in heard["refused"].text
        assert [one.text for name, one in heard.items() if name != "refused" and "coord:" in one.text] == []
        found = client.call(rq.Events(limit=1000)).items
        events = Counter(one.kind for one in found)
        once = {"agent_hooked": 1, "agent_registered": 2, "acquisition_refused": 1, "lease_granted": 5, "content_read": 5}
        assert {kind: events[kind] for kind in once} == once, events
        unleased = [one.resource for one in found if one.kind == "unleased_write"]
        assert [path for path in unleased if path in ("lib/sum.py", "free.txt", "notes.txt")] == [], "OpenCode writes files of its own"


@pytest.mark.parametrize("agent", AGENTS)
def test_where_coord_is_not_used_nothing_is_felt(agent: str, wired: Wired, tmp_path: Path) -> None:
    plugged = _plugged(agent, wired, tmp_path)
    heard: list[Result] = []

    def script(_: Scripted) -> Script:
        heard.append((yield Create("free.txt", "free\n")))
        yield Say("done")

    ran = plugged.run(script)
    assert ran.code == 0 and wired.read("free.txt") == "free\n", ran.tail()
    assert not (wired.root / ".coord").exists()
    assert SAID not in ran.out + ran.err and "MCP issues" not in ran.err, ran.tail()
    assert "coord:" not in heard[0].text
    assert [name for turn in ran.model.log for name in _tools(turn.body) if "coord" in name] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_without_the_command_it_is_said_once_and_nothing_is_stopped(agent: str, wired: Wired, tmp_path: Path) -> None:
    assert no_coord_on_path()
    plugged = _plugged(agent, wired, tmp_path, has_coord=False)
    wired.coord("init")

    def script(_: Scripted) -> Script:
        yield Create("free.txt", "free\n")
        yield Create("more.txt", "more\n")
        yield Say("done")

    ran = plugged.run(script)
    assert ran.code == 0, ran.tail()
    assert wired.read("free.txt") + wired.read("more.txt") == "free\nmore\n"
    assert SAID not in json.dumps([turn.body for turn in ran.model.log]), "a person is told, not the model"
    assert "MCP issues" not in ran.err, ran.tail()
    told = (ran.out + ran.err).count(SAID)
    assert told == {"claude": 2, "gemini": 2, "opencode": 0}[agent], (
        "one hook: Claude's stream repeats what it printed, Gemini shows it twice, OpenCode's is in its log")


def _tools(body: Any) -> list[str]:
    """All names in what a model was asked, its tools' among them."""
    if isinstance(body, dict):
        own = [body["name"]] if isinstance(body.get("name"), str) else []
        return own + [name for one in body.values() for name in _tools(one)]
    return [name for one in body for name in _tools(one)] if isinstance(body, list) else []
