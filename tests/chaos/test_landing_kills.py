"""Agents in worktrees land changes of three files each, merged by region, while the launcher or the daemon is killed with
SIGKILL, mostly in the middle of a landing.

After each kill the branch has all of a task's work or none of it; in the end all of it is there, and the files are the branch's."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
from collections.abc import Callable

import pytest

from coordinator import Refusal
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.effort import examples
from tests.launch.conftest import Launch
from tests.waiting import until

FILES = [f"m{n}.py" for n in range(6)]
KILLS = 10
#: A landing takes some tenths of a second here, its exchange of files far less.
WITHIN_S = 0.12
CONFIG = "[backlog]\nbackoff_s = 0.1\nattempts_max = 100\n[sweep]\ninterval_s = 1\n[watch]\nenabled = false\n"


def git(repo: Repo, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=repo.root, check=True, capture_output=True, text=True).stdout


def files_of(task: int) -> list[str]:
    return [FILES[(task + step) % len(FILES)] for step in (0, 2, 3)]


def landed(texts: dict[str, str], task: int) -> list[bool]:
    return [f"def f{task}():\n    return {task + 1}\n" in texts[file] for file in files_of(task)]


def on_the_branch(repo: Repo) -> dict[str, str]:
    tip = git(repo, "rev-parse", "HEAD").strip()  # a launcher that lives moves it meanwhile
    return {file: git(repo, "show", f"{tip}:{file}") for file in FILES}


def settle(repo: Repo) -> None:
    """A person has what a killed agent left gone on with."""
    with repo.client() as client:
        for review in client.call(rq.Reviews()).items:
            try:
                client.call(rq.ReviewDecide(review=review.review, verdict="reassign"))
            except Refusal:
                client.call(rq.ReviewDecide(review=review.review, verdict="keep"))


@pytest.mark.chaos
def test_a_kill_while_branches_land_loses_no_part_of_any(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo("a repo ü", config=CONFIG)
    kills = examples(KILLS)
    count = 3 * kills
    for file in FILES:
        repo.write(file, "import os\n\n\n" + "\n\n".join(f"def f{n}():\n    return 0\n" for n in range(count)) + "\n\nLAST = os.sep\n")
    for words in (("init", "-q"), ("symbolic-ref", "HEAD", "refs/heads/trunk"), ("config", "user.name", "P"), ("config", "user.email", "p@x"),
                  ("add", "*.py"), ("commit", "-qm", "one")):
        git(repo, *words)
    with repo.client() as client:
        for n in range(count):
            client.call(rq.TaskAdd(title=f"f{n}", resources=[f"{file}::f{n}" for file in files_of(n)]))
    script = repo.root.parent / "agent.sh"
    script.write_text("n=$(( ${COORD_TASK#T-} - 1 )); for step in 0 2 3; do file=m$(( (n + step) % 6 )).py\n"
                      'sed -i "/^def f$n():/{n;s/return .*/return $(( n + 1 ))/}" $file; done\n')
    chance, done = random.Random(7), 0
    going: Launch | None = None
    try:
        while True:
            if going is None or going.process.poll() is not None:
                settle(repo)
                going = Launch(repo, f"sh '{script}'", None, "-n", "4", "--isolation", "worktree")
            if done == kills:
                break
            note = repo.state.path / "landing"
            until(lambda going=going, note=note: note.exists() or going.process.poll() is not None, 60)
            if chance.random() < 0.7:
                threading.Event().wait(chance.random() * WITHIN_S)
            if chance.random() < 0.5:
                going.kill()
            else:
                os.kill(repo.pid(), signal.SIGKILL)
            done += 1
            texts = on_the_branch(repo)
            for task in range(count):
                assert len(set(landed(texts, task))) == 1, (task, landed(texts, task))
        for _ in range(20):
            going.process.wait(120 + 4 * count)
            settle(repo)
            with repo.client() as client:
                if client.call(rq.Tasks(limit=5000)).counts.get("done") == count:
                    break
            going = Launch(repo, f"sh '{script}'", None, "-n", "4", "--isolation", "worktree")
    finally:
        if going is not None and going.process.poll() is None:
            going.kill()
    texts = on_the_branch(repo)
    assert all(all(landed(texts, task)) for task in range(count)), going.said()
    assert all(len(re.findall(r"^def f", text, re.MULTILINE)) == count for text in texts.values())
    assert git(repo, "status", "--porcelain", "-uno") == "" and not note.exists()
    with repo.client() as client:
        assert client.call(rq.Replay()).equal
