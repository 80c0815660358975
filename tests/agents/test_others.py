"""Agents without hooks of their own (Aider, mini-swe-agent), pi's extension, sub-agents, resuming."""

from __future__ import annotations

import json
import os
import signal

import pytest

from coordinator.profiles import PLUGINS
from coordinator.words import requests as rq
from tests.agents.clis import Extra
from tests.agents.conftest import need
from tests.agents.conversation import Create, Edit, Read, Result, Say, Script, Scripted, Shell, Use
from tests.agents.test_launch import hot, launch, report, tasks
from tests.agents.wired import PROFILES, Wired
from tests.waiting import until

pytestmark = pytest.mark.agents


def test_aider_asks_before_it_writes_a_reply(wired: Wired) -> None:
    need("aider")
    heard: dict[str, Result] = {}
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="reordering them"))

        def script(_: Scripted) -> Script:
            heard["edit"] = yield Edit("notes.txt", "second line", "HACK")
            yield Edit("lib/sum.py", "    return a - b", "    return a + b")
            yield Say("done")

        ran = wired.stand.run("aider", wired.root, script,
                              extra=Extra(env={"PYTHONPATH": str(PLUGINS / "aider")}))
        assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n", ran.tail()
        assert "return a + b" in wired.read("lib/sum.py"), ran.tail()
        assert "reordering them" in heard["edit"].text, heard["edit"]
        # (Its process has ended, so its lease may have, too.)
        granted = client.call(rq.Events(kind="lease_granted", resource="lib/sum.py", limit=100)).items
        assert [one.agent[:6] for one in granted if one.agent] == ["aider-"]


def test_minis_commands_are_checked(wired: Wired) -> None:
    need("mini")
    heard: list[Result] = []
    commands = ("echo HACK > notes.txt", "n=new.txt; echo new > $n", "git stash")
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="reordering them"))

        def script(_: Scripted) -> Script:
            for command in commands:
                heard.append((yield Shell(command)))
            yield Say("done")

        ran = wired.stand.run("mini", wired.root, script, extra=Extra(
            argv=("--environment-class", "coord_mini.CoordEnvironment"),
            env={"PYTHONPATH": str(PLUGINS / "mini")}))
        assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n", ran.tail()
        assert wired.read("new.txt") == "new\n", ran.tail()
        assert "reordering them" in heard[0].text
        assert "whole working tree" in heard[2].text


@pytest.mark.parametrize("agent", ["pi", "qwen"])
def test_the_rest_are_refused_and_told_too(agent: str, wired: Wired) -> None:
    need(agent)
    wired.coord("init", "--agent", agent, "--yes")
    heard: dict[str, Result] = {}
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="reordering them"))

        def script(_: Scripted) -> Script:
            yield Read("notes.txt")
            heard["edit"] = yield Edit("notes.txt", "second line", "HACK")
            heard["obvious"] = yield Shell("echo HACK > notes.txt")
            heard["free"] = yield Create("free.txt", "free\n")
            yield Say("done")

        ran = wired.run(agent, script)
        assert ran.code == 0, ran.tail()
        assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n", ran.tail()
        assert wired.read("free.txt") == "free\n"
        assert "reordering them" in heard["edit"].text and "reordering them" in heard["obvious"].text


def test_what_qwens_commands_changed_is_found(wired: Wired) -> None:
    need("qwen")
    wired.coord("init", "--agent", "qwen", "--yes")
    heard: dict[str, Result] = {}
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt", "lib/"], description="reordering them"))

        def script(_: Scripted) -> Script:
            heard["shell"] = yield Shell("n=notes.txt; d=lib; echo HACK > $n; echo HACK > $d/sum.py")
            yield Create("free.txt", "free\n")
            yield Say("done")

        ran = wired.run("qwen", script)
        assert ran.code == 0, ran.tail()
        (review,) = client.call(rq.Reviews()).items
        shown = client.call(rq.ReviewShow(review=review.review))
        assert [file.path for file in shown.files] == ["lib/sum.py", "notes.txt"]
        assert "held by ann" in shown.summary
        client.call(rq.Release(agent="ann", resources=["notes.txt", "lib/"]))
        client.call(rq.ReviewDecide(review=review.review, verdict="revert"))
        assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n"
        assert wired.read("lib/sum.py").endswith("return a - b\n")


#: How each agent's model starts a sub-agent with a prompt.
SUB_AGENTS = {
    "codex": lambda name: Use("spawn_agent", {"message": f"[[{name}]] Go."}, "multi_agent_v1"),
    "claude": lambda name: Use("Task", {"description": name, "prompt": f"[[{name}]] Go.", "subagent_type": "general-purpose", "run_in_background": False}),
    "copilot": lambda name: Use("task", {"description": name, "prompt": f"[[{name}]] Go.", "agent_type": "general-purpose", "name": name}),
    "opencode": lambda name: Use("task", {"description": name, "prompt": f"[[{name}]] Go.", "subagent_type": "general"}),
}


@pytest.mark.parametrize("agent", sorted(SUB_AGENTS))
def test_sub_agents_of_one_session_contend(agent: str, wired: Wired) -> None:
    """The first sub-agent has the file; the second, while the first still works, is refused it."""
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    gate = wired.root.parent / "gate"
    heard: dict[str, Result] = {}

    def one(_: Scripted) -> Script:
        yield Read("notes.txt")
        yield Edit("notes.txt", "first line", "one was here")
        gate.write_text("")
        until(lambda: "second" in heard, 60)
        yield Say("one is done")

    def two(_: Scripted) -> Script:
        until(gate.exists, 60)
        yield Read("notes.txt")
        heard["second"] = yield Edit("notes.txt", "third line", "two was here")
        yield Say("two is done")

    def parent(_: Scripted) -> Script:
        yield tuple(SUB_AGENTS[agent](name) for name in ("one", "two"))  # type: ignore[misc]
        until(lambda: "second" in heard, 60)  # Codex goes on at once
        yield Say("done")

    ran = wired.run(agent, parent, others={"one": one, "two": two})
    assert ran.code == 0, ran.tail()
    assert f"leased by {PROFILES[agent]}-" in heard["second"].text, heard
    assert wired.read("notes.txt") == "one was here\nsecond line\nthird line\n"
    with wired.client() as client:
        parents = {one.agent: one.parent for one in client.call(rq.Agents(all=True)).items}
        assert sum(1 for parent in parents.values() if parent) == 2, parents
        assert client.call(rq.Locks()).items == []


def test_a_launch_that_died_goes_on_in_the_agents_own_session(wired: Wired) -> None:
    need("claude")
    hot(wired, "hot.txt")
    wired.coord("init", "--agent", "claude-code", "--yes")
    tasks(wired, {"one": ("hot.txt",)})
    gate = wired.root.parent / "gate"

    def first(_: Scripted) -> Script:
        yield Read("hot.txt")
        gate.write_text("")
        until(lambda: not gate.exists(), 60)
        yield Say("never heard")

    ready = wired.stand.prepare("claude", wired.root, [], others={"one": first})
    process = launch(wired, ready, "claude", "-", "--agents", "1")
    assert until(gate.exists, 60)
    record = json.loads(next((wired.root / ".coord/runs").glob("*/record")).read_text())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    os.killpg(record["workers"][0]["pid"], signal.SIGKILL)
    gate.unlink()

    def second(_: Scripted) -> Script:
        yield Read("hot.txt")
        yield Edit("hot.txt", "last line", "one was here\nlast line")
        yield Say("one is done.")

    again = wired.stand.prepare("claude", wired.root, [], others={"one": second}, home=ready.home)
    made = report(launch(wired, again, "claude", "-", "--agents", "1", "--resume"))
    assert made["complete"], made
    assert wired.read("hot.txt").count("one was here") == 1
    assert again.session.told("You were interrupted in the middle of this task")
