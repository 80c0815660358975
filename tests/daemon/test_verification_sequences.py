"""Random sequences of tasks, commits and half-done work, with a real daemon and real git.

Whatever the order: whoever is blamed has broken something; what an unfinished task has written, or
somebody has committed of it, never counts; and when all is mended and committed, what is verified is
what is committed.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until

pytestmark = pytest.mark.slow
CONFIG = "[verify]\ncommand = '! grep -r BROKEN src'\nafter_tasks = 999\nquiet_s = 99999\n[backlog]\nattempts_max = 50\n"


class Play:
    """One sequence, and what is known of it."""

    def __init__(self, repo: Repo, seed: int) -> None:
        self.repo, self.chance = repo, random.Random(seed)
        self.did: list[str] = []
        #: Of each done task: whether what it wrote last breaks the command, and its files.
        self.wrote: dict[str, tuple[bool, list[str]]] = {}
        self.blamed: set[str] = set()
        self.open: tuple[str, str] | None = None
        self.client = repo.client()
        until(lambda: self.client.call(rq.Verifications()).base)

    def git(self, *args: str) -> str:
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=self.repo.root,
                              capture_output=True, text=True, check=True).stdout

    def task(self, bad: bool | None = None) -> None:
        taken = {self.open[1]} if self.open else set[str]()
        files = self.chance.sample([f"src/f{n}" for n in range(6) if f"src/f{n}" not in taken], self.chance.choice((1, 1, 2)))
        name = self.client.call(rq.TaskAdd(title="t", resources=files)).task
        self.finish(name, files, self.chance.random() < 0.3 if bad is None else bad)

    def finish(self, name: str, files: list[str], bad: bool) -> None:
        self.client.call(rq.TaskClaim(agent="ann", task=name))
        for n, path in enumerate(files):
            self.repo.write(path, f"{len(self.did)} {'BROKEN' if bad and n == 0 else 'fine'}\n")
        if self.chance.random() < 0.2:  # agents commit, too
            self.git("add", *files)
            self.git("commit", "-qm", name, "--allow-empty", "--", *files)
        self.client.call(rq.TaskDone(agent="ann", task=name))
        self.wrote[name] = bad, files

    def begin(self) -> None:
        if self.open is None:
            path = f"src/f{self.chance.randrange(6)}"
            name = self.client.call(rq.TaskAdd(title="half", resources=[path])).task
            self.client.call(rq.TaskClaim(agent="bob", task=name))
            self.repo.write(path, "BROKEN half\n")
            self.open = name, path

    def end(self) -> None:
        if self.open is not None:
            name, path = self.open
            self.repo.write(path, f"{len(self.did)} whole\n")
            self.client.call(rq.TaskDone(agent="bob", task=name))
            self.wrote[name], self.open = (False, [path]), None

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "all", "--allow-empty")

    def redo(self) -> None:
        for name in sorted(self.blamed):
            files = self.wrote[name][1]
            if self.open and self.open[1] in files:
                continue
            self.blamed.remove(name)
            self.finish(name, files, self.chance.random() < 0.2)
            return

    def verify(self) -> None:
        found: dict[str, Any] = json.loads(self.repo.coord("verify", "--json").stdout)
        assert found["state"] in ("good", "broken"), found
        for name in found["tasks"]:
            assert any(self.wrote[one][0] for one in self.judged_with(name)), f"{name} has broken nothing"
            self.blamed.add(name)
        there = self.git("grep", "-l", "", "refs/coord/verify/base", "--", "src")
        bad = subprocess.run(["git", "grep", "BROKEN", "refs/coord/verify/base", "--", "src"], cwd=self.repo.root,
                             capture_output=True, text=True, check=False).stdout
        assert there and not bad, bad

    def judged_with(self, name: str) -> set[str]:
        """The task itself, and what lay on top of its broken work when it was repaired."""
        log = self.client.call(rq.Events(limit=5000)).items
        task_of = {one.data["n"]: one.task for one in log if one.kind == "work_finished"}
        works = next(one.data["works"] for one in reversed(log) if one.kind == "verification_ended")
        last = max(n for n, state, because in works if (state, because) == ("broken", name))
        return {str(task_of[n]) for n, _, because in works if because == name and n <= last}

    def settle(self) -> None:
        self.end()
        self.verify()
        while self.blamed:
            name = min(self.blamed)
            self.blamed.remove(name)
            self.finish(name, self.wrote[name][1], bad=False)
            self.verify()
        self.commit()
        self.verify()
        assert self.client.call(rq.Verifications()).left == []
        assert self.git("diff", "HEAD", "refs/coord/verify/base") == ""
        assert json.loads(self.repo.coord("replay", "--json").stdout)["equal"]


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence(make_repo: Callable[..., Repo], seed: int) -> None:
    repo = make_repo(config=CONFIG)
    repo.write("src/base", "x\n")
    for args in (("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "w")):
        subprocess.run(["git", *args], cwd=repo.root, check=True)
    play = Play(repo, seed)
    steps = [play.task, play.task, play.task, play.begin, play.end, play.commit, play.redo, play.verify]
    try:
        for _ in range(30):
            step = play.chance.choice(steps)
            play.did.append(step.__name__)
            step()
        play.settle()
    except BaseException:
        print("seed", seed, play.did)
        print(play.wrote)
        for one in play.client.call(rq.Events(limit=1000)).items:
            if one.kind in ("work_finished", "verification_ended", "verified_from", "verification_begun"):
                print(one.data)
        print(play.git("log", "--stat", "--oneline"))
        raise
    finally:
        play.client.close()
