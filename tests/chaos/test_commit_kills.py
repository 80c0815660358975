"""Two agents commit regions of the same twelve files while the daemon is killed with SIGKILL, at any moment.

After each kill every file is wholly old or wholly new, all of a commit the same, what was acknowledged is there, the other's
regions are untouched, and the log says which commits were made."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
from itertools import count

import pytest

from coordinator import Client, Refusal
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.effort import examples
from tests.waiting import gone, until

pytestmark = pytest.mark.usefixtures("from_nothing")

FILES = [f"d/m{n}.py" for n in range(12)]
KILLS = 25
#: A commit takes so long here; then the exchange of its files, which is the shortest part.
WITHIN_S, WRITES_S = 0.15, 0.01


class Committer(threading.Thread):
    """Commits one function of each file, with a number that rises, and notes what it asked and was told."""

    def __init__(self, repo: Repo, name: str) -> None:
        super().__init__(daemon=True)
        self.name_of, self.repo = name, repo
        self.asked = self.told = 0
        self.commits: dict[int, rq.RegionsCommitted] = {}
        self.refused: list[Refusal] = []
        self.stop, self.begins = threading.Event(), threading.Event()

    def run(self) -> None:
        client = Client(self.repo.root, agent=f"agent-{self.name_of}")
        for number in count(1):
            if self.stop.is_set():
                return
            texts = [rq.RegionText(resource=f"{file}::{self.name_of}", text=f"def {self.name_of}():\n    return {number}\n")
                     for file in FILES]
            self.asked = number
            self.begins.set()
            try:
                self.commits[number] = client.call(rq.CommitRegion(agent=client.agent or "", regions=texts))
                self.told = number
            except Refusal as refusal:
                self.refused.append(refusal)


def numbers(repo: Repo, name: str) -> set[int]:
    return {int(found[1]) for file in FILES
            if (found := re.search(rf"def {name}\(\):\n    return (\d+)\n", repo.read(file))) is not None}


@pytest.mark.chaos
def test_a_kill_at_any_moment_leaves_all_old_or_all_new(repo: Repo) -> None:
    for file in FILES:
        repo.write(file, "import os\n\n\ndef f():\n    return 0\n\n\ndef g():\n    return 0\n\n\nLAST = os.sep\n")
    with repo.client() as boss:
        for name in "fg":
            boss.call(rq.Acquire(agent=f"agent-{name}", resources=[f"{file}::{name}" for file in FILES], ttl_s=86_400))
    chance, both = random.Random(11), [Committer(repo, name) for name in "fg"]
    for one in both:
        one.start()
    cut = set()
    for _ in range(examples(KILLS)):
        one = chance.choice(both)
        one.begins.clear()
        until(lambda one=one: one.begins.is_set(), 60)
        if chance.random() < 0.5:
            threading.Event().wait(chance.random() * WITHIN_S)
        else:  # it has written one of them
            before_it = numbers(repo, one.name_of)
            until(lambda one=one, was=before_it: not numbers(repo, one.name_of) <= was, 60)
            threading.Event().wait(chance.random() * WRITES_S)
        pid = repo.pid()
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: gone(pid))
        half = {name: numbers(repo, name) for name in "fg"}
        cut |= {len(found) > 1 for found in half.values()}
        before = [one.told for one in both]
        until(lambda before=before: all(one.told > then for one, then in zip(both, before, strict=True)), 120)
    for one in both:
        one.stop.set()
    for one in both:
        one.join(60)
    assert cut == {True, False}, "some kills came in the middle of a commit, and some did not"
    with repo.client() as boss:
        until(lambda: not any(lease.locked_by.startswith("coord/") for lease in boss.call(rq.Locks()).items))
        events, after = [], 0
        while page := boss.call(rq.Events(after=after, limit=5000)).items:
            events += page
            after = page[-1].seq
        assert boss.call(rq.Replay()).equal and boss.call(rq.Health(integrity=True)).integrity == "ok"
        assert boss.call(rq.Reviews()).items == []
    for one in both:
        (now,) = numbers(repo, one.name_of)
        assert one.told <= now <= one.asked, (one.told, now, one.asked)
        assert {refusal.code.value for refusal in one.refused} <= {"DAEMON_DOWN", "SHUTTING_DOWN", "LOCKED", "REGION_CHANGED"}, one.refused
        done = {event.data["review"] for event in events if event.kind == "verdict_ended" and event.data["outcome"] == "done"}
        # Who asks again after a kill may find it all written by then: the commit before says so.
        notes = {line for event in events if event.kind == "verdict_begun" and event.data["review"] in done
                 for line in event.data["note"].splitlines()}
        for made in one.commits.values():
            assert {f"{region.content_hash} {region.resource}" for region in made.regions} <= notes
            assert len(made.regions) == len(FILES)
    for file in FILES:
        text = repo.read(file)
        assert text.startswith("import os\n\n\ndef f():") and text.endswith("\n\n\nLAST = os.sep\n"), text
    assert not [path for path in (repo.root / "d").iterdir() if path.name.startswith(".coord")]
