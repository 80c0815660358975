"""Two files in two working trees on two branches are two files: what a hook takes unasked counts in its own tree, and both are told.
What somebody has asked for counts in every tree."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.looking.facts import Looked
from coordinator.looking.working_trees import WorkingTrees
from coordinator.settings import Settings, Strategies, Worktrees
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.service.test_two_trees import Trees
from tests.sessions import Session
from tests.world import World


@pytest.fixture
def trees(tmp_path: Path) -> Iterator[Trees]:
    made = Trees(tmp_path)
    yield made
    assert made.world.replay_differs() == []
    made.world.close()


def edit(trees: Trees, session: Session, tree: str, path: str = "src/a.py") -> str:
    """Why its edit tool may not write the file in this tree; empty: it may."""
    given: dict[str, object] = {"file_path": f"{trees.cwd[tree]}/{path}", "content": f"{session.session} in {tree}\n"}
    return session.call("Write", given, cwd=trees.cwd[tree]).deny


def told(trees: Trees, agent: str) -> list[str]:
    return [str(event.data["text"]) for event in trees.world.ask(rq.Events(kind="notice_posted", agent=agent)).items
            if event.data["about"] == "overlap"]


def test_two_trees_hold_two_files_and_both_are_told_once(trees: Trees) -> None:
    ann, bob = Session(trees.world, "ann"), Session(trees.world, "bob")
    assert edit(trees, ann, "w") == "" and edit(trees, bob, "main") == ""
    assert sorted((row.locked_by, row.worktree or "main") for row in trees.rows()) == [
        (ann.name, trees.cwd["w"]), (bob.name, "main")]
    (hers,), (his,) = told(trees, ann.name), told(trees, bob.name)
    assert hers.startswith(f"{bob.name} edits src/a.py in the main working tree, too, since ") and "Write by its hook" in hers
    assert his.startswith(f"{ann.name} edits src/a.py in the working tree ../w, too, since ") and "Nobody is stopped" in his
    for session, tree in ((ann, "w"), (bob, "main")):
        assert edit(trees, session, tree) == ""
    assert len(told(trees, ann.name)) == len(told(trees, bob.name)) == 1, "it is said once"


@pytest.mark.parametrize("tree", ["main", "w"])
def test_in_one_tree_it_is_one_file(trees: Trees, tree: str) -> None:
    ann, bob = Session(trees.world, "ann"), Session(trees.world, "bob")
    assert edit(trees, ann, tree) == "" and ann.name in edit(trees, bob, tree)
    other = "w" if tree == "main" else "main"
    assert edit(trees, bob, other) == "", "his place in the line of this tree is in nobody's way in the other"
    assert ann.name in edit(trees, bob, tree)


@pytest.mark.parametrize("asked_in", ["main", "w"])
@pytest.mark.parametrize("name", ["src/a.py", "src/", "src/*.py"])
def test_what_was_asked_for_counts_in_every_tree(trees: Trees, asked_in: str, name: str) -> None:
    trees.lock(asked_in, name)
    ann = Session(trees.world, "ann")
    for tree in ("main", "w"):
        assert "bob" in edit(trees, ann, tree)


@pytest.mark.parametrize("tree", ["main", "w"])
def test_what_is_asked_for_waits_for_what_hooks_have_in_any_tree(trees: Trees, tree: str) -> None:
    """It would count where they are at work."""
    ann = Session(trees.world, "ann")
    assert edit(trees, ann, tree) == ""
    for cwd in trees.cwd.values():
        refusal = trees.world.refused(rq.Acquire(agent="bob", resources=["src/a.py"], cwd=cwd))
        assert refusal.code is Code.LOCKED and ann.name in refusal.message
    ann.hook("SessionEnd", reason="exit")
    assert [row.locked_by for row in trees.rows()] == ["bob"]


def test_a_hook_s_lease_that_is_asked_for_counts_everywhere_from_then_on(trees: Trees) -> None:
    ann, bob = Session(trees.world, "ann"), Session(trees.world, "bob")
    assert edit(trees, ann, "w") == ""
    trees.lock("w", "src/a.py", agent=ann.name)
    assert ann.name in edit(trees, bob, "main")


def test_nobody_makes_his_lease_count_where_another_has_one(trees: Trees) -> None:
    ann, bob = Session(trees.world, "ann"), Session(trees.world, "bob")
    assert edit(trees, ann, "w") == "" and edit(trees, bob, "main") == ""
    refusal = trees.world.refused(rq.Acquire(agent=ann.name, resources=["src/a.py"], cwd=trees.cwd["w"], reentrant=True))
    assert refusal.code is Code.LOCKED and bob.name in refusal.message
    assert len(trees.rows()) == 2


@pytest.mark.parametrize("first", ["main", "w"])
@pytest.mark.parametrize("how", ["hard link", "folder", "file", "foreign folder"])
def test_one_inode_under_two_trees_is_one_file(trees: Trees, first: str, how: str) -> None:
    """As linked `node_modules` are."""
    main, w, path = Path(trees.cwd["main"]), Path(trees.cwd["w"]), "src/a.py"
    if how == "hard link":
        (w / path).unlink()
        os.link(main / path, w / path)
    else:
        path = "node_modules/a.js"
        target = (main if how != "foreign folder" else w) / "node_modules"
        trees.world.write("node_modules/a.js", "a\n")
        if how == "file":
            (w / "node_modules").mkdir()
            (w / path).symlink_to(main / path)
        elif how == "folder":
            (w / "node_modules").symlink_to(target)
        else:
            os.rename(main / "node_modules", target)
            (main / "node_modules").symlink_to(target)
    ann, bob = Session(trees.world, "ann"), Session(trees.world, "bob")
    assert edit(trees, ann, first, path) == ""
    assert ann.name in edit(trees, bob, "w" if first == "main" else "main", path)
    assert told(trees, ann.name) == []


@pytest.mark.parametrize(("settings", "refused", "says"), [
    (Settings(worktrees=Worktrees(overlap="refuse")), True, 0), (Settings(worktrees=Worktrees(overlap="ignore")), False, 0),
    (Settings(strategies=Strategies(by_glob={"src/**": "pessimistic"})), True, 0), (Settings(strategies=Strategies(by_glob={"docs/**": "pessimistic"})), False, 1)])
def test_a_person_decides_what_follows(tmp_path: Path, settings: Settings, refused: bool, says: int) -> None:
    made = Trees(tmp_path, settings)
    ann, bob = Session(made.world, "ann"), Session(made.world, "bob")
    assert edit(made, ann, "w") == ""
    assert (ann.name in edit(made, bob, "main")) is refused
    assert len(told(made, ann.name)) == says
    made.world.close()


def test_an_ordinary_first_edit_runs_no_git(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: object, **more: object) -> None:
        raise AssertionError(f"git ran: {words}")

    monkeypatch.setattr(subprocess, "run", fail)
    assert edit(trees, Session(trees.world, "ann"), "main") == "", "the other tree has the file as it is here"
    monkeypatch.setattr(WorkingTrees, "find_beside", fail)
    assert edit(trees, Session(trees.world, "ann"), "main") == "", "it is no first edit"


def test_where_there_is_one_tree_no_other_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: object) -> None:
        raise AssertionError(f"looked at {words}")

    monkeypatch.setattr(WorkingTrees, "find_beside", fail)
    monkeypatch.setattr(Looked, "after", fail)
    world = World(tmp_path / "alone", git=True)
    world.write("a.txt", "a\n")
    given: dict[str, object] = {"file_path": str(world.root / "a.txt"), "content": "b\n"}
    assert Session(world, "ann").call("Write", given).deny == ""
    world.close()
