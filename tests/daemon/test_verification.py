"""A person's command on what tasks have done: real daemon, real git, real commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.launch.prompt import compose
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo, trust_settings
from tests.launch.conftest import alive, pid_in
from tests.waiting import until

Make = Callable[..., Repo]
#: Fails as soon as a file says so, and says which.
CHECK = "grep -rl BROKEN src && { echo the check has failed; exit 1; }; true"


def settings(command: str, more: str = "", after: int = 99, quiet: float = 9999) -> str:
    return (f"[verify]\ncommand = {json.dumps(command)}\nafter_tasks = {after}\nquiet_s = {quiet}\n{more}\n"
            "[backlog]\nbackoff_s = 0.1\n")


def git(repo: Repo, *args: str) -> str:
    done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=repo.root,
                          capture_output=True, check=True)
    return os.fsdecode(done.stdout)


def commit_all(repo: Repo, why: str = "w") -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", why)


@pytest.fixture
def made(make_repo: Make) -> Callable[..., Repo]:
    def make(command: str = CHECK, more: str = "", **given: Any) -> Repo:
        repo = make_repo("a repo ü", config=settings(command, more, **given))
        repo.write("src/base.txt", "base\n")
        commit_all(repo)
        return repo

    return make


def base(repo: Repo) -> None:
    """Wait until the daemon knows what it begins with."""
    with repo.client() as person:
        until(lambda: person.call(rq.Verifications()).base)


def do(repo: Repo, title: str, files: dict[str, str | None], agent: str = "ann", task: str | None = None) -> str:
    """A task is claimed, its files written (None: deleted) and it is done."""
    with repo.client() as person:
        name = task or person.call(rq.TaskAdd(title=title, resources=list(files))).task
        person.call(rq.TaskClaim(agent=agent, task=name))
        for path, text in files.items():
            if text is None:
                (repo.root / path).unlink()
            else:
                repo.write(path, text)
        person.call(rq.TaskDone(agent=agent, task=name, result="did it"))
    return name


def verified(repo: Repo) -> dict[str, Any]:
    done = repo.coord("verify", "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def state(repo: Repo, task: str) -> rq.Task:
    with repo.client() as person:
        return person.call(rq.TaskShow(task=task))


def left(repo: Repo) -> list[tuple[str, str]]:
    with repo.client() as person:
        return [(one.task, one.state) for one in person.call(rq.Verifications()).left]


def verified_file(repo: Repo, path: str) -> str:
    return git(repo, "show", f"refs/coord/verify/base:{path}")


def test_the_one_of_five_that_breaks_it_is_opened_again_with_the_output(made: Callable[..., Repo]) -> None:
    repo = made()
    base(repo)
    names = [do(repo, f"t{n}", {f"src/f{n}.txt": "BROKEN\n" if n == 2 else "fine\n"}, agent=f"agent-{n}") for n in range(5)]
    told = repo.coord("verify")
    assert told.returncode != 0 and "V-1 broken" in told.stdout and "T-3" in told.stdout
    assert "src/f2.txt" in told.stdout and "the check has failed" in told.stdout
    assert [state(repo, name).state for name in names] == ["done", "done", "ready", "done", "done"]
    broken = state(repo, names[2])
    assert "the check has failed" in str(broken.result) and "takes nothing back" in str(broken.result)
    assert repo.read("src/f2.txt") == "BROKEN\n", "coord takes nothing back"
    with repo.client("agent-2") as agent:
        notices = agent.call(rq.Heartbeat(agent="agent-2")).notices
        assert any(one.kind == "verify_failed" and "the check has failed" in str(one.data) for one in notices), notices
    assert left(repo) == [("T-3", "broken")]
    with pytest.raises(subprocess.CalledProcessError):
        verified_file(repo, "src/f2.txt")
    assert verified_file(repo, "src/f4.txt") == "fine\n", "the rest went on without it"
    # who takes it next is told
    with repo.client() as person:
        claimed = person.call(rq.TaskClaim(agent="bob", task="T-3"))
        assert [one.outcome for one in claimed.tried] == ["VERIFY_FAILED"] and "the check has failed" in claimed.tried[0].note
        assert claimed.task.attempts == 2
        prompt = compose(claimed, "bob")
        assert "the check has failed\n" in prompt and "takes nothing back" in prompt, "a launched agent is told the same"
        repo.write("src/f2.txt", "mended\n")
        person.call(rq.TaskDone(agent="bob", task="T-3"))
    assert verified(repo)["state"] == "good" and left(repo) == []
    assert verified_file(repo, "src/f2.txt") == "mended\n"
    story = repo.coord("explain", "T-3").stdout
    assert "broke it" in story and "V-1" in story
    listed = repo.coord("verify", "--list").stdout
    assert "V-2  good" in listed and "V-1  broken" in listed
    assert json.loads(repo.coord("replay", "--json").stdout)["equal"]
    assert git(repo, "status", "--short", "--untracked-files=no") == "" and git(repo, "worktree", "list").count("\n") == 2


def test_only_whole_tasks_are_in_the_tree(made: Callable[..., Repo]) -> None:
    """Half-done work of others lies in the same files, and the same directory."""
    repo = made("! grep -r HALF src")
    repo.write("src/m.py", "def a():\n    return 1\n\n\ndef b():\n    return 1\n\n\ndef c():\n    return 1\n")
    commit_all(repo)
    base(repo)
    with repo.client() as person:
        person.call(rq.TaskAdd(title="b", resources=["src/m.py::b", "src/n.py"]))
        person.call(rq.TaskClaim(agent="bob", task="T-1"))
        person.call(rq.TaskAdd(title="a", resources=["src/m.py::a", "src/d/"]))
        person.call(rq.TaskClaim(agent="ann", task="T-2"))
        repo.write("src/m.py", repo.read("src/m.py").replace("def b():\n    return 1", "def b():\n    HALF").replace("def a():\n    return 1", "def a():\n    return 2"))
        repo.write("src/n.py", "HALF\n")
        repo.write("src/d/x.py", "x = 1\n")
        os.symlink("x.py", repo.root / "src/d/link.py")
        os.chmod(repo.root / "src/d/x.py", 0o755)
        person.call(rq.TaskDone(agent="ann", task="T-2"))
        repo.write("src/d/x.py", "HALF\n")  # after its end: nobody's
    assert verified(repo)["state"] == "good"
    assert "HALF" not in verified_file(repo, "src/m.py") and "return 2" in verified_file(repo, "src/m.py")
    assert "120000" in git(repo, "ls-tree", "refs/coord/verify/base", "src/d/link.py")
    assert "100755" in git(repo, "ls-tree", "refs/coord/verify/base", "src/d/x.py")
    assert "def b():\n    HALF" in repo.read("src/m.py")


@pytest.mark.slow
def test_deletions_and_files_that_several_changed(made: Callable[..., Repo]) -> None:
    repo = made("test ! -e src/base.txt && test \"$(cat src/s.txt)\" = three")
    base(repo)
    do(repo, "one", {"src/s.txt": "one\n"})
    do(repo, "two", {"src/base.txt": None})
    do(repo, "three", {"src/s.txt": "three\n"})
    assert verified(repo)["state"] == "good"
    do(repo, "four", {"src/s.txt": None})
    found = verified(repo)
    assert found["state"] == "broken" and found["tasks"] == ["T-4"]


@pytest.mark.slow
def test_who_lies_on_top_of_broken_work_waits_for_its_repair(made: Callable[..., Repo]) -> None:
    repo = made()
    base(repo)
    do(repo, "bad", {"src/a.txt": "BROKEN\n"})
    do(repo, "on top", {"src/a.txt": "BROKEN\nmore\n", "src/b.txt": "b\n"})
    do(repo, "beside", {"src/c.txt": "c\n"})
    found = verified(repo)
    assert found["tasks"] == ["T-1"], "who came later is not blamed"
    assert left(repo) == [("T-1", "broken"), ("T-2", "held")]
    assert [state(repo, f"T-{n}").state for n in (1, 2, 3)] == ["ready", "done", "done"]
    do(repo, "", {"src/a.txt": "mended\nmore\n"}, task="T-1")
    assert verified(repo)["state"] == "good" and left(repo) == []
    assert verified_file(repo, "src/a.txt") == "mended\nmore\n" and verified_file(repo, "src/b.txt") == "b\n"


@pytest.mark.slow
def test_what_others_made_of_broken_work_stands_over_it(made: Callable[..., Repo]) -> None:
    """The repair brings the earlier work along, and not over what was verified since."""
    repo = made()
    base(repo)
    do(repo, "bad", {"src/a.txt": "BROKEN\n", "src/b.txt": "b\n"})
    assert verified(repo)["tasks"] == ["T-1"]
    do(repo, "mends it by the way", {"src/a.txt": "mended\n"})
    do(repo, "still bad", {"src/c.txt": "BROKEN\n"})
    found = verified(repo)
    assert found["tasks"] == ["T-3"] and left(repo) == [("T-1", "broken"), ("T-3", "broken")]
    with repo.client() as person:
        person.call(rq.TaskClaim(agent="bob", task="T-1"))
        person.call(rq.TaskDone(agent="bob", task="T-1", result="there is nothing left to do"))
    assert verified(repo)["state"] == "good" and left(repo) == [("T-3", "broken")]
    assert (verified_file(repo, "src/a.txt"), verified_file(repo, "src/b.txt")) == ("mended\n", "b\n")


@pytest.mark.slow
def test_broken_work_that_somebody_commits_is_still_its_tasks(made: Callable[..., Repo]) -> None:
    """People and agents commit all that lies in the tree."""
    repo = made()
    base(repo)
    do(repo, "bad", {"src/a.txt": "BROKEN\n"})
    assert verified(repo)["tasks"] == ["T-1"]
    commit_all(repo, "all of it")
    do(repo, "next", {"src/b.txt": "b\n"})
    assert verified(repo)["state"] == "good" and left(repo) == [("T-1", "broken")]
    do(repo, "", {"src/a.txt": "mended\n"}, task="T-1")
    commit_all(repo, "the rest")
    assert verified(repo)["state"] == "good" and left(repo) == []
    assert git(repo, "diff", "--stat", "HEAD", "refs/coord/verify/base") == "", "all that is committed is verified"


def test_all_that_a_task_has_changed_is_its_work(made: Callable[..., Repo]) -> None:
    """What it gave back on the way, what was partial work before, what a person kept for it."""
    repo = made("true")
    base(repo)
    with repo.client() as person:
        person.call(rq.TaskAdd(title="gives back", resources=["src/kept.txt"]))
        person.call(rq.TaskClaim(agent="ann", task="T-1"))
        person.call(rq.Acquire(agent="ann", resources=["src/early.txt", "src/same.txt"], task="T-1"))
        repo.write("src/early.txt", "early\n")
        person.call(rq.Release(agent="ann", resources=["src/early.txt", "src/same.txt"]))
        person.call(rq.TaskDone(agent="ann", task="T-1"))
        for n, verdict in ((2, "reassign"), (3, "keep")):
            person.call(rq.TaskAdd(title=verdict, resources=[f"src/p{n}.txt", f"src/q{n}.txt"]))
            person.call(rq.TaskClaim(agent="bob", task=f"T-{n}"))
            repo.write(f"src/p{n}.txt", "half\n")
            person.call(rq.TaskFail(agent="bob", task=f"T-{n}", reason="tired"))
            person.call(rq.ReviewDecide(review=f"R-{n - 1}", verdict=verdict))
        person.call(rq.TaskClaim(agent="eve", task="T-2"))
        repo.write("src/q2.txt", "the rest\n")
        person.call(rq.TaskDone(agent="eve", task="T-2"))
    assert left(repo) == [("T-1", "waiting"), ("T-3", "waiting"), ("T-2", "waiting")]
    assert verified(repo)["state"] == "good"
    names = git(repo, "ls-tree", "-r", "--name-only", "refs/coord/verify/base", "src").split()
    assert names == ["src/base.txt", "src/early.txt", "src/p2.txt", "src/p3.txt", "src/q2.txt"]


def test_large_files_and_odd_names(made: Callable[..., Repo]) -> None:
    repo = made("test $(wc -c < src/large.bin) = 300000")
    base(repo)
    name = "src/ä \"quoted\" 'x' $y.txt"
    do(repo, "one", {"src/large.bin": "x" * 300_000, name: "odd\n"})
    with repo.client() as person:
        person.call(rq.TaskAdd(title="bytes", resources=["src/d/"]))
        person.call(rq.TaskClaim(agent="ann", task="T-2"))
        (repo.root / "src/d").mkdir()
        Path(os.fsdecode(os.fsencode(repo.root / "src/d") + b"/b\xe4\n.txt")).write_text("bytes\n")
        person.call(rq.TaskDone(agent="ann", task="T-2"))
    assert verified(repo)["state"] == "good"
    assert os.fsdecode(b"src/d/b\xe4\n.txt") in git(repo, "ls-tree", "-rz", "--name-only", "refs/coord/verify/base").split("\0")
    assert verified_file(repo, name) == "odd\n" and len(verified_file(repo, "src/large.bin")) == 300_000


def test_what_could_not_be_kept_is_said(made: Callable[..., Repo]) -> None:
    repo = made("true", "[review]\nkept_bytes_max = 1000\n")
    base(repo)
    do(repo, "one", {"src/large.bin": "x" * 6_000_000})
    found = verified(repo)
    assert found["state"] == "untold" and "src/large.bin could not be kept" in found["said"]
    assert state(repo, "T-1").state == "done"
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "all")
    assert repo.coord("verify", "--afresh").returncode == 0 and left(repo) == []


@pytest.mark.slow
def test_it_does_not_go_on_for_ever(made: Callable[..., Repo]) -> None:
    repo = made()
    base(repo)
    with repo.client() as person:
        person.call(rq.TaskAdd(title="bad", resources=["src/a.txt"], attempts_max=2))
        person.call(rq.TaskAdd(title="after", after=["T-1"]))
    do(repo, "", {"src/a.txt": "BROKEN\n"}, task="T-1")
    assert state(repo, "T-2").state == "ready"
    assert verified(repo)["tasks"] == ["T-1"] and state(repo, "T-2").state == "pending"
    do(repo, "", {"src/a.txt": "BROKEN again\n"}, task="T-1")
    assert verified(repo)["tasks"] == ["T-1"]
    assert state(repo, "T-1").state == "dead" and state(repo, "T-2").state == "blocked", "a person is next"
    assert "no attempt left" in repo.coord("events", "--task", "T-1").stdout + repo.coord("explain", "ann").stdout


@pytest.mark.slow
def test_one_that_hangs_is_stopped_and_its_task_found(made: Callable[..., Repo]) -> None:
    repo = made("if test -e src/hang; then sleep 600 & echo $! > ../bg; wait; fi", "seconds_max = 1.5")
    base(repo)
    do(repo, "fine", {"src/a.txt": "a\n"})
    do(repo, "hangs", {"src/hang": "x\n"})
    found = verified(repo)
    assert found["tasks"] == ["T-2"] and state(repo, "T-1").state == "done"
    assert "took over 1.5 s" in str(state(repo, "T-2").result)
    assert not alive(pid_in(repo.state.path / "verify/bg"))


@pytest.mark.slow
def test_one_that_changes_files_changes_only_its_own_tree(made: Callable[..., Repo]) -> None:
    """And each run begins with the right content, whatever the one before has left."""
    command = ("test -e src/base.txt && test \"$(cat src/base.txt)\" = base && test ! -e src/made && ! grep -q BROKEN src/f*.txt || exit 1;"
               "echo worse > src/base.txt; echo BROKEN > src/made; rm -rf .git; mkdir -p no/way && chmod 0 no; touch built.o; exit 0")
    repo = made(command)
    repo.write(".gitignore", "*.o\n")
    commit_all(repo)
    base(repo)
    before = git(repo, "status", "--short"), git(repo, "rev-parse", "HEAD"), (repo.root / ".git/index").read_bytes()
    for n in range(4):
        do(repo, f"t{n}", {f"src/f{n}.txt": "BROKEN\n" if n == 1 else "x\n"})
    assert verified(repo)["tasks"] == ["T-2"]
    assert repo.read("src/base.txt") == "base\n" and not (repo.root / "built.o").exists()
    for n in range(4):
        (repo.root / f"src/f{n}.txt").unlink()
    assert (git(repo, "status", "--short"), git(repo, "rev-parse", "HEAD"), (repo.root / ".git/index").read_bytes()) == before
    assert verified(repo)["state"] == "good"


def test_what_it_builds_and_git_ignores_is_there_the_next_time(made: Callable[..., Repo]) -> None:
    repo = made("test -e built.o && echo there before; touch built.o; test ! -e not-ignored && touch not-ignored")
    repo.write(".gitignore", "*.o\n")
    commit_all(repo)
    base(repo)
    assert verified(repo)["state"] == "good" and verified(repo)["state"] == "good"
    logs = sorted((repo.state.path / "verify/logs").iterdir())
    assert [log.read_text() for log in logs] == ["", "there before\n"]


def test_a_base_that_fails_blames_nobody_until_it_is_mended(made: Callable[..., Repo]) -> None:
    repo = made()
    repo.write("src/old.txt", "BROKEN\n")
    commit_all(repo)
    base(repo)
    do(repo, "fine", {"src/a.txt": "a\n"})
    do(repo, "bad", {"src/b.txt": "BROKEN\n"})
    found = verified(repo)
    assert found["state"] == "base" and found["tasks"] == [] and "nobody is blamed" in found["said"]
    assert [state(repo, f"T-{n}").state for n in (1, 2)] == ["done", "done"]
    assert left(repo) == [("T-1", "waiting"), ("T-2", "waiting")]
    assert "nobody is blamed" in repo.coord("status").stdout and "nobody is blamed" in repo.coord("doctor").stdout
    repo.write("src/old.txt", "mended\n")
    git(repo, "commit", "-qm", "mend", "src/old.txt")
    assert verified(repo)["tasks"] == ["T-2"], "what people commit counts"
    assert left(repo) == [("T-2", "broken")] and "warning" not in repo.coord("status").stdout


@pytest.mark.slow
def test_what_people_commit_is_in_the_tree_and_puts_no_blame_on_tasks(made: Callable[..., Repo]) -> None:
    repo = made()
    base(repo)
    do(repo, "one", {"src/a.txt": "a\n"})
    repo.write("src/by-hand.txt", "BROKEN\n")
    git(repo, "add", "src/by-hand.txt", "src/a.txt")
    git(repo, "commit", "-qm", "by hand")
    do(repo, "two", {"src/b.txt": "b\n"})
    found = verified(repo)
    assert (found["state"], found["tasks"]) == ("committed", []) and "nobody is blamed" in found["said"]
    assert left(repo) == [("T-2", "waiting")], "what came before it is verified"
    repo.write("src/by-hand.txt", "fine\n")
    git(repo, "commit", "-qam", "mended")
    assert verified(repo)["state"] == "good" and left(repo) == []
    assert verified_file(repo, "src/by-hand.txt") == "fine\n"


@pytest.mark.slow
def test_a_task_that_commits_its_own_work_is_told_from_the_base(made: Callable[..., Repo]) -> None:
    repo = made()
    base(repo)
    with repo.client() as person:
        person.call(rq.TaskAdd(title="commits", resources=["src/a.txt"]))
        person.call(rq.TaskClaim(agent="ann", task="T-1"))
        repo.write("src/a.txt", "BROKEN half\n")
        git(repo, "add", "src/a.txt")
        git(repo, "commit", "-qm", "half")
    do(repo, "beside", {"src/b.txt": "b\n"}, agent="bob")
    assert verified(repo)["state"] == "good", "what an unfinished task has committed does not count"
    with repo.client() as person:
        repo.write("src/a.txt", "BROKEN whole\n")
        git(repo, "commit", "-qam", "whole")
        person.call(rq.TaskDone(agent="ann", task="T-1"))
    assert verified(repo)["tasks"] == ["T-1"] and state(repo, "T-2").state == "done"


def test_one_that_contradicts_itself_blames_nobody(made: Callable[..., Repo]) -> None:
    """It fails once on the whole, passes on the base, fails on the suspect, and then passes there."""
    repo = made("test -e src/a.txt || exit 0; echo >> ../count; test $(wc -l < ../count) -gt 1")
    base(repo)
    do(repo, "one", {"src/a.txt": "a\n"})
    found = verified(repo)
    assert (found["state"], found["tasks"]) == ("flaky", []) and "one and the same tree" in found["said"]
    assert state(repo, "T-1").state == "done" and left(repo) == [("T-1", "waiting")]
    assert verified(repo)["state"] == "good"


def test_it_runs_by_itself_after_so_many_tasks_or_when_it_is_quiet(made: Callable[..., Repo]) -> None:
    repo = made("true", after=2)
    base(repo)
    do(repo, "one", {"src/a.txt": "a\n"})
    time.sleep(2.5)
    assert left(repo) == [("T-1", "waiting")], "one is not enough, and it is not quiet for long"
    do(repo, "two", {"src/b.txt": "b\n"})
    until(lambda: left(repo) == [])


@pytest.mark.slow
def test_when_it_is_quiet(made: Callable[..., Repo]) -> None:
    repo = made("test ! -e ../fail", quiet=0.3)
    base(repo)
    do(repo, "one", {"src/a.txt": "a\n"})
    until(lambda: left(repo) == [])
    time.sleep(2)
    with repo.client() as person:
        assert len(person.call(rq.Verifications()).items) == 1
        (repo.state.path / "verify/fail").touch()
        do(repo, "two", {"src/b.txt": "b\n"})
        until(lambda: person.call(rq.Verifications()).items[0].state == "base")
        time.sleep(2.5)
        assert [one.state for one in person.call(rq.Verifications()).items] == ["base", "good"], "what was told is not asked again"
        (repo.state.path / "verify/fail").unlink()
        do(repo, "three", {"src/c.txt": "c\n"})
        until(lambda: left(repo) == [])


def test_a_command_of_the_repository_runs_only_when_it_is_trusted(make_repo: Make, tmp_path: Path) -> None:
    repo = make_repo()
    repo.write("coord.toml", settings(f"touch '{tmp_path}/ran'", quiet=0.1))
    repo.write("src/base.txt", "base\n")
    commit_all(repo)
    do(repo, "one", {"src/a.txt": "a\n"})
    refused = repo.coord("verify")
    assert refused.returncode == 2 and "coord trust" in refused.stderr
    for where in ("status", "doctor"):
        assert "verify.command" in repo.coord(where).stdout
    assert "verify.command" in repo.coord("trust", "--list").stdout
    time.sleep(1.5)
    assert not (tmp_path / "ran").exists() and left(repo) == []
    trust_settings(repo.root)
    repo.down()
    base(repo)
    assert verified(repo)["state"] == "good" and (tmp_path / "ran").exists()
    (tmp_path / "ran").unlink()
    repo.write("coord.toml", settings(f"touch '{tmp_path}/ran'; true", quiet=0.1))
    repo.down()
    do(repo, "two", {"src/b.txt": "b\n"})
    assert repo.coord("verify").returncode == 2 and not (tmp_path / "ran").exists(), "changed: not trusted any more"


def test_what_a_person_says_by_the_environment_needs_no_trust(make_repo: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = make_repo()
    repo.write("src/a.txt", "a\n")
    commit_all(repo)
    monkeypatch.setenv("COORD_VERIFY_COMMAND", "echo one, two; test -n \"$PATH\" -a -z \"$COORD_VERIFY_COMMAND\"")
    base(repo)
    assert verified(repo)["state"] == "good"


def test_a_neighbour_leases_claims_and_finishes_while_it_runs(made: Callable[..., Repo]) -> None:
    repo = made("echo $$ > ../pid; until test -e ../go; do sleep 0.05; done")
    base(repo)
    do(repo, "one", {"src/a.txt": "a\n"})
    assert repo.coord("verify", "--no-wait").returncode == 0
    pid = pid_in(repo.state.path / "verify/pid")
    with repo.client() as person:
        for n in range(10):
            held = person.call(rq.Acquire(agent="bob", resources=["src/a.txt", f"src/x{n}"]))
            person.call(rq.Release(agent="bob", acquisition_id=held.acquisition_id))
            do(repo, f"n{n}", {"src/a.txt": f"{n}\n"}, agent="eve")
        assert alive(pid), "it still runs"
        again = person.call(rq.Verify())
        assert (again.verification, again.state) == ("V-1", "running"), "never two at a time"
    (repo.state.path / "verify/go").touch()
    until(lambda: [one for one in left(repo) if one[0] == "T-1"] == [])
    assert len(left(repo)) == 10, "what was done meanwhile waits for the next"


def test_a_daemon_that_is_killed_leaves_nothing_running_and_the_next_goes_on(made: Callable[..., Repo]) -> None:
    repo = made("echo $$ >> ../pids; setsid sh -c 'echo $$ > ../away; exec sleep 600' & until test -e ../go; do sleep 0.05; done; ! grep -r BROKEN src")
    base(repo)
    do(repo, "one", {"src/a.txt": "BROKEN\n"})
    do(repo, "two", {"src/b.txt": "b\n"})
    assert repo.coord("verify", "--no-wait").returncode == 0
    folder = repo.state.path / "verify"
    pid = int(until(lambda: (folder / "pids").exists() and (folder / "pids").read_text().strip()))
    away = pid_in(folder / "away")
    os.kill(repo.pid(), signal.SIGKILL)
    until(lambda: not alive(pid) and not alive(away))
    assert state(repo, "T-1").state == "done"
    until(lambda: len((folder / "pids").read_text().split()) > 1)
    (folder / "go").touch()
    with repo.client() as person:
        one = until(lambda: next((one for one in person.call(rq.Verifications()).items if one.state != "running"), None))
    assert (one.verification, one.state, one.tasks) == ("V-1", "broken", ["T-1"])


def test_who_waits_for_it_is_told_though_the_daemon_was_killed_meanwhile(made: Callable[..., Repo]) -> None:
    repo = made("echo $$ >> ../pids; until test -e ../go; do sleep 0.05; done")
    base(repo)
    waits = subprocess.Popen([sys.executable, "-P", "-m", "coordinator.cli.main", "verify"], cwd=repo.root, stdout=subprocess.PIPE, text=True)
    pid_in(repo.state.path / "verify/pids")
    os.kill(repo.pid(), signal.SIGKILL)
    (repo.state.path / "verify/go").touch()
    out, _ = waits.communicate(timeout=30)
    assert waits.returncode == 0 and "V-1 good" in out


def test_one_that_is_stopped_in_order_is_gone_on_with_too(made: Callable[..., Repo]) -> None:
    repo = made("echo $$ >> ../pids; until test -e ../go; do sleep 0.05; done")
    base(repo)
    do(repo, "one", {"src/a.txt": "a\n"})
    repo.coord("verify", "--no-wait")
    pid = pid_in(repo.state.path / "verify/pids")
    repo.down()
    assert not alive(pid), "it was ended, not waited for"
    (repo.state.path / "verify/go").touch()
    assert verified(repo)["verification"] == "V-1" and left(repo) == []


@pytest.mark.slow
def test_without_git_commits_or_a_repository_it_says_so(make_repo: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, with_git, said in (("none", False, "no git repository"), ("empty", True, "no commit yet")):
        repo = make_repo(name, git=with_git, config=settings("true"))
        done = do(repo, "one", {"src/a.txt": "a\n"})
        found = verified(repo)
        assert found["state"] == "untold" and said in found["said"], found
        assert state(repo, done).state == "done"
        assert said in repo.coord("status").stdout
        if with_git:
            commit_all(repo)
            assert verified(repo)["state"] == "good", "from then on it can be"
            assert left(repo) == []


@pytest.mark.slow
def test_submodules(made: Callable[..., Repo], make_repo: Make) -> None:
    repo = made("test -e src/base.txt")
    other = make_repo("other")
    other.write("x.txt", "x\n")
    commit_all(other)
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.root), "sub")
    commit_all(repo)
    base(repo)
    do(repo, "beside", {"src/a.txt": "a\n"})
    assert verified(repo)["state"] == "good"
    do(repo, "inside", {"sub/x.txt": "y\n"})
    found = verified(repo)
    assert found["state"] == "untold" and "lies in the submodule sub" in found["said"], found
    assert state(repo, "T-2").state == "done"
    git(Repo(repo.root / "sub"), "commit", "-qam", "y")
    git(repo, "commit", "-qm", "sub", "sub")
    assert repo.coord("verify", "--afresh").returncode == 0 and left(repo) == []


def test_what_git_ignores_is_not_taken(made: Callable[..., Repo]) -> None:
    repo = made("test ! -e secret.env")
    repo.write(".gitignore", "*.env\n")
    commit_all(repo)
    base(repo)
    do(repo, "one", {"secret.env": "KEY\n", "src/a.txt": "a\n"})
    assert verified(repo)["state"] == "good"
    assert "secret" not in git(repo, "ls-tree", "-r", "--name-only", "refs/coord/verify/base")


def test_a_root_below_the_top_of_its_repository(tmp_path: Path, make_repo: Make) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "top")], check=True)
    repo = make_repo("top/below ü", git=False, config=settings(CHECK))
    repo.write("src/base.txt", "x\n")
    (repo.state.path).mkdir(exist_ok=True)
    commit_all(repo)
    base(repo)
    do(repo, "one", {"src/a.txt": "BROKEN\n"})
    do(repo, "two", {"src/b ü.txt": "b\n"})
    assert verified(repo)["tasks"] == ["T-1"]
    assert git(repo, "show", "refs/coord/verify/base:below ü/src/b ü.txt") == "b\n"


def test_an_agent_may_look_but_not_begin_one(made: Callable[..., Repo]) -> None:
    repo = made("true")
    with repo.client() as person:
        token = person.call(rq.Register(agent="ann")).token
    with repo.client("ann", token=token) as agent:
        assert agent.call(rq.Verifications()).command == "true"
        with pytest.raises(Refusal) as refused:
            agent.call(rq.Verify())
    assert refused.value.code is Code.UNAUTHORIZED


def test_where_the_command_is_taken_away_nothing_waits_any_more(made: Callable[..., Repo]) -> None:
    repo = made("false")
    base(repo)
    do(repo, "one", {"src/a.txt": "a\n"})
    repo.write("coord.toml", "")
    repo.down()
    until(lambda: left(repo) == [])
    with repo.client() as person:
        assert person.call(rq.Verifications()).base is None
        assert "no person has trusted it" in repo.coord("verify").stderr
