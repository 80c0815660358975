"""A function that is not there yet, by what the refusals say to type: leased, added, committed with another."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Repo

BEFORE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"


def texts(folder: Path) -> None:
    (folder / "both").write_text("def g():\n    return 22\n\n\ndef extra():\n    return 3\n")
    (folder / "g").write_text("def g():\n    return 22\n")
    (folder / "extra").write_text("def extra():\n    return 3\n")


@pytest.mark.parametrize("more", [(), ("--after", "-", "--after", ""), ("--after", "-", "--after", "f")])
def test_the_way_that_is_told_ends_well(repo: Repo, tmp_path: Path, more: tuple[str, ...]) -> None:
    texts(tmp_path)
    repo.write("a.py", BEFORE)
    assert repo.coord("lock", "a.py::g", "--agent", "bob").returncode == 0
    refused = repo.coord("commit-region", "a.py::g", "--from", str(tmp_path / "both"), "--agent", "bob")
    assert refused.returncode != 0 and "Commit a.py::extra with it" in refused.stderr and "(as new: extra)" in refused.stderr, refused
    unknown = repo.coord("lock", "a.py::extra", "--agent", "bob")
    assert unknown.returncode == 7 and "coord lock --new a.py::extra --agent bob" in unknown.stderr, unknown
    assert repo.coord("lock", "--new", "a.py::extra", "--agent", "bob").returncode == 0
    done = repo.coord("commit-region", "a.py::g", "a.py::extra", "--from", str(tmp_path / "g"), "--from",
                      str(tmp_path / "extra"), *more, "--agent", "bob")
    assert done.returncode == 0, done
    made = repo.read("a.py")
    assert "return 22" in made and "return 3" in made
    assert (made.index("extra") < made.index("def g")) == ("f" in more)


@pytest.mark.parametrize(("more", "said", "then"), [
    (("--from", "g"), "2 regions, and `--from` is given 1 time.", "`--from FILE` once for each region"),
    ((), "2 regions, and `--from` is given 0 times.", "`--from FILE` once"),
    (("--from", "g", "--from", "extra", "--hash", "x"), "`--hash` is given 1 time.", "`--hash HASH` once"),
    (("--from", "g", "--from", "extra", "--after", "g"), "`--after` is given 1 time.", "`-` for one that is there"),
])
def test_what_is_given_too_seldom_is_named(repo: Repo, more: tuple[str, ...], said: str, then: str) -> None:
    repo.write("a.py", BEFORE)
    texts(repo.root)
    done = repo.coord("commit-region", "a.py::g", "a.py::extra", *more, "--agent", "bob")
    assert done.returncode == 2 and said in done.stderr and then in done.stderr, done
    assert repo.read("a.py") == BEFORE


def test_one_that_is_added_without_a_lease_is_told_how_to_lease_it(repo: Repo) -> None:
    repo.write("a.py", BEFORE)
    texts(repo.root)
    repo.coord("lock", "a.py::g", "--agent", "bob")
    done = repo.coord("commit-region", "a.py::extra", "--from", "extra", "--after", "f", "--agent", "bob")
    assert "coord lock --new a.py::extra --agent bob" in done.stderr, done


@pytest.mark.parametrize("where", ["inner/tree", ".coord/worktrees/run/shell-1"])
def test_in_a_linked_worktree_a_region_is_named_as_in_the_main_one(repo: Repo, where: str) -> None:
    """Also where it lies within the repository's own folder, as those of a launch do."""
    repo.write("a.py", BEFORE)
    assert repo.coord("up").returncode == 0
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"],
                  ["worktree", "add", "-q", where, "-b", "other"]):
        subprocess.run(["git", *words], cwd=repo.root, check=True)
    tree = repo.root / where
    texts(tree)
    named = json.loads(repo.coord("regions", "a.py", "--json", cwd=tree).stdout)
    assert named["resource"] == "a.py", named
    assert repo.coord("lock", "a.py::g", "--agent", "bob", cwd=tree).returncode == 0
    done = repo.coord("commit-region", "a.py::g", "--from", "g", "--agent", "bob", cwd=tree)
    assert done.returncode == 0 and done.stdout.startswith("a.py::g"), done
    assert "return 22" in (tree / "a.py").read_text() and repo.read("a.py") == BEFORE


def test_no_text_at_all_is_no_removal(repo: Repo) -> None:
    """A command before it that failed would have taken the region away."""
    repo.write("a.py", BEFORE)
    repo.coord("lock", "a.py::g", "--agent", "bob")
    for text in ("", " \n"):
        done = repo.coord("commit-region", "a.py::g", "--agent", "bob", text=text)
        assert done.returncode == 2 and "--from /dev/null" in done.stderr and repo.read("a.py") == BEFORE, done
    assert repo.coord("commit-region", "a.py::g", "--agent", "bob", "--from", "/dev/null").returncode == 0
    assert "def g" not in repo.read("a.py")
