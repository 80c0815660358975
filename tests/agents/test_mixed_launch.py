"""One launch of different CLIs in which everybody is killed once: an agent, the coordinator, the launcher."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.agents.conftest import need
from tests.agents.conversation import Edit, Read, Say, Script, Scripted, Writer
from tests.agents.test_launch import hot, report, tasks
from tests.agents.wired import PROFILES, Wired
from tests.waiting import until

pytestmark = pytest.mark.agents
AGENTS = ("claude", "codex")
FILES = [f"f{n}.txt" for n in range(5)]
WANTED = {f"t{n}": (FILES[n % 5], FILES[(n + 1) % 5]) for n in range(10)}


def test_whoever_is_killed_every_edit_is_there(wired: Wired) -> None:
    for agent in AGENTS:
        need(agent)
        wired.coord("init", "--agent", PROFILES[agent], "--yes")
    hot(wired, *FILES)
    tasks(wired, WANTED)
    told: list[tuple[str, str]] = []
    by: set[str] = set()

    def works(agent: str, name: str, *files: str) -> Writer:
        def script(_: Scripted) -> Script:
            for file in files:
                while f"{name} was here" not in wired.read(file):
                    yield Read(file)
                    said = yield Edit(file, "last line", f"{name} was here\nlast line")
                    if said.ok:
                        told.append((name, file))
                        by.add(agent)
            yield Say(f"{name} is done.")

        return script

    # One process starts both, so they have one home and one environment.
    claude = wired.stand.prepare("claude", wired.root, [], extra=wired.extra("claude"),
                                 others={name: works("claude", name, *files) for name, files in WANTED.items()})
    codex = wired.stand.prepare("codex", wired.root, [], extra=wired.extra("codex"), home=claude.home,
                                others={name: works("codex", name, *files) for name, files in WANTED.items()})
    env = {**codex.env, **claude.env, "COORD_LEASES_RETRY_S": "1",
           "PATH": f"{codex.env['PATH']}{os.pathsep}{claude.env['PATH']}"}

    def launch(*more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "coordinator.cli.main", "launch", "-", "--agent", "claude-code:2", "--agent", "codex:1",
             "--wait", "--json", *more],
            cwd=wired.root, env={k: v for k, v in env.items() if not k.startswith("COORD_") or k == "COORD_LEASES_RETRY_S"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    first = launch()
    with a_person_reassigns(wired):
        until(lambda: len(told) >= 3, 90)
        os.killpg(until(lambda: at_work(wired, "claude-code"), 60), signal.SIGKILL)
        until(lambda: len(told) >= 5, 120)
        os.killpg(until(lambda: at_work(wired, "codex"), 60), signal.SIGKILL)
        until(lambda: len(told) >= 8, 120)
        os.kill(int((wired.root / ".coord/daemon.lock").read_text()), signal.SIGKILL)
        until(lambda: len(told) >= 11, 120)
        first.kill()
        first.communicate()
        made = report(launch("--resume"))
    assert made["complete"], made
    for file in FILES:
        lines = wired.read(file).splitlines()
        assert lines[0] == "first line" and lines[-1] == "last line"
        assert sorted(lines[1:-1]) == sorted(f"{name} was here" for name, f in WANTED.items() if file in f), made
    assert len(set(told)) == len(told), "no edit was made twice"
    assert by == set(AGENTS), "each of them did some of it"
    with wired.client() as client:
        assert {one.state for one in client.call(rq.Tasks()).items} == {"done"}
        assert client.call(rq.Locks()).items == []


def at_work(wired: Wired, profile: str) -> int | None:
    """The process group of an agent of this profile that has a task now."""
    for path in sorted((wired.root / ".coord/runs").glob("*/record")):
        record: dict[str, Any] = json.loads(path.read_text())
        for one in record["workers"]:
            if one["agent"].startswith(profile) and one["pid"] and one["task"]:
                return int(one["pid"])
    return None


@contextmanager
def a_person_reassigns(wired: Wired) -> Iterator[None]:
    """Whatever is flagged goes back to its task at once."""
    over = threading.Event()

    def decide() -> None:
        while not over.wait(0.3):
            with suppress(Refusal), wired.client() as client:
                for review in client.call(rq.Reviews()).items:
                    client.call(rq.ReviewDecide(review=review.review, verdict="reassign"))

    person = threading.Thread(target=decide)
    person.start()
    try:
        yield
    finally:
        over.set()
        person.join()
