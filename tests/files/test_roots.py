"""Attacks on finding the repository: `.coord`, git top levels, worktrees, submodules, nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import coordinator._hook_seldom as seldom_file
from coordinator.files.roots import (
    find_root,
    folds_case,
    foreign_root,
    is_prepared,
    linked_worktrees,
    prepared_above,
    root_in_worktree,
)

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


@pytest.fixture
def outer(repo: Path, tmp_path: Path, git: Git) -> Path:
    """A repository with `repo` as its submodule `sub`, that has one itself, `sub/inner`."""
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q", ".")
    (inner / "i.py").write_text("")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "inner")
    git(repo, "submodule", "add", "-q", str(inner), "inner")
    git(repo, "commit", "-q", "-m", "with inner")
    made = tmp_path / "outer"
    made.mkdir()
    git(made, "init", "-q", "-b", "main", ".")
    git(made, "submodule", "add", "-q", str(repo), "sub")
    git(made, "submodule", "update", "-q", "--init", "--recursive")
    git(made, "commit", "-q", "-m", "outer")
    return made


def found_by_hook(directory: Path) -> Path | None:
    """The root whose socket a hook finds that starts in this directory."""
    ask = f"import sys; d = {{}}; exec(open({str(seldom_file.__file__)!r}).read(), d); sys.stdout.write(str(d['find']()))"
    said = subprocess.run([sys.executable, "-I", "-S", "-E", "-c", ask], cwd=directory, capture_output=True, text=True, check=True)
    assert said.stderr == ""
    return None if said.stdout == "None" else Path(said.stdout.removesuffix("/.coord/socket"))


def agree(directory: Path) -> Path:
    """The root, as both find it."""
    root = find_root(directory)
    assert found_by_hook(directory) == (root if is_prepared(str(root)) else None)
    return root


def test_the_git_top_level(repo: Path) -> None:
    for start in (repo, repo / "pkg/deep", repo / "pkg/deep/x.py"):
        assert find_root(start) == repo
    assert found_by_hook(repo) is None


def test_the_nearest_coord_directory_wins_whatever_repositories_lie_between(repo: Path, git: Git) -> None:
    (repo.parent / ".coord").mkdir()
    assert agree(repo / "pkg") == repo.parent, "one working tree, one coordinator"
    (repo / ".coord").mkdir()
    assert agree(repo / "pkg") == repo
    (repo / "pkg/.coord").mkdir()
    assert agree(repo / "pkg/deep") == repo / "pkg"
    assert agree(repo) == repo


def test_a_repository_in_another_without_coord_stays_its_own(repo: Path, git: Git) -> None:
    """As with dotfiles in a home directory that is a git repository."""
    git(repo.parent, "init", "-q", ".")
    assert agree(repo / "pkg") == repo


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (tmp_path / "a/b").mkdir(parents=True)
    assert find_root(tmp_path / "a/b") == tmp_path / "a/b"
    (tmp_path / "a/.coord").mkdir()
    assert agree(tmp_path / "a/b") == tmp_path / "a"


def test_a_folder_that_everybody_writes_to_catches_nobody(repo: Path) -> None:
    (repo.parent / ".coord").mkdir()
    repo.parent.chmod(0o1777)
    assert agree(repo / "pkg") == repo


def test_a_linked_worktree_leads_to_the_main_one(repo: Path, tmp_path: Path, git: Git) -> None:
    git(repo, "worktree", "add", "-q", "-b", "b", str(tmp_path / "wt"))
    git(repo, "worktree", "add", "-q", "-b", "c", str(repo / ".coord/worktrees/T-1"))
    for start in (tmp_path / "wt", tmp_path / "wt/pkg/deep", repo / ".coord/worktrees/T-1/pkg"):
        assert agree(start) == repo
    # and to the same place in it, if coord's directory lies below the top
    (repo / "pkg/.coord").mkdir()
    assert agree(tmp_path / "wt/pkg/deep") == repo / "pkg"
    # whatever lies in the worktree itself
    (tmp_path / "wt/.coord").mkdir()
    assert agree(tmp_path / "wt") == repo
    roots, complete = linked_worktrees(str(repo / ".git"))
    assert complete
    assert roots == [str(repo / ".coord/worktrees/T-1"), str(tmp_path / "wt")]


def test_the_root_in_the_working_tree_that_one_is_in(repo: Path, tmp_path: Path, git: Git) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
    (repo / "pkg").mkdir(exist_ok=True)
    (tmp_path / "wt/pkg").mkdir(exist_ok=True)
    assert root_in_worktree(repo, str(repo / "pkg")) == str(repo)
    assert root_in_worktree(repo, str(tmp_path / "wt/pkg")) == str(tmp_path / "wt")
    assert root_in_worktree(repo / "pkg", str(tmp_path / "wt/pkg")) == str(tmp_path / "wt/pkg")
    assert root_in_worktree(repo, str(tmp_path)) == str(repo)


def test_a_worktree_with_relative_paths(repo: Path, tmp_path: Path, git: Git) -> None:
    git(repo, "worktree", "add", "-q", "-b", "b", str(tmp_path / "wt"))
    (tmp_path / "wt/.git").write_text(f"gitdir: ../{repo.name}/.git/worktrees/wt\n")
    (repo / ".git/worktrees/wt/gitdir").write_text("../../../../wt/.git\n")
    assert find_root(tmp_path / "wt") == repo
    (repo / ".coord").mkdir()
    assert agree(tmp_path / "wt") == repo
    assert linked_worktrees(str(repo / ".git")) == ([str(tmp_path / "wt")], True)


def test_a_worktree_in_the_making_is_not_complete(repo: Path) -> None:
    (repo / ".git/worktrees/half").mkdir(parents=True)
    assert linked_worktrees(str(repo / ".git")) == ([], False)


def test_worktrees_that_lie_in_each_other_lead_somewhere(tmp_path: Path, git: Git) -> None:
    """A main worktree inside the very worktree that is linked to it."""
    work = tmp_path / "w"
    (work / "main/.git/worktrees/w").mkdir(parents=True)
    (work / ".git").write_text("gitdir: main/.git/worktrees/w\n")
    (work / "main/.git/worktrees/w/commondir").write_text("../..\n")
    assert agree(work / "main") == work / "main"


def test_a_submodule_is_a_part_of_the_repository_around_it(outer: Path) -> None:
    for start in ("sub", "sub/pkg", "sub/inner", "."):
        assert agree(outer / start) == outer
    (outer / ".coord").mkdir()
    for start in ("sub", "sub/pkg", "sub/inner", "."):
        assert agree(outer / start) == outer


def test_a_submodule_with_a_git_directory_of_its_own(repo: Path, outer: Path, git: Git) -> None:
    git(outer, "clone", "-q", str(repo), "old")
    assert find_root(outer / "old") == outer / "old", "as yet it just lies there"
    git(outer, "submodule", "add", "-q", str(repo), "old")
    assert (outer / "old/.git").is_dir()
    assert agree(outer / "old/pkg") == outer


def test_a_submodule_in_a_linked_worktree_of_the_repository_around_it(outer: Path, tmp_path: Path, git: Git) -> None:
    linked = tmp_path / "linked"
    git(outer, "worktree", "add", "-q", "-b", "b", str(linked))
    git(linked, "submodule", "update", "-q", "--init", "--recursive")
    (outer / ".coord").mkdir()
    for start in ("sub/pkg", "sub/inner", "sub", "."):
        assert agree(linked / start) == outer


def test_a_linked_worktree_of_a_submodule(outer: Path, tmp_path: Path, git: Git) -> None:
    git(outer / "sub", "worktree", "add", "-q", "-b", "b", str(tmp_path / "far"))
    assert find_root(tmp_path / "far/pkg") == outer
    (outer / ".coord").mkdir()
    assert agree(tmp_path / "far/pkg") == outer


def test_a_worktree_of_a_bare_repository_is_its_own(repo: Path, tmp_path: Path, git: Git) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "wt"), "main")
    assert find_root(tmp_path / "wt/pkg") == tmp_path / "wt"
    (tmp_path / "wt/.coord").mkdir()
    assert agree(tmp_path / "wt/pkg") == tmp_path / "wt"


def test_a_broken_git_file_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/.git").write_bytes(b"\xff\xfe nonsense")
    assert agree(tmp_path / "x") == tmp_path / "x"


def test_what_lies_apart_and_what_is_above(repo: Path) -> None:
    assert prepared_above(repo) is None
    (repo / ".coord").mkdir()
    (repo / "pkg/.coord").mkdir()
    base = f"{repo}/"
    assert foreign_root(base, "pkg/deep/x.py") == foreign_root(base, "pkg") == str(repo / "pkg")
    assert foreign_root(base, "pkgs/x") is None and foreign_root(base, "") is None
    assert prepared_above(repo / "pkg") == repo


#: What may be in a directory of a made-up layout.
KINDS = st.sampled_from(["", "", "git", "linked", "linked in", "module", "coord", "git coord", "everybody's coord"])


@settings(max_examples=40)
@example(kinds=["coord", "linked", "git"], start=2)
@example(kinds=["git coord", "module", "linked in"], start=2)
@given(kinds=st.lists(KINDS, min_size=1, max_size=4), start=st.integers(0, 4))
def test_hooks_follow_the_same_rule(kinds: list[str], start: int) -> None:
    """Directories in each other, each with what its kind says; git's files are written by hand."""
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="coord-roots-")))
    try:
        at, git_dir = base, base / "far/.git"
        (git_dir / "worktrees").mkdir(parents=True)
        places = [base]
        for number, kind in enumerate(kinds):
            at = at / f"d{number}"
            at.mkdir()
            places.append(at)
            if "git" in kind:
                git_dir = at / ".git"
                git_dir.mkdir()
            if "linked" in kind or kind == "module":
                own = git_dir / ("modules" if kind == "module" else "worktrees") / f"x{number}"
                own.mkdir(parents=True, exist_ok=True)
                (at / ".git").write_text(f"gitdir: {own}\n")
                if "linked" in kind:
                    (own / "commondir").write_text("../..\n")
                else:
                    (own / "config").write_text(f"[core]\n\tbare = false\n\tworktree = {os.path.relpath(at, own)}\n")
                    git_dir = own
            if "coord" in kind:
                (at / ".coord").mkdir()
            if "everybody" in kind:
                at.chmod(0o1777)
        agree(places[min(start, len(places) - 1)])
    finally:
        shutil.rmtree(base)


def test_folding_is_told_from_what_exists(tmp_path: Path) -> None:
    place = tmp_path / "12"
    place.mkdir()
    before = sorted(os.listdir(place))
    (tmp_path / "Probe").write_text("")
    assert folds_case(str(tmp_path)) is (tmp_path / "pROBE").exists()
    assert folds_case(str(place)) in (True, False)
    assert sorted(os.listdir(place)) == before
