"""Real agents that take and finish work through coord's own MCP tools, as `coord init` wires them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.agents.clis import Extra
from tests.agents.conftest import need
from tests.agents.conversation import Edit, Mcp, Read, Result, Say, Script, Scripted, Shell
from tests.agents.wired import PROFILES, TRUST, Wired

pytestmark = pytest.mark.agents


def _extra(agent: str, root: Path) -> Extra:
    trusted = TRUST.get(agent, lambda repo: Extra())(root)
    argv = {"claude": ("--allowedTools=mcp__coord",)}.get(agent, ())
    return Extra(argv=(*trusted.argv, *argv), env=trusted.env, home_files=trusted.home_files)


AGENTS = ["claude", "codex", "gemini", "opencode", "copilot"]


def _once_there(call: Mcp) -> Generator[Any, Result, Result]:
    """Codex asks its model before its MCP servers have started: then the tool is not there yet."""
    while True:
        result = yield call
        if "unsupported call" not in result.text:
            return result
        yield Shell("sleep 0.3")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_model_takes_a_task_and_finishes_it(agent: str, wired: Wired) -> None:
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes", "--mcp")
    heard: dict[str, Result] = {}
    seen: dict[str, str] = {}
    with wired.client() as client:
        client.call(rq.TaskAdd(title="Correct the sum", prompt="It subtracts.", resources=["lib/sum.py"]))

        def script(_: Scripted) -> Script:
            heard["read"] = yield Read("lib/sum.py")
            heard["task"] = yield from _once_there(Mcp("coord", "next_task", {}))
            seen["claimed"] = str(client.call(rq.TaskShow(task="T-1")).claimed_by)
            heard["edit"] = yield Edit("lib/sum.py", "    return a - b", "    return a + b")
            heard["done"] = yield Mcp("coord", "complete_task", {"task": "T-1", "result": "It adds."})
            yield Say("done")

        ran = wired.stand.run(agent, wired.root, script, extra=_extra(agent, wired.root))
        assert ran.code == 0, ran.tail()
        assert "It subtracts." in heard["task"].text, heard
        assert "return a + b" in wired.read("lib/sum.py"), heard["edit"].text
        task = client.call(rq.TaskShow(task="T-1"))
        assert (task.state, task.result) == ("done", "It adds."), heard["done"].text
        hooked = [one.agent for one in client.call(rq.Agents(all=True)).items if one.hooked_at]
        assert seen["claimed"] in hooked


@pytest.mark.parametrize("agent", AGENTS)
def test_the_tools_of_a_launched_agent_are_held_to_its_token(agent: str, wired: Wired) -> None:
    """Several CLIs keep most of their environment from their MCP servers."""
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes", "--mcp")
    heard: dict[str, Result] = {}
    held: dict[str, str] = {}
    with wired.client() as client:
        token = client.call(rq.Register(agent="worker-1", profile=PROFILES[agent])).token

        def script(_: Scripted) -> Script:
            heard["lease"] = yield from _once_there(
                Mcp("coord", "acquire", {"resources": ["notes.txt"]}))
            held.update({one.resource: one.locked_by for one in client.call(rq.Locks()).items})
            yield Say("done")

        extra = _extra(agent, wired.root)
        env = {**extra.env, "COORD_AGENT": "worker-1", "COORD_AGENT_TOKEN": token,
               "COORD_ROOT": str(wired.root), "COORD_SOCKET": str(wired.root / ".coord/socket")}
        ran = wired.stand.run(agent, wired.root, script, extra=replace(extra, env=env))
        assert ran.code == 0, ran.tail()
        assert held == {"notes.txt": "worker-1"}, heard["lease"].text
        assert not [one for one in client.call(rq.Agents(all=True)).items if one.agent != "worker-1"]
