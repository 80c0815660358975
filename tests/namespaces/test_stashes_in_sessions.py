"""`git stash` of one's own files in a session, while others have something in the same index."""

from __future__ import annotations

import subprocess

import pytest

from tests.namespaces.conftest import ONCE, Stand
from tests.waiting import until


@pytest.fixture
def repo(stand: Stand) -> Stand:
    """ann has changed one file and made another, and staged both."""
    stand.run("git", "config", "user.name", "One")
    stand.run("git", "config", "user.email", "one@localhost")
    for path in ("mine.py", "theirs.py", "dir/more.py", "dir/gone.py"):
        stand.write(path, "one\n")
    stand.run("git", "add", "-A")
    stand.run("git", "commit", "-qm", "one")
    stand.coord("up")
    stand.coord("lock", "theirs.py", "new.py", "dir/gone.py", "--agent", "ann")
    stand.write("theirs.py", "two\n")
    stand.write("new.py", "two\n")
    stand.run("rm", "dir/gone.py")
    stand.run("git", "add", "theirs.py", "new.py", "dir/gone.py")
    return stand


STAGED = "A  new.py\nD  dir/gone.py\nM  theirs.py\n"


def staged(repo: Stand) -> str:
    return "".join(sorted(repo.run("git", "status", "--short", "-uno").stdout.splitlines(keepends=True)))


@ONCE
@pytest.mark.parametrize("form", ["git stash push -q -- mine.py dir/more.py", "git stash push -qm note mine.py dir/more.py",
                                  "git add mine.py && git stash push -q -- mine.py dir/more.py", "git -C dir stash push -q -- ../mine.py more.py",
                                  "git stash push -q --keep-index -- mine.py dir/more.py"])
def test_only_ones_own_is_in_a_stash_of_ones_own(repo: Stand, form: str) -> None:
    """What another has staged is not: it would be in the way when the stash comes back."""
    agent = repo.agent()
    repo.write("mine.py", "two\n")
    repo.write("dir/more.py", "two\n")
    assert agent.does(f"({form}) 2>&1") == 0, agent.said
    assert repo.read("mine.py") == repo.read("dir/more.py") == "one\n" and repo.read("theirs.py") == repo.read("new.py") == "two\n"
    assert staged(repo) == STAGED
    assert repo.run("git", "diff", "--name-only", "HEAD", "stash@{0}").stdout.split() == ["dir/more.py", "mine.py"]
    repo.write("theirs.py", "three\n")
    assert agent.does("(git stash pop) 2>&1") == 0, agent.said
    assert repo.read("mine.py") == repo.read("dir/more.py") == "two\n" and repo.read("theirs.py") == "three\n"
    assert repo.run("git", "stash", "list").stdout == "" and "UU" not in staged(repo)
    assert not list((repo.root / ".git").glob("coord-commit-*"))


@ONCE
def test_a_stash_that_git_refuses_changes_nothing(repo: Stand) -> None:
    agent = repo.agent()
    assert agent.does("(git stash push -q -- nowhere.py) 2>&1") == 1 and "nowhere.py" in "\n".join(agent.said)
    assert staged(repo) == STAGED
    assert agent.does("(git stash push -q -- theirs.py) 2>&1") == 1 and "held by ann" in "\n".join(agent.said)
    assert staged(repo) == STAGED


@ONCE
def test_the_entry_that_comes_back_is_the_one_that_was_judged(stand: Stand) -> None:
    """Another may put an entry on top meanwhile."""
    stand.run("git", "config", "user.name", "One")
    stand.run("git", "config", "user.email", "one@localhost")
    for path in ("mine.py", "theirs.py"):
        stand.write(path, "one\n")
    stand.run("git", "add", "-A")
    stand.run("git", "commit", "-qm", "one")
    agent = stand.agent()
    stand.coord("lock", "theirs.py", "--agent", "ann")
    assert agent.does("echo two > mine.py && git stash push -q -- mine.py") == 0, agent.said
    holds = subprocess.Popen([*stand.become, stand.python, "-P", "-c", "import os, time; from coordinator import _git_queue; _git_queue.enter('.git', 'add')\n"
                              "open('held', 'w')\nwhile not os.path.exists('go'): time.sleep(0.02)"], cwd=stand.root, env=stand.env)
    until((stand.root / "held").exists)
    assert agent.does("{ git stash pop > out 2>&1; echo $? >> out; } &") == 0
    until((stand.root / "out").exists)
    until(lambda: "waiting" in stand.read("out"))
    stand.write("theirs.py", "half\n")
    stand.run("git", "stash", "push", "-q", "--", "theirs.py")
    stand.write("go", "")
    assert holds.wait() == 0 and agent.does("wait") == 0
    assert "held by ann" in stand.read("out") and stand.read("out").endswith("1\n") and stand.read("theirs.py") == "one\n"
    assert agent.does("(git stash pop stash@{1}) 2>&1") == 0 and stand.read("mine.py") == "two\n", agent.said
