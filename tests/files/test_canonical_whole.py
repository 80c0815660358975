"""What each spelling means, whole: name, kind, scope, place, worktree, number of names and size; or
the whole refusal."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from coordinator.files.canonical import Tree
from coordinator.words.refusals import Refusal
from tests.golden import assert_golden, said

Git = Callable[..., None]

TYPED = """
a.py ./a.py src src/ src/pay src/pay/ src/pay/api.py src//pay/./api.py src/../a.py nowhere/../a.py link.py short short/ short/api.py
short/../a.py absent absent/ absent/x absent/../a.py . ./ src/.. src/pay/. pipe twin.py a.py/ a.py/. a.py/x a.py/.. a.py::C.m ./a.py::<header>
src::C absent::C key:a:1 git:index *.py src/*.py src/**/ src/*/ src/pay/../*.py src/*/../x src/**/./x//y ./src//p?y/* src/ap\\?.py \\*.py src/\\[x\\]/y
[id]/page.tsx [id]/new.tsx [id] [id]/*.tsx [no]/new.tsx [id]/page.tsx::P [!x] *
.git .git/config sub/.git/x .coord .coord/db .coordinates .gitignore x/.coord/y .GIT .git* .git/* .coord/* git/x ~/x
.. ../x ../*.py ../{name}2/a.py /etc/passwd / out/x out/*.py dangling loop loop/x {root} {root}/ {root}/a.py {root}/src/*.py {root}2/a.py {root}/../{name}/a.py
{wt} {wt}/ {wt}/a.py {wt}/src/pay/api.py {wt}/*.py {wt}/.git {wt}/new {wt}/../wt/a.py {wt}/a.py::C wt/a.py wt inner inner/a.py inner/.git/x inner/new/
apart apart/ apart/x apart/*.py apart/deep/x {wt}/apart/x {wt}/apart/*.py loop/*.py a.py/*.py a.py/[x].py x/X X/ toX/new.py toX/*.py
"""
LITERAL = ["a.py", "[x]/key:*.tsx", "a::b.py", "src", "key:a", "*", "short/api.py", "", "a\0b", "new\tline"]
PLACES = [("a.py", "src"), ("api.py", "src/pay"), ("api.py", "src/pay/"), ("../a.py", "src"), ("api.py", "short"), ("*.py", "src"), (".", "src"),
          ("a.py", "/"), ("a.py", "/nowhere"), ("a.py", "nowhere/deep"), ("a.py", "{wt}"), ("pay/*.py", "{wt}/src"), ("x.tsx", "[id]"),
          ("*.tsx", "[id]"), ("page.tsx", "[id]"), ("[id]/page.tsx", "src"), ("a.py::C", "{wt}"), ("key:a", "src"), ("..", "src/pay"), ("new.py", "toX"), ("new.py", "src/X/"), ("apart/x", "{wt}/src")]


@pytest.fixture
def root(tmp_path: Path, git: Git) -> Path:
    made = tmp_path / "repo"
    (made / "src/pay").mkdir(parents=True)
    (made / "src/pay/api.py").write_text("x = 1\n")
    (made / "a.py").write_text("y = 20\n")
    git(made, "init", "-q", "-b", "main", ".")
    git(made, "add", ".")
    git(made, "commit", "-q", "-m", "begin")
    for name in ("wtX", "repo/inner"):
        git(made, "worktree", "add", "-q", "-b", name[-2:], str(tmp_path / name))
    (made / "link.py").symlink_to("src/pay/api.py")
    (made / "short").symlink_to("src/pay")
    os.link(made / "a.py", made / "twin.py")
    os.mkfifo(made / "pipe")
    (made / "loop").symlink_to("loop")
    (made / "dangling").symlink_to("src/later.py")
    for name in ("elsewhere", "repo2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("")
    (made / "out").symlink_to(tmp_path / "elsewhere")
    for name in ("[id]", "src/X", "apart/.coord"):
        (made / name).mkdir(parents=True)
    (made / "toX").symlink_to("src/X")
    (made / "[id]/page.tsx").write_text("page")
    (made / unicodedata.normalize("NFD", "é.py")).write_text("")
    return made


def test_what_each_spelling_means(root: Path) -> None:
    about = {"root": str(root), "name": root.name, "wt": str(root.parent / "wtX")}
    text = ""

    def add(case: str, ask: Callable[[], object]) -> None:
        nonlocal text
        try:
            text += f"{case}\n  {ask()}\n\n"
        except Refusal as refusal:
            text += said(case, refusal)

    def fill(typed: str) -> str:
        for name, value in about.items():
            typed = typed.replace("{" + name + "}", value)
        return typed

    plain, folding = Tree(root, fold_case=False), Tree(root, fold_case=True)
    below = Tree(root / "src", fold_case=False)
    for typed in [*TYPED.split(), "é.py", unicodedata.normalize("NFD", "é.py"), "neu/é.py", "é/*.py", "x" * 256, "ä" * 128 + "/x", "src/[[:alpha:]]"]:
        add(f"{typed!r}", partial(plain.resolve, fill(typed)))
    for typed in LITERAL:
        add(f"literally {typed!r}", partial(plain.resolve, typed, literal=True))
    for typed, cwd in PLACES:
        cwd = fill(cwd) if cwd[0] in "/{" else f"{root}/{cwd}"
        add(f"{typed!r} in {cwd}", partial(plain.resolve, typed, cwd))
    for typed in ("A.PY", "SRC", "Src/PAY/Api.py", "SRC/New.py", "SRC/*.PY", ".Git/x", ".COORD", "A.py::Cls", "LINK.py", "É.PY", "{wt}/A.PY", "INNER/a.py", "LOOP/x", "LOOP", "TOx/New.py", "LOOP/*.py"):
        add(f"{typed!r} where case is folded", partial(folding.resolve, fill(typed)))
    for typed in ("pay/api.py", "{wt}/src/pay/api.py", "{wt}/a.py", "../a.py", "{root}/src", "{wt}/src", "{wt}"):
        add(f"{typed!r} from below the top", partial(below.resolve, fill(typed)))
    for tree in (plain, below):
        add("worktrees", tree.worktrees)
        for path in (root, root / "a.py", root / "src", root / "src/x", root.parent, root.parent / "wtX", root.parent / "wtX/src/x", root.parent / "repo2/x",
                     root / "inner", root / "inner/x"):
            add(f"relative {path}", partial(tree.relative, str(path)))
            add("in the worktree", partial(tree.worktree_of, str(path)))
    text = re.sub(r"inode='[^']*'", "inode='…'", text)
    text = text.replace(str(root.parent), "FOLDER")
    assert_golden("canonical.txt", text)


def test_directories_that_were_looked_at_are_not_looked_at_again(root: Path) -> None:
    tree = Tree(root)
    seen: set[str] = set()
    assert tree.resolve("src/pay/api.py", seen=seen).size == 6
    assert seen == {f"{root}/src/pay"}
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to("moved")
    assert tree.resolve("src/pay/api.py", seen=seen).resource.name == "src/pay/api.py", "at the same instant"
    assert tree.resolve("src/pay/api.py").resource.name == "moved/pay/api.py"
    assert tree.resolve("src/pay/new.py", seen=set()).resource.name == "moved/pay/new.py"
    assert tree.resolve("src/pay/api.py", literal=True, seen=seen).resource.name == "src/pay/api.py"
    seen.clear()
    assert tree.resolve("moved/pay/api.py", literal=True, seen=seen).size == 6 and seen == {f"{root}/moved/pay"}


def test_worktrees_come_and_go(root: Path, git: Git) -> None:
    tree = Tree(root)
    wt = root.parent / "wtX"
    assert tree.worktrees() == sorted([str(root / "inner"), str(wt)]) and not tree.alone
    git(root, "worktree", "remove", "--force", str(wt))
    assert tree.worktrees() == [str(root / "inner")]
    git(root, "worktree", "remove", "--force", str(root / "inner"))
    assert tree.worktrees() == [] and tree.alone
    git(root, "worktree", "add", "-q", "-b", "again", str(wt))
    assert tree.resolve(f"{wt}/a.py").worktree == str(wt) and not tree.alone
    plain = root.parent / "plain"
    plain.mkdir()
    assert Tree(plain).worktrees() == [] and Tree(plain).alone
