"""Commands that are typed in a linked worktree are about the files there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-c", "user.name=P", "-c", "user.email=p@x", *words], cwd=root, check=True,
                          capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def linked(repo: Repo) -> Path:
    """A linked worktree with a branch of its own, on which `feat.py` was committed."""
    git(repo.root, "init", "-q", "-b", "main")
    repo.write("a.py", "a\n")
    repo.write("d/b.py", "b\n")
    repo.write(".gitignore", ".coord/\n")
    git(repo.root, "add", "-A")
    git(repo.root, "commit", "-qm", "one")
    there = repo.root.with_name("linked")
    git(repo.root, "worktree", "add", "-q", "-b", "feature", str(there))
    (there / "feat.py").write_text("f\n")
    git(there, "add", "-A")
    git(there, "commit", "-qm", "two")
    return there


@pytest.mark.parametrize("named", [True, False])
def test_partial_work_on_a_task_that_was_claimed_there_is_kept(repo: Repo, linked: Path, named: bool) -> None:
    repo.coord("task", "add", "one", "--resource", "a.py", "--resource", "d/", "--resource", "feat.py")
    assert repo.coord("task", "claim", *(["T-1"] if named else []), "--agent", "ann", cwd=linked / "d").returncode == 0
    for name in ("a.py", "d/b.py", "feat.py"):
        (linked / name).write_text("half\n")
    assert repo.coord("task", "fail", "T-1", "--agent", "ann", "--reason", "tired", cwd=linked).returncode == 0
    with repo.client() as client:
        (review,) = client.call(rq.Reviews()).items
        assert {(file.path, file.worktree, file.change) for file in review.files} == {
            (name, str(linked), "modified") for name in ("a.py", "d/b.py", "feat.py")}
        client.call(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert [(linked / name).read_text() for name in ("a.py", "d/b.py", "feat.py")] == ["a\n", "b\n", "f\n"]
    assert git(linked, "status", "--short") == git(repo.root, "status", "--short").replace("?? coord.toml", "") == ""


def test_a_task_claimed_there_by_a_program_too(repo: Repo, linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(linked)
    with repo.client("ann") as ann:
        ann.task_add("one", resources=["a.py"])
        ann.task_claim()
        (linked / "a.py").write_text("half\n")
        ann.task_fail("T-1", "tired")
        assert [file.worktree for one in ann.call(rq.Reviews()).items for file in one.files] == [str(linked)]


def test_a_launch_is_not_on_another_branch_without_a_word(repo: Repo, linked: Path) -> None:
    repo.coord("task", "add", "one", "--resource", "feat.py")
    for isolation in ("none", "worktree"):
        done = repo.coord("launch", "--agents", "1", "--command", "true {prompt_file}", "--isolation", isolation, cwd=linked)
        assert done.returncode == 2 and f"{linked} is a linked worktree" in done.stderr, done
        assert f"cd {repo.root}" in done.stderr and "coord run" in done.stderr
    with repo.client() as client:
        assert client.call(rq.TaskShow(task="T-1")).state == "ready"


def test_wiring_there_tells_where_it_is(repo: Repo, linked: Path) -> None:
    home = {"HOME": str(repo.root.with_name("home"))}
    (repo.root.with_name("home")).mkdir()
    done = repo.coord("init", "--agent", "claude-code", "--yes", cwd=linked, env=home)
    assert "these settings are in" in done.stdout and "coord init --agent claude-code --user" in done.stdout, done
    assert "linked worktree" not in repo.coord("init", "--agent", "claude-code", "--yes", env=home).stdout
    assert "linked worktree" not in repo.coord("init", "--agent", "claude-code", "--yes", "--user", cwd=linked, env=home).stdout


def test_regions_are_leased_in_a_worktree_that_was_made_after_one_was_leased(repo: Repo) -> None:
    """Whoever divides files has to hear of it, too. The folder's name begins as the root's."""
    repo.write("m.py", "def a():\n    return 1\n\n\ndef b():\n    return 2\n")
    other = repo.root.with_name(f"{repo.root.name}-other")
    for words in (["init", "-q"], ["add", "m.py"], ["-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=repo.root, check=True)
    assert repo.coord("lock", "m.py::a", "--agent", "ann").returncode == 0
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(other)], cwd=repo.root, check=True)
    (repo.root / "other").mkdir()
    (repo.root / "other/m.py").write_text("def wrong():\n    return 3\n")
    done = repo.coord("lock", "m.py::b", "--agent", "bob", cwd=other)
    assert done.returncode == 0, done
    done = repo.coord("commit-region", "m.py::b", "--agent", "bob", cwd=other, text="def b():\n    return 20\n")
    assert done.returncode == 0 and "return 20" in (other / "m.py").read_text() and "return 20" not in repo.read("m.py"), done
