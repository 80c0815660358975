"""A commit of one's own files while others hold some: its hooks see these as in the last commit."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.namespaces import kernel
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.git_guard.test_git_guard import IDENTITY, Guarded

SHOWS = '#!/bin/sh\nfor f in mine.py theirs.py; do echo "$f: $(cat $f | tr "\\n" " ")"; done\ngit status --short | sed "s/^/status: /"\n'
#: What a formatter does, by a hook that adds what it has changed, or only says no.
REWRITES = '#!/bin/sh\nfor f in mine.py theirs.py; do sed -i "s/  */ /g" $f; done\n'
#: What hook managers do with what is not staged.
PUTS_ASIDE = '#!/bin/sh\ngit diff --quiet || { git diff > "$(git rev-parse --git-dir)/aside"; git checkout -q -- .; git apply "$(git rev-parse --git-dir)/aside"; }\n'


class Beside(Guarded):
    """bob holds theirs.py, and is in the middle of it; ann has changed mine.py."""

    def __init__(self, repo: Repo) -> None:
        super().__init__(repo)
        for name in ("mine.py", "theirs.py", "free.py"):
            repo.write(name, "x = 1\n")
        repo.write(".gitignore", "node_modules/\n")
        self.git("add", "-A")
        self.git("commit", "-qnm", "Two")
        self.hold("bob", "theirs.py")
        repo.write("theirs.py", "x = 1\nhalf  done\n")
        repo.write("mine.py", "x  =  2\n")

    def script(self, text: str, name: str = "pre-commit") -> None:
        path = self.root / ".git/hooks" / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def commits(self, *words: str, code: int = 0, cwd: Path | None = None) -> str:
        env = {**os.environ, **IDENTITY, **self.env, "COORD_AGENT": "ann"}
        done = self.repo.coord("commit", *words, cwd=cwd, env=env) if "PYTHONPATH" not in self.env else subprocess.run(
            [sys.executable, "-P", "-m", "coordinator.cli.main", "commit", *words], cwd=cwd or self.root, capture_output=True, text=True, check=False,
            env=env, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        assert not list((self.root / ".git").glob("coord-commit-*")), "nothing is left behind"
        return done.stdout + done.stderr

    def committed(self) -> list[str]:
        return self.git("show", "--name-only", "--format=", "HEAD").split()

    def status(self) -> list[str]:
        return self.git("status", "--short", "--untracked-files=no").splitlines()

    def read(self, name: str) -> str:
        return (self.root / name).read_text()


@pytest.fixture(params=["namespace", pytest.param("scratch tree", marks=pytest.mark.slow)])
def beside(repo: Repo, request: pytest.FixtureRequest, tmp_path: Path) -> Beside:
    made = Beside(repo)
    if request.param == "namespace" and kernel.refused():
        pytest.skip("no namespaces on this machine")
    if request.param == "scratch tree":  # what a system says that lets nobody make one
        (tmp_path / "sitecustomize.py").write_text(
            "import errno\nfrom coordinator.namespaces import kernel\n"
            "def no(flags):\n    raise PermissionError(errno.EPERM, 'no')\nkernel.unshare = no\n")
        made.env["PYTHONPATH"] = str(tmp_path)
    return made


def test_hooks_see_others_files_as_in_the_last_commit(beside: Beside) -> None:
    beside.script(SHOWS)
    said = beside.commits("-m", "Mine", "--", "mine.py")
    assert "mine.py: x  =  2" in said and "theirs.py: x = 1 \n" in said and "status: M  mine.py\n" in said and "theirs.py\n" not in said
    assert beside.committed() == ["mine.py"] and beside.status() == [" M theirs.py"]
    assert beside.read("theirs.py") == "x = 1\nhalf  done\n"


@pytest.mark.parametrize(("add", "words"), [
    (["mine.py"], ["-m", "x"]), ([], ["-am", "x"]), ([], ["-m", "x", "."]), (["mine.py", "theirs.py"], ["-m", "x"]),
    ([], ["-m", "x", "-i", "mine.py"]), ([], ["--all", "--message=x"]),
])
def test_only_ones_own_is_committed_whatever_is_asked_for(beside: Beside, add: list[str], words: list[str]) -> None:
    beside.script(SHOWS)
    for name in add:
        beside.git("add", name)
    was = beside.git("ls-files", "-s", "theirs.py")
    said = beside.commits(*words)
    assert beside.committed() == ["mine.py"] and beside.read("theirs.py") == "x = 1\nhalf  done\n"
    assert beside.git("ls-files", "-s", "theirs.py") == was, "what its holder has staged stays so"
    assert ("not in this commit, for others hold it: theirs.py" in said) is ("theirs.py" in add or "-am" in words or "--all" in words)


def test_what_hooks_rewrite_comes_back_to_ones_own_files_alone(beside: Beside) -> None:
    beside.script(REWRITES + "git add mine.py\n")
    beside.commits("-m", "x", "mine.py")
    assert beside.git("show", "HEAD:mine.py") == "x = 2\n" and beside.read("mine.py") == "x = 2\n"
    assert beside.read("theirs.py") == "x = 1\nhalf  done\n" and beside.status() == ["MM mine.py", " M theirs.py"], "as git leaves it"
    beside.repo.write("mine.py", "x  =  3\n")
    beside.git("add", "mine.py")
    beside.commits("-m", "x")
    assert beside.git("show", "HEAD:mine.py") == "x = 3\n" and beside.status() == [" M theirs.py"]
    beside.repo.write("mine.py", "x  =  4\n")
    beside.script(REWRITES + "exit 1\n")
    head = beside.git("rev-parse", "HEAD")
    beside.commits("-m", "x", "mine.py", code=1)
    assert beside.git("rev-parse", "HEAD") == head and beside.read("mine.py") == "x = 4\n"
    assert beside.status() == [" M mine.py", " M theirs.py"], "as git leaves it"


def test_nothing_of_others_is_put_aside(beside: Beside) -> None:
    beside.script(PUTS_ASIDE)
    before = (beside.root / "theirs.py").stat()
    refused = beside.run("commit", "-m", "x", "mine.py", COORD_AGENT="ann")
    assert refused.returncode == 0, "coord's lines are not in this hook"
    beside.repo.write("mine.py", "x  =  3\n")
    after = (beside.root / "theirs.py").stat()
    assert (before.st_ino, before.st_mtime_ns) != (after.st_ino, after.st_mtime_ns), "or the hook does nothing"
    beside.commits("-m", "x", "mine.py")
    now = (beside.root / "theirs.py").stat()
    assert (now.st_ino, now.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_git_itself_refuses_where_its_hooks_would_and_names_the_way(beside: Beside) -> None:
    beside.script(PUTS_ASIDE)
    beside.coord("guard", "install")
    said = beside.refused("commit", "-m", "x", "mine.py", COORD_AGENT="ann")
    assert "theirs.py: held by bob" in said and "next: coord commit" in said and "may put aside" in said
    beside.commits("-m", "x", "mine.py")
    assert beside.committed() == ["mine.py"]
    beside.repo.write("mine.py", "x  =  3\n")
    beside.git("commit", "-qm", "x", "mine.py", COORD_GUARD="off")


def test_what_another_holds_is_not_committed_by_name(beside: Beside) -> None:
    beside.script(SHOWS)
    before = beside.git("ls-files", "-s")
    for words in (["--", "theirs.py"], ["--", "mine.py", "theirs.py"], ["--no-verify", "theirs.py"]):
        said = beside.commits("-m", "x", *words, code=1)
        assert "theirs.py: held by bob" in said
        assert beside.git("ls-files", "-s") == before


def test_a_part_of_a_file_is_committed_while_another_writes_the_rest(beside: Beside) -> None:
    text = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    beside.repo.write("both.py", text)
    beside.git("add", "both.py")
    beside.git("commit", "-qm", "both", "--no-verify", "both.py")
    beside.hold("bob", "both.py::g")
    beside.repo.write("both.py", text.replace("return 1", "return  10"))
    beside.git("add", "both.py")
    beside.repo.write("both.py", text.replace("return 1", "return  10").replace("return 2", "return  20"))
    beside.script('#!/bin/sh\necho "sees $(tail -1 both.py)"\nsed -i "s/return  /return /" both.py\ngit add both.py\n')
    said = beside.commits("-m", "f")
    assert "sees     return 2" in said
    assert beside.git("show", "HEAD:both.py") == text.replace("return 1", "return 10")
    assert beside.read("both.py") == text.replace("return 1", "return 10").replace("return 2", "return  20")
    with beside.repo.client() as client:
        client.call(rq.Sweep())  # the watcher is waited for
        assert {lease.resource for lease in client.call(rq.Locks()).items} == {"theirs.py", "both.py::g"}


def test_files_that_others_have_deleted_renamed_or_only_begun(beside: Beside) -> None:
    beside.hold("bob", "free.py", "lib/c.txt", "new.py")
    (beside.root / "free.py").unlink()
    (beside.root / "lib/c.txt").unlink()
    (beside.root / "lib").rmdir()
    beside.repo.write("new.py", "new\n")
    beside.git("add", "new.py")
    (beside.root / "theirs.py").chmod(0o755)
    before = beside.status()
    beside.script(SHOWS.replace("mine.py theirs.py", "mine.py"))
    said = beside.commits("-am", "x")
    assert "free.py" not in said.replace("hold it: free.py, lib/c.txt", "") and beside.committed() == ["mine.py"]
    assert sorted(beside.status()) == sorted(line for line in before if "mine.py" not in line)
    assert not (beside.root / "free.py").exists() and (beside.root / "theirs.py").stat().st_mode & stat.S_IXUSR


def test_a_commit_as_git_makes_it(beside: Beside) -> None:
    """Message hooks, the editor, amending, a folder below the top, ignored folders, exit codes, and what git prints."""
    beside.script("#!/bin/sh\necho checked >> \"$1\"\n", "commit-msg")
    beside.script("#!/bin/sh\necho after > after\n", "post-commit")
    beside.script("#!/bin/sh\ntest -f node_modules/tool && test -n \"$PWD\"\n")
    beside.repo.write("node_modules/tool", "x")
    beside.env["GIT_EDITOR"] = "sh -c 'echo by hand > \"$1\"' sh"
    said = beside.commits("mine.py")
    assert beside.git("log", "-1", "--format=%B").split("\n")[:2] == ["by hand", "checked"] and "1 file changed" in said
    beside.repo.write("lib/own.txt", "own\n")
    beside.git("add", "lib/own.txt")
    beside.commits("--amend", "--no-edit", cwd=beside.root / "lib")
    assert set(beside.committed()) == {"mine.py", "lib/own.txt"}
    beside.commits("-m", "nothing", code=1)
    beside.script("#!/bin/sh\nexit 7\n")
    beside.repo.write("mine.py", "x = 9\n")
    beside.commits("-m", "x", "mine.py", code=1)
    beside.commits("-nm", "x", "mine.py")
    assert beside.status() == [" M theirs.py"]


def test_another_commit_in_the_meantime_is_kept(beside: Beside) -> None:
    """The branch moves last, and only from where it was; the same commit is tried again."""
    beside.script('#!/bin/sh\n[ -e "$TOP/moved" ] && exit 0\ntouch "$TOP/moved"\nunset GIT_INDEX_FILE GIT_DIR GIT_WORK_TREE\n'
                  'git -C "$TOP" commit -q --no-verify -m other --allow-empty\n')
    beside.env["TOP"] = str(beside.root)
    beside.commits("-m", "Mine", "mine.py")
    assert beside.git("log", "-2", "--format=%s").split() == ["Mine", "other"] and beside.committed() == ["mine.py"]


def test_what_others_stage_meanwhile_stays_staged(beside: Beside) -> None:
    beside.script('#!/bin/sh\nunset GIT_INDEX_FILE GIT_DIR GIT_WORK_TREE\necho 2 > "$TOP/free.py"\ngit -C "$TOP" add free.py\nexit $CODE\n')
    beside.env |= {"TOP": str(beside.root), "CODE": "0"}
    beside.commits("-m", "Mine", "mine.py")
    assert sorted(line[:2] + line[3:] for line in beside.status()) in (["M free.py", " Mtheirs.py"], [" Mtheirs.py", "M free.py"])


def test_what_a_hook_changes_in_nobodys_file_comes_back_beside_what_was_begun_there(beside: Beside) -> None:
    text = "".join(f"{n}\n" for n in range(9))
    beside.repo.write("free.py", text)
    beside.git("commit", "-qnm", "free", "free.py")
    beside.repo.write("free.py", text.replace("8", "begun"))
    beside.script("#!/bin/sh\nsed s/0/hook/ free.py > sed.out\ncat sed.out > free.py\n")
    beside.commits("-m", "Mine", "mine.py")
    assert beside.read("free.py") == text.replace("8", "begun").replace("0", "hook") and beside.committed() == ["mine.py"]


def test_without_others_at_work_it_is_git_commit(beside: Beside) -> None:
    beside.coord("unlock", "theirs.py", "--agent", "bob")
    beside.script(SHOWS)
    assert "half  done" in beside.commits("-m", "x", "mine.py") and beside.committed() == ["mine.py"]
