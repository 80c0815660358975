"""Words and directories with a byte in them that is no UTF-8: told in words, and never a bug of coord's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Repo

ODD = os.fsdecode(b"\xe4")


@pytest.mark.parametrize("words", [
    ("lock", f"{ODD}.py", "--agent", "A"), ("lock", "link.py", "--agent", "A"), ("unlock", f"{ODD}.py", "--agent", "A"),
    ("task", "add", "x", "--resource", f"d/{ODD}"), ("review", "keep", "R-1", "--file", ODD), ("review", "revert", ODD), ("request", "file", ODD, "--agent", "A", "-m", "x"),
])
def test_a_name_that_no_lease_can_have_is_refused_in_words(repo: Repo, words: tuple[str, ...]) -> None:
    (repo.root / f"{ODD}.py").write_text("x = 1\n")
    (repo.root / "link.py").symlink_to(f"{ODD}.py")
    done = repo.coord(*words)
    assert done.returncode in (2, 7) and "INTERNAL" not in done.stderr, done
    assert "UTF-8" in done.stderr or "\\xe4" in done.stderr, done.stderr


def test_a_text_is_kept_and_shown_with_the_byte_as_it_is_written(repo: Repo) -> None:
    assert repo.coord("task", "add", f"Gr{ODD}fin").stdout == "T-1 ready: Gr\\xe4fin\n"
    assert repo.coord("lock", "a.py", "--agent", "A", "-m", f"m{ODD}").returncode == 0
    assert "m\\xe4" in repo.coord("locks").stdout


def test_in_a_directory_of_such_a_name_only_what_lies_in_it_cannot_be_named(repo: Repo) -> None:
    below = repo.root / f"d{ODD}"
    below.mkdir()
    repo.coord("lock", "a.py", "--agent", "A")
    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        return repo.coord(*words, cwd=below)
    assert "a.py" in typed("locks").stdout
    assert typed("lock", "key:x", "--agent", "A").returncode == 0
    done = typed("lock", "b.py", "--agent", "A")
    assert done.returncode == 2 and "d\\xe4/b.py" in done.stderr.replace("\\\\", "\\"), done


def test_a_repository_of_such_a_name_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    root = tmp_path / f"d{ODD}"
    (root / ".git").mkdir(parents=True)
    for words in (("locks",), ("init",), ("lock", "a", "--agent", "A"), ("status",)):
        done = Repo(root).coord(*words)
        assert done.returncode == 2 and "Rename that directory" in done.stderr, done
    assert [one.name for one in root.iterdir()] == [".git"]
