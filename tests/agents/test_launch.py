"""`coord launch` with real agents: hot files, a killed agent, a model that fails, three at once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.agents.clis import Extra
from tests.agents.conftest import need
from tests.agents.conversation import (
    Create,
    Edit,
    Read,
    Refuse,
    Say,
    Script,
    Scripted,
    Shell,
    Writer,
)
from tests.agents.stand import Prepared
from tests.agents.wired import PROFILES, Wired
from tests.waiting import until

pytestmark = pytest.mark.agents


def launch(wired: Wired, ready: Prepared, agent: str, *more: str) -> subprocess.Popen[str]:
    env = {k: v for k, v in ready.env.items() if not k.startswith("COORD_")}
    env["COORD_LEASES_RETRY_S"] = "1"
    return subprocess.Popen(
        [sys.executable, "-m", "coordinator.cli.main", "launch", *more, "--agent", PROFILES[agent], "--json"],
        cwd=wired.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def report(process: subprocess.Popen[str], seconds: float = 240) -> dict[str, Any]:
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        raise AssertionError(f"still running\n{out}\n{err}") from None
    made: dict[str, Any] = json.loads(out)
    return made | {"stderr": err}


def adds(name: str, *files: str, thinks_s: float = 0.0) -> Writer:
    """Carries out one task: puts a line of its own into each file, which it thinks about before."""

    def script(_: Scripted) -> Script:
        for file in files:
            yield Read(file)
            time.sleep(thinks_s)
            yield Edit(file, "last line", f"{name} was here\nlast line")
        yield Say(f"{name} is done.")

    return script


def tasks(wired: Wired, wanted: dict[str, tuple[str, ...]]) -> None:
    with wired.client() as client:
        for name, files in wanted.items():
            client.call(rq.TaskAdd(title=f"Do {name}", prompt=f"[[{name}]] Add your line.", resources=list(files)))


def hot(wired: Wired, *names: str) -> None:
    for name in names:
        (wired.root / name).write_text("first line\nlast line\n")


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "copilot"])
def test_launched_agents_share_a_hot_file(agent: str, wired: Wired) -> None:
    need(agent)
    hot(wired, "hot.txt", "a.txt", "b.txt")
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    wanted = {"one": ("hot.txt", "a.txt"), "two": ("hot.txt", "b.txt"), "three": ("hot.txt",)}
    tasks(wired, wanted)
    ready = wired.stand.prepare(agent, wired.root, [], extra=wired.extra(agent),
                                others={n: adds(n, *f) for n, f in wanted.items()})
    made = report(launch(wired, ready, agent, "-", "--agents", "2"))
    assert made["complete"], made
    assert made["tasks"] == {"done": 3}
    for name, files in wanted.items():
        for file in files:
            assert wired.read(file).count(f"{name} was here\n") == 1, (file, wired.read(file), made)
    assert [one["outcome"] for one in made["attempts"]] == ["done"] * 3
    assert made["tokens_out"] or agent == "copilot", made  # which does not tell
    with wired.client() as client:
        shown = client.call(rq.Tasks()).items
    assert all("is done." in (one.result or "") for one in shown), [one.result for one in shown]
    assert "was here" not in wired.coord("logs", "T-1") or "> " in wired.coord("logs", "T-1")


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "copilot"])
def test_a_killed_agents_work_is_flagged_and_finished_by_another(agent: str, wired: Wired) -> None:
    need(agent)
    hot(wired, "hot.txt", "b.txt")
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    tasks(wired, {"one": ("hot.txt", "b.txt")})
    marks = wired.root.parent / "half done"

    def script(_: Scripted) -> Script:
        yield Read("hot.txt")
        if "one was here" not in wired.read("hot.txt"):
            yield Edit("hot.txt", "last line", "one was here\nlast line")
            marks.write_text("")
            until(lambda: not marks.exists(), 60)
            yield Say("never heard")
        yield Read("b.txt")
        yield Edit("b.txt", "last line", "one was here\nlast line")
        yield Say("one is done.")

    ready = wired.stand.prepare(agent, wired.root, [], extra=wired.extra(agent), others={"one": script})
    process = launch(wired, ready, agent, "-", "--agents", "1", "--wait")
    with wired.client() as client:
        assert until(marks.exists, 60)
        record = json.loads(next((wired.root / ".coord/runs").glob("*/record")).read_text())
        os.killpg(record["workers"][0]["pid"], signal.SIGKILL)
        assert until(lambda: client.call(rq.Reviews()).items, 30)
        marks.unlink()
        (review,) = client.call(rq.Reviews()).items
        assert [file.path for file in client.call(rq.ReviewShow(review=review.review)).files] == ["hot.txt"]
        assert client.call(rq.Locks()).items == []
        client.call(rq.ReviewDecide(review=review.review, verdict="reassign"))
        made = report(process)
    assert made["complete"], made
    assert wired.read("hot.txt") == wired.read("b.txt") == "first line\none was here\nlast line\n"


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "copilot"])
def test_in_worktrees_of_their_own_their_work_lands(agent: str, wired: Wired) -> None:
    """Each works in its own worktree, where its hooks are too; nothing is in the repository before
    it lands, and then all of it is."""
    need(agent)
    hot(wired, "hot.txt", "a.txt", "b.txt")
    git = ["git", "-C", str(wired.root), "-c", "user.name=Test", "-c", "user.email=test@localhost"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "Files"], check=True)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    wanted = {"one": ("hot.txt", "a.txt"), "two": ("hot.txt", "b.txt"), "three": ("hot.txt",)}
    tasks(wired, wanted)
    places: dict[str, Path] = {}
    holders: dict[str, str | None] = {}

    def works(name: str, *files: str) -> Writer:
        def script(_: Scripted) -> Script:
            where = yield Shell("pwd")
            places[name] = Path(re.findall(r"/\S+/worktrees/[-\w/]+", where.text)[-1])
            # Most models name whole paths, which the script begins with the repository's.
            below = "." if agent == "codex" else places[name].relative_to(wired.root)
            for file in files:
                yield Read(f"{below}/{file}")
                yield Edit(f"{below}/{file}", "last line", f"{name} was here\nlast line")
                assert f"{name} was here" not in wired.read(file)
            yield Create(f"{below}/{name}.new", "new\n")
            with wired.client() as client:
                holders[name] = next((one.locked_by for one in client.call(rq.Locks()).items
                                      if one.resource == f"{name}.new"), None)
            yield Say(f"{name} is done.")

        return script

    ready = wired.stand.prepare(agent, wired.root, [], extra=wired.extra(agent),
                                others={n: works(n, *f) for n, f in wanted.items()})
    made = report(launch(wired, ready, agent, "-", "--agents", "2", "--isolation", "worktree"))
    assert made["complete"] and not made["not_landed"], made
    assert len(set(places.values())) == 2 and all(".coord/worktrees" in str(p) for p in places.values())
    assert all(holders.values()), (holders, "the hooks in the worktree leased what they wrote")
    for name, files in wanted.items():
        for file in files:
            assert wired.read(file).count(f"{name} was here\n") == 1, (file, wired.read(file), made)
        assert wired.read(f"{name}.new") == "new\n"
    changed = subprocess.run([*git, "log", "--format=", "--name-only", "-3"], capture_output=True, text=True, check=True)
    assert set(changed.stdout.split()) == {"hot.txt", "a.txt", "b.txt", "one.new", "two.new", "three.new"}
    left = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    assert {line[3:] for line in left.splitlines()} <= {"coord.toml", "context_archive/"}, left


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_failing_model_is_no_fault_of_the_task(agent: str, wired: Wired) -> None:
    need(agent)
    hot(wired, "hot.txt")
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    tasks(wired, {"one": ("hot.txt",)})
    second = ".coord/runs/*/T-1-2.log"

    def script(_: Scripted) -> Script:
        while not list(wired.root.glob(second)):  # however often it asks again by itself
            yield Refuse(400, "no model today")
        yield Read("hot.txt")
        yield Edit("hot.txt", "last line", "one was here\nlast line")
        yield Say("one is done.")

    ready = wired.stand.prepare(agent, wired.root, [], extra=wired.extra(agent), others={"one": script})
    made = report(launch(wired, ready, agent, "-", "--agents", "1"))
    assert [one["outcome"] for one in made["attempts"]] == ["model error", "done"], made
    with wired.client() as client:
        assert client.call(rq.TaskShow(task="T-1")).attempts == 1
    assert wired.read("hot.txt").count("one was here") == 1


def test_an_agent_whose_hooks_are_not_wired_is_not_started(wired: Wired) -> None:
    need("claude")
    ready = wired.stand.prepare("claude", wired.root, [])
    process = launch(wired, ready, "claude", "-", "--agents", "1")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "coord init --agent claude-code" in err + out


#: How each comes to pass over the hooks of a project without a word: what its profile's own command
#: would have to say, or what a person's settings say.
SILENCED = {
    "claude": (None, {".claude/settings.json": '{"disableAllHooks": true}'}),
    "codex": (('trust_level=\\"trusted\\"', 'trust_level=\\"untrusted\\"'), {}),
    "gemini": (None, {".gemini/settings.json": '{"hooksConfig": {"enabled": false}}'}),
    "opencode": (('"--auto", "{options}"', '"--auto", "--pure", "{options}"'), {}),
    "copilot": (('"--trust-folder", ', ""), {}),
}


@pytest.mark.parametrize(("agent", "thinks_s"), [*((agent, 0.0) for agent in SILENCED), ("opencode", 6.0)])
def test_hooks_that_never_report_in_stop_the_agent(agent: str, thinks_s: float, wired: Wired) -> None:
    """Also before it has changed anything: a second attempt in the same conversation took the first one's
    work for done."""
    need(agent)
    hot(wired, "hot.txt")
    name = PROFILES[agent]
    wired.coord("init", "--agent", name, "--yes")
    words, settings = SILENCED[agent]
    if words is not None:
        (wired.root / "agents").mkdir()
        profile = (Path(__file__).parents[2] / f"agents/{name}.toml").read_text()
        silenced = profile.replace(*words)
        assert silenced != profile
        (wired.root / f"agents/{name}.toml").write_text(silenced)
        wired.coord("trust", "--yes")
    tasks(wired, {"one": ("hot.txt",)})
    ready = wired.stand.prepare(agent, wired.root, [], extra=Extra(home_files=settings),
                                others={"one": adds("one", "hot.txt", thinks_s=thinks_s)})
    made = report(launch(wired, ready, agent, "-", "--agents", "1"))
    assert [one["outcome"] for one in made["attempts"]] == ["unguarded"], made["attempts"]
    assert "hooks never reported in" in made["attempts"][0]["why"], made["attempts"]
    assert not made["complete"]


def test_three_different_agents_carry_nine_tasks(wired: Wired) -> None:
    """Claude Code, Codex and OpenCode at once on one repository: every edit is in the final tree."""
    agents = ("claude", "codex", "opencode")
    for agent in agents:
        need(agent)
        wired.coord("init", "--agent", PROFILES[agent], "--yes")
    files = [f"f{n}.txt" for n in range(4)]
    hot(wired, *files)
    wanted = {f"t{n}": (files[n % 4], files[(n + 1) % 4]) for n in range(9)}
    tasks(wired, wanted)
    others = {name: adds(name, *touched) for name, touched in wanted.items()}
    running = []
    for agent in agents:
        ready = wired.stand.prepare(agent, wired.root, [], extra=wired.extra(agent), others=others)
        running.append(launch(wired, ready, agent, "-", "--agents", "2"))
    reports = [report(one) for one in running]
    outcomes = [one["outcome"] for made in reports for one in made["attempts"]]
    assert outcomes.count("done") == 9, reports
    for file in files:
        lines = wired.read(file).splitlines()
        assert lines[0] == "first line" and lines[-1] == "last line"
        assert sorted(lines[1:-1]) == sorted(f"{n} was here" for n, f in wanted.items() if file in f)
    with wired.client() as client:
        assert client.call(rq.Reviews()).items == []
        assert client.call(rq.Locks()).items == []
