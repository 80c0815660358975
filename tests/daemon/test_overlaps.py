"""`coord overlap`: what two working trees change both, by region, and whether a trial merge is clean."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo

SOURCE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"


def git(place: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@x", *words], cwd=place, check=True, capture_output=True)


@pytest.fixture
def trees(repo: Repo) -> dict[str, Path]:
    """The main tree, one below the root and one beside it, each on a branch of its own."""
    git(repo.root, "init", "-q", "-b", "main")
    git(repo.root, "symbolic-ref", "HEAD", "refs/heads/main")
    for path in ("m.py", "a folder/ü.py"):
        repo.write(path, SOURCE)
    repo.write("n.txt", "one\n")
    repo.write(".gitignore", ".coord\n.trees\nignored\n")
    git(repo.root, "add", "-A")
    git(repo.root, "commit", "-qm", "x")
    places = {"main": repo.root, "in": repo.root / ".trees/in", "out": repo.root.parent / "out"}
    for name in ("in", "out"):
        git(repo.root, "worktree", "add", "-q", "-b", name, str(places[name]))
    return places


def listed(repo: Repo, branch: str | None = None) -> list[tuple[str, list[str] | None, tuple[str, ...], bool]]:
    with repo.client() as client:
        return [(item.path, item.regions, tuple(sorted(str(side.branch) for side in item.sides)), item.clean)
                for item in client.call(rq.Overlaps(branch=branch)).items]


def put(place: Path, path: str, text: str | bytes | None) -> None:
    (place / path).parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        (place / path).unlink()
    else:
        (place / path).write_bytes(text if isinstance(text, bytes) else text.encode())


F, G, F2 = SOURCE.replace("return 1", "return 10"), SOURCE.replace("return 2", "return 20"), SOURCE.replace("return 1", "return 11")


@pytest.mark.parametrize("committed", [False, True], ids=["uncommitted", "committed"])
@pytest.mark.parametrize(("path", "mine", "its", "expected"), [
    ("m.py", F, F2, (["m.py::f"], False)), ("m.py", F, G, None), ("m.py", F, F, None), ("m.py", F, F + "\n\ndef new():\n    return 3\n", None),
    ("a folder/ü.py", F, F2, (["a folder/ü.py::f"], False)), ("n.txt", "two\n", "three\n", (None, False)), ("new.py", F, F2, (["new.py::f"], False)),
    ("m.py", None, F, (None, False)), ("n.bin", b"\0\1", b"\0\2", (None, False)), ("ignored", "a\n", "b\n", None)])
def test_what_both_change_is_listed(repo: Repo, trees: dict[str, Path], path: str, mine: str | bytes | None, its: str | bytes,
                                    expected: tuple[list[str] | None, bool] | None, committed: bool) -> None:
    for name, text in (("in", mine), ("out", its)):
        put(trees[name], path, text)
        if committed and path != "ignored":
            git(trees[name], "add", "-A")
            git(trees[name], "commit", "-qm", "y")
    assert listed(repo) == ([] if expected is None else [(path, expected[0], ("in", "out"), expected[1])])
    assert listed(repo, "main") == []


def test_what_has_landed_is_no_overlap(repo: Repo, trees: dict[str, Path]) -> None:
    put(trees["in"], "m.py", F)
    git(trees["in"], "commit", "-qam", "y")
    git(repo.root, "merge", "-q", "in")
    put(trees["out"], "m.py", F2)
    assert listed(repo) == []
    put(trees["main"], "m.py", F2.replace("11", "12"))
    assert listed(repo) == [("m.py", ["m.py::f"], ("main", "out"), False)]


def test_who_is_at_work_there_is_named(repo: Repo, trees: dict[str, Path]) -> None:
    for name, text, agent in (("in", F, "ann"), ("main", F2, "bob")):
        put(trees[name], "m.py", text)
        done = repo.coord("lock", "n.txt" if agent == "ann" else "m.py", "--agent", agent, cwd=trees[name])
        assert done.returncode == 0, done.stderr
    with repo.client() as client:
        (item,) = client.call(rq.Overlaps()).items
    assert [(side.branch, side.agents) for side in item.sides] == [("main", ["bob"]), ("in", ["ann"])]
    shown = repo.coord("overlap").stdout
    assert "m.py::f" in shown and "main (bob)" in shown and "in (ann)" in shown and "conflict: f" in shown
    assert repo.coord("overlap", "out").stdout == "No working tree changes what out changes.\n"


def test_where_there_is_nothing_to_compare(repo: Repo) -> None:
    repo.coord("up")
    assert repo.coord("overlap").stdout == "No two working trees change the same.\n", "no git"
    git(repo.root, "init", "-q")
    assert listed(repo) == [], "no commit"


def test_the_list_is_bounded(repo: Repo, trees: dict[str, Path]) -> None:
    for n in range(5):
        for name in ("in", "out"):
            put(trees[name], f"{n}.txt", name)
    with repo.client() as client:
        reply = client.call(rq.Overlaps(limit=3))
    assert len(reply.items) == 3 and reply.cut


def test_it_is_asked_of_a_tree_or_of_files(repo: Repo, trees: dict[str, Path]) -> None:
    for name in ("main", "in", "out"):
        for path in ("m.py", "n.txt"):
            put(trees[name], path, f"{name}\n")

    def ask(**more: object) -> list[str]:
        with repo.client() as client:
            return sorted("-".join(sorted(str(side.branch) for side in item.sides)) + f" {item.path}"
                          for item in client.call(rq.Overlaps(**more)).items)  # type: ignore[arg-type]

    assert ask(paths=["n.txt"]) == ["in-main n.txt", "in-out n.txt", "main-out n.txt"]
    assert ask(paths=["n.txt"], cwd=".trees/in/n.txt") == ["in-main n.txt", "in-out n.txt"]
    assert ask(paths=[str(trees["out"] / "m.py")], cwd=str(trees["out"])) == ["in-out m.py", "main-out m.py"]
    assert ask(paths=["/elsewhere"]) == ask(paths=["a folder/ü.py"]) == []
    assert len(ask()) == 6
    with repo.client() as client:
        few = client.call(rq.Overlaps(unasked=True))
    assert (len(few.items), few.cut, few.describe()[-1]) == (5, True, "there are more: `coord overlap`")


def test_a_tree_that_is_made_meanwhile_is_seen(repo: Repo) -> None:
    repo.coord("up")
    git(repo.root, "init", "-q")
    repo.write("n.txt", "one\n")
    git(repo.root, "add", "n.txt")
    git(repo.root, "commit", "-qm", "x")
    assert listed(repo) == []
    git(repo.root, "worktree", "add", "-q", "-b", "out", str(repo.root.parent / "out"))
    for place in (repo.root, repo.root.parent / "out"):
        put(place, "n.txt", f"{place}\n")
    assert [path for path, *_ in listed(repo)] == ["n.txt"]


def test_an_agent_is_not_warned_of_its_own_work_in_another_tree(repo: Repo, trees: dict[str, Path]) -> None:
    put(trees["main"], "m.py", F)
    put(trees["in"], "m.py", F2)
    with repo.client("ann") as ann, repo.client("bob") as bob:
        names = [client.register() for client in (ann, bob)]
        ann.call(rq.Acquire(agent=names[0], resources=["m.py"]))
        assert [len(client.call(rq.Overlaps(unasked=True)).items) for client in (ann, bob)] == [0, 1]
        assert len(ann.call(rq.Overlaps()).items) == 1, "who asks is told all"
