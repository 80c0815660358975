"""A plain `git commit` in a session, in a repository whose hooks would put others' work aside."""

from __future__ import annotations

from tests.namespaces.conftest import Stand

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
