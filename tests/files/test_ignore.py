"""Attacks on the ignore rules, with git as the judge, and on the list of a resource's files."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore, is_private, manifest
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource, resource
from tests.steps import steps

Git = Callable[..., None]
GIT = ["git", "-c", "core.excludesFile=/dev/null"]


def put(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


def listed(ignore: Ignore, what: Resource, files_max: int = 10_000) -> list[str]:
    return manifest(ignore.tree.root, what, ignore, files_max)


@pytest.fixture
def root(tmp_path: Path, git: Git) -> Path:
    made = tmp_path / "ein repo"
    made.mkdir()
    git(made, "init", "-q", ".")
    return made


@pytest.fixture
def ignore(root: Path) -> Ignore:
    return Ignore(Tree(root))


RULES = {
    ".gitignore": "*.log\n!keep.log\n/build/\nout\n**/tmp/*.x\n\\#odd\n*.tmp \n# comment\n"
    "doc/*.txt\nnode_modules/\n!never/\nb/**/z\n[ab].c\nsp\\ \n",
    "pkg/.gitignore": "!special.log\n/local\nbuild/\n",
    "pkg/deep/.gitignore": "*\n!.gitignore\n!wanted\n",
    "build/.gitignore": "!inside.py\n",
}
FILES = [
    "a.log", "keep.log", "x/keep.log", "x/a.log", "build/inside.py", "x/build/y.py", "out",
    "x/out/y", "tmp/a.x", "q/tmp/b.x", "q/tmp/c.y", "#odd", "f.tmp", "doc/a.txt", "doc/sub/b.txt",
    "pkg/special.log", "pkg/other.log", "pkg/local", "pkg/sub/local", "pkg/build/x",
    "pkg/sub/build/x", "pkg/deep/any", "pkg/deep/wanted", "pkg/deep/sub/wanted",
    "node_modules/a/b.js", "x/node_modules/c.js", "never/a.log", "b/z", "b/c/d/z", "a.c", "c.c",
    "excluded.me", "sub/excluded.me", "ünï/ä.log", "plain.py", "sp ",
]


def test_git_agrees(root: Path, ignore: Ignore) -> None:
    # Given rules of every sort, at three depths, and one in `.git/info/exclude`
    for name, text in RULES.items():
        put(root, name)
        (root / name).write_text(text)
    (root / ".git/info/exclude").write_text("excluded.me\n")
    put(root, *FILES)
    # I expect the verdict of `git check-ignore` on each file and each directory above
    names = {*FILES, *(str(p) for n in FILES for p in Path(n).parents if str(p) != ".")}
    asked = sorted(names)
    said = subprocess.run(
        [*GIT, "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=root, input="\0".join(asked).encode(), capture_output=True, check=False,
    ).stdout.decode().split("\0")
    ours = [name for name in asked if ignore.ignored(name, (root / name).is_dir())]
    assert ours == [name for name in asked if name in said]
    # and the listing to agree with git's
    untracked = subprocess.run(
        [*GIT, "ls-files", "-z", "-o", "--exclude-standard"],
        cwd=root, capture_output=True, check=True,
    ).stdout.decode().split("\0")[:-1]
    assert listed(ignore, resource("./", "dir")) == sorted(untracked)


def test_a_changed_rule_counts_at_once(root: Path, ignore: Ignore) -> None:
    put(root, "a/x.log")
    assert not ignore.ignored("a/x.log")
    (root / "a/.gitignore").write_text("*.log\n")
    assert ignore.ignored("a/x.log")
    (root / ".gitignore").write_text("a/\n")
    assert ignore.ignored("a/y")
    (root / ".gitignore").unlink()
    assert not ignore.ignored("a/y")
    (root / ".git/info/exclude").write_text("y\n")
    assert ignore.ignored("a/y")


def test_what_is_private_is_always_ignored(ignore: Ignore) -> None:
    for name in (".git", ".git/config", ".coord", ".coord/db", "sub/.git", "sub/.git/HEAD"):
        assert is_private(name)
        assert ignore.ignored(name)
    for name in (".github/x", ".gitignore", ".coordinates", "a/.coordx", "", ".", "./"):
        assert not is_private(name)
        assert not ignore.ignored(name)


def test_nonsense_rules_are_passed_over(root: Path, ignore: Ignore) -> None:
    (root / ".gitignore").write_bytes(b"!\n\xff\xfe\n[\n/\n\\\n*.log\n***\\\n")
    assert ignore.ignored("a.log")


def test_a_tree_below_the_top_obeys_the_rules_above(root: Path) -> None:
    put(root, "pkg/a.log", "pkg/x/b.log", "pkg/c.py")
    (root / ".gitignore").write_text("/pkg/*.log\n")
    ignore = Ignore(Tree(root / "pkg"))
    assert ignore.ignored("a.log")
    assert not ignore.ignored("x/b.log")
    assert listed(ignore, resource("./", "dir")) == ["c.py", "x/b.log"]


def test_without_git(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "b.log")
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert listed(Ignore(Tree(tmp_path)), resource("./", "dir")) == [".gitignore", "a.py"]


# --- lists ----------------------------------------------------------------------------------


def test_lists_of_directories_and_globs(root: Path, ignore: Ignore) -> None:
    put(root, "src/a.py", "src/b.sql", "src/db/c.sql", "src/db/x/d.sql", "e.sql", "äö/f.sql")
    (root / "src/link.sql").symlink_to("b.sql")
    (root / "src/dir").symlink_to("db")
    os.mkfifo(root / "src/pipe.sql")
    assert listed(ignore, resource("src/", "dir")) == [
        "src/a.py", "src/b.sql", "src/db/c.sql", "src/db/x/d.sql", "src/dir", "src/link.sql",
    ]
    assert listed(ignore, resource("src/**/*.sql", "glob")) == [
        "src/b.sql", "src/db/c.sql", "src/db/x/d.sql", "src/link.sql",
    ]
    assert listed(ignore, resource("*.sql", "glob")) == ["e.sql"]
    assert listed(ignore, resource("a\u0308o\u0308/*", "glob")) == ["äö/f.sql"]
    assert listed(ignore, resource("absent/", "dir")) == []
    assert listed(ignore, resource("absent/*", "glob")) == []


def test_what_no_lease_can_name_is_listed_all_the_same(root: Path, ignore: Ignore) -> None:
    names = [b"b\xe4d", b"-dash", b"new\nline", b"x" * 255, "e\u0301".encode(), b"\xff.log",
             "\uef80".encode()]
    put(root, "good")
    (root / ".gitignore").write_text("*.log\n")
    for name in names:
        with open(os.path.join(os.fsencode(root), name), "wb"):
            pass
    found = listed(ignore, resource("./", "dir"))
    assert sorted(map(file_names.to_bytes, found)) == sorted(
        [b".gitignore", b"good", *(name for name in names if not name.endswith(b".log"))])
    "".join(found).encode()  # valid UTF-8, for the database and for JSON


def test_a_link_that_took_the_place_of_a_directory_is_not_followed(
    root: Path, ignore: Ignore, tmp_path: Path
) -> None:
    put(tmp_path, "outside/secret")
    put(root, "d/a", "e/d/b")
    (root / "d/a").unlink()
    (root / "d").rmdir()
    (root / "d").symlink_to(tmp_path / "outside")
    (root / "e/up").symlink_to(tmp_path)
    assert listed(ignore, resource("d/", "dir")) == []
    assert listed(ignore, resource("d/*", "glob")) == []
    assert listed(ignore, resource("e/", "dir")) == ["e/d/b", "e/up"]


def test_an_ignored_directory_can_be_asked_for_by_name(root: Path, ignore: Ignore) -> None:
    put(root, "build/a.o", "build/x/b.o")
    (root / ".gitignore").write_text("build/\n")
    assert listed(ignore, resource("build/", "dir")) == ["build/a.o", "build/x/b.o"]
    assert listed(ignore, resource("./", "dir")) == [".gitignore"]


def test_worktrees_inside_are_left_out(root: Path, ignore: Ignore, git: Git) -> None:
    put(root, "a.py")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "begin")
    git(root, "worktree", "add", "-q", "-b", "b", str(root / "trees/one"))
    assert listed(ignore, resource("./", "dir")) == ["a.py"]


def test_too_many_files_are_refused(root: Path, ignore: Ignore) -> None:
    put(root, *(f"{n}.py" for n in range(6)))
    assert len(listed(ignore, resource("./", "dir"), 6)) == 6
    with pytest.raises(Refusal) as no:
        listed(ignore, resource("./", "dir"), 5)
    assert no.value.code is Code.LIMIT
    assert no.value.facts["limit"] == 5


def test_listing_takes_work_for_each_file_and_no_more_where_there_are_many(root: Path, ignore: Ignore) -> None:
    (root / ".gitignore").write_text("".join(f"*.ext{n}\n/dir{n}/\n" for n in range(20)))
    for directory in range(20):
        put(root, *(f"few/m{directory}/f{n}.py" for n in range(20)))
        put(root, *(f"many/m{directory}/f{n}.py" for n in range(100)))
    for name, files in (("few/", 400), ("many/", 2000)):
        assert len(listed(ignore, resource(name, "dir"))) == files  # what is read once is read
    few = steps(lambda: listed(ignore, resource("few/", "dir")))
    many = steps(lambda: listed(ignore, resource("many/", "dir")))
    assert many < 5.5 * few and many < 1000 * 2000, (few, many)
