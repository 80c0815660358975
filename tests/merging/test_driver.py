"""`coord merge-driver`: real git merges by region; whatever goes wrong, it merges as it would alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.cli.main import main
from coordinator.merging import installing

BASE = "import os\n\n\ndef a():\n    return 1\n"
FILE = "src dir/it's ü.py"


class Repo:
    """A repository whose two branches both add to one file, at one place."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main", ".")
        self.git("config", "user.name", "ann")
        self.git("config", "user.email", "ann@example.org")
        self.put(FILE, BASE)
        self.commit("base")
        self.git("checkout", "-q", "-b", "other")
        self.put(FILE, BASE + "\n\ndef c():\n    return 3\n")
        self.commit("other")
        self.git("checkout", "-q", "main")
        self.put(FILE, BASE + "\n\ndef b():\n    return 2\n")
        self.commit("ours")

    def git(self, *words: str, fails: bool = False) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=False)
        assert (done.returncode != 0) == fails, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def put(self, name: str, text: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def text(self, name: str = FILE) -> str:
        return (self.root / name).read_text()

    def both(self, name: str, ours: str, theirs: str, base: str = "") -> None:
        """Give a file these three versions on the two branches."""
        self.git("checkout", "-q", "main~1")
        self.put(name, base)
        self.commit("base of " + name)
        at = self.git("rev-parse", "HEAD").strip()
        for branch, text in (("other", theirs), ("main", ours)):
            self.git("checkout", "-q", "-B", branch, at)
            self.put(name, text)
            self.commit(branch)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    made = Repo(tmp_path / "a repo")
    monkeypatch.chdir(made.root)
    return made


BOTH = BASE + "\n\ndef b():\n    return 2\n\n\ndef c():\n    return 3\n"


def test_merge_rebase_and_cherry_pick(repo: Repo) -> None:
    assert "CONFLICT" in repo.git("merge", "other", "-m", "m", fails=True)
    repo.git("merge", "--abort")
    assert main(["merge-driver", "install"]) == 0
    start = repo.git("rev-parse", "HEAD").strip()
    assert "merged by region" in repo.git("merge", "other", "-m", "m")
    assert repo.text() == BOTH
    repo.git("reset", "-q", "--hard", start)
    repo.git("cherry-pick", "other")
    assert repo.text() == BOTH
    repo.git("reset", "-q", "--hard", start)
    repo.git("rebase", "-q", "other")
    assert sorted(repo.text().split("\n")) == sorted(BOTH.split("\n"))
    assert not [one for one in os.listdir(repo.root) if one.startswith(".merge_file")]
    assert repo.git("status", "--porcelain") == ""


def test_in_a_linked_worktree_too(repo: Repo, tmp_path: Path) -> None:
    assert main(["merge-driver", "install"]) == 0
    repo.git("worktree", "add", "-q", str(tmp_path / "linked one"), "-b", "third", "main")
    done = subprocess.run(["git", "merge", "other", "-m", "m"], cwd=tmp_path / "linked one", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "linked one" / FILE).read_text() == BOTH


def test_a_conflict_is_one_to_git(repo: Repo) -> None:
    assert main(["merge-driver", "install"]) == 0
    repo.both("x.py", BASE.replace("1", "2"), BASE.replace("1", "3"), BASE)
    assert "conflict in a: both changed its body" in repo.git("merge", "other", "-m", "m", fails=True)
    assert repo.git("diff", "--name-only", "--diff-filter=U").strip() == "x.py"
    assert "<<<<<<< " in repo.text("x.py") and repo.text("x.py").count("return") == 2


def test_install_is_idempotent_and_leaves_nothing(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    def state() -> dict[str, bytes]:
        return {str(one): one.read_bytes() for one in sorted((repo.root / ".git").rglob("*")) if one.is_file()}

    attributes = repo.root / ".git/info/attributes"
    for before in (None, b"", b"*.py diff=python", b"*.bin -merge\n"):
        if before is None:
            attributes.unlink(missing_ok=True)
        else:
            attributes.write_bytes(before)
        was = state()
        assert main(["merge-driver", "install"]) == 0
        once = state()
        assert "merge.coord.driver: set" in capsys.readouterr().out
        assert main(["merge-driver", "install"]) == 0
        assert state() == once and "already" in capsys.readouterr().out
        if before:
            assert attributes.read_bytes().startswith(before)
        assert main(["merge-driver", "remove"]) == 0
        now = state()
        if before == b"":
            now[str(attributes)] = b""  # an empty file is none, to git
        assert now == was
        assert main(["merge-driver", "remove"]) == 0
        assert "nothing" in capsys.readouterr().out
    assert repo.git("status", "--porcelain") == ""


def test_for_the_user(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert main(["merge-driver", "install", "--global"]) == 0
    repo.git("merge", "other", "-m", "m")
    assert repo.text() == BOTH
    assert main(["merge-driver", "remove", "--global"]) == 0
    assert [one for one in home.rglob("*") if one.is_file()] == []


def test_outside_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert main(["merge-driver", "install"]) == 2
    assert "not in a git repository" in capsys.readouterr().err


BROKEN = {
    "gone": "/nowhere/python",
    "ends at once": "false",
    "says it is done": "true",
    "is killed": "sh -c 'kill -9 $$' --",
    "has no coord": f"'{sys.executable}' -I -S",
}


@pytest.mark.parametrize("what", sorted(BROKEN))
def test_without_a_working_coord_git_merges_as_it_would_alone(repo: Repo, what: str) -> None:
    assert main(["merge-driver", "install"]) == 0
    line = installing.command("PYTHON").replace("PYTHON", BROKEN[what], 1)
    repo.git("config", "merge.coord.driver", line)
    repo.git("merge", "other", "-m", "m", fails=True)
    assert repo.text().count("<<<<<<< ") == 1 and "def b" in repo.text() and "def c" in repo.text()
    repo.git("merge", "--abort")
    repo.both("y.py", "z = 1\n" + BASE, BASE + "\n\nq = 1\n", BASE)
    repo.git("merge", "other", "-m", "m")
    assert repo.text("y.py") == "z = 1\n" + BASE + "\n\nq = 1\n"


def test_what_is_no_text_stays_in_conflict(repo: Repo) -> None:
    assert main(["merge-driver", "install"]) == 0
    repo.both("data.py", "a\0b", "a\0c", "a\0")
    repo.git("merge", "other", "-m", "m", fails=True)
    assert repo.text("data.py") == "a\0b"
    assert repo.git("diff", "--name-only", "--diff-filter=U").strip() == "data.py"


def test_what_the_project_says_counts_above_coord(repo: Repo) -> None:
    repo.git("config", "merge.take.driver", "cp %B %A")
    rules = "CHANGES.md merge=union\n/deep/*.py -merge\n*.toml merge=take\n*.json binary\n"
    assert main(["merge-driver", "install"]) == 0
    ends = {"CHANGES.md": "# A\n\none\n\ntwo\n", "t.toml": "a = 3\n"}
    for name, base, ours, theirs in (("CHANGES.md", "# A\n", "# A\n\none\n", "# A\n\ntwo\n"), ("deep/a.py", "a = 1\n", "a = 2\n", "a = 3\n"),
                                     ("t.toml", "a = 1\n", "a = 2\n", "a = 3\n"), ("j.json", "{}\n", "[]\n", "[1]\n")):
        repo.both(name, ours, theirs, base)
        repo.put(".git/kept", rules)
        repo.put(".gitattributes", rules)
        done = subprocess.run(["git", "merge", "other", "-m", "m"], cwd=repo.root, capture_output=True, text=True)
        if name in ends:
            assert done.returncode == 0, (name, done.stdout, done.stderr)
            assert sorted(repo.text(name).split()) == sorted(ends[name].split())
        else:
            assert done.returncode == 1 and repo.text(name) == ours, name
            repo.git("merge", "--abort")
        (repo.root / ".gitattributes").unlink()


def test_a_python_with_odd_signs_in_its_path(repo: Repo, tmp_path: Path) -> None:
    place = tmp_path / "100% of 'it'"
    place.mkdir()
    program = place / "python"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    assert main(["merge-driver", "install"]) == 0
    repo.git("config", "merge.coord.driver", installing.command(str(program)))
    repo.git("merge", "other", "-m", "m")
    assert repo.text() == BOTH
