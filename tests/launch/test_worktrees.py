"""`coord launch --isolation worktree`: real git, real daemon, real agents; what lands, what not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.launch.verification import Verification, WouldLand
from coordinator.launch.worktrees import Target
from coordinator.words import requests as rq
from coordinator.workers.process_group import Running
from tests.conftest import Repo, trust_settings
from tests.launch.conftest import CONFIG, Launch, alive, pid_in
from tests.waiting import until

pytestmark = pytest.mark.slow

Start = Callable[..., Launch]
ISOLATED = ("--isolation", "worktree")


def git(repo: Repo | Path, *args: str) -> str:
    place = repo if isinstance(repo, Path) else repo.root
    done = subprocess.run(["git", *args], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repo(repo: Repo) -> Repo:
    """The launch tests' repository, with a branch and a commit: `a`, `b`, `c`, `d/e`."""
    git(repo, "symbolic-ref", "HEAD", "refs/heads/trunk")
    git(repo, "config", "user.name", "Pat")
    git(repo, "config", "user.email", "pat@example.org")
    for name in ("a", "b", "c", "d/e"):
        (repo.root / name).parent.mkdir(exist_ok=True)
        (repo.root / name).write_text(f"{name}\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "first")
    return repo


def person_commits(repo: Repo, name: str, text: str) -> None:
    (repo.root / name).write_text(text)
    git(repo, "add", name)
    git(repo, "commit", "-qm", f"by hand: {name}")


def is_clean(repo: Repo) -> bool:
    """The main worktree, its index and the branch agree; nothing of coord's is left."""
    assert git(repo, "status", "--porcelain") == ""
    assert not (repo.root / ".git/index.lock").exists()
    assert not (repo.root / ".git/coord-index").exists()
    assert not (repo.state.path / "landing").exists()
    git(repo, "fsck", "--no-dangling")
    return True


def left_over(repo: Repo) -> tuple[int, list[str]]:
    """Linked worktrees and branches of launches that are still there."""
    branches = git(repo, "branch", "--format=%(refname:short)", "--list", "coord/*").split()
    return git(repo, "worktree", "list").count("\n"), branches


def waiting(repo: Repo) -> str:
    """The beginning of an agent that waits, in its worktree, until it may go on."""
    return (f'touch "{repo.root.parent}/began"\n'
            f'while ! test -e "{repo.root.parent}/go"; do sleep 0.02; done\n')


@contextmanager
def it_waits(repo: Repo) -> Iterator[None]:
    """What is done in here is done while the agent waits."""
    until(lambda: (repo.root.parent / "began").exists())
    yield
    (repo.root.parent / "go").touch()


def states(repo: Repo) -> dict[str, str]:
    with repo.client() as client:
        return {t.title: t.state for t in client.call(rq.Tasks()).items}


def refusal_of(report: dict[str, Any]) -> str:
    (kept,) = report["not_landed"]
    return str(kept["why"])


# ------------------------------------------------------------------------------- what lands


def test_agents_on_different_files_land_side_by_side(repo: Repo, launch: Start) -> None:
    # Given agents that wait for each other, so that all begin at the same commit
    going = launch(
        f'pwd > "{repo.root.parent}/place-$COORD_TASK"; touch "{repo.root.parent}/here-$COORD_TASK"\n'
        f'while [ $(ls "{repo.root.parent}" | grep -c here-) -lt 3 ]; do sleep 0.02; done\n'
        'case $COORD_TASK in T-1) echo one >> a;; T-2) echo two >> b; git commit -qam "my own words";;\n'
        'T-3) mkdir -p d/new; echo three > d/new/f; rm d/e;; esac',
        ("one", ["a"]), ("two", ["b"]), ("three", ["d/"]), n=3, options=ISOLATED,
    )
    report = going.report()
    # Then everything is on the branch and in the working tree, and nothing else is left
    assert report["tasks"] == {"done": 3}, going.said()
    assert {one["task"]: one["paths"] for one in report["landed"]} == {
        "T-1": ["a"], "T-2": ["b"], "T-3": ["d/e", "d/new/f"]}
    assert report["target"] == "trunk" and report["not_landed"] == []
    assert (repo.root / "a").read_text() == "a\none\n"
    assert (repo.root / "b").read_text() == "b\ntwo\n"
    assert (repo.root / "d/new/f").read_text() == "three\n"
    assert not (repo.root / "d/e").exists()
    assert is_clean(repo) and left_over(repo) == (0, [])
    # each worked in a place of its own, below .coord
    places = {(repo.root.parent / f"place-T-{n}").read_text() for n in (1, 2, 3)}
    assert len(places) == 3
    assert all(str(repo.root / ".coord/worktrees") in place for place in places)
    # the history has the task's name, and the agent's own words
    subjects = git(repo, "log", "--format=%s").splitlines()
    assert {"T-1: one", "my own words", "T-3: three"} <= set(subjects)
    body = git(repo, "log", "--format=%an %b", "--grep=T-1: one", "-1")
    assert "Pat" in body and "Coord-Task: T-1" in body
    # leases are given back, the claim is done with the commit, and the log tells it all
    with repo.client() as client:
        assert client.call(rq.Locks()).items == []
        assert "landed on trunk as" in str(client.call(rq.TaskShow(task="T-1")).result)
        moves = client.call(rq.Events(kind="target_moved")).items
        assert len(moves) == 3 and moves[0].data["fencing_tokens"]
        assert client.call(rq.Replay()).equal


def test_edits_of_one_file_come_one_after_the_other_and_all_are_there(
    repo: Repo, launch: Start
) -> None:
    tasks = [(f"task {n}", ["a"]) for n in range(6)]
    going = launch('sleep 0.05; echo "$COORD_TASK" >> a', *tasks, n=3, options=ISOLATED)
    report = going.report()
    assert report["tasks"] == {"done": 6}, going.said()
    lines = (repo.root / "a").read_text().splitlines()
    assert lines[0] == "a" and sorted(lines[1:]) == [f"T-{n}" for n in range(1, 7)]
    assert len(report["attempts"]) == 6  # each began from what the one before had landed
    assert is_clean(repo) and left_over(repo) == (0, [])


def test_agents_on_different_functions_of_one_file_work_and_land_side_by_side(repo: Repo, launch: Start) -> None:
    text = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in (1, 2, 3))
    person_commits(repo, "many.py", text)
    going = launch(
        f'touch "{repo.root.parent}/here-$COORD_TASK"\n'
        f'while [ $(ls "{repo.root.parent}" | grep -c here-) -lt 3 ]; do sleep 0.02; done\n'
        'n=${COORD_TASK#T-}; sed -i "s/return $n/return ${n}0/" many.py',
        *((f"task {n}", [f"many.py::f{n}"]) for n in (1, 2, 3)), n=3, options=ISOLATED,
    )
    report = going.report()
    assert report["tasks"] == {"done": 3} and len(report["attempts"]) == 3, going.said()
    assert (repo.root / "many.py").read_text() == "".join(f"def f{n}():\n    return {n}0\n\n\n" for n in (1, 2, 3))
    assert is_clean(repo) and left_over(repo) == (0, [])
    with repo.client() as client:
        assert client.call(rq.Reviews()).items == [] and client.call(rq.Replay()).equal


def test_links_binaries_modes_deletions_and_renames_land(repo: Repo, launch: Start) -> None:
    os.symlink("a", repo.root / "link")
    (repo.root / "s.sh").write_text("true\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "more")
    going = launch(
        'rm link; ln -s b link; printf "\\000\\001" > "pic ü.bin"; git mv c moved; rm b; chmod +x s.sh\n'
        'mkdir b; echo now a directory > b/x',
        ("all", ["./"]), n=1, options=ISOLATED,
    )
    report = going.report()
    assert report["tasks"] == {"done": 1}, going.said()
    assert os.readlink(repo.root / "link") == "b"
    assert (repo.root / "pic ü.bin").read_bytes() == b"\0\1"
    assert (repo.root / "moved").read_text() == "c\n" and not (repo.root / "c").exists()
    assert (repo.root / "b/x").read_text() == "now a directory\n"
    assert os.access(repo.root / "s.sh", os.X_OK)
    assert is_clean(repo)


def test_work_lands_where_gits_of_sessions_have_queued(repo: Repo, launch: Start) -> None:
    """The files of their queue are in the way of no lock of git's."""
    enter = f"from coordinator import _git_queue; _git_queue.enter({str(repo.root / '.git')!r}, 'commit')"
    subprocess.run([sys.executable, "-P", "-c", enter], check=True)
    report = launch("echo one >> a", ("one", ["a"]), options=ISOLATED).report()
    assert report["tasks"] == {"done": 1} and report["not_landed"] == []
    assert is_clean(repo)


def test_a_task_that_changes_nothing_is_done_and_lands_nothing(repo: Repo, launch: Start) -> None:
    before = git(repo, "rev-parse", "HEAD")
    report = launch("true", ("look", ["a"]), n=1, options=ISOLATED).report()
    assert report["tasks"] == {"done": 1} and report["landed"] == []
    assert git(repo, "rev-parse", "HEAD") == before
    assert is_clean(repo) and left_over(repo) == (0, [])


def test_what_a_persons_command_fails_on_does_not_land(repo: Repo, launch: Start) -> None:
    """It sees what the target would have: both changes pass alone, and not together."""
    (repo.root / ".gitignore").write_text("built\n")
    (repo.root / "check").write_text('echo "b has $(cat b)"; ls built >> seen 2>&1; cp seen ../seen; touch built\n'
                                     'test "$(cat a b | grep -c more)" -lt 2\n')
    person_commits(repo, "check", (repo.root / "check").read_text())
    git(repo, "add", ".gitignore")
    git(repo, "commit", "-qm", "ignore")
    going = launch(
        f'touch "{repo.root.parent}/here-$COORD_TASK"\n'
        f'while [ $(ls "{repo.root.parent}" | grep -c here-) -lt 2 ]; do sleep 0.02; done\n'
        'case $COORD_TASK in T-1) echo more >> a;; T-2) echo more >> b;; esac',
        ("one", ["a"]), ("two", ["b"]), n=2,
        options=(*ISOLATED, "--verify", "sh check"),
    )
    report = going.report()
    assert sorted(states(repo).values()) == ["done", "review"], going.said()
    why = refusal_of(report)
    assert "'sh check' failed (exit code 1)" in why.replace('"', "'") and "b has" in why and "Nothing of it landed" in why
    assert sorted((repo.root / name).read_text() for name in ("a", "b")) in (["a\n", "b\nmore\n"], ["a\nmore\n", "b\n"])
    assert (repo.root / ".coord").is_dir() and is_clean(repo)
    assert not list((repo.root / ".coord").glob("worktrees/*/coord.verify"))
    logs = sorted((repo.root / ".coord/runs").glob("*/*-verify-*.log"))
    assert len(logs) in (2, 3) and all("b has" in log.read_text() for log in logs)  # (3: both stood in line at once)


def test_a_command_that_takes_long_keeps_the_leases_of_those_in_line(repo: Repo, launch: Start) -> None:
    going = launch('echo more >> $(case $COORD_TASK in T-1) echo a;; T-2) echo b;; *) echo c;; esac)',
                   ("one", ["a"]), ("two", ["b"]), ("three", ["c"]), n=3,
                   options=(*ISOLATED, "--ttl", "2s", "--verify", "sleep 1.5"))
    assert going.report()["tasks"] == {"done": 3}, going.said()
    assert is_clean(repo) and left_over(repo) == (0, [])


def test_who_waits_to_land_and_who_lands_is_seen_by_everybody(repo: Repo, launch: Start) -> None:
    here = repo.root.parent
    going = launch(f'while ! test -e "{here}/$COORD_TASK"; do sleep 0.02; done\n'
                   'echo more >> $(case $COORD_TASK in T-1) echo a;; *) echo b;; esac)', ("one", ["a"]), ("two", ["b"]),
                   n=2, options=(*ISOLATED, "--verify", f"touch '{here}/verifies'; while ! test -e '{here}/go'; do sleep 0.02; done"))

    def queue() -> list[tuple[str, str, str]]:
        with repo.client() as client:
            return [(row.task, row.state, row.target) for row in client.call(rq.Landings()).items]

    (here / "T-1").touch()
    until(lambda: (here / "verifies").exists())
    assert queue() == [("T-1", "landing", "trunk")]
    (here / "T-2").touch()
    until(lambda: queue() == [("T-1", "landing", "trunk"), ("T-2", "waiting", "trunk")])
    (here / "go").touch()
    assert going.report()["tasks"] == {"done": 2}, going.said()
    assert queue() == [] and is_clean(repo)


#: Agents that end at the same time: each waits for all, then writes a line into a file of its own.
TOGETHER = ('touch "{here}/here-$COORD_TASK"; while [ $(ls "{here}" | grep -c here-) -lt {n} ]; do sleep 0.02; done\n'
            'echo $COORD_TASK >> $(case $COORD_TASK in T-1) echo a;; T-2) echo b;; T-3) echo c;; *) echo d/e;; esac)')


@pytest.mark.parametrize("bad", ["", "T-1", "T-2", "T-3", "T-4"])
def test_those_who_stand_in_line_are_verified_together(repo: Repo, launch: Start, bad: str) -> None:
    """What fails is found by halves, goes back with the reason, and keeps nobody else from landing."""
    here = repo.root.parent
    runs = here / "runs"
    check = f"echo run >> '{runs}'; sleep 0.7; ! grep -qx '{bad or 'nothing'}' a b c d/e"
    tasks = [("one", ["a"]), ("two", ["b"]), ("three", ["c"]), ("four", ["d/e"])]
    going = launch(TOGETHER.format(here=here, n=4), *tasks, n=4, options=(*ISOLATED, "--verify", check))
    report = going.report()
    for name, (title, (file,)) in zip(("T-1", "T-2", "T-3", "T-4"), tasks, strict=True):
        assert states(repo)[title] == ("review" if name == bad else "done"), going.said()
        assert (repo.root / file).read_text().count(name) == (name != bad)
    assert not bad or "failed (exit code 1)" in refusal_of(report)
    count = len(runs.read_text().splitlines())
    assert count <= (3 if not bad else 7), "one by one it takes four without a failure"
    assert is_clean(repo)


def test_of_a_batch_of_which_a_part_did_not_land_a_person_is_told(repo: Repo, tmp_path: Path) -> None:
    target = Target(repo.root, "", "refs/heads/trunk")
    first = git(repo, "rev-parse", "HEAD")
    (repo.root / "ok").write_text("")
    git(repo, "add", "ok")
    git(repo, "commit", "-qm", "ok")
    second = git(repo, "rev-parse", "HEAD")
    batch = [WouldLand("T-1", first), WouldLand("T-2", second)]
    one = Verification(target, tmp_path / "trees", tmp_path, "echo x >> ../../ran; test -e ok", threading.Event())
    one.check(batch, lambda process: None)
    one.check(batch[:1], lambda process: None)
    assert (tmp_path / "ran").read_text() == "x\n", "it was verified with the other"
    one.landed(first)
    assert "together with work that did not land" in one.last_word() and first[:12] in one.last_word()
    assert (tmp_path / "ran").read_text() == "x\n", "a launch that ends starts nothing more"
    one.landed("0" * 40)
    assert "together with work that did not land" in one.last_word(), "what git cannot tell is no error"
    one.landed(second)
    assert one.last_word() == ""
    one.close()


def test_what_verifies_ends_with_its_launch(repo: Repo, launch: Start) -> None:
    note = repo.root.parent / "verifies"
    going = launch("echo more >> a", ("one", ["a"]), n=1, options=(*ISOLATED, "--verify", f"echo $$ > '{note}'; exec sleep 600"))
    until(lambda: note.exists() and note.read_text().strip())
    verifier = int(note.read_text())
    going.process.kill()
    until(lambda: not alive(verifier))
    until(lambda: not list((repo.root / ".coord").glob("worktrees/*/coord.verify")))
    assert (repo.root / "a").read_text() == "a\n" and git(repo, "status", "--porcelain") == ""


def test_what_verifies_runs_only_when_it_is_known_whom_to_end(repo: Repo, tmp_path: Path) -> None:
    """A launcher that dies before it has written down the process leaves none that runs."""
    seen: list[Running] = []

    def dies(process: Running) -> None:
        seen.append(process)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Verification(Target(repo.root, "", "refs/heads/main"), tmp_path / "trees", tmp_path, "touch ran", threading.Event()).check(
            [WouldLand("T-1", git(repo, "rev-parse", "HEAD"))], dies)
    assert seen[0].exited.wait(15) and seen[0].finish() != 0
    assert not (tmp_path / "trees/coord.verify/ran").exists()
    Verification(Target(repo.root, "", "refs/heads/main"), tmp_path / "trees", tmp_path, "touch ran", threading.Event()).check(
        [WouldLand("T-1", git(repo, "rev-parse", "HEAD"))], seen.append)
    assert (tmp_path / "trees/coord.verify/ran").exists()


def test_what_landed_is_verified_as_it_landed(repo: Repo, launch: Start) -> None:
    """Beside tasks of the shared tree, in one sequence (`verify.command`)."""
    (repo.root / "coord.toml").write_text(
        CONFIG + "[verify]\ncommand = '! grep BROKEN b'\nafter_tasks = 99\nquiet_s = 9999\n")
    trust_settings(repo.root)
    git(repo, "add", "coord.toml")
    git(repo, "commit", "-qm", "settings")
    with repo.client() as person:
        until(lambda: person.call(rq.Verifications()).base)
        person.call(rq.TaskAdd(title="shared", resources=["d/"]))
        person.call(rq.TaskClaim(agent="ann", task="T-1"))
        (repo.root / "d/e").unlink()
        person.call(rq.TaskDone(agent="ann", task="T-1"))
        git(repo, "commit", "-qam", "d is gone")
        report = launch("echo BROKEN >> a; echo BROKEN >> b", ("a", ["a", "b"]), n=1, options=ISOLATED).report()
        assert len(report["landed"]) == 1
        report = launch("echo c >> c; rm -f a; ln -s c a", ("c", ["c", "a"]), n=1, options=ISOLATED).report()
        assert len(report["landed"]) == 1
        told = json.loads(repo.coord("verify", "--json").stdout)
        assert (told["state"], told["tasks"]) == ("broken", ["T-2"])
        states = [(one.task, one.state) for one in person.call(rq.Verifications()).left]
        assert states == [("T-2", "broken"), ("T-3", "held")], "it lies on the same file"
        assert git(repo, "ls-tree", "-r", "--name-only", "refs/coord/verify/base").split() == ["a", "b", "c", "coord.toml"]
        launch("echo mended > b", n=1, options=ISOLATED).report()
        assert json.loads(repo.coord("verify", "--json").stdout)["state"] == "good"
        assert person.call(rq.Verifications()).left == []
        assert git(repo, "diff", "HEAD", "refs/coord/verify/base") == ""


def test_verifying_needs_worktrees(repo: Repo) -> None:
    done = repo.coord("launch", "--command", "true", "--verify", "true")
    assert done.returncode == 2 and "--isolation worktree --verify COMMAND" in done.stderr


def test_what_is_leased_on_the_way_lands_too(repo: Repo, launch: Start) -> None:
    going = launch(
        f'"{sys.executable}" -m coordinator.cli.main lock b --task $COORD_TASK || exit 9\n'
        "echo x >> a; echo y >> b",
        ("one", ["a"]), n=1, options=ISOLATED,
    )
    report = going.report()
    assert report["tasks"] == {"done": 1}, going.said()
    assert (repo.root / "b").read_text() == "b\ny\n" and is_clean(repo)


def test_a_file_leased_on_the_way_needs_the_newest_of_the_target(
    repo: Repo, launch: Start
) -> None:
    # Given a file that a person changed after the agent began
    coord = f'"{sys.executable}" -m coordinator.cli.main'
    late = f"{coord} lock b --task $COORD_TASK || exit 9\n"
    going = launch(waiting(repo) + late + "echo x >> a; git commit -qam mine\n"
                   "git merge -q trunk; echo x >> b",
                   ("merges", ["a"]), n=1, options=ISOLATED)
    with it_waits(repo):
        person_commits(repo, "b", "by hand\n")
    going.report()
    # Then it lands, for the agent took that in first
    assert states(repo)["merges"] == "done", going.said()
    assert (repo.root / "b").read_text() == "by hand\nx\n" and is_clean(repo)


def test_a_root_below_the_top_of_its_repository(make_repo: Any, tmp_path: Path) -> None:
    """The place where coord keeps its state may be a part of a larger repository."""
    top = make_repo("whole")
    inner = make_repo("whole/part", git=False)
    inner.state.path.mkdir()
    (inner.state.path / ".gitignore").write_text("*\n")
    (inner.root / "a").write_text("a\n")
    (top.root / "outside").write_text("o\n")
    git(top, "add", ".")
    git(top, "-c", "user.name=P", "-c", "user.email=p@x", "commit", "-qm", "first")
    inner.coord("task", "add", "inside", "--resource", "a")
    inner.coord("task", "add", "beside", "--resource", "b")
    done = inner.coord("launch", "-", "-n", "1", "--isolation", "worktree", "-c",
                       "sh -c 'case $COORD_TASK in T-1) echo x >> a;; *) echo x >> ../outside;; esac'")
    assert (inner.root / "a").read_text() == "a\nx\n", done.stdout + done.stderr
    assert "outside lies outside of part/" in done.stdout
    assert (top.root / "outside").read_text() == "o\n"


@pytest.mark.parametrize("tracked", [False, True])
def test_wired_settings_are_there_and_are_no_part_of_the_work(
    repo: Repo, launch: Start, tracked: bool
) -> None:
    name = ".claude/settings.local.json"
    if tracked:
        (repo.root / ".claude").mkdir()
        person_commits(repo, name, "{}\n")
    assert repo.coord("init", "--agent", "claude-code", "--yes").returncode == 0
    wired = (repo.root / name).read_text()
    assert "_hook.py" in wired
    going = launch(f'cp {name} "{repo.root.parent}/seen-$COORD_TASK"; echo x >> a\n'
                   'git add -A && git commit -qm mine', ("one", ["a"]), ("two", ["a"]), n=1,
                   options=ISOLATED)
    report = going.report()
    assert report["tasks"] == {"done": 2}, going.said()
    for task in ("T-1", "T-2"):
        assert (repo.root.parent / f"seen-{task}").read_text() == wired
    assert (repo.root / name).read_text() == wired
    assert {path for one in report["landed"] for path in one["paths"]} == {"a"}
    assert bool(git(repo, "ls-files", name)) == tracked and left_over(repo) == (0, [])


# --------------------------------------------------------------------------- what does not


def test_a_path_outside_the_leases_is_refused_and_kept(repo: Repo, launch: Start) -> None:
    before = git(repo, "rev-parse", "HEAD")
    going = launch("echo x >> a; echo y >> b; echo z > scratch", ("one", ["a"]), n=1,
                   options=ISOLATED)
    report = going.report()
    # Then nothing of it landed
    assert git(repo, "rev-parse", "HEAD") == before and is_clean(repo)
    why = refusal_of(report)
    assert "b, scratch are not leased to shell-1" in why
    assert report["attempts"][0]["outcome"] == "not landed"
    # and all of it is kept, on the branch that is named, and for review
    (kept,) = report["not_landed"]
    for name, text in (("a", "a\nx"), ("b", "b\ny"), ("scratch", "z")):
        assert git(repo, "show", f"{kept['branch']}:{name}") == text
    assert (repo.root / kept["worktree"] / "b").read_text() == "b\ny\n"
    assert states(repo) == {"one": "review"}
    with repo.client() as client:
        (review,) = client.call(rq.Reviews()).items
        assert kept["branch"] in review.summary and review.reason == "unlanded"


@pytest.mark.parametrize("overlap", ["tell", "ignore"])
def test_what_another_tree_changes_too_is_told_before_it_lands(repo: Repo, launch: Start, overlap: str) -> None:
    (repo.root / "coord.toml").write_text(f'{CONFIG}\n[worktrees]\noverlap = "{overlap}"\n')
    trust_settings(repo.root)
    other = repo.root.parent / "other"
    git(repo, "worktree", "add", "-q", "-b", "other", str(other))
    (other / "a").write_text("theirs\n")
    going = launch("echo x >> a", ("one", ["a"]), n=1, options=ISOLATED)
    assert [attempt["outcome"] for attempt in going.report()["attempts"]] == ["done"]
    lines = [line for line in going.said().splitlines() if "about to land" in line]
    assert len(lines) == (overlap == "tell")
    for line in lines:
        assert "T-1 is about to land: a: in coord/" in line and " (shell-1) and in other; conflict: the lines of both" in line


def test_files_of_another_holder_are_named_with_their_holder(repo: Repo, launch: Start) -> None:
    with repo.client(agent="somebody") as client:
        client.acquire("b")
        report = launch("echo x >> a; echo y >> b", ("one", ["a"]), n=1, options=ISOLATED).report()
    assert "b by somebody" in refusal_of(report)


def test_a_persons_commit_elsewhere_is_no_hindrance(repo: Repo, launch: Start) -> None:
    going = launch(waiting(repo) + "echo x >> a", ("one", ["a"]), n=1, options=ISOLATED)
    with it_waits(repo):
        person_commits(repo, "b", "by hand\n")
    report = going.report()
    assert report["tasks"] == {"done": 1}, going.said()
    assert (repo.root / "a").read_text() == "a\nx\n"
    assert (repo.root / "b").read_text() == "by hand\n"
    assert git(repo, "log", "--merges", "--format=%s") == "Merge T-1: one"
    assert is_clean(repo) and left_over(repo) == (0, [])


def test_a_persons_commit_to_the_same_file_is_not_undone(repo: Repo, launch: Start) -> None:
    going = launch(waiting(repo) + "echo x >> a",
                   ("one", ["a"]), n=1, options=ISOLATED)
    with it_waits(repo):
        person_commits(repo, "a", "by hand\n")
    report = going.report()
    assert "a was changed on trunk after the branch began" in refusal_of(report)
    assert (repo.root / "a").read_text() == "by hand\n" and is_clean(repo)
    assert states(repo) == {"one": "review"}
    (kept,) = report["not_landed"]
    assert git(repo, "show", f"{kept['branch']}:a") == "a\nx"


@pytest.mark.parametrize("what", ["edited", "staged", "untracked", "other"])
def test_what_a_person_has_not_committed_is_never_overwritten(
    repo: Repo, launch: Start, what: str
) -> None:
    going = launch(waiting(repo) + "echo x >> a; echo n > new", ("one", ["a", "new"]), n=1, options=ISOLATED)
    with it_waits(repo):
        name = {"untracked": "new", "other": "b"}.get(what, "a")
        (repo.root / name).write_text("mine\n")
        if what == "staged":
            git(repo, "add", "a")
            (repo.root / "a").write_text("a\n")  # only the index has it
        status = git(repo, "status", "--porcelain")
    report = going.report()
    if what == "other":  # it is not in the way, and stays as it is
        assert report["tasks"] == {"done": 1}, going.said()
        assert (repo.root / "a").read_text() == "a\nx\n"
    else:
        assert f"{name} has changes in the main worktree that are not committed" in refusal_of(report)
        assert git(repo, "log", "--format=%s") == "first"
    assert git(repo, "status", "--porcelain") == status
    if what != "staged":
        assert (repo.root / name).read_text() == "mine\n"


def test_a_killed_agents_work_is_flagged_where_it_lies(repo: Repo, launch: Start) -> None:
    going = launch(f'echo half > a; echo $$ > "{repo.root.parent}/pid"; sleep 600',
                   ("one", ["a"]), n=1, options=ISOLATED)
    os.kill(pid_in(repo.root.parent / "pid"), signal.SIGKILL)
    report = going.report()
    assert report["tasks"] == {"review": 1} and report["reviews"] == 1
    (kept,) = report["not_landed"]
    place = repo.root / kept["worktree"]
    assert (place / "a").read_text() == "half\n" and (repo.root / "a").read_text() == "a\n"
    assert f"it lies in {place}" in repo.coord("review", "show", "R-1").stdout
    kept_so = repo.coord("review", "keep", "R-1").stdout
    assert f"`git merge {kept['branch']}`" in kept_so
    repo.coord("review", "undo", "R-1")
    # the verdict works on the file where it lies
    assert repo.coord("review", "revert", "R-1").returncode == 0
    assert (place / "a").read_text() == "a\n" and is_clean(repo)
    # and the next launch begins afresh
    (repo.root.parent / "agent.sh").write_text("echo whole > a")
    again = launch("echo whole > a", n=1, options=ISOLATED).report()
    assert again["tasks"] == {"done": 1} and (repo.root / "a").read_text() == "whole\n"


def test_reassigned_work_goes_on_in_the_next_worktree(repo: Repo, launch: Start) -> None:
    launch("echo half >> a; exit 1", ("one", ["a"]), n=1, options=ISOLATED).report()
    assert repo.coord("review", "reassign", "R-1").returncode == 0
    person_commits(repo, "b", "by hand\n")
    report = launch("echo rest >> a", n=1, options=ISOLATED).report()
    assert report["tasks"] == {"done": 1}
    assert (repo.root / "a").read_text() == "a\nhalf\nrest\n" and is_clean(repo)


def test_reassigned_work_of_every_kind_goes_on(repo: Repo, launch: Start) -> None:
    os.symlink("a", repo.root / "link")
    (repo.root / "s.sh").write_text("true\n")
    (repo.root / "dir").mkdir()
    (repo.root / "dir/inner").write_text("inner\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "more")
    launch("rm link; ln -s b link; ln -s a new-link; chmod +x s.sh; printf 'false' > t.sh\n"
           "chmod 755 t.sh; head -c 6000000 /dev/zero > large; rm b; rm -r dir; echo file > dir\n"
           "rm c; mkdir c; echo inner > c/inner; printf '' > empty; exit 1",
           ("one", ["./"]), n=1, options=ISOLATED).report()
    assert repo.coord("review", "reassign", "R-1").returncode == 0
    going = launch("echo rest >> a", n=1, options=ISOLATED)
    assert going.report()["tasks"] == {"done": 1}, going.said()
    assert os.readlink(repo.root / "link") == "b" and os.readlink(repo.root / "new-link") == "a"
    assert os.access(repo.root / "s.sh", os.X_OK) and os.access(repo.root / "t.sh", os.X_OK)
    assert (repo.root / "large").stat().st_size == 6_000_000 and not (repo.root / "b").exists()
    assert (repo.root / "dir").read_text() == "file\n" and (repo.root / "empty").read_bytes() == b""
    assert (repo.root / "c/inner").read_text() == "inner\n"
    assert (repo.root / "a").read_text() == "a\nrest\n" and is_clean(repo)


def test_what_git_filters_is_reverted_byte_by_byte(repo: Repo, launch: Start) -> None:
    # Given files whose bytes in the working tree are not those that git has
    names = ["x.txt", "y.txt", "z\n'.txt", "caf\u00e9.txt"]
    (repo.root / ".gitattributes").write_text("*.txt text eol=crlf\n")
    for name in names:
        (repo.root / name).write_text("one\ntwo\nthree\nfour\nfive\nsix\n")
    (repo.root / "run.txt").write_text("true\n")
    (repo.root / "run.txt").chmod(0o755)
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "filtered")
    going = launch("for f in *.txt; do echo more >> \"$f\"; done; chmod -x run.txt",
                   ("one", ["a"]), n=1, options=ISOLATED)
    (kept,) = going.report()["not_landed"]
    place = repo.root / kept["worktree"]
    # I expect a revert to give what git's own checkout gives, and an undo what the agent left
    whole = b"one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\n"
    assert repo.coord("review", "revert", "R-1").returncode == 0
    assert {(place / name).read_bytes() for name in names} == {whole}
    assert os.access(place / "run.txt", os.X_OK)
    repo.coord("review", "undo", "R-1")
    assert {(place / name).read_bytes() for name in names} == {whole + b"more\n"}
    assert not os.access(place / "run.txt", os.X_OK)


def test_an_agent_cannot_call_its_task_done_before_it_landed(repo: Repo, launch: Start) -> None:
    going = launch(f'echo x >> a; "{sys.executable}" -m coordinator.cli.main task done $COORD_TASK; true',
                   ("one", ["a"]), n=1, options=ISOLATED)
    report = going.report()
    assert report["tasks"] == {"done": 1}, going.said()
    assert (repo.root / "a").read_text() == "a\nx\n"
    assert "BAD_TRANSITION" in repo.coord("logs", "1").stdout
    rows = [json.loads(line) for line in repo.coord("logs", "1", "--json").stdout.splitlines()]
    assert any("BAD_TRANSITION" in row["line"] for row in rows) and {row["log"].partition("/")[0] for row in rows} != {""}


def test_a_lease_that_lapsed_gives_no_right_to_land(repo: Repo, launch: Start) -> None:
    """The agent gave its lease back and another took and left the file: the work is kept."""
    going = launch(f'echo x >> a; "{sys.executable}" -m coordinator.cli.main unlock a',
                   ("one", ["a"]), n=1, options=ISOLATED)
    report = going.report()
    assert "the lease on a that the work was begun with has ended" in refusal_of(report)
    assert (repo.root / "a").read_text() == "a\n" and is_clean(repo)


@pytest.mark.parametrize("fills", [False, True])
def test_what_is_written_in_a_submodule_is_not_called_done_and_is_kept(repo: Repo, launch: Start, fills: bool) -> None:
    """A worktree has an empty folder of it, into which git does not look: the work was removed with it."""
    inner = repo.root.parent / "inner"
    inner.mkdir()
    (inner / "hal.c").write_text("int hal;\n")
    own = ("git", "-c", "protocol.file.allow=always", "-c", "user.name=x", "-c", "user.email=x@x")
    for words, place in ((("init", "-q"), inner), (("add", "-A"), inner), (("commit", "-qm", "s"), inner),
                         (("submodule", "add", "-q", str(inner), "vendor/hal"), repo.root), (("commit", "-qam", "sub"), repo.root)):
        subprocess.run([*own, *words], cwd=place, check=True, capture_output=True)
    fill = "git -c protocol.file.allow=always submodule update -q --init; " if fills else ""
    going = launch(f"{fill}test $COORD_TASK = T-2 || echo 'int more;' >> vendor/hal/hal.c; echo x >> $COORD_TASK.txt",
                   ("one", ["vendor/hal/hal.c", "T-1.txt"]), ("two", ["T-2.txt"]), n=1, options=ISOLATED)
    made = going.report()
    assert "it wrote in vendor/hal, a submodule" in refusal_of(made), made
    assert not made["complete"] and made["tasks"] == {"done": 1, "review": 1}, made
    kept = repo.root / made["not_landed"][0]["worktree"]
    assert "int more;" in (kept / "vendor/hal/hal.c").read_text() and (kept / "T-1.txt").exists()
    assert not (repo.root / "T-1.txt").exists() and (repo.root / "T-2.txt").exists()


def test_a_submodule_does_not_land(repo: Repo, launch: Start) -> None:
    going = launch("git init -q sub && cd sub && git -c user.name=x -c user.email=x@x commit -q "
                   "--allow-empty -m x", ("one", ["./"]), n=1, options=ISOLATED)
    assert "sub is a submodule" in refusal_of(going.report())
    assert is_clean(repo)


def test_a_leased_file_that_git_ignores_is_kept(repo: Repo, launch: Start) -> None:
    person_commits(repo, ".gitignore", "*.out\n")
    report = launch("echo x > b.out; echo y > c.out", ("one", ["b.out"]), n=1,
                    options=ISOLATED).report()
    assert "git ignores b.out" in refusal_of(report) if report["not_landed"] else False


def test_conflicts_and_a_foreign_branch_in_the_worktree_are_kept(
    repo: Repo, launch: Start
) -> None:
    report = launch("echo x > a; git commit -qam mine; git switch -q --detach HEAD~; echo y > a",
                    ("one", ["a"]), n=1, options=ISOLATED).report()
    assert "is no longer on coord/" in refusal_of(report)
    assert git(repo, "show", f"{report['not_landed'][0]['branch']}:a") == "x"
    assert is_clean(repo)


# -------------------------------------------------------------------- the person in between


def test_a_merge_of_a_person_is_not_disturbed(repo: Repo, launch: Start) -> None:
    going = launch(waiting(repo) + "echo x >> a",
                   ("one", ["a"]), n=1, options=ISOLATED)
    with it_waits(repo):
        (repo.root / ".git/MERGE_HEAD").write_text(git(repo, "rev-parse", "HEAD") + "\n")
    report = going.report()
    assert "a merge is going on" in refusal_of(report)
    (repo.root / ".git/MERGE_HEAD").unlink()
    assert is_clean(repo) and git(repo, "log", "--format=%s") == "first"


def test_a_branch_that_is_being_rebased_does_not_move(repo: Repo, launch: Start) -> None:
    person_commits(repo, "b", "more\n")
    going = launch(waiting(repo) + "echo x >> a", ("one", ["a"]), n=1, options=ISOLATED)
    with it_waits(repo):
        assert subprocess.run(["git", "rebase", "-q", "--exec", "false", "HEAD~1"], cwd=repo.root,
                              capture_output=True, check=False).returncode
    assert "trunk is being rebased" in refusal_of(going.report())
    git(repo, "rebase", "--abort")
    assert is_clean(repo) and git(repo, "log", "-1", "--format=%s") == "by hand: b"


def test_a_claim_does_not_lapse_while_the_files_follow(repo: Repo, launch: Start) -> None:
    """However long that takes: its agent is not silent meanwhile."""
    repo.coord("up")
    going = launch("echo x >> a", ("one", ["a"]), n=1, options=(*ISOLATED, "--ttl", "1s"),
                   env=shim(repo, FOLLOWING + "sleep 3;; esac"))
    report = going.report()
    assert (repo.root / "a").read_text() == "a\nx\n" and is_clean(repo), going.said()
    assert [one["task"] for one in report["landed"]] == ["T-1"]
    assert report["problems"] == [] and report["complete"] and states(repo) == {"one": "done"}


def test_a_person_may_commit_all_the_time(repo: Repo, launch: Start) -> None:
    """Whatever comes between whatever: nobody's work is lost."""
    over = threading.Event()
    made = 0

    def commits() -> None:
        nonlocal made
        while not over.is_set():
            with (repo.root / "b").open("a") as file:
                file.write("by hand\n")
            done = subprocess.run(["git", "commit", "-qam", "by hand"], cwd=repo.root,
                                  capture_output=True, check=False)
            made += done.returncode == 0  # else git says that the index is locked: once more

    person = threading.Thread(target=commits)
    person.start()
    try:
        tasks = [(f"task {n}", [f"f{n % 3}"]) for n in range(1, 13)]
        going = launch("echo $COORD_TASK >> f$(( ${COORD_TASK#T-} % 3 ))", *tasks, n=3,
                       options=ISOLATED)
        report = going.report()
    finally:
        over.set()
        person.join()
    assert report["tasks"] == {"done": 12}, going.said()
    lines = [line for n in range(3) for line in (repo.root / f"f{n}").read_text().splitlines()]
    assert sorted(lines) == sorted(f"T-{n}" for n in range(1, 13))
    assert made > 0 and git(repo, "log", "--format=%s").split("\n").count("by hand") == made
    git(repo, "commit", "-qam", "the rest") if git(repo, "status", "--porcelain", "-uno") else None
    assert is_clean(repo) and left_over(repo) == (0, [])


def test_another_git_is_waited_for(repo: Repo, launch: Start) -> None:
    lock = repo.root / ".git/index.lock"
    lock.write_text("")
    going = launch(f'echo x >> a; touch "{repo.root.parent}/began"', ("one", ["a"]), n=1,
                   options=ISOLATED)
    until(lambda: (repo.state.path / "landing.lock").exists())
    lock.unlink()
    assert going.report()["tasks"] == {"done": 1}, going.said()
    assert is_clean(repo)


def test_the_branch_lands_where_it_is_checked_out_or_nowhere(repo: Repo, launch: Start) -> None:
    """A person may switch to another branch meanwhile: the target moves all the same."""
    going = launch(waiting(repo) + "echo x >> a",
                   ("one", ["a"]), n=1, options=ISOLATED)
    with it_waits(repo):
        git(repo, "switch", "-qc", "elsewhere")
    assert going.report()["tasks"] == {"done": 1}, going.said()
    assert (repo.root / "a").read_text() == "a\n" and is_clean(repo)
    assert git(repo, "show", "trunk:a") == "a\nx"


@pytest.mark.parametrize("state", ["no git", "unborn", "detached", "merging", "no such choice"])
def test_where_nothing_can_land_nothing_is_started(make_repo: Any, state: str) -> None:
    repo = make_repo(git=state != "no git")
    if state == "detached":
        git(repo, "-c", "user.name=P", "-c", "user.email=p@x", "commit", "-q", "--allow-empty",
            "-m", "first")
        git(repo, "switch", "-q", "--detach")
    if state == "merging":
        for branch in ("side", "trunk"):
            git(repo, "-c", "user.name=P", "-c", "user.email=p@x", "commit", "-q", "--allow-empty", "-m", branch)
            git(repo, "branch", branch)
        git(repo, "switch", "-q", "side")
        git(repo, "-c", "user.name=P", "-c", "user.email=p@x", "commit", "-q", "--allow-empty", "-m", "more")
        git(repo, "switch", "-q", "trunk")
        git(repo, "-c", "user.name=P", "-c", "user.email=p@x", "merge", "-q", "--no-commit", "--no-ff", "side")
    choice = "chroot" if state == "no such choice" else "worktree"
    done = repo.coord("launch", "-", "-c", "true", "--isolation", choice)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    if state != "no such choice":
        assert "INVALID" in done.stderr and "next:" in done.stderr
    assert not repo.state.path.exists()


# ------------------------------------------------------------------------------- crashes


def shim(repo: Repo, script: str) -> dict[str, str]:
    """A PATH on which git is a script that may do something before or after the real one."""
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True,
                          check=True).stdout.strip()
    folder = repo.root.parent / "shim"
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\nREAL="{real}"\n{script}\nexec "$REAL" "$@"\n')
    (folder / "git").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


#: The daemon leaves a landing that was cut off to the next launch, so that it can be looked at.
no_sweep = pytest.mark.usefixtures("slow_sweep")


@pytest.fixture
def slow_sweep(repo: Repo) -> None:
    config = repo.root / "coord.toml"
    config.write_text(config.read_text().replace("interval_s = 1\n", "interval_s = 300\n"))
    git(repo, "commit", "-qam", "sweep seldom")


FOLLOWING = 'case "$*" in *"read-tree -m -u"*) '


@no_sweep
def test_a_launcher_killed_before_the_branch_moved_landed_nothing(
    repo: Repo, launch: Start
) -> None:
    repo.coord("up")
    before = git(repo, "rev-parse", "trunk")
    going = launch("echo x >> a", ("one", ["a"]), n=1, options=ISOLATED, outlived=False,
                   env=shim(repo, 'case "$*" in *"read-tree -n"*) kill -9 $PPID; exit 1;; esac'))
    assert going.process.wait(40) == -signal.SIGKILL, going.said()
    assert (repo.root / ".git/index.lock").exists()
    again = launch("true", n=1, options=ISOLATED)
    again.report()
    assert "cut off before it happened" in again.said()
    assert git(repo, "rev-parse", "trunk") == before and is_clean(repo)
    assert states(repo) == {"one": "review"} and left_over(repo)[0] == 1


def test_a_branch_that_is_pushed_to_in_the_last_moment(repo: Repo, launch: Start) -> None:
    """A push takes no index lock: the branch is not where it was, and the landing begins anew."""
    person_commits(repo, "d/pushed", "by somebody else\n")
    pushed = git(repo, "rev-parse", "HEAD")
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    once = repo.root.parent / "once"
    act = (f'case "$*" in *"T-1 landed"*) if mkdir "{once}" 2> /dev/null; then\n'
           f'"$REAL" update-ref refs/heads/trunk {pushed}; fi;; esac')
    repo.coord("up", env=shim(repo, act))
    going = launch("echo x >> a; echo n > new; rm b", ("one", ["a", "b", "new"]), n=1,
                   options=ISOLATED)
    assert going.report()["tasks"] == {"done": 1}, going.said()
    assert once.exists() and git(repo, "show", "trunk:d/pushed") == "by somebody else"
    assert git(repo, "show", "trunk:a") == "a\nx"
    # what was pushed is not in the working tree, as ever after a push; what landed is
    assert git(repo, "status", "--porcelain") == "D  d/pushed"


@no_sweep
def test_a_launcher_killed_between_index_and_branch_landed_nothing(
    repo: Repo, launch: Start
) -> None:
    # Given a daemon whose git, when it is to move the branch, kills the launcher and does nothing
    pid = repo.root.parent / "launcher"
    act = f'case "$*" in *"T-1 landed"*) kill -9 $(cat "{pid}"); exit 1;; esac'
    repo.coord("up", env=shim(repo, act))
    before = git(repo, "rev-parse", "trunk")
    going = launch(waiting(repo) + "echo x >> a; rm b; echo n > new", ("one", ["a", "b", "new"]),
                   n=1, options=ISOLATED, outlived=False)
    with it_waits(repo):
        pid.write_text(str(going.process.pid))
    assert going.process.wait(40) == -signal.SIGKILL, going.said()
    # Then the index had been changed already, no file had, and nobody can commit in between
    assert git(repo, "diff", "--cached", "--name-only").split() == ["a", "b", "new"]
    assert (repo.root / "a").read_text() == "a\n" and (repo.root / "b").exists()
    assert "index.lock" in subprocess.run(["git", "commit", "-qm", "x"], cwd=repo.root, text=True,
                                          capture_output=True, check=False).stderr
    # and the next launch puts it back
    again = launch("true", n=1, options=ISOLATED)
    again.report()
    assert "cut off before it happened" in again.said()
    assert git(repo, "rev-parse", "trunk") == before and is_clean(repo)
    assert states(repo) == {"one": "review"}


@no_sweep
@pytest.mark.parametrize("moment", ["before", "torn", "after"])
def test_a_launcher_killed_between_branch_and_files_is_recovered(
    repo: Repo, launch: Start, moment: str
) -> None:
    # Given a launcher that is killed when the branch has moved and the files have not followed
    person_commits(repo, "c", "line\n" * 1000)
    act = {
        "before": "kill -9 $PPID; exit 1;;",
        "torn": f'"$REAL" "$@"; head -c 100 c > t; cat t > c; rm -f t; rm "{repo.root}/new"; '
                "kill -9 $PPID; exit 1;;",
        "after": '"$REAL" "$@"; kill -9 $PPID; exit 1;;',
    }[moment]
    repo.coord("up")  # the daemon has the real git
    agent = 'printf "line\\n%.0s" $(seq 2000) > c; echo new > new; echo x >> a; rm b'
    tasks = ("one", ["a", "b", "c", "new"])
    going = launch(agent, tasks, n=1, options=ISOLATED, outlived=False,
                   env=shim(repo, FOLLOWING + act + " esac"))
    assert going.process.wait(40) == -signal.SIGKILL, going.said()
    landed = git(repo, "rev-parse", "trunk")
    assert git(repo, "log", "-1", "--format=%s", landed) == "T-1: one"
    assert (git(repo, "status", "--porcelain", "-uno") == "") == (moment == "after")
    # it is said, and the next launch brings it to its end
    assert "T-1 has landed on trunk" in repo.coord("doctor").stdout
    with repo.client() as client:
        assert client.call(rq.TaskShow(task="T-1")).state == "claimed"
    again = launch(agent, n=1, options=ISOLATED)
    report = again.report()
    assert "the files have followed now" in again.said()
    assert states(repo) == {"one": "done"} and report["reviews"] == 0
    assert git(repo, "rev-parse", "trunk") == landed
    assert (repo.root / "c").read_text() == "line\n" * 2000
    assert (repo.root / "new").read_text() == "new\n" and not (repo.root / "b").exists()
    assert is_clean(repo) and left_over(repo) == (0, [])


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("when", ["sweep", "start"])
def test_the_daemon_takes_a_dead_launchers_lock_away(
    repo: Repo, launch: Start, when: str, moved: bool
) -> None:
    """A person can commit again without a launch: what was cut off is brought to its end first."""
    # Given a launcher that is killed while it lands, before or after the branch has moved
    if when == "sweep":
        repo.coord("up")  # the daemon has the real git
    act = "kill -9 $PPID; exit 1;; esac"
    going = launch("echo x >> a; echo n > new", ("one", ["a", "new"]), n=1, options=ISOLATED, outlived=False,
                   env=shim(repo, (FOLLOWING if moved else 'case "$*" in *"read-tree -n"*) ') + act))
    assert going.process.wait(40) == -signal.SIGKILL, going.said()
    if when == "start":
        repo.down()
        assert (repo.root / ".git/index.lock").read_bytes().startswith(b"coord: a landing")
        repo.coord("up")
    # I expect the lock to go by itself, and the files to have followed, or nothing to have happened
    until(lambda: not (repo.state.path / "landing").exists())
    assert not (repo.root / ".git/index.lock").exists() and is_clean(repo)
    assert (repo.root / "a").read_text() == ("a\nx\n" if moved else "a\n")
    assert (repo.root / "new").exists() is moved
    person_commits(repo, "b", "by hand\n")
    with repo.client() as client:
        noted = until(lambda: [e for e in client.call(rq.Events(kind="noted", limit=500)).items
                               if e.data["what"] == "a landing was cut off"])
        assert ("the files have followed now" in noted[0].text) is moved
        assert states(repo)["one"] == "done" if moved else "claimed"


@no_sweep
@pytest.mark.parametrize("moved", [False, True])
def test_what_outlives_a_launcher_brings_its_landing_to_an_end(repo: Repo, launch: Start, moved: bool) -> None:
    repo.coord("up")
    once = repo.root.parent / "once"
    act = f'if mkdir "{once}" 2> /dev/null; then kill -9 $PPID; exit 1; fi;; esac'
    going = launch("echo x >> a; echo n > new", ("one", ["a", "new"]), n=1, options=ISOLATED,
                   env=shim(repo, (FOLLOWING if moved else 'case "$*" in *"read-tree -n"*) ') + act))
    assert going.process.wait(40) == -signal.SIGKILL, going.said()
    until(lambda: states(repo)["one"] == ("done" if moved else "review"))
    (record,) = repo.state.runs.glob("*/record")
    until(lambda: json.loads(record.read_text())["ended_at"])
    assert (repo.root / "a").read_text() == ("a\nx\n" if moved else "a\n")
    assert (repo.root / "new").exists() is moved and is_clean(repo)
    assert not (repo.root / ".git/index.lock").exists()


@no_sweep
def test_a_foreign_lock_of_the_index_is_left_alone(repo: Repo, launch: Start) -> None:
    # Given a landing that was cut off, and another git at work by the time it is found
    repo.coord("up")
    going = launch("echo x >> a", ("one", ["a"]), n=1, options=ISOLATED, outlived=False,
                   env=shim(repo, 'case "$*" in *"read-tree -n"*) kill -9 $PPID; exit 1;; esac'))
    assert going.process.wait(40) == -signal.SIGKILL
    lock = repo.root / ".git/index.lock"
    lock.write_bytes(b"DIRC, by some other git")
    repo.down()
    repo.coord("up")
    until(lambda: "cannot be brought to its end" in repo.state.log.read_text(), 30)
    assert lock.read_bytes() == b"DIRC, by some other git"
    assert "cut off" in repo.coord("doctor").stdout
    # When that git is done, so is the landing
    lock.unlink()
    repo.down()
    repo.coord("up")
    until(lambda: not (repo.state.path / "landing").exists())
    assert is_clean(repo)


@no_sweep
def test_what_a_person_wrote_after_the_crash_stays(repo: Repo, launch: Start) -> None:
    repo.coord("up")
    going = launch("echo x >> a; echo y >> b", ("one", ["a", "b"]), n=1, options=ISOLATED, outlived=False,
                   env=shim(repo, FOLLOWING + "kill -9 $PPID; exit 1;; esac"))
    assert going.process.wait(40) == -signal.SIGKILL
    (repo.root / "a").write_text("mine\n")
    again = launch("true", n=1, options=ISOLATED)
    again.report()
    assert "changed by somebody since" in again.said() and "a" in again.said()
    assert (repo.root / "a").read_text() == "mine\n" and (repo.root / "b").read_text() == "b\ny\n"
    assert git(repo, "status", "--porcelain") == "M a"


def test_names_that_are_no_utf8_are_kept_and_no_hindrance(repo: Repo, launch: Start) -> None:
    # Given a person who commits such a name meanwhile, and an agent that makes another
    odd = os.fsencode(repo.root) + b"/theirs-\xe4"
    going = launch(waiting(repo) + "echo x >> a; [ $COORD_TASK = T-1 ] || printf o > \"$(printf 'mine-\\344')\"",
                   ("one", ["./"]), ("two", ["./"]), n=1, options=ISOLATED)
    with it_waits(repo):
        with open(odd, "wb") as file:
            file.write(b"by hand")
        subprocess.run([b"git", b"add", odd], cwd=repo.root, check=True)
        git(repo, "commit", "-qm", "odd")
    report = going.report()
    # I expect the first to land beside it, and the second to be refused and kept, in words
    assert states(repo) == {"one": "done", "two": "review"}, going.said()
    assert "mine-\\xe4` is not UTF-8" in refusal_of(report)
    shown = repo.coord("review", "show", "R-1").stdout
    assert "created mine-\\xe4" in shown
    place = os.fsencode(repo.root / report["not_landed"][0]["worktree"])
    repo.coord("review", "revert", "R-1")
    assert not os.path.exists(place + b"/mine-\xe4")
    repo.coord("review", "undo", "R-1")
    with open(place + b"/mine-\xe4", "rb") as file:
        assert file.read() == b"o"
    assert is_clean(repo)


def test_a_file_changed_in_the_last_moment_takes_the_landing_back(
    repo: Repo, launch: Start
) -> None:
    """After the branch moved and before git writes the files, a person saves one of them."""
    repo.coord("up")
    before = git(repo, "rev-parse", "trunk")
    going = launch("echo x >> a; echo y >> b", ("one", ["a", "b"]), n=1, options=ISOLATED,
                   env=shim(repo, FOLLOWING + f'echo mine > "{repo.root}/a";; esac'))
    report = going.report()
    assert "would have to overwrite" in refusal_of(report), going.said()
    assert git(repo, "rev-parse", "trunk") == before
    assert (repo.root / "a").read_text() == "mine\n" and (repo.root / "b").read_text() == "b\n"
    assert git(repo, "status", "--porcelain") == "M a"
    assert not (repo.state.path / "landing").exists()
    with repo.client() as client:
        moves = client.call(rq.Events(kind="target_moved")).items
        assert [m.data["after"] == before for m in moves] == [False, True]


def test_the_daemon_may_be_killed_while_branches_land(repo: Repo, launch: Start) -> None:
    tasks = [(f"task {n}", [f"f{n % 3}"]) for n in range(9)]
    going = launch("sleep 0.1; echo $COORD_TASK >> f$(( (${COORD_TASK#T-} - 1) % 3 ))", *tasks, n=3,
                   options=ISOLATED)
    for count in (2, 5):
        until(lambda count=count: git(repo, "log", "--no-merges", "--format=%s").count("T-") >= count)
        old = repo.pid()
        os.kill(old, signal.SIGKILL)
        until(lambda old=old: repo.state.lock.read_text() not in ("", str(old)))
    report = going.report()
    assert report["tasks"] == {"done": 9}, going.said()
    lines = [line for n in range(3) for line in (repo.root / f"f{n}").read_text().splitlines()]
    assert sorted(lines) == sorted(f"T-{n}" for n in range(1, 10))
    assert is_clean(repo) and left_over(repo) == (0, [])


def test_worktrees_of_a_dead_launch_are_tidied_up_but_not_their_work(
    repo: Repo, launch: Start
) -> None:
    going = launch(f'echo $$ > "{repo.root.parent}/pid"; echo half > a; sleep 600', ("one", ["a"]),
                   n=2, options=ISOLATED, outlived=False)
    orphan = pid_in(repo.root.parent / "pid")
    until(lambda: git(repo, "worktree", "list").count("\n") == 2)
    (record,) = repo.state.runs.glob("*/record")
    until(lambda: f'"pid": {orphan}' in record.read_text())
    going.kill()
    again = launch("true", n=1, options=ISOLATED)
    report = again.report()
    assert not alive(orphan) and report["orphans_stopped"] == 1
    assert states(repo) == {"one": "review"}
    assert "left work that did not land" in again.said()
    trees, branches = left_over(repo)
    assert trees == 1 and len(branches) == 1
    (place,) = (repo.root / ".coord/worktrees").glob("*/*")
    assert (place / "a").read_text() == "half\n"


def test_the_report_names_what_landed_and_what_did_not(repo: Repo) -> None:
    for title, name in (("good", "a"), ("bad", "b")):
        repo.coord("task", "add", title, "--resource", name)
    (repo.root / "c").write_text("not committed\n")
    done = repo.coord("launch", "-", "-n", "1", "--isolation", "worktree", "-c",
                      "sh -c 'echo x >> a'")
    assert done.returncode == 1, done.stderr
    assert "1 file in the working tree has changes that are not committed" in done.stdout
    assert "landed on trunk: 1 task, 1 file" in done.stdout
    assert "not landed: T-2, on coord/" in done.stdout and "git worktree remove" in done.stdout
    assert (repo.root / "c").read_text() == "not committed\n"


@pytest.mark.parametrize("way", ["take", "drop", "gone"])
def test_the_advice_after_a_refusal_is_followed_to_its_end(repo: Repo, way: str) -> None:
    """Also a file that the agent has leased itself is in the one review of what did not land."""
    repo.coord("task", "add", "one", "--resource", "a")
    agent = repo.root.parent / "agent"
    agent.write_text("echo A >> a; coord lock new >/dev/null && echo n > new\n")
    done = repo.coord("launch", "-", "-n", "1", "--isolation", "worktree", "--verify", "false", "-c", f"sh {agent}")
    (review,) = repo.client().review_list().items
    assert {one.path for one in review.files} == {"a", "new"} and done.returncode == 1, done
    (branch,) = left_over(repo)[1]
    told = done.stdout.replace("\n", " ")
    assert f"take it: git merge {branch}, then coord review keep R-1; drop it: coord review revert R-1, then git worktree remove" in told
    (place,) = (repo.root / ".coord/worktrees").glob("*/*")
    if way == "take":
        assert f"`git merge {branch}`" in repo.coord("review", "keep", "R-1").stdout
        repo.coord("review", "undo", "R-1")
        git(repo, "merge", "-q", branch)
        kept = repo.coord("review", "keep", "R-1")
        assert kept.returncode == 0 and "not on your branch" not in kept.stdout, kept
        return
    if way == "gone":
        git(repo, "worktree", "remove", "--force", str(place))
        refused = repo.coord("review", "revert", "R-1")
        assert "coord review keep R-1" in refused.stderr, refused
        assert repo.coord("review", "keep", "R-1").returncode == 0
        return
    reverted = repo.coord("review", "revert", "R-1")
    assert "do not merge it" in reverted.stdout and f"git branch -D {branch}" in reverted.stdout, reverted
    assert repo.client().review_list().items == [] and not (place / "new").exists()
    git(repo, "worktree", "remove", "--force", str(place))
    git(repo, "branch", "-D", branch)
    assert is_clean(repo)


def test_a_file_that_is_made_by_its_regions_lands(repo: Repo) -> None:
    (repo.root / "made.py").write_text("def old():\n    return 1\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "made")
    repo.coord("task", "add", "one", "--resource", "a")
    repo.coord("task", "add", "two", "--resource", "b")
    agent = repo.root.parent / "agent"
    agent.write_text(
        "if [ $COORD_TASK = T-1 ]; then coord lock new.py::h made.py::old >/dev/null\n"
        "printf 'def h():\\n    return 5\\n' | coord commit-region new.py::h\n"
        "printf 'def old():\\n    return 2\\n' | coord commit-region made.py::old\n"
        "else coord lock more.py::h >/dev/null; printf 'import os\\n\\n\\ndef h():\\n    return 1\\n' > more.py; fi\n")
    done = repo.coord("launch", "-", "-n", "1", "--isolation", "worktree", "-c", f"sh {agent}")
    assert (repo.root / "new.py").read_text() == "def h():\n    return 5\n", done
    assert "return 2" in (repo.root / "made.py").read_text()
    assert states(repo) == {"one": "done", "two": "review"} and "more.py" in done.stdout, "its header is leased by nobody"


def test_what_is_proposed_in_a_worktree_lands_where_it_is_leased_as_it_says(repo: Repo) -> None:
    repo.coord("task", "add", "one", "--resource", "a")
    agent = repo.root.parent / "agent"
    agent.write_text("echo P > text; coord propose p.txt --from text 2>&1 | tee said; rm text\n"
                     "$(grep -o 'coord lock [^`]*' said); rm said\n")
    done = repo.coord("launch", "-", "-n", "1", "--isolation", "worktree", "-c", f"sh {agent}")
    assert "lands only where you have leased it" in repo.coord("logs", "T-1").stdout
    assert states(repo) == {"one": "done"} and (repo.root / "p.txt").read_text() == "P\n", done
