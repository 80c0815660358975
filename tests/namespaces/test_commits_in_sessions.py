"""A plain `git commit` in a session, in a repository whose hooks would put others' work aside."""

from __future__ import annotations

import subprocess

import pytest

from tests.namespaces.conftest import ONCE, Stand
from tests.waiting import until

PUTS_ASIDE = '#!/bin/sh\ngit diff --quiet && exit 0\ngit stash -q -k || exit 1\ngit stash pop -q\n'


def test_ones_own_is_committed_beside_what_others_are_at_work_on(stand: Stand) -> None:
    stand.run("git", "config", "user.name", "One")
    stand.run("git", "config", "user.email", "one@localhost")
    for path in ("mine.py", "theirs.py", "dir/more.py"):
        stand.write(path, "one\n")
    stand.run("git", "add", "-A")
    stand.run("git", "commit", "-qm", "one")
    agent = stand.agent()
    stand.coord("lock", "theirs.py", "dir/", "--agent", "ann")
    for path in ("mine.py", "theirs.py", "dir/more.py"):
        stand.write(path, "two\n")
    for form, text in enumerate(("git commit -m x -- mine.py", "git add mine.py && git commit -qm x", "git commit -qam x",
                                 "bash -c 'git commit -m x mine.py'", "git -c user.name=Two commit -m x mine.py")):
        stand.write(".git/hooks/pre-commit", PUTS_ASIDE)
        stand.run("chmod", "+x", ".git/hooks/pre-commit")
        stand.write("mine.py", f"{form}\n")
        assert agent.does(f"({text}) 2>&1") == 0, (text, agent.said)
        assert stand.run("git", "show", "--name-only", "--format=", "HEAD").stdout.split() == ["mine.py"], text
        assert stand.run("git", "show", "HEAD:mine.py").stdout == f"{form}\n"
        assert stand.read("theirs.py") == "two\n" and stand.read("dir/more.py") == "two\n"
        assert stand.run("git", "status", "--short", "-uno").stdout.split("\n")[:-1] == [" M dir/more.py", " M theirs.py"]
        assert stand.run("git", "stash", "list").stdout == ""
    assert agent.does("(git commit -m x -- theirs.py) 2>&1") == 1 and any("held by ann" in line for line in agent.said), agent.said


@pytest.fixture
def beside(stand: Stand) -> Stand:
    """A repository with hooks, in which ann has one file and nobody another that is changed."""
    stand.run("git", "config", "user.name", "One")
    stand.run("git", "config", "user.email", "one@localhost")
    for path in ("mine.py", "theirs.py", "free.py", "late.py", "version"):
        stand.write(path, "one\n")
    stand.run("git", "add", "-A")
    stand.run("git", "commit", "-qm", "one")
    stand.coord("up")
    stand.coord("lock", "theirs.py", "--agent", "ann")
    stand.write("mine.py", "two\n")
    return stand


def put_hook(stand: Stand, text: str) -> None:
    stand.write(".git/hooks/pre-commit", f"#!/bin/sh\n{text}\n")
    stand.run("chmod", "+x", ".git/hooks/pre-commit")


@ONCE
@pytest.mark.parametrize("aside", ["git checkout -q -- .", "git stash -q -k && git stash pop -q"])
@pytest.mark.parametrize("form", ["git commit -qm x mine.py", "git add mine.py && git commit -qm x"])
def test_what_nobody_holds_is_not_put_aside_either(beside: Stand, form: str, aside: str) -> None:
    """It may be what a command of another is writing just now, or a person."""
    beside.write("free.py", "half\n")
    before = (beside.root / "free.py").stat()
    put_hook(beside, f"git diff --quiet || {{ {aside}; }}")
    agent = beside.agent()
    assert agent.does(f"({form}) 2>&1") == 0, agent.said
    after = (beside.root / "free.py").stat()
    assert beside.read("free.py") == "half\n" and (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert beside.run("git", "show", "--name-only", "--format=", "HEAD").stdout.split() == ["mine.py"]
    assert agent.does("(git commit -qam all) 2>&1") == 0 and beside.run("git", "show", "HEAD:free.py").stdout == "half\n", "as git has it"


@ONCE
@pytest.mark.parametrize("form", ["git commit -qm x mine.py", "git add mine.py && git commit -qm x"])
def test_hooks_do_not_see_what_another_begins_meanwhile(beside: Stand, form: str) -> None:
    """pre-commit takes it for the doing of its hooks, or puts it aside."""
    put_hook(beside, 'touch began; while ! test -e go; do sleep 0.02; done; git diff --exit-code -- late.py || exit 3; git diff --quiet')
    agent = beside.agent()
    begins = subprocess.Popen([*beside.become, "sh", "-c", "while ! test -e began; do sleep 0.02; done; echo half > late.py; touch go"], cwd=beside.root)
    assert agent.does(f"({form}) 2>&1") == 0, agent.said
    assert begins.wait() == 0 and beside.read("late.py") == "half\n"
    assert beside.run("git", "show", "--name-only", "--format=", "HEAD").stdout.split() == ["mine.py"]


@ONCE
def test_a_half_that_is_staged_is_put_aside_by_itself(beside: Stand) -> None:
    beside.write("theirs.py", "half\n")
    beside.write("free.py", "half\n")
    put_hook(beside, "git diff > .git/aside; git checkout -- . || exit 3; git apply .git/aside")
    agent = beside.agent()
    assert agent.does("git add mine.py && echo three >> mine.py && coord lock mine.py && (git commit -qm x) 2>&1") == 0, agent.said
    assert beside.run("git", "show", "HEAD:mine.py").stdout == "two\n" and beside.read("mine.py") == "two\nthree\n"
    assert beside.read("theirs.py") == beside.read("free.py") == "half\n"


@ONCE
def test_a_half_is_put_aside_beside_what_another_begins_meanwhile(beside: Stand) -> None:
    """What is put aside is what git tells of, and not all that differs."""
    put_hook(beside, "touch began; while ! test -e go; do sleep 0.02; done; git diff > .git/aside; git -c submodule.recurse=0 checkout -- . || exit 3; git apply .git/aside")
    agent = beside.agent()
    begins = subprocess.Popen([*beside.become, "sh", "-c", "while ! test -e began; do sleep 0.02; done; echo half > late.py; exec mkdir locked"], cwd=beside.root)
    holds = subprocess.Popen([*beside.become, "sh", "-c", "while ! test -e held; do sleep 0.02; done; exec touch go"], cwd=beside.root)
    assert agent.does("git add mine.py && echo three >> mine.py && coord lock mine.py && { git commit -qm x >out 2>&1 & }") == 0, agent.said
    assert begins.wait() == 0
    beside.coord("lock", "late.py", "--agent", "ann")
    beside.write("held", "")
    assert holds.wait() == 0 and agent.does("wait; cat out") == 0
    assert beside.run("git", "show", "HEAD:mine.py").stdout == "two\n" and beside.read("mine.py") == "two\nthree\n", agent.said
    assert beside.read("late.py") == "half\n"


@ONCE
@pytest.mark.parametrize("form", ["git commit -qm x mine.py", "git add mine.py && git commit -qm x"])
@pytest.mark.parametrize("add", ["git add version", "git add -u", "git update-index version", "git rm -q --cached version && git add version"])
def test_what_a_hook_adds_is_committed(beside: Stand, form: str, add: str) -> None:
    put_hook(beside, f"echo 2 > version; {add}")
    agent = beside.agent()
    assert agent.does(f"({form}) 2>&1") == 0, agent.said
    assert beside.run("git", "show", "--name-only", "--format=", "HEAD").stdout.split() == ["mine.py", "version"]


@ONCE
@pytest.mark.parametrize("form", ["git add mine.py && git commit -qm x", "git add mine.py && git -c user.name=Two commit -qm x", "git add mine.py && git commit -m x --amend"])
def test_what_others_have_staged_stops_nobodys_commit_without_hooks_either(beside: Stand, form: str) -> None:
    """Else two who have staged something wait for each other for ever."""
    beside.write("theirs.py", "two\n")
    beside.run("git", "add", "theirs.py")
    agent = beside.agent()
    assert agent.does(f"({form}) 2>&1") == 0, agent.said
    assert "not in this commit, for others hold it: theirs.py" in "\n".join(agent.said)
    assert beside.run("git", "show", "HEAD:mine.py").stdout == "two\n" and beside.run("git", "show", "HEAD:theirs.py").stdout == "one\n"
    assert beside.run("git", "status", "--short", "-uno").stdout == "M  theirs.py\n"
    assert agent.does("(git commit -qm x -- theirs.py) 2>&1") == 1 and "held by ann" in "\n".join(agent.said)
    assert agent.does("(git commit -qm x) 2>&1") == 1 and "held by ann" in "\n".join(agent.said), "there is nothing of its own"


@ONCE
def test_the_step_of_a_submodule_is_not_what_others_hold_in_it(beside: Stand) -> None:
    sub = beside.root / "sub"
    for words in (("init", "-q", "sub"), ("-C", "sub", "config", "user.name", "One"), ("-C", "sub", "config", "user.email", "one@localhost"),
                  ("-C", "sub", "commit", "-q", "--allow-empty", "-m", "one"), ("add", "sub"), ("commit", "-qm", "sub")):
        assert beside.run("git", *words).returncode == 0, words
    beside.write("sub/own.py", "one\n")
    beside.write("sub/hers.py", "half\n")
    beside.coord("lock", "sub/hers.py", "--agent", "ann")
    agent = beside.agent()
    assert agent.does("(cd sub && git add own.py && git commit -qm two) 2>&1") == 0, agent.said
    assert agent.does("(git add sub && git commit -qm step -- sub) 2>&1") == 0, agent.said
    assert beside.run("git", "ls-tree", "HEAD", "sub").stdout.split()[2] == beside.run("git", "-C", "sub", "rev-parse", "HEAD").stdout.strip()
    assert agent.does("(cd sub && git add hers.py) 2>&1") == 1 and "held by ann" in "\n".join(agent.said)
    assert not sub.joinpath(".git/index.lock").exists()


@ONCE
@pytest.mark.parametrize("hooks", [True, False])
def test_a_part_that_another_has_staged_is_left_out_too(beside: Stand, hooks: bool) -> None:
    text = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    beside.write("both.py", text)
    beside.run("git", "add", "both.py")
    beside.run("git", "commit", "-qm", "both")
    beside.coord("lock", "both.py::g", "--agent", "ann")
    beside.write("both.py", text.replace("return 2", "return 20"))
    beside.run("git", "add", "both.py")
    if hooks:
        put_hook(beside, "git diff --quiet")
    agent = beside.agent()
    assert agent.does("(git add mine.py && git commit -qm x) 2>&1") == 0, agent.said
    assert "not in this commit, for others hold it: both.py" in "\n".join(agent.said)
    assert beside.run("git", "show", "--name-only", "--format=", "HEAD").stdout.split() == ["mine.py"]
    assert beside.run("git", "status", "--short", "-uno").stdout == "M  both.py\n"


@ONCE
@pytest.mark.parametrize(("hooks", "form"), [(True, "git add mine.py && git commit -qm x"), (False, "git add mine.py && git commit -qm x"),
                                             (True, "git commit -qam x")])
def test_what_a_dead_agent_has_staged_is_not_committed_by_another(beside: Stand, hooks: bool, form: str) -> None:
    """Before a person has judged it."""
    if hooks:
        put_hook(beside, "git diff --quiet")
    dead, agent = beside.agent(), beside.agent()
    assert dead.does("coord lock late.py && echo half > late.py && git add late.py") == 0, dead.said
    dead.process.kill()
    dead.process.wait()
    until(lambda: beside.asks("review", "list")["items"])
    assert agent.does(f"({form}) 2>&1") == 0, agent.said
    assert beside.run("git", "show", "--name-only", "--format=", "HEAD").stdout.split() == ["mine.py"]
    assert beside.run("git", "status", "--short", "-uno").stdout == "M  late.py\n"
    beside.coord("review", "keep", beside.asks("review", "list")["items"][0]["review"])
    assert agent.does("(git commit -qm y) 2>&1") == 0 and beside.run("git", "show", "--name-only", "--format=", "HEAD").stdout == "late.py\n"
