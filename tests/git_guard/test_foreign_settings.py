"""A person whose git is set up in every way that differs from the usual, and whose home is elsewhere:
coord does what it does. What the tests themselves ask of git is asked with git's own defaults."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.files.git import Git
from coordinator.words import requests as rq
from tests.conftest import NEUTRAL, Repo
from tests.foreign_git import lay_out
from tests.hook.test_sessions import Claude
from tests.launch.conftest import Launch
from tests.waiting import until

pytestmark = pytest.mark.slow

CONFIG = '[backlog]\nbackoff_s = 0.1\n[sweep]\ninterval_s = 1\n[watch]\ndebounce_s = 0.05\nunleased = "review"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home of pat"
    place.mkdir()
    config = lay_out(place)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    return place


@pytest.fixture
def repo(home: Path, make_repo: Callable[..., Repo]) -> Repo:
    del home
    repo = make_repo("a repo ü", git=False, config=CONFIG)
    git(repo.root, "init", "-q", "-b", "trunk")
    for name in ("a.txt", "b.txt", "d/e.txt"):
        repo.write(name, f"{name}\n")
    git(repo.root, "add", ".")
    git(repo.root, "commit", "-qm", "first")
    return repo


def git(place: Path, *args: str, code: int = 0, env: dict[str, str] | None = None) -> str:
    """git with its own defaults, whatever the person's are."""
    done = subprocess.run(
        ["git", "-c", "user.name=P", "-c", "user.email=p@x", "-c", "protocol.file.allow=always", *args], cwd=place,
        capture_output=True, text=True, check=False, env={**os.environ, **NEUTRAL, **(env or {})})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.strip()


def theirs(place: Path, *args: str, code: int = 0) -> str:
    """git as this person has it; their own hook and signature left aside."""
    done = subprocess.run(["git", "-c", "user.name=P", "-c", "user.email=p@x", "-c", "commit.gpgSign=false", *args],
                          cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def coord(repo: Repo, *args: str, code: int = 0) -> str:
    done = repo.coord(*args)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_init_and_doctor(repo: Repo, home: Path) -> None:
    before = sorted((home / "hooks").iterdir())
    said = coord(repo, "init", "--agent", "claude-code", "--yes")
    assert "core.hooksPath is set for all repositories" in said
    assert sorted((home / "hooks").iterdir()) == before, "hooks of all repositories are changed only when asked for"
    told = repo.coord("doctor")
    assert "Traceback" not in told.stderr and "git" not in told.stderr, told.stderr
    for args in ((), ("init", "--remove", "--yes")):
        if args:
            coord(repo, *args)
        assert git(repo.root, "status", "--porcelain") == "?? context_archive/", "what coord wires in, git does not see"


def test_a_launch_lands_from_worktrees(repo: Repo, home: Path) -> None:
    (repo.root / "d" / "e.txt").write_text("unsaved\n")
    agent = repo.root.parent / "agent.sh"
    agent.write_text('case $COORD_TASK in T-1) printf "one\\n" > a.txt;; *) printf "two\\n" > new.txt; rm b.txt;; esac\n')
    tasks = repo.root.parent / "tasks.jsonl"
    tasks.write_text('{"title": "one", "resources": ["a.txt"]}\n{"title": "two", "resources": ["new.txt", "b.txt"]}\n')
    going = Launch(repo, f"sh '{agent}'", tasks, "-n", "1", "--isolation", "worktree")
    report = going.report()
    assert report["tasks"] == {"done": 2}, going.said()
    listed = git(repo.root, "ls-tree", "-r", "--name-only", "trunk").split()
    assert listed == ["a.txt", "coord.toml", "d/e.txt", "new.txt"]
    assert git(repo.root, "show", "trunk:a.txt") == "one" and "\r" not in git(repo.root, "cat-file", "blob", "trunk:new.txt")
    assert repo.read("a.txt").split() == ["one"] and repo.read("new.txt").split() == ["two"]
    assert not (repo.root / "b.txt").exists() and repo.read("d/e.txt") == "unsaved\n"
    assert git(repo.root, "-c", "core.autocrlf=true", "status", "--porcelain")== "M d/e.txt"
    assert git(repo.root, "worktree", "list").count("\n") == 0, "what has landed is removed"
    ran = (home / "ran").read_text() if (home / "ran").exists() else ""
    assert "post-checkout" not in ran, "coord's own git runs nobody's hooks"


def test_a_launch_with_submodules_leaves_them_alone(repo: Repo, tmp_path: Path) -> None:
    """`submodule.recurse` makes git go into submodules that a new worktree does not have."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "trunk")
    (other / "x").write_text("x\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "x")
    git(repo.root, "submodule", "add", "-q", str(other), "mod")
    git(repo.root, "commit", "-qm", "with a submodule")
    agent = repo.root.parent / "agent.sh"
    agent.write_text('printf "one\\n" > a.txt\n')
    tasks = repo.root.parent / "tasks.jsonl"
    tasks.write_text('{"title": "one", "resources": ["a.txt"]}\n{"title": "more", "resources": ["a.txt"]}\n')
    going = Launch(repo, f"sh '{agent}'", tasks, "-n", "1", "--isolation", "worktree")
    assert going.report()["tasks"] == {"done": 2}, going.said()
    assert repo.read("mod/x") == "x\n" and repo.read("a.txt").split() == ["one"]


def test_the_guard_refuses_what_another_holds(repo: Repo, tmp_path: Path) -> None:
    coord(repo, "init", "--yes")
    hooks = repo.root / "own hooks"  # their own folder of hooks refuses by itself
    git(repo.root, "config", "core.hooksPath", str(hooks))
    coord(repo, "guard", "install")
    with repo.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["a.txt", "d/"]))
    for name in ("a.txt", "b.txt", "d/e.txt"):
        repo.write(name, "second\n")
    theirs(repo.root, "add", "a.txt", "b.txt", "d")
    for place in (repo.root, repo.root / "d"):
        said = theirs(place, "commit", "-m", "x", code=1)
        assert "a.txt: held by ann" in said and "d/e.txt (as d/): held by ann" in said and "b.txt" not in said
    theirs(repo.root, "reset", "-q", "--", "a.txt", "d/e.txt")
    theirs(repo.root, "commit", "-m", "x")
    assert git(repo.root, "show", "--name-only", "--format=") == "b.txt"


@pytest.mark.parametrize("root", [True, False])
def test_half_of_anothers_work_is_not_pushed(repo: Repo, tmp_path: Path, root: bool) -> None:
    """Also where the commit is a root commit (`log.showRoot`), or in a folder (`diff.relative`)."""
    bare = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    git(repo.root, "remote", "add", "origin", str(bare))
    coord(repo, "init", "--yes")
    git(repo.root, "config", "core.hooksPath", str(repo.root / "own hooks"))
    coord(repo, "guard", "install")
    with repo.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["a.txt"]))
    if root:
        git(repo.root, "checkout", "-q", "--orphan", "fresh")
    repo.write("a.txt", "half\n")
    git(repo.root, "commit", "-qam", "half", "--no-verify")
    repo.write("a.txt", "half and more\n")
    for place in (repo.root, repo.root / "d"):
        said = theirs(place, "push", "-q", "origin", "HEAD:main", code=1)
        assert "a.txt: held by ann" in said
    repo.write("a.txt", "half\n")
    theirs(repo.root, "push", "-q", "origin", "HEAD:main")


def test_partial_work_is_reverted_to_its_bytes(repo: Repo) -> None:
    coord(repo, "init", "--yes")
    with repo.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["a.txt", "b.txt"], ttl_s=1))
        repo.write("a.txt", "partial\n")
        (repo.root / "b.txt").unlink()
        until(lambda: client.call(rq.Reviews()).items)
        client.call(rq.ReviewDecide(review="R-1", verdict="revert"))
        assert (repo.read("a.txt"), repo.read("b.txt")) == ("a.txt\n", "b.txt\n")
        client.call(rq.ReviewUndo(review="R-1"))
        assert repo.read("a.txt") == "partial\n" and not (repo.root / "b.txt").exists()


def test_what_nobody_leased_is_compared_with_what_a_checkout_writes(repo: Repo) -> None:
    """With `core.autocrlf`, what git has of a file is not what lies in the tree."""
    (repo.root / "b.txt").write_bytes(b"b.txt\r\n")  # as a checkout of theirs writes it
    with repo.client("pat") as client:
        client.register()
        until(lambda: client.call(rq.Health()).watcher["mode"] == "inotify")
        (repo.root / "b.txt").write_bytes(b"b.txt\r\nmore\r\n")
        (review,) = until(lambda: client.call(rq.Reviews()).items)
        assert [file.path for file in review.files] == ["b.txt"]
    coord(repo, "review", "revert", review.review)
    assert (repo.root / "b.txt").read_bytes() == b"b.txt\r\n"


def test_hooks_take_leases(repo: Repo) -> None:
    coord(repo, "up")
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    assert ann.edit("a.txt", "ann's\n") == ""
    assert ann.name in bob.edit("a.txt", "bob's\n")
    assert "whole working tree" in bob.shell("git stash")[0]


def test_coords_own_git_is_nobodys(repo: Repo, home: Path) -> None:
    plain = Git(repo.root)
    assert plain.text("config", "core.hooksPath") == "/dev/null"
    repo.write("b.txt", "second\n")
    assert plain.names("diff-files", "-z", "--name-only") == ["b.txt"]
    assert not (home / "ran").exists()
