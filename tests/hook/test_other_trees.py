"""A first edit is told of what another working tree has changed and not landed, through the hooks of real sessions and real git."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.daemon.test_overlaps import F2, SOURCE, F, G, git, put
from tests.hook.test_sessions import Claude


def make_trees(up: Repo) -> dict[str, Path]:
    git(up.root, "checkout", "-q", "-b", "main")
    up.write("m.py", SOURCE)
    up.write(".gitignore", ".coord\nignored\n")
    git(up.root, "add", "-A")
    git(up.root, "commit", "-qm", "x")
    places = {"main": up.root, "w": up.root.parent / "w"}
    git(up.root, "worktree", "add", "-q", "-b", "w", str(places["w"]))
    return places


@pytest.fixture
def trees(up: Repo) -> dict[str, Path]:
    return make_trees(up)


class Agent(Claude):
    """A session in one of the trees."""

    def __init__(self, repo: Repo, session: str, place: Path) -> None:
        super().__init__(repo, session)
        self.place = place

    def write(self, text: str, path: str = "m.py") -> None:
        """Edit a file, and let go of it."""
        given = {"file_path": str(self.place / path), "content": text}
        self._call("Read", given, "PostToolUse", cwd=str(self.place), tool_response={})
        said = self._call("Write", given, cwd=str(self.place))
        assert said.get("permissionDecision") != "deny", said
        put(self.place, path, text)
        self._call("Write", given, "PostToolUse", cwd=str(self.place), tool_response={})
        with self.repo.client() as client:
            leases = client.call(rq.Locks()).items
            client.call(rq.Release(agent=self.name, resources=[lease.resource for lease in leases], cwd=str(self.place)))
            assert client.call(rq.Locks()).items == []

    def told(self) -> list[str]:
        with self.repo.client() as client:
            return [str(event.data["text"]) for event in client.call(rq.Events(kind="notice_posted", agent=self.name)).items
                    if event.data["about"] == "overlap"]


def commit(place: Path) -> None:
    git(place, "add", "-A")
    git(place, "commit", "-qm", "y")


@pytest.mark.parametrize("committed", [False, True], ids=["uncommitted", "committed"])
def test_both_are_told_once_of_a_region_that_nobody_leases(up: Repo, trees: dict[str, Path], committed: bool) -> None:
    ann, bob = Agent(up, "ann", trees["w"]), Agent(up, "bob", trees["main"])
    ann.write(F)
    if committed:
        commit(trees["w"])
    assert ann.told() == bob.told() == []
    bob.write(G)
    assert ann.told() == bob.told() == [], "another region"
    for text in (F2, SOURCE, F2):
        bob.write(text)
    (hers,), (his,) = ann.told(), bob.told()
    assert his.startswith(f"{ann.name} changed m.py::f in the working tree ../w, too, since ") and "Write by its hook" in his
    assert hers.startswith(f"{bob.name} edits m.py::f in the main working tree, too, since ") and "Nobody is stopped" in hers
    assert "not landed yet" in his and "not landed" not in hers
    ann.write(F.replace("10", "12"))
    assert len(ann.told()) == len(bob.told()) == 1, "each pair is told once of a region"
    ann.write(G)
    bob.write(G.replace("20", "21"))
    assert len(ann.told()) == len(bob.told()) == 2, "of another region, too"


def test_what_a_person_has_changed_is_told_to_the_one_who_edits(up: Repo, trees: dict[str, Path]) -> None:
    put(trees["main"], "m.py", F2)
    ann = Agent(up, "ann", trees["w"])
    for text in (F, SOURCE, F):
        ann.write(text)
    (hers,) = ann.told()
    assert hers.startswith("Somebody changed m.py::f in the main working tree, too, since ")


def test_what_has_landed_or_is_ignored_or_one_s_own_is_not_told(up: Repo, trees: dict[str, Path]) -> None:
    ann, bob = Agent(up, "ann", trees["w"]), Agent(up, "bob", trees["main"])
    ann.write(F)
    ann.write("a\n", "ignored")
    commit(trees["w"])
    git(trees["main"], "merge", "-q", "w")
    bob.write(F2)
    bob.write("b\n", "ignored")
    assert ann.told() == bob.told() == []
    bob.place = trees["w"]
    bob.write(F2)
    assert bob.told() == [], "his own"


def test_a_new_and_a_deleted_file_count_as_a_whole(up: Repo, trees: dict[str, Path]) -> None:
    ann, bob = Agent(up, "ann", trees["w"]), Agent(up, "bob", trees["main"])
    ann.write("a\n", "new.txt")
    put(trees["w"], "m.py", None)
    bob.write("b\n", "new.txt")
    bob.write(F)
    assert [text.split(" in the")[0] for text in bob.told()] == [f"{ann.name} changed new.txt", "Somebody changed m.py::f"]
    assert len(ann.told()) == 1


@pytest.mark.parametrize("overlap", ["refuse", "ignore"])
def test_who_does_not_want_to_know_is_told_nothing(make_repo: Callable[..., Repo], overlap: str) -> None:
    repo = make_repo(config=f'[worktrees]\noverlap = "{overlap}"\n')
    repo.coord("up")
    trees = make_trees(repo)
    ann, bob = Agent(repo, "ann", trees["w"]), Agent(repo, "bob", trees["main"])
    ann.write(F)
    bob.write(F2)
    assert ann.told() == bob.told() == []


@pytest.mark.parametrize("merged", [True, False])
def test_a_tree_whose_work_was_merged_is_removed_without_a_word(up: Repo, trees: dict[str, Path], merged: bool) -> None:
    """What its agent wrote is in the last commit of the tree around; what is in none is kept for a person."""
    ann = Agent(up, "ann", trees["w"])
    ann.write(F)
    ann.write("x\n", "new.py")
    if merged:
        commit(trees["w"])
    for words in [["merge", "-q", "w"]] * merged + [["worktree", "remove", "--force", str(trees["w"])]]:
        command = {"command": f"git {' '.join(words)}"}
        ann._call("Bash", command)
        git(up.root, *words)
        ann._call("Bash", command, "PostToolUse", tool_response={"stdout": "", "stderr": ""})
    ann.hook("Stop", stop_hook_active=False)
    with up.client() as client:
        flagged = {file.path for review in client.call(rq.Reviews()).items for file in review.files}
    assert flagged == (set() if merged else {"m.py", "new.py"})
