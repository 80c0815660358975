"""Attacks on "one file, one key": every spelling of a file must get the same scope."""

import os
import threading
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.files.canonical import Located, Tree
from coordinator.rules import globs
from coordinator.rules.globs import overlaps
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Link

Git = Callable[..., None]


@pytest.fixture(params=["repo", "mein Repó"])
def root(request: pytest.FixtureRequest, tmp_path: Path, git: Git) -> Path:
    """A repository with one commit: one in a plain place, one whose path has a space and an umlaut
    in it (plain paths are told by their letters, others by asking the kernel)."""
    made = tmp_path / request.param
    (made / "src/pay").mkdir(parents=True)
    (made / "src/pay/api.py").write_text("x = 1\n")
    (made / "a.py").write_text("y = 2\n")
    git(made, "init", "-q", "-b", "main", ".")
    git(made, "add", ".")
    git(made, "commit", "-q", "-m", "begin")
    return made


@pytest.fixture
def tree(root: Path) -> Tree:
    return Tree(root)


def refused(act: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as no:
        act()
    return no.value


def meant(tree: Tree, text: str, cwd: str | None = None) -> Located:
    """What a text means, whatever link it was named by."""
    return msgspec.structs.replace(tree.resolve(text, cwd), through=())


# --- spellings ------------------------------------------------------------------------------


def test_all_spellings_of_a_file_are_one(tree: Tree, root: Path) -> None:
    # Given a file that can be reached by links, to it and to a directory above it
    (root / "link.py").symlink_to("src/pay/api.py")
    (root / "chain.py").symlink_to(root / "link.py")
    (root / "short").symlink_to("src/pay")
    (root.parent / "alias").symlink_to(root)
    # If it is named in every way there is
    spellings = [
        "src/pay/api.py",
        "./src/pay/api.py",
        "src//pay///api.py",
        "src/./pay/api.py",
        "src/pay/../pay/api.py",
        "nowhere/../src/pay/api.py",
        "short/api.py",
        "short/../pay/api.py",
        "link.py",
        "chain.py",
        f"{root}/src/pay/api.py",
        f"{root}/./link.py",
        f"{root.parent}/alias/src/pay/api.py",
        f"../{root.name}/src/pay/api.py",
    ]
    found = {meant(tree, text) for text in spellings}
    # I expect one answer
    (one,) = found
    assert one.resource.name == "src/pay/api.py"
    assert one.resource.scope == "p/src/pay/api.py/"
    assert one.path == f"{root}/src/pay/api.py"
    status = (root / "a.py").parent.joinpath("src/pay/api.py").stat()
    assert one.inode is not None
    assert one.inode.startswith(f"{status.st_dev}:{status.st_ino}")
    inside = {
        meant(tree, text, cwd)
        for text, cwd in [
            ("api.py", f"{root}/src/pay"),
            ("api.py", f"{root}/src/pay/"),
            ("api.py", f"{root}/short"),
            ("pay/api.py", f"{root.parent}/alias/src"),
            ("../pay/api.py", f"{root}/src/pay"),
            ("src/pay/api.py", str(root)),
            ("src/pay/api.py", "/"),
            ("src/pay/api.py", str(root.parent)),
        ]
    }
    assert inside == found


def test_a_name_can_begin_at_the_root_wherever_it_is_typed(tree: Tree, root: Path) -> None:
    """As names are printed; the sign is git's."""
    for text in ("a.py", "src/pay/", "src/**/*.py", "src/pay/api.py::f", "./", "key:a"):
        meant = tree.resolve(text).resource
        for cwd in (None, str(root), str(root / "src/pay"), str(root.parent)):
            if not text.startswith("key:"):
                assert tree.resolve(f":/{text}", cwd).resource == meant, (text, cwd)
    assert tree.resolve(":/", str(root / "src")).resource.name == "./"
    assert tree.resolve(":/a.py", literal=True).resource.name == ":/a.py"


def test_hard_links_share_their_inode(tree: Tree, root: Path) -> None:
    os.link(root / "a.py", root / "twin.py")
    assert tree.resolve("a.py").inode == tree.resolve("twin.py").inode
    assert tree.resolve("a.py").inode is not None
    assert tree.resolve("./twin.py").inode == tree.resolve("twin.py").inode


def test_composed_and_decomposed_spellings_are_one(tree: Tree, root: Path) -> None:
    composed, decomposed = "é.py", unicodedata.normalize("NFD", "é.py")
    (root / decomposed).write_text("")
    assert tree.resolve(composed) == tree.resolve(decomposed)
    assert tree.resolve(composed).resource.name == decomposed  # as the disk has it
    assert tree.resolve(composed).inode is not None
    assert tree.resolve(f"neu/{composed}").resource.scope == tree.resolve(
        f"neu/{decomposed}"
    ).resource.scope


def test_case_is_one_where_the_disk_folds_it(root: Path) -> None:
    # Given a tree that is told that its disk folds case
    folding = Tree(root, fold_case=True)
    # If a file is named in another case, I expect the disk's spelling, and the file's inode
    for text in ("SRC/Pay/API.PY", "src/PAY/api.py", f"{root}/SRC/pay/Api.py"):
        found = folding.resolve(text)
        assert found == folding.resolve("src/pay/api.py")
        assert found.resource.name == "src/pay/api.py"
    assert folding.resolve("SRC/new.py").resource.name == "src/new.py"
    assert folding.resolve("SRC/New.py").resource.scope == "p/src/new.py/"
    assert folding.resolve("SRC/PAY").resource.kind == "dir"
    assert folding.resolve("SRC/*.PY").resource.scope == "p/src/"
    assert refused(lambda: folding.resolve(".GIT/config")).code is Code.INVALID
    assert folding.resolve("A.py::Cls").resource.scope == "p/a.py/::Cls/"


def test_this_disk_is_probed(tree: Tree, root: Path) -> None:
    (root / "Probe").write_text("")
    assert tree.fold_case is (root / "pROBE").exists()


@settings(
    max_examples=150, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_noise_in_a_path_changes_nothing(tree: Tree, root: Path, data: st.DataObject) -> None:
    (root / "short").unlink(missing_ok=True)
    (root / "short").symlink_to("src/pay")
    parts = data.draw(
        st.sampled_from([["src", "pay", "api.py"], ["short", "api.py"], ["src", "pay", "new.py"]])
    )
    text = data.draw(st.sampled_from(["", "./", f"{root}/", f"{root.parent}/./{root.name}/"]))
    for part in parts[:-1]:
        text += part + data.draw(st.sampled_from(["/", "//", "/./", "/.//./"]))
        if data.draw(st.booleans()):
            text += data.draw(st.sampled_from(["absent/../", "a.b/.././"]))
    found = tree.resolve(text + parts[-1])
    assert found.resource.name == f"src/pay/{parts[-1]}"


# --- what is there and what is not ----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("new.py", "new.py", "file"),
        ("src/new/deep/x.py", "src/new/deep/x.py", "file"),
        ("src", "src/", "dir"),
        ("src/", "src/", "dir"),
        ("absent/", "absent/", "dir"),
        (".", "./", "dir"),
        ("./", "./", "dir"),
        ("src/..", "./", "dir"),
        ("src/pay/.", "src/pay/", "dir"),
        ("src/pay/api.py::C.m", "src/pay/api.py::C.m", "region"),
        ("./src//pay/api.py::<header>", "src/pay/api.py::<header>", "region"),
        ("key:account:1", "key:account:1", "key"),
        ("git:index", "git:index", "key"),
        ("src/**/*.sql", "src/**/*.sql", "glob"),
        ("./src//pay/../*.sql", "src/*.sql", "glob"),
        ("src/*/./x//y", "src/*/x/y", "glob"),
        ("src/*/", "src/*/**", "glob"),
        ("src/pay/ap\\?.py", "src/pay/ap?.py", "file"),
        ("~/x", "~/x", "file"),
        (".gitignore", ".gitignore", "file"),
        (".github/x.yml", ".github/x.yml", "file"),
        (".coordinates", ".coordinates", "file"),
        ("./a:b", "a:b", "file"),
    ],
)
def test_kinds_and_names(tree: Tree, text: str, name: str, kind: str) -> None:
    found = tree.resolve(text).resource
    assert (found.name, found.kind) == (name, kind)


def test_globs_start_where_they_are_typed(tree: Tree, root: Path) -> None:
    assert tree.resolve("*.py", f"{root}/src").resource.name == "src/*.py"
    assert tree.resolve(f"{root}/src/*.py").resource.name == "src/*.py"
    (root / "short").symlink_to("src/pay")
    assert tree.resolve("short/*.py").resource.name == "src/pay/*.py"
    (root / "[id]").mkdir()
    in_brackets = tree.resolve("*.tsx", f"{root}/[id]").resource
    assert in_brackets.name == "\\[id]/*.tsx"
    assert in_brackets.scope == "p/[id]/"
    (root / "[id]/page.tsx").write_text("")
    assert overlaps(in_brackets, tree.resolve("[id]/page.tsx").resource)


def test_a_file_with_wildcards_in_its_name_is_a_file(tree: Tree, root: Path) -> None:
    (root / "[slug]").mkdir()
    (root / "[slug]/page.tsx").write_text("")
    for text in ("[slug]/page.tsx", f"{root}/[slug]/page.tsx", "[slug]/new.tsx", "[slug]"):
        assert tree.resolve(text).resource.kind in ("file", "dir"), text
    for text in ("[x]/new.tsx", "app/[...all].tsx", "[[...x]]/p.ts", "[0-9].py", "[[:alpha:]]", "app/\\[id\\]/x.ts"):
        found = tree.resolve(text).resource
        assert (found.kind, found.name) == ("file", text.replace("\\", "")), "also before its directory is made"
    assert tree.resolve("lib/[x]/").resource == tree.resolve("lib/[x]/", literal=True).resource
    for text, means, other in (("[slug]/*.tsx", "[slug]/page.tsx", "s/page.tsx"), ("**/[id]/x", "a/[id]/x", "a/i/x"), ("[id]/**", "[id]/a/b", "d/a"),
                               ("f[0-9]*.py", "f1x.py", "f[0-9]x.py"), ("[*]/?", "*/a", "[*]/a"), ("\\[id\\]/*", "[id]/a", "i/a")):
        glob = tree.resolve(text).resource
        assert glob.kind == "glob" and globs.matches(glob.name, means) and not globs.matches(glob.name, other), glob
        assert tree.resolve(glob.name).resource == glob, "one name"
    literal = tree.resolve(f"{root}/[x]/key:*.tsx", literal=True).resource
    assert (literal.name, literal.kind) == ("[x]/key:*.tsx", "file")
    assert tree.resolve("a::b.py", literal=True).resource.kind == "file"
    assert tree.resolve("[slug]/page.tsx::Page").resource.scope == "p/[slug]/page.tsx/::Page/"


def test_odd_files_have_no_inode(tree: Tree, root: Path) -> None:
    os.mkfifo(root / "pipe")
    found = tree.resolve("pipe")
    assert (found.resource.kind, found.inode) == ("file", None)
    assert tree.resolve("new.py").inode is None
    assert tree.resolve("src").inode is None


# --- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["..", "../x.py", "/etc/passwd", "/", "src/../../x", "out/x.py", "out.py", "../*.py",
     "out/*.py", "../x.py::C", "dangling-out"],
)
def test_outside_is_refused(tree: Tree, root: Path, text: str) -> None:
    outside = root.parent / "elsewhere"
    outside.mkdir()
    (outside / "x.py").write_text("")
    (root / "out").symlink_to(outside)
    (root / "out.py").symlink_to(outside / "x.py")
    (root / "dangling-out").symlink_to(outside / "absent.py")
    no = refused(lambda: tree.resolve(text))
    assert no.code is Code.OUTSIDE_REPO
    assert "Nothing was done" in no.message


def test_a_sister_with_the_same_beginning_is_outside(tree: Tree, root: Path) -> None:
    sister = root.parent / (root.name + "2")
    sister.mkdir()
    (sister / "a.py").write_text("")
    assert refused(lambda: tree.resolve(f"{sister}/a.py")).code is Code.OUTSIDE_REPO
    assert refused(lambda: tree.resolve(str(sister))).code is Code.OUTSIDE_REPO


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (".git/config", "git's own"),
        (".git", "git's own"),
        ("src/../.git/HEAD", "git's own"),
        (".git/*", "git's own"),
        ("sub/.git", "git's own"),
        (".coord/db", "coord's own"),
        (".coord", "coord's own"),
        ("into-git/HEAD", "git's own"),
        ("loop", "circle"),
        ("loop/x", "circle"),
        ("a.py/x", "directory"),
        ("a.py/", "directory"),
        ("a.py/*.x", "directory"),
        ("src/*/../x", "wildcard"),
        ("x" * 256, "255"),
        ("absent/" + "x" * 256, "255"),
        ("absent/" + "ä" * 128, "255"),
        ("src::C", "directory"),
        ("src/[[:alpha:]]*", "class"),
        ("", "empty"),
        ("a\0b", "NUL"),
    ],
)
def test_what_makes_no_sense_is_refused(tree: Tree, root: Path, text: str, word: str) -> None:
    (root / "loop").symlink_to("loop")
    (root / "into-git").symlink_to(".git")
    no = refused(lambda: tree.resolve(text))
    assert no.code is Code.INVALID
    assert word in no.message


def test_a_dangling_link_is_its_target(tree: Tree, root: Path) -> None:
    (root / "dangling").symlink_to("src/later.py")
    assert meant(tree, "dangling") == meant(tree, "src/later.py")
    assert tree.resolve("dangling").through == (f"{root}/dangling",)


@pytest.mark.parametrize("below", ["", "src/", "short/", "ü/"])
@pytest.mark.parametrize("to", ["{}/src/pay", "{}/a.py", "nowhere/x", "it", "/etc/passwd", ".."])
def test_a_link_by_itself_is_its_own_name(tree: Tree, root: Path, below: str, to: str) -> None:
    """Wherever it leads, however it is reached: through other links, from a folder, by a decomposed spelling."""
    (root / "short").symlink_to("src/pay")
    (root / "ü").mkdir()
    (root / below / "it").symlink_to(to.format(root))
    (root / "alias").symlink_to(root)
    name = f"{below}it".replace("short/", "src/pay/")
    spellings = [f"{below}it", f"./{below}it", f"alias/{below}it", str(root / below / "it"), unicodedata.normalize("NFD", f"{below}it")]
    found = [tree.resolve(text, literal=True, link="itself") for text in spellings]
    found += [tree.resolve("it", str(root / below), literal=True, link="itself")]
    for one in found:
        assert (one.resource.name, one.resource.kind, one.is_link, one.has_content, one.path) == (name, "file", True, True, str(root / name)), one
    if to == "{}/src/pay":  # (a directory is entered)
        assert tree.resolve(f"{below}it", literal=True, link="entered") == tree.resolve("src/pay", literal=True)
    elif to != "..":
        assert tree.resolve(f"{below}it", literal=True, link="entered") == found[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_a_closed_directory_is_a_refusal(tree: Tree, root: Path) -> None:
    (root / "closed").mkdir(mode=0)
    try:
        assert refused(lambda: tree.resolve("closed/x")).code is Code.STORAGE
    finally:
        (root / "closed").chmod(0o700)


def test_a_disk_that_refuses_is_a_refusal(
    tree: Tree, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    for name in ("lstat", "open", "stat"):
        monkeypatch.setattr(os, name, broken)
    no = refused(lambda: tree.resolve("a.py"))
    monkeypatch.undo()
    assert no.code is Code.STORAGE
    assert "permission denied" in no.message


@settings(
    max_examples=300, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(st.sampled_from("a./*[]:\\é\udc80\0~ s?<"), max_size=12), st.booleans(), st.sampled_from(["followed", "itself", "entered"]))
def test_nothing_typed_makes_a_traceback(tree: Tree, text: str, literal: bool, link: Link) -> None:
    try:
        found = tree.resolve(text, literal=literal, link=link)
    except Refusal as no:
        no.message.encode()
    else:
        # What is resolved once resolves to itself.
        if found.path is not None:
            again = tree.resolve(found.path, literal=True)
            assert found.resource.scope.startswith(again.resource.scope)


# --- worktrees ------------------------------------------------------------------------------


def same(one: Located, two: Located) -> bool:
    return one.resource == two.resource


def test_a_worktree_twin_is_the_same_resource(
    tree: Tree, root: Path, tmp_path: Path, git: Git
) -> None:
    # Given worktrees made after the tree was opened: outside, inside, in a hidden place inside
    for number, place in enumerate(
        [tmp_path / "wt eins", root / "wt", root / ".coord/worktrees/T-1"]
    ):
        git(root, "worktree", "add", "-q", "-b", f"b{number}", str(place))
        # If a file is named there, I expect the name that it has in the main worktree
        assert same(tree.resolve(f"{place}/src/pay/api.py"), tree.resolve("src/pay/api.py"))
        assert same(tree.resolve("api.py", f"{place}/src/pay"), tree.resolve("src/pay/api.py"))
        assert same(tree.resolve("new/x.py", str(place)), tree.resolve("new/x.py"))
        assert same(tree.resolve("*.py", f"{place}/src"), tree.resolve("src/*.py"))
        assert same(tree.resolve(str(place)), tree.resolve("./"))
        assert tree.resolve(f"{place}/a.py").path == f"{place}/a.py"
        assert tree.resolve(f"{place}/a.py").inode != tree.resolve("a.py").inode
        assert str(place) in tree.worktrees()
        private = f"{place}/.git"
        assert refused(partial(tree.resolve, private)).code is Code.INVALID
    assert same(tree.resolve("wt/a.py"), tree.resolve("a.py"))
    assert same(tree.resolve("wt"), tree.resolve("./"))
    # and a removed one is a plain place again
    git(root, "worktree", "remove", str(root / "wt"))
    assert tree.resolve("wt/a.py").resource.name == "wt/a.py"


def test_a_moved_worktree_is_found(
    tree: Tree, root: Path, tmp_path: Path, git: Git
) -> None:
    git(root, "worktree", "add", "-q", "-b", "b", str(tmp_path / "one"))
    assert same(tree.resolve(f"{tmp_path}/one/a.py"), tree.resolve("a.py"))
    git(root, "worktree", "move", str(tmp_path / "one"), str(tmp_path / "two"))
    assert same(tree.resolve(f"{tmp_path}/two/a.py"), tree.resolve("a.py"))


def test_a_root_below_the_top_has_its_twin_below_the_worktree(
    root: Path, tmp_path: Path, git: Git
) -> None:
    git(root, "worktree", "add", "-q", "-b", "b", str(tmp_path / "wt"))
    tree = Tree(root / "src")
    assert same(tree.resolve(f"{tmp_path}/wt/src/pay/api.py"), tree.resolve("pay/api.py"))
    assert refused(lambda: tree.resolve(f"{tmp_path}/wt/a.py")).code is Code.OUTSIDE_REPO


def test_resolving_from_many_threads(tree: Tree, root: Path) -> None:
    wrong: list[object] = []

    def work() -> None:
        for _ in range(300):
            found = tree.resolve("./src/pay/api.py")
            if found.resource.name != "src/pay/api.py":
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert wrong == []


@pytest.mark.parametrize("cwd", ["src", "./src", "../x", "~"])
def test_a_place_to_start_from_has_to_be_whole(tree: Tree, cwd: str) -> None:
    """The coordinator stands somewhere else than whoever asks."""
    with pytest.raises(Refusal) as no:
        tree.resolve("api.py", cwd)
    assert no.value.code is Code.INVALID and "absolute" in no.value.message


def test_from_outside_a_path_leads_where_it_leads_else_it_begins_at_the_root(tree: Tree, root: Path) -> None:
    """`repo/a.py` typed beside the repository is its `a.py`; `a.py` is, too, for it leads nowhere else in it."""
    above, name = str(root.parent), root.name
    (root / "only.py").write_text("")
    (root / name).mkdir()
    (root / name / "within.py").write_text("")
    for text, meant in ((f"{name}/only.py", "only.py"), ("only.py", "only.py"), (f"{name}/new.py", "new.py"), (f"./{name}/only.py", "only.py"),
                        (f"{name}/within.py", f"{name}/within.py"), (f"{name}/{name}/within.py", f"{name}/within.py"), (f"{name}/*.py", "*.py"),
                        (f"{name}/only.py::f", "only.py::f"), (name, "."), (f"x/../{name}/only.py", "only.py")):
        assert tree.resolve(text, above).resource.name.rstrip("/") == meant, text
    assert tree.resolve("only.py", "/").resource.name == "only.py"
    assert tree.resolve(f"{str(root)[1:]}/only.py", "/").resource.name == "only.py"
