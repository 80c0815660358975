"""Gits of sessions at the same moment: they queue for the index, and none meets `index.lock`."""

from __future__ import annotations

import json
import os
import time

import pytest

from tests.namespaces.conftest import ONCE, Stand

AGENTS = 4


@pytest.fixture
def repo(stand: Stand) -> Stand:
    for words in (("user.name", "One"), ("user.email", "one@localhost"), ("gc.auto", "0")):
        stand.run("git", "config", *words)
    for n in range(AGENTS):
        stand.write(f"f{n}.py", "1\n")
    stand.run("git", "add", "-A")
    stand.run("git", "commit", "-qm", "one")
    return stand


def at_once(repo: Stand, command: str, times: int) -> list[str]:
    """What failed of a command that each of several agents runs again and again, `$n` its number and `$k` the time."""
    agents = [repo.agent() for _ in range(AGENTS)]
    loop = f"for k in $(seq {times}); do ({command}) >>out$n 2>&1 || echo failed >>out$n; done"
    for n, agent in enumerate(agents):
        assert agent.process.stdin is not None
        agent.process.stdin.write(f"n={n}; {loop}; (exit 0)\n")
        agent.process.stdin.flush()
    for agent in agents:
        assert agent.does("true") == 0
    return [text for n in range(AGENTS) if "failed" in (text := repo.read(f"out{n}"))]


@ONCE
@pytest.mark.parametrize(("form", "times"), [
    ("git add f$n.py && git commit -qm $n-$k -- f$n.py", 4),
    ("git -C . add f$n.py && git -c user.name=Me commit -qm $n-$k f$n.py", 1),  # the whole check is asked
    ("git add f$n.py; git status --short >/dev/null; git diff --stat; git commit -qm $n-$k f$n.py", 3)])
def test_simultaneous_commits_all_succeed(repo: Stand, form: str, times: int) -> None:
    assert at_once(repo, f"echo $k >> f$n.py; {form}", times) == []
    assert int(repo.run("git", "rev-list", "--count", "HEAD").stdout) == 1 + AGENTS * times
    assert {*repo.run("git", "log", "-m", "--format=", "--name-only").stdout.split()} == {f"f{n}.py" for n in range(AGENTS)}


@ONCE
def test_simultaneous_changes_of_the_index_all_succeed(repo: Stand) -> None:
    assert at_once(repo, "echo $k > new$n-$k; git add new$n-$k && git rm -q --cached new$n-$k && git add new$n-$k && "
                   "git mv new$n-$k there$n-$k", 2) == []


@ONCE
def test_a_hook_that_calls_git_is_part_of_its_commit(repo: Stand) -> None:
    """It has the index already, and does not wait for itself."""
    hook = repo.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ngit status --short >/dev/null\ndate > made\ngit add made\n")
    hook.chmod(0o755)
    agent = repo.agent()
    repo.write("f0.py", "2\n")
    began = time.monotonic()
    assert agent.does("(git add f0.py && git commit -qm two) 2>&1") == 0, agent.said
    assert "waiting" not in "\n".join(agent.said) and time.monotonic() - began < 60
    assert repo.run("git", "show", "--name-only", "--format=", "HEAD").stdout.split() == ["f0.py", "made"]


@ONCE
def test_a_killed_git_leaves_the_queue(repo: Stand) -> None:
    """A record lock ends with its process, and no child of git keeps it."""
    hook = repo.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho $PPID > git.pid\nsleep 600 &\nsleep 600\n")
    hook.chmod(0o755)
    first, second = repo.agent(), repo.agent()
    repo.write("f0.py", "2\n")
    assert first.does("git commit -qm two -- f0.py >/dev/null 2>&1 & while ! test -s git.pid; do sleep 0.05; done; kill -9 $(cat git.pid)") == 0
    hook.unlink()
    (repo.root / ".git/index.lock").unlink(missing_ok=True)
    repo.write("f1.py", "2\n")
    assert second.does("(git commit -qm one -- f1.py) 2>&1") == 0, second.said
    assert "waiting" not in "\n".join(second.said)


@ONCE
def test_a_program_outside_of_sessions_is_waited_for_and_what_it_left_is_not(repo: Stand) -> None:
    agent = repo.agent()
    lock = repo.root / ".git/index.lock"
    repo.write("f0.py", "2\n")
    lock.touch()
    assert agent.does("(sleep 1; rm .git/index.lock) & git add f0.py") == 0, agent.said
    lock.touch()
    os.utime(lock, (time.time() - 3600,) * 2)
    assert agent.does("(git add f0.py) 2>&1") == 128 and "index.lock" in "\n".join(agent.said)
    problems = "\n".join(json.loads(repo.tries("doctor", "--json").stdout)["problems"])
    assert "index.lock" in problems and f"rm {lock}" in problems.replace("'", ""), problems


@ONCE
def test_linked_worktrees_do_not_wait_for_each_other(repo: Stand) -> None:
    repo.run("git", "worktree", "add", "-q", "-b", "two", "w2")
    hook = repo.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntest -e wait && { touch at; while test -e wait; do sleep 0.05; done; }; (exit 0)\n")
    hook.chmod(0o755)
    first, second = repo.agent(), repo.agent()
    repo.write("wait", "")
    repo.write("f0.py", "2\n")
    repo.write("w2/f1.py", "2\n")
    assert first.does("git commit -qm two -- f0.py & while ! test -e at; do sleep 0.05; done") == 0
    assert second.does("(cd w2 && git commit -qm two -- f1.py) 2>&1") == 0, second.said
    repo.run("rm", "wait")
    assert first.does("wait") == 0, first.said
