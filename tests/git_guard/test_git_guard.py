"""The guard in git's own hooks, with real git: what others hold is not committed, nor pushed half."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.hook.test_sessions import Claude
from tests.waiting import until

pytestmark = pytest.mark.slow

IDENTITY = {"GIT_AUTHOR_NAME": "Pat", "GIT_AUTHOR_EMAIL": "pat@localhost", "GIT_COMMITTER_NAME": "Pat",
            "GIT_COMMITTER_EMAIL": "pat@localhost", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


class Guarded:
    """A git repository with a first commit, a coordinator and the guard."""

    def __init__(self, repo: Repo) -> None:
        self.repo, self.root = repo, repo.root
        self.env: dict[str, str] = {}
        for name in ("a.txt", "b.txt", "lib/c.txt"):
            repo.write(name, "first\n")
        self.coord("init")
        self.git("add", "-A")
        self.git("commit", "-qm", "Start")
        self.coord("guard", "install")

    def coord(self, *args: str, code: int = 0, cwd: Path | None = None) -> str:
        done = self.repo.coord(*args, cwd=cwd, env={**IDENTITY, **self.env})
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def run(self, *args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *args], cwd=cwd or self.root, capture_output=True, text=True,
                              check=False, env={**os.environ, **IDENTITY, **self.env, **env}, timeout=60)

    def git(self, *args: str, cwd: Path | None = None, **env: str) -> str:
        done = self.run(*args, cwd=cwd, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *args: str, cwd: Path | None = None, **env: str) -> str:
        """What git's hook says; the index and the branch are as they were."""
        before = self.git("ls-files", "-s", cwd=cwd), self.git("rev-parse", "HEAD", cwd=cwd)
        done = self.run(*args, cwd=cwd, **env)
        assert done.returncode == 1, done.stdout + done.stderr
        assert before == (self.git("ls-files", "-s", cwd=cwd), self.git("rev-parse", "HEAD", cwd=cwd))
        return done.stderr

    def hold(self, agent: str, *resources: str, **more: Any) -> None:
        with self.repo.client() as client:
            client.call(rq.Acquire(agent=agent, resources=list(resources), **more))

    def hook(self, name: str = "pre-commit") -> Path:
        return self.root / ".git/hooks" / name

    def events(self) -> str:
        return self.coord("events")


@pytest.fixture
def here(repo: Repo) -> Guarded:
    return Guarded(repo)


# Commits ----------------------------------------------------------------------------------------


def test_a_commit_of_what_another_holds_is_refused_with_names_and_a_next_step(here: Guarded) -> None:
    here.hold("ann", "a.txt", description="ordering it")
    for name in ("a.txt", "b.txt"):
        here.repo.write(name, "second\n")
    here.git("add", "-A")
    said = here.refused("commit", "-m", "Mine")
    for part in ("a.txt: held by ann until ", 'Z: "ordering it"', "git restore --staged -- a.txt", "COORD_GUARD=off git commit"):
        assert part in said
    assert "b.txt" not in said and "Traceback" not in said
    here.git("restore", "--staged", "--", "a.txt")  # the step it names
    here.git("commit", "-qm", "Mine")
    assert here.git("show", "--name-only", "--format=").split() == ["b.txt"]


def test_an_agent_commits_its_own(here: Guarded) -> None:
    with here.repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
    here.hold("ann", "a.txt")
    here.hold("bob", "b.txt")
    here.repo.write("a.txt", "second\n")
    here.git("commit", "-qam", "By token", COORD_AGENT="ann", COORD_AGENT_TOKEN=token)
    here.repo.write("a.txt", "third\n")
    here.git("commit", "-qam", "By name", COORD_AGENT="ann")
    here.repo.write("b.txt", "second\n")
    assert "held by bob" in here.refused("commit", "-am", "x", COORD_AGENT="ann", COORD_AGENT_TOKEN=token)
    assert "unknown" in here.refused("commit", "-am", "x", COORD_AGENT="ann", COORD_AGENT_TOKEN="0" * 32)


def test_a_commit_that_concerns_nobody_else_needs_no_whole_check(here: Guarded) -> None:
    """A bare interpreter tells that; under this setting no other one starts."""
    bare = {"PYTHONHOME": "/nowhere"}
    here.hold("ann", "a.txt")
    for name in ("a.txt", "b.txt", "ü b.txt", "lib/c.txt"):
        here.repo.write(name, "changed\n")
    (here.root / "link").symlink_to("a.txt")
    here.git("commit", "-qm", "mine", "--", "b.txt", **bare)
    here.git("add", "ü b.txt", "lib", "link")
    here.git("commit", "-qm", "more", cwd=here.root / "lib", **bare)
    here.git("commit", "-q", "--allow-empty", "-m", "none", **bare)
    here.git("worktree", "add", "-q", "../side", "-b", "side")
    (here.root / "../side/b.txt").write_text("aside\n")
    here.git("commit", "-qam", "aside", cwd=here.root / "../side", **bare)
    for words in (("-am", "x"), ("-m", "x", "--", "a.txt")):
        assert here.run("commit", *words, **bare).returncode == 1
        assert "held by ann" in here.refused("commit", *words)


def test_an_agents_session_is_known_by_its_own_variable(here: Guarded) -> None:
    with here.repo.client() as client:
        name = client.call(rq.Join(profile="claude-code", session="1234abcd")).agent
    here.hold(name, "a.txt")
    here.repo.write("a.txt", "second\n")
    assert name in here.refused("commit", "-am", "A person's")
    assert name in here.refused("commit", "-am", "x", CLAUDE_CODE_SESSION_ID="another-9999")
    here.git("commit", "-qam", "Its own", CLAUDE_CODE_SESSION_ID="1234abcd")


TWO = "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"


@pytest.mark.parametrize(("changed", "passes"), [
    (TWO.replace("return 1", "return 10"), True), (TWO.replace("return 2", "return 20"), False),
    (TWO.replace("def g", "def h"), False), ("import sys\n" + TWO, False), (None, False),
])
@pytest.mark.parametrize("command", [("commit", "-qam", "x"), ("commit", "-qm", "x"), ("commit", "-qm", "x", "--", "two.py")])
def test_a_region_that_another_holds_and_nobody_has_changed_stops_no_commit(
    here: Guarded, changed: str | None, passes: bool, command: tuple[str, ...],
) -> None:
    """Two share a file: each commits it when its own part is done, as long as the other's is as it was."""
    here.repo.write("two.py", TWO)
    here.git("add", "two.py")
    here.git("commit", "-qm", "Two")
    here.hold("bob", "two.py::g")
    if changed is None:
        here.git("rm", "-q", "two.py")
    else:
        here.repo.write("two.py", changed)
        here.git("add", "two.py")
    if command == ("commit", "-qm", "x") and passes:
        here.repo.write("two.py", changed.replace("return 2", "return 20"))  # of which the index has nothing
    if passes:
        here.git(*command)
    else:
        said = here.refused(*command)
        assert "two.py (as two.py::g): held by bob" in said and "; of two.py your own parts alone: git add -p, then git commit" in said


def test_a_sub_agent_commits_what_its_parent_holds_but_not_the_other_way(here: Guarded) -> None:
    with here.repo.client() as client:
        client.call(rq.Register(agent="ann"))
        client.call(rq.Register(agent="ann.sub", parent="ann"))
    here.hold("ann", "a.txt")
    here.hold("ann.sub", "b.txt")
    here.repo.write("a.txt", "second\n")
    here.git("commit", "-qam", "x", COORD_AGENT="ann.sub")
    here.repo.write("b.txt", "second\n")
    assert "held by ann.sub" in here.refused("commit", "-am", "x", COORD_AGENT="ann")


@pytest.mark.parametrize("change", [
    ("mv", "a.txt", "moved.txt"), ("mv", "b.txt", "new.txt"), ("rm", "-q", "a.txt"), ("rm", "-q", "lib/c.txt"),
])
def test_renames_and_deletions_touch_both_names(here: Guarded, change: tuple[str, ...]) -> None:
    here.hold("ann", "a.txt", "new.txt", "lib/")
    here.git(*change)
    said = here.refused("commit", "-m", "x")
    assert "held by ann" in said
    assert ("lib/c.txt (as lib/)" in said) is (change[-1] == "lib/c.txt")


@pytest.mark.parametrize(("held", "old", "new"), [("a.txt", "a.txt", "moved.txt"), ("lib/", "lib/c.txt", "away/c.txt"), ("lib/c.txt", "lib/c.txt", "away/c.txt")])
def test_a_file_that_its_lease_followed_to_another_name_is_not_removed_either(here: Guarded, held: str, old: str, new: str) -> None:
    here.repo.write("b.txt", "second\n")
    here.git("add", "b.txt")
    here.hold("ann", held)
    here.git("mv", old.partition("/")[0], new.partition("/")[0])
    until(lambda: new.partition("/")[0] in here.coord("locks"))  # the watcher has seen it
    said = here.refused("commit", "-m", "x")
    assert f"  {old}: held by ann" in said.replace(" (as lib/)", "") and f"  {new}" in said, said
    (step,) = [line for line in said.splitlines() if line.startswith("  next: ")]
    here.git("restore", "--staged", "--", new)
    said = here.refused("commit", "-m", "x")
    assert f"  {old}" in said and f"restore --staged -- {old} " in said, said
    here.git("add", "-A")
    here.git(*step.removeprefix("  next: git ").partition("   (")[0].split())
    here.git("commit", "-qm", "x")
    assert here.git("show", "--name-only", "--format=").split() == ["b.txt"]


def test_names_that_look_like_something_else(here: Guarded) -> None:
    names = ["app/[id].tsx", "ke:y", "with space.txt", "ü.txt", "quo'te\".txt", "-dash"]
    for name in names:
        here.repo.write(name, "x\n")
    here.hold("ann", "app/", "with space.txt", "ü.txt")
    here.git("add", "-A")
    said = here.refused("commit", "-m", "x")
    for name in ("app/[id].tsx", "with space.txt", "ü.txt"):
        assert f"{name}" in said
    assert "ke:y" not in said and "quo" not in said and "-dash" not in said
    here.git("restore", "--staged", "--", "app/[id].tsx", "with space.txt", "ü.txt")
    here.git("commit", "-qm", "x")


def test_reading_leases_keys_and_ended_leases_stop_no_commit(here: Guarded) -> None:
    here.hold("ann", "a.txt", mode="shared")
    here.hold("ann", "key:a.txt")
    here.hold("bob", "b.txt")
    with here.repo.client() as client:
        client.call(rq.Release(agent="bob", resources=["b.txt"]))
    for name in ("a.txt", "b.txt"):
        here.repo.write(name, "second\n")
    here.git("commit", "-qam", "x")


def test_what_a_merge_brings_was_committed_there(here: Guarded) -> None:
    here.git("checkout", "-qb", "side")
    here.repo.write("a.txt", "side\n")
    here.repo.write("b.txt", "side\n")
    here.git("commit", "-qam", "Side")
    here.git("checkout", "-q", "-")
    here.repo.write("b.txt", "main\n")
    here.git("commit", "-qam", "Main")
    here.hold("ann", "a.txt")
    assert here.run("merge", "side").returncode == 1  # b.txt conflicts; a.txt comes as it is there
    here.repo.write("b.txt", "both\n")
    here.git("add", "b.txt")
    here.git("commit", "-qm", "Merge")
    here.hold("ann", "b.txt")
    here.git("checkout", "-q", "side")
    here.repo.write("b.txt", "again\n")
    assert "b.txt: held by ann" in here.refused("commit", "-am", "x")


@pytest.mark.parametrize(("doing", "begins"), [
    ("merge", ["merge", "side"]), ("cherry-pick", ["cherry-pick", "side"]), ("rebase", ["rebase", "side"])])
def test_in_the_middle_of_a_merge_nobody_is_told_to_leave_a_part_of_it_out(here: Guarded, doing: str, begins: list[str]) -> None:
    """git would take it for done."""
    here.git("checkout", "-qb", "side")
    here.repo.write("b.txt", "side\n")
    here.git("commit", "-qam", "Side")
    here.git("checkout", "-q", "-")
    here.repo.write("b.txt", "main\n")
    here.git("commit", "-qam", "Main")
    here.hold("bob", "b.txt")
    assert here.run(*begins).returncode != 0
    here.repo.write("b.txt", "both\n")
    here.git("add", "b.txt")
    said = here.refused("commit", "-qm", "Both")
    assert f"git {doing} --abort" in said and "commit when they are free" in said and "--staged" not in said


def test_symlinks_are_not_what_they_lead_to(here: Guarded) -> None:
    here.hold("ann", "a.txt")
    (here.root / "link").symlink_to("a.txt")
    here.git("add", "link")
    here.git("commit", "-qm", "A link")
    (here.root / "link").unlink()
    here.git("commit", "-qam", "No link")


@pytest.mark.parametrize("how", ["file", "case", "dangling", "outside", "circle", "above", "within"])
@pytest.mark.parametrize("who", [None, "bob"])
def test_a_link_in_the_place_of_what_is_held_is_not_committed(here: Guarded, how: str, who: str | None) -> None:
    """git's entry keeps its name; where the link leads is another's business."""
    here.repo.write("docs/api.md", "one\n")
    if how == "case":
        here.repo.write("docs/API.md", "another\n")
    here.git("add", "docs")
    here.git("commit", "-qm", "docs")
    here.hold("ann", "docs/" if how == "within" else "docs/api.md")
    docs, file = here.root / "docs", here.root / "docs/api.md"
    if how == "above":
        docs.rename(here.root / "alt")
        docs.symlink_to("alt")
        here.git("add", "-A", "docs")
    else:
        place = docs / "new" if how == "within" else file
        place.unlink(missing_ok=True)
        place.symlink_to({"file": "../a.txt", "case": "API.md", "dangling": "nothing", "outside": "/etc/passwd", "circle": "api.md", "within": "../a.txt"}[how])
        here.git("add", "docs")
    said = here.refused("commit", "-qm", "x", **({"COORD_AGENT": who} if who else {}))
    assert ("docs/new" if how == "within" else "docs/api.md") in said and "held by ann" in said
    here.git("commit", "-qm", "x", COORD_AGENT="ann")


# Going on over it -------------------------------------------------------------------------------


def test_a_person_goes_on_over_it_which_is_noted_and_told(here: Guarded) -> None:
    with here.repo.client() as client:
        client.call(rq.Register(agent="ann"))
        here.hold("ann", "a.txt")
        for name in ("a.txt", "b.txt"):
            here.repo.write(name, "second\n")
        here.git("commit", "-qam", "Over it", COORD_GUARD="off")
        noted = [line for line in here.events().splitlines() if "over the guard (commit)" in line]
        assert len(noted) == 1 and "paths a.txt, holders ann" in noted[0]
        (told,) = client.call(rq.Heartbeat(agent="ann")).notices
        assert "a.txt" in told.text and "over the guard" in told.text and "b.txt" not in told.text
        here.repo.write("b.txt", "third\n")
        here.git("commit", "-qam", "Nobody's", COORD_GUARD="off")
        assert here.events().count("over the guard (commit)") == 1
    here.repo.write("a.txt", "third\n")
    here.git("commit", "-qam", "Unseen", "--no-verify")


def test_an_agent_does_not_go_on_over_it(here: Guarded) -> None:
    with here.repo.client() as client:
        token = client.call(rq.Register(agent="bob")).token
    here.hold("ann", "a.txt")
    here.repo.write("a.txt", "second\n")
    for who in ({"COORD_AGENT": "bob"}, {"COORD_AGENT": "bob", "COORD_AGENT_TOKEN": token}, {"CODEX_SESSION_ID": "x"}):
        assert "held by ann" in here.refused("commit", "-am", "x", COORD_GUARD="off", **who)
    assert "over the guard" not in here.events()


def test_without_a_coordinator_it_is_started_or_said(here: Guarded) -> None:
    here.hold("ann", "a.txt")
    here.repo.write("a.txt", "second\n")
    here.coord("down")
    assert "held by ann" in here.refused("commit", "-am", "x")
    here.coord("down")
    here.repo.write("coord.toml", "[leases]\nttl_s = 'never'\n")
    said = here.refused("commit", "-am", "x")
    assert "coord.toml" in said and "COORD_GUARD=off" in said and "Traceback" not in said
    done = here.run("commit", "-qam", "x", COORD_GUARD="off")
    assert done.returncode == 0 and "not noted" in done.stderr
    (here.root / "coord.toml").unlink()


@pytest.mark.parametrize("name", ["pre-commit", "pre-push"])
def test_a_guard_whose_program_is_gone_says_so(here: Guarded, name: str) -> None:
    """As after `pip uninstall`: its Python is there still."""
    hook = here.root / ".git/hooks" / name
    hook.write_bytes(hook.read_bytes().replace(b"/git_guard/__main__.py", b"/git_guard/gone.py"))
    for off, code in (("", 1), ("off", 0)):
        ran = subprocess.run(["sh", str(hook), "origin", "x"], cwd=here.root, env={**os.environ, "COORD_GUARD": off}, input="", text=True,
                             capture_output=True, check=False)
        assert ran.returncode == code and ("program is gone" in ran.stderr) is (code == 1), ran.stderr
        assert "Traceback" not in ran.stderr and "ModuleNotFound" not in ran.stderr


def test_a_guard_whose_python_is_gone_says_so(here: Guarded) -> None:
    hook = here.hook()
    hook.write_bytes(hook.read_bytes().replace(sys.executable.encode(), b"/gone/python"))
    here.repo.write("b.txt", "second\n")
    said = here.refused("commit", "-am", "x")
    assert "/gone/python" in said and "coord guard install" in said
    assert "old" in here.coord("guard", "check", code=1)
    here.git("commit", "-qam", "x", COORD_GUARD="off")
    here.coord("guard", "install")
    here.coord("guard", "check")


def test_a_repository_that_does_not_use_coord_commits_as_ever(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo()
    here = Guarded(repo)
    here.coord("down")
    shutil.rmtree(repo.state.path)
    repo.write("a.txt", "second\n")
    here.git("commit", "-qam", "x")
    assert not repo.state.path.exists()


# Pushes -----------------------------------------------------------------------------------------


@pytest.fixture
def remote(here: Guarded, tmp_path: Path) -> Path:
    bare = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    here.git("remote", "add", "origin", str(bare))
    return bare


def at_remote(here: Guarded) -> str:
    return here.git("ls-remote", "origin")


def test_half_of_anothers_work_is_not_pushed(here: Guarded, remote: Path) -> None:
    here.git("push", "-q", "origin", "HEAD:main")
    first = at_remote(here)
    here.hold("ann", "a.txt", "lib/", description="ordering them")
    here.repo.write("a.txt", "half\n")
    here.git("commit", "-qam", "Half, past the guard", "--no-verify")
    here.repo.write("a.txt", "half and more\n")
    for target in ("main", "refs/heads/new"):  # of the second, nothing is there to compare with
        said = here.refused("push", "-q", "origin", f"HEAD:{target}")
        assert "a.txt: held by ann until" in said and "ordering them" in said
        assert "COORD_GUARD=off git push" in said
    assert at_remote(here) == first
    here.git("push", "-q", "origin", "HEAD:main", COORD_AGENT="ann")
    here.git("push", "-q", "origin", "--delete", "main")
    here.git("push", "-q", "origin", "HEAD:main", COORD_GUARD="off")
    assert "over the guard (push): paths a.txt, holders ann" in here.events()
    here.git("push", "-q", "origin", "--delete", "main")
    here.repo.write("a.txt", "half\n")
    here.git("push", "-q", "origin", "HEAD:main")  # it is as its holder has it: whole


def test_of_a_file_that_is_held_in_parts_those_are_not_pushed_half(here: Guarded, remote: Path) -> None:
    text = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
    here.repo.write("p.py", text)
    here.git("add", "p.py")
    here.git("commit", "-qm", "Parts", GIT_COMMITTER_DATE="2020-01-01T00:00:00Z")
    here.git("push", "-q", "origin", "HEAD:main")
    here.hold("ann", "p.py::one")
    here.repo.write("p.py", text.replace("return 2", "return 22"))
    here.git("commit", "-qam", "Of two alone")
    here.repo.write("p.py", text.replace("return 2", "return 22").replace("return 1", "return 'half'"))
    here.git("push", "-q", "origin", "HEAD:main")  # ann's part is in no commit
    here.git("commit", "-qam", "Half of one, past the guard", "--no-verify")
    here.git("push", "-q", "origin", "HEAD:refs/heads/as-it-is")  # as its holder has it
    here.repo.write("p.py", text.replace("return 2", "return 22").replace("return 1", "return 'more'"))
    assert "p.py (as p.py::one): held by ann" in here.refused("push", "-q", "origin", "HEAD:main")


def test_what_was_committed_before_the_lease_is_pushed(here: Guarded, remote: Path) -> None:
    here.git("push", "-q", "origin", "HEAD:main")
    here.repo.write("a.txt", "second\n")
    long_ago = "2020-01-01T00:00:00Z"
    here.git("commit", "-qam", "Whole", GIT_COMMITTER_DATE=long_ago)
    here.hold("ann", "a.txt")
    here.repo.write("a.txt", "ann's, unfinished\n")
    here.git("push", "-q", "origin", "HEAD:main")
    here.git("push", "-q", "origin", "HEAD:main")  # nothing to push at all


def test_a_holder_in_a_worktree_of_its_own_is_looked_at_there(
    here: Guarded, remote: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "linked"
    here.git("worktree", "add", "-q", str(tree), "-b", "side")
    here.hold("ann", str(tree / "a.txt"))
    here.repo.write("a.txt", "second\n")
    here.git("commit", "-qam", "Past the guard", "--no-verify")
    assert "a.txt: held by ann" in here.refused("push", "-q", "origin", "HEAD:main")
    (tree / "a.txt").write_text("second\n")
    here.git("push", "-q", "origin", "HEAD:main")


# Installing -------------------------------------------------------------------------------------

SCRIPTS: dict[str, bytes] = {
    "sh": b"#!/bin/sh\necho own \"$0\" \"$@\" >> hook.log\ncat >> hook.log\n[ ! -e stop ]\n",
    "bash, strict": b"#!/usr/bin/env bash\nset -euo pipefail\necho own \"${BASH_SOURCE[0]}\" >> hook.log; cat >> hook.log\n[ ! -e stop ]\n",
    "no shebang, no newline": b"echo own $0 >> hook.log; cat >> hook.log; test ! -e stop",
    "python": (b"#!/usr/bin/env python3\nimport os, sys\nopen('hook.log', 'a').write('own ' + sys.argv[0] + sys.stdin.read())\n"
               b"sys.exit(os.path.exists('stop'))\n"),
    "env -S": b"#!/usr/bin/env -S sh -eu\necho own $0 >> hook.log; cat >> hook.log\n[ ! -e stop ]\n",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_hook_that_was_there_runs_and_may_stop_it_and_comes_back_byte_by_byte(
    script: str, repo: Repo, tmp_path: Path
) -> None:
    hooks = {}
    for name in ("pre-commit", "pre-push"):
        hooks[name] = repo.root / ".git/hooks" / name
        hooks[name].parent.mkdir(exist_ok=True)
        hooks[name].write_bytes(SCRIPTS[script])
        hooks[name].chmod(0o754)
    here = Guarded(repo)
    log = repo.root / "hook.log"
    log.unlink()
    assert "guarded already" in here.coord("guard", "install")
    assert all(one["state"] == "guarded" for one in json.loads(here.coord("guard", "check", "--json"))["items"])
    here.repo.write("b.txt", "second\n")
    here.git("commit", "-qm", "x", "b.txt", GIT_COMMITTER_DATE="2020-01-01T00:00:00Z")
    assert log.read_text().count("own") == 1
    if script != "python":
        assert ".git/hooks/pre-commit" in log.read_text()
    log.unlink()
    (repo.root / "stop").touch()
    here.repo.write("b.txt", "third\n")
    assert "coord" not in here.refused("commit", "-m", "x", "b.txt")
    (repo.root / "stop").unlink()
    log.unlink()
    here.hold("ann", "b.txt")
    assert "held by ann" in here.refused("commit", "-m", "x", "b.txt")
    assert not log.exists()  # ours goes first: nothing else has begun
    bare = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    here.git("push", "-q", str(bare), "HEAD:main")
    head = here.git("rev-parse", "HEAD").strip()
    assert f"HEAD {head} refs/heads/main {'0' * 40}\n" in log.read_text()  # what git told it, whole
    here.coord("guard", "remove")
    for file in hooks.values():
        assert file.read_bytes() == SCRIPTS[script] and file.stat().st_mode & 0o777 == 0o754
    assert not (repo.root / ".git/hooks/coord-kept").exists()
    assert "in none" in here.coord("guard", "remove")


def test_a_hook_that_is_switched_off_stays_so(repo: Repo) -> None:
    hook = repo.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o644)
    here = Guarded(repo)
    here.repo.write("b.txt", "second\n")
    here.git("commit", "-qam", "x")
    here.coord("guard", "remove")
    assert hook.read_text() == "#!/bin/sh\nexit 1\n" and hook.stat().st_mode & 0o777 == 0o644


def test_a_hook_that_is_a_link_is_called_where_it_leads(repo: Repo) -> None:
    repo.write("scripts/check", "#!/bin/sh\ntouch linked\n")
    (repo.root / "scripts/check").chmod(0o755)
    hook = repo.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.symlink_to("../../scripts/check")
    here = Guarded(repo)
    (repo.root / "linked").unlink(missing_ok=True)
    here.repo.write("b.txt", "second\n")
    here.git("commit", "-qam", "x")
    assert (repo.root / "linked").exists()
    assert (repo.root / "scripts/check").read_text() == "#!/bin/sh\ntouch linked\n"
    here.coord("guard", "remove")
    assert os.readlink(hook) == "../../scripts/check"


@pytest.mark.parametrize("where", ["top", "end"])
def test_lines_that_a_person_adds_to_the_guards_hook_stay(here: Guarded, where: str) -> None:
    hook = here.hook()
    text = hook.read_text().removeprefix("#!/bin/sh\n")
    hook.write_text("#!/bin/sh\n" + ("echo mine\n" + text if where == "top" else text + "echo mine\n"))
    here.coord("guard", "remove")
    assert hook.read_text() == "#!/bin/sh\necho mine\n" and os.access(hook, os.X_OK)
    here.coord("guard", "install")
    here.hold("ann", "b.txt")
    here.repo.write("b.txt", "second\n")
    assert "held by ann" in here.refused("commit", "-m", "x", "b.txt")
    here.coord("guard", "remove")
    assert hook.read_text() == "#!/bin/sh\necho mine\n"


def test_lines_beside_a_hook_that_was_kept_are_left_to_a_person(repo: Repo) -> None:
    hook = repo.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/usr/bin/env python3\n")
    hook.chmod(0o755)
    here = Guarded(repo)
    with hook.open("a") as file:
        file.write("echo mine\n")
    done = here.repo.coord("guard", "remove")
    assert done.returncode != 0 and "coord-kept" in done.stderr
    assert "echo mine" in hook.read_text() and (hook.parent / "coord-kept/pre-commit").exists()


def test_without_hooks_before_nothing_is_left_behind(here: Guarded) -> None:
    before = sorted(p.name for p in here.hook().parent.iterdir())
    assert {"pre-commit", "pre-push"} <= set(before)
    here.coord("guard", "remove")
    assert sorted(p.name for p in here.hook().parent.iterdir()) == [
        name for name in before if name not in ("pre-commit", "pre-push")]


HUSKY = '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n'
HUSKY_H = '#!/usr/bin/env sh\nn=$(basename "$0")\ns=$(dirname "$(dirname "$0")")/$n\n[ ! -f "$s" ] && exit 0\nsh -e "$s" "$@"\n'


def test_husky(repo: Repo) -> None:
    for name, text in (("_/pre-commit", HUSKY), ("_/pre-push", HUSKY), ("_/h", HUSKY_H),
                       ("pre-commit", "echo husky >> hook.log\n[ ! -e stop ]\n")):
        repo.write(f".husky/{name}", text)
    (repo.root / ".husky/_/pre-commit").chmod(0o755)
    repo.write(".husky/_/.gitignore", "*\n")
    subprocess.run(["git", "-C", str(repo.root), "config", "core.hooksPath", ".husky/_"], check=True)
    here = Guarded(repo)
    assert "npm install" in here.coord("guard", "install")
    assert ".husky/_/pre-commit: guarded" in here.coord("guard", "check")
    (repo.root / "hook.log").unlink()
    here.repo.write("b.txt", "second\n")
    here.git("commit", "-qam", "x")
    assert (repo.root / "hook.log").read_text() == "husky\n"
    (repo.root / "stop").touch()
    here.repo.write("b.txt", "third\n")
    here.refused("commit", "-am", "x")
    here.hold("ann", "b.txt")
    assert "held by ann" in here.refused("commit", "-am", "x")
    here.coord("guard", "remove")
    assert (repo.root / ".husky/_/pre-commit").read_text() == HUSKY


def test_tracked_hooks_are_remarked_upon(repo: Repo) -> None:
    repo.write(".githooks/pre-commit", "#!/bin/sh\nexit 0\n")
    (repo.root / ".githooks/pre-commit").chmod(0o755)
    subprocess.run(["git", "-C", str(repo.root), "config", "core.hooksPath", ".githooks"], check=True)
    here = Guarded(repo)
    assert "tracked by git" in here.coord("guard", "install")
    here.coord("guard", "remove")
    assert here.git("diff", "--name-only") == ""


def test_a_linked_worktree_is_guarded_as_the_main_one(here: Guarded, tmp_path: Path) -> None:
    tree = tmp_path / "linked"
    here.git("worktree", "add", "-q", str(tree), "-b", "side")
    here.hold("ann", "a.txt")
    (tree / "a.txt").write_text("second\n")
    (tree / "b.txt").write_text("second\n")
    assert "a.txt: held by ann" in here.refused("commit", "-am", "x", cwd=tree)
    here.git("commit", "-qm", "x", "b.txt", cwd=tree)
    here.git("commit", "-qam", "x", cwd=tree, COORD_AGENT="ann")
    assert "guarded" in here.coord("guard", "check", cwd=tree)
    here.coord("guard", "remove", cwd=tree)
    assert not here.hook().exists()


def test_from_a_folder_below_and_with_a_first_commit_still_to_come(repo: Repo) -> None:
    repo.write("lib/c.txt", "first\n")
    repo.coord("init")
    assert repo.coord("guard", "install", cwd=repo.root / "lib").returncode == 0
    with repo.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["lib/c.txt"]))
    env = {**os.environ, **IDENTITY}
    subprocess.run(["git", "add", "c.txt"], cwd=repo.root / "lib", check=True, env=env)
    done = subprocess.run(["git", "commit", "-m", "x"], cwd=repo.root / "lib", capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 1 and "lib/c.txt: held by ann" in done.stderr
    check = repo.coord("guard", "check", cwd=repo.root / "lib")
    assert check.returncode == 3 and "held by ann" in check.stdout


def test_where_there_is_no_git_or_no_hooks(make_repo: Callable[..., Repo]) -> None:
    plain = make_repo("plain", git=False)
    for verb in ("install", "check", "remove"):
        done = plain.coord("guard", verb)
        assert done.returncode == 2 and "not in a git repository" in done.stderr
    off = make_repo("off")
    subprocess.run(["git", "-C", str(off.root), "config", "core.hooksPath", "/dev/null"], check=True)
    done = off.coord("guard", "install")
    assert done.returncode == 2 and "switched off" in done.stderr


def test_a_path_of_hooks_that_is_meant_from_the_top_is_found_from_below(here: Guarded) -> None:
    here.coord("guard", "remove")
    here.git("config", "core.hooksPath", ".hooks")
    here.coord("guard", "install", cwd=here.root / "lib")
    assert (here.root / ".hooks/pre-commit").exists() and not (here.root / "lib/.hooks").exists()
    assert "guarded" in here.coord("guard", "check", cwd=here.root / "lib")
    assert "guarded" in here.coord("guard", "check")


def test_a_check_asks_git_no_more_than_it_has_to(here: Guarded, tmp_path: Path) -> None:
    """Each of its processes is a third of an interpreter's start."""
    real, told = shutil.which("git"), tmp_path / "told"
    shim = tmp_path / "bin/git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\n[ -z "$COUNTED" ] || echo "$@" >> {told}\nexec {real} "$@"\n')
    shim.chmod(0o755)
    here.env["PATH"] = f"{shim.parent}:{os.environ['PATH']}"
    here.repo.write("b.txt", "second\n")
    here.git("add", "b.txt")
    here.coord("status")  # the coordinator asks git, too, and is not counted
    here.env["COUNTED"] = "yes"
    here.coord("guard", "check")
    assert len(told.read_text().splitlines()) == 2, told.read_text()


def test_a_check_in_the_middle_of_a_merge_looks_at_what_differs_from_both(here: Guarded) -> None:
    here.git("checkout", "-qb", "side")
    here.repo.write("a.txt", "theirs\n")
    here.git("commit", "-qam", "Side")
    here.git("checkout", "-q", "-")
    here.repo.write("b.txt", "ours\n")
    here.git("commit", "-qam", "Ours")
    here.git("merge", "--no-commit", "--no-ff", "side")
    here.hold("ann", "a.txt")
    assert "may be committed" in here.coord("guard", "check"), "what the branch brings was committed there"
    here.repo.write("a.txt", "neither\n")
    here.git("add", "a.txt")
    assert "a.txt: held by ann" in here.coord("guard", "check", code=3)


# Agents of a person, through their hooks ---------------------------------------------------------


def test_who_cannot_tell_it_themselves_are_named_by_their_hooks(here: Guarded) -> None:
    """A sub-agent has its parent's environment; one of OpenCode has none that tells it."""
    for key, value in (("user.name", "Pat"), ("user.email", "pat@localhost")):
        here.git("config", key, value)
    sub = Claude(here.repo, "ann00000", "s1")
    assert sub.edit("a.txt", "the sub-agent's\n") == ""
    assert "held by claude-code-ann00000.s1" in here.refused(
        "commit", "-m", "x", "a.txt", CLAUDE_CODE_SESSION_ID="ann00000")
    _, code, said = sub.shell("git commit -qm 'Its own' -- a.txt")
    assert code == 0, said
    other = Claude(here.repo, "1a142f64", profile="opencode:before")

    def before(tool: str, **given: str) -> Any:
        return other.hook("before", tool_name=tool, tool_input=given)

    before("write", filePath=str(here.root / "b.txt"), content="x")
    here.repo.write("b.txt", "opencode's\n")
    assert "held by opencode-1a142f64" in here.refused("commit", "-m", "x", "b.txt")
    assert before("bash", command="cd . && git commit -qm 'Its own' -- b.txt") == {}
    code, _, errors = other.process.runs("cd . && git commit -qm 'Its own' -- b.txt")
    assert code == 0, errors
    assert here.git("log", "--format=%s", "-2").split("\n")[:2] == ["Its own", "Its own"]


def test_what_it_says_to_type_can_be_typed_where_git_was(here: Guarded) -> None:
    here.hold("maria", "lib/c.txt")
    here.repo.write("lib/c.txt", "hers\n")
    below = here.root / "lib"
    for words in (("-qam", "x"), ("-qm", "x", "--", "c.txt")):
        said = here.refused("commit", *words, cwd=below)
        assert "next: name your own files: git commit -- FILE…   (or wait" in said and "--staged" not in said, said
    here.git("add", "c.txt", cwd=below)
    said = here.refused("commit", "-qm", "x", cwd=below)
    assert "git restore --staged -- :/lib/c.txt" in said, said
    here.git("restore", "--staged", "--", ":/lib/c.txt", cwd=below)
    here.git("add", "lib/c.txt")
    said = here.refused("commit", "-qm", "x")
    assert "git restore --staged -- lib/c.txt" in said and "If you are maria: COORD_AGENT=maria git commit" in said, said
    here.git("commit", "-qm", "hers", COORD_AGENT="maria")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files another user's")
def test_a_person_whose_coordinator_it_is_not_commits_and_is_told(here: Guarded) -> None:
    here.coord("down")
    for path in (here.root / ".coord", *(here.root / ".coord").rglob("*")):
        os.lchown(path, 54321, 54321)
    here.repo.write("a.txt", "second\n")
    done = here.run("commit", "-qam", "mine")
    assert done.returncode == 0 and "the coordinator here is user 54321's and tells you nothing" in done.stderr, done
    here.repo.write("a.txt", "third\n")
    assert "stopped git" in here.refused("commit", "-qam", "an agent's", COORD_AGENT_TOKEN="x")
    assert "FOREIGN" in here.coord("guard", "install", code=6)
    said = here.coord("init", "--agent", "claude-code", "--yes", code=6)
    assert "FOREIGN" in said and "makes" not in said and not (here.root / ".claude").exists()
    for path in (here.root / ".coord", *(here.root / ".coord").rglob("*")):
        os.lchown(path, 0, 0)


@pytest.mark.parametrize("overlap", ["tell", "ignore"])
def test_a_commit_tells_what_another_working_tree_changes_too(make_repo: Callable[..., Repo], tmp_path: Path, overlap: str) -> None:
    here = Guarded(make_repo(config=f'[worktrees]\noverlap = "{overlap}"\n'))
    here.git("worktree", "add", "-q", "-b", "w", str(tmp_path / "w"))
    (tmp_path / "w/a.txt").write_text("theirs\n")
    for path in ("a.txt", "b.txt"):
        here.repo.write(path, "mine\n")
    said = "" if overlap == "ignore" else f"coord: a.txt: in {here.git('branch', '--show-current').strip()} and in w; conflict: the lines of both\n"
    here.git("add", "-A")
    assert said in here.coord("guard", "check")
    assert here.run("commit", "-qm", "b", "b.txt").stderr == ""
    for place in (tmp_path / "w", here.root):
        done = here.run("commit", "-qam", "a", cwd=place)
        assert (done.returncode, done.stderr) == (0, said)
