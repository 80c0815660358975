"""Several agents of one launch: a circle of them, and who gets which task."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.launch.conftest import Launch
from tests.waiting import until

pytestmark = pytest.mark.slow

Start = Callable[..., Launch]

#: Each has a file of its own and needs the next one's, too; it does as it is told.
STUBBORN = r"""
n=${COORD_TASK#T-}; next=$((n % COUNT + 1))
touch "began-$n"
until [ "$(ls | grep -c '^began-')" = COUNT ]; do sleep 0.05; done
until said=$(coord lock "f$next" --task "$COORD_TASK" 2>&1); do
  case $said in
    *"it is you who give way"*)
      echo "$COORD_TASK" >> gave-way
      eval "$(echo "$said" | sed -n 's/^ *next: //p')"
      exit 0;;
    *"give back"*) echo "$said" >> wrong;;
  esac
  sleep 0.2
done
for one in "f$n" "f$next"; do echo "$COORD_TASK" >> "$one"; done
"""


@pytest.mark.parametrize("count", [2, 5])
def test_a_circle_of_launched_agents_dissolves_by_one_of_them(repo: Repo, launch: Start, count: int) -> None:
    tasks = [(f"t{n}", [f"f{n}"]) for n in range(1, count + 1)]
    going = launch(STUBBORN.replace("COUNT", str(count)), *tasks, n=count)
    report = going.report(90)
    # Then one alone gave its task back, and every edit is there
    assert report["tasks"] == {"done": count}, going.said()
    outcomes = [one["outcome"] for one in report["attempts"]]
    assert outcomes.count("given back") == 1 and outcomes.count("done") == count, outcomes
    assert len((repo.root / "gave-way").read_text().split()) == 1
    assert not (repo.root / "wrong").exists()
    edits = sorted(line for n in range(1, count + 1)
                   for line in (repo.root / f"f{n}").read_text().split())
    assert edits == sorted(f"T-{n}" for n in range(1, count + 1) for _ in "ab")
    with repo.client() as person:
        assert person.call(rq.Locks()).items == [] and person.call(rq.Reviews()).items == []


def test_one_that_gives_way_in_a_worktree_goes_on_with_the_next_task(repo: Repo, launch: Start) -> None:
    repo.coord("init")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]):
        _git(repo.root, *words)
    report = launch(
        'case $COORD_TASK in T-1) test -e "$COORD_ROOT/../tried" || {\n'
        'touch "$COORD_ROOT/../tried"; coord task fail T-1 --blocked later; exit 0; };; esac\n'
        "echo $COORD_TASK >> $COORD_TASK.txt",
        ("one", ["T-1.txt"]), ("two", ["T-2.txt"]), n=1, options=("--isolation", "worktree"),
    ).report()
    assert report["tasks"] == {"done": 2}, report
    assert [one["outcome"] for one in report["attempts"]].count("given back") == 1
    assert {path for one in report["landed"] for path in one["paths"]} == {"T-1.txt", "T-2.txt"}


def test_each_profile_takes_the_best_task_that_is_left(
    repo: Repo, launch: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repo.root.parent / "config"
    (folder / "coord/agents").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    (folder / "coord/agents/other.toml").write_text(
        'name = "other"\ndescription = "another"\nprompt = "stdin"\nsuccess_codes = [0]\n'
        f'versions_tried = []\ncommand = ["sh", "{repo.root.parent}/agent.sh"]\n')
    with repo.client() as person:
        for title, files, priority in (("least", ["a"], 0), ("held", ["b"], 9), ("same", ["b"], 8),
                                       ("best left", ["c"], 5)):
            person.call(rq.TaskAdd(title=title, resources=files, priority=priority))
    going = launch("touch $COORD_TASK.$COORD_AGENT; while ! test -e go; do sleep 0.05; done",
                   n=2, options=("--agent", "other"))
    with repo.client() as person:
        def taken() -> set[str]:
            return {one.title for one in person.call(rq.Tasks(state="claimed")).items}

        # The best two of those that can be worked on beside each other
        until(lambda: len(taken()) == 2)
        assert taken() == {"held", "best left"}
    until(lambda: len([*repo.root.glob("T-*.*-1")]) == 2)
    assert {path.suffix for path in repo.root.glob("T-*.*-1")} == {".other-1", ".shell-1"}
    (repo.root / "go").touch()
    assert going.report()["tasks"] == {"done": 4}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_what_runs_finish(repo: Repo, launch: Start, number: int) -> None:
    going = launch("touch began; while ! test -e go; do sleep 0.05; done; sleep 1; echo $COORD_TASK >> ended",
                   ("one", []), ("two", []), n=1)
    until(lambda: (repo.root / "began").exists())
    going.process.send_signal(number)
    until(lambda: not _pending(going.process.pid))
    (repo.root / "go").touch()
    report = going.report()
    assert report["tasks"] == {"done": 1, "ready": 1} and going.process.returncode == 1
    assert (repo.root / "ended").read_text().split() == ["T-1"]


def _pending(pid: int) -> bool:
    """Whether a signal was sent to this process that it has not met yet (Linux; elsewhere it is not told)."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    return any(int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd", "ShdPnd")))


def _git(root: Path, *words: str) -> None:
    import subprocess

    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *words], cwd=root, check=True,
                   capture_output=True)
