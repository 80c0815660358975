"""Attacks on finding the repository: `.coord`, git top levels, worktrees, submodules, nothing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.files.roots import find_root, folds_case, linked_worktrees

Git = Callable[..., None]


@pytest.fixture
def repo(tmp_path: Path, git: Git) -> Path:
    made = tmp_path / "r e p o"
    (made / "pkg/deep").mkdir(parents=True)
    (made / "pkg/deep/x.py").write_text("")
    git(made, "init", "-q", "-b", "main", ".")
    git(made, "add", ".")
    git(made, "commit", "-q", "-m", "begin")
    return made


def test_the_git_top_level(repo: Path) -> None:
    for start in (repo, repo / "pkg/deep", repo / "pkg/deep/x.py"):
        assert find_root(start) == repo


def test_a_coord_directory_wins_below_the_top_level_but_not_above(repo: Path) -> None:
    (repo / "pkg/.coord").mkdir()
    assert find_root(repo / "pkg/deep") == repo / "pkg"
    (repo.parent / ".coord").mkdir()
    assert find_root(repo) == repo


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (tmp_path / "a/b").mkdir(parents=True)
    assert find_root(tmp_path / "a/b") == tmp_path / "a/b"
    (tmp_path / "a/.coord").mkdir()
    assert find_root(tmp_path / "a/b") == tmp_path / "a"


def test_a_linked_worktree_leads_to_the_main_one(repo: Path, tmp_path: Path, git: Git) -> None:
    git(repo, "worktree", "add", "-q", "-b", "b", str(tmp_path / "wt"))
    git(repo, "worktree", "add", "-q", "-b", "c", str(repo / ".coord/worktrees/T-1"))
    for start in (tmp_path / "wt", tmp_path / "wt/pkg/deep", repo / ".coord/worktrees/T-1/pkg"):
        assert find_root(start) == repo
    # and to the same place in it, if coord's directory lies below the top
    (repo / "pkg/.coord").mkdir()
    assert find_root(tmp_path / "wt/pkg/deep") == repo / "pkg"
    roots, complete = linked_worktrees(str(repo / ".git"))
    assert complete
    assert roots == [str(repo / ".coord/worktrees/T-1"), str(tmp_path / "wt")]


def test_a_worktree_with_relative_paths(repo: Path, tmp_path: Path, git: Git) -> None:
    git(repo, "worktree", "add", "-q", "-b", "b", str(tmp_path / "wt"))
    (tmp_path / "wt/.git").write_text(f"gitdir: ../{repo.name}/.git/worktrees/wt\n")
    (repo / ".git/worktrees/wt/gitdir").write_text("../../../../wt/.git\n")
    assert find_root(tmp_path / "wt") == repo
    assert linked_worktrees(str(repo / ".git")) == ([str(tmp_path / "wt")], True)


def test_a_worktree_in_the_making_is_not_complete(repo: Path) -> None:
    (repo / ".git/worktrees/half").mkdir(parents=True)
    assert linked_worktrees(str(repo / ".git")) == ([], False)


def test_a_submodule_is_its_own(repo: Path, tmp_path: Path, git: Git) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", ".")
    git(outer, "submodule", "add", "-q", str(repo), "sub")
    (outer / ".coord").mkdir()
    assert find_root(outer / "sub/pkg") == outer / "sub"
    assert find_root(outer) == outer


def test_a_worktree_of_a_bare_repository_is_its_own(repo: Path, tmp_path: Path, git: Git) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "wt"), "main")
    assert find_root(tmp_path / "wt/pkg") == tmp_path / "wt"


def test_a_broken_git_file_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/.git").write_bytes(b"\xff\xfe nonsense")
    assert find_root(tmp_path / "x") == tmp_path / "x"


def test_folding_is_told_from_what_exists(tmp_path: Path) -> None:
    place = tmp_path / "12"
    place.mkdir()
    before = sorted(os.listdir(place))
    (tmp_path / "Probe").write_text("")
    assert folds_case(str(tmp_path)) is (tmp_path / "pROBE").exists()
    assert folds_case(str(place)) in (True, False)
    assert sorted(os.listdir(place)) == before
