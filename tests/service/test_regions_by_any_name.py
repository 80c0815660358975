"""A region is committed, given back and told of by each name under which it can be leased, and never another one in its place."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World

BEFORE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
NEW = "def f():\n    return 9\n"


@pytest.fixture
def world(world: World) -> World:
    for name in ("a.py", "sub/a.py"):
        world.write(name, BEFORE)
    (world.root / "link.py").symlink_to("sub/a.py")
    (world.root / "folder").symlink_to("sub")
    return world


def commit(name: str, cwd: str | None = None, **more: str) -> rq.CommitRegion:
    return rq.CommitRegion(agent="ann", regions=[rq.RegionText(resource=name, text=NEW, **more)], cwd=cwd)


def is_written(world: World) -> list[str]:
    return [name for name in ("a.py", "sub/a.py") if "return 9" in (world.root / name).read_text()]


@pytest.mark.parametrize("leased", ["sub/a.py::f", "link.py::f"])
@pytest.mark.parametrize(("name", "below"), [
    ("./sub/a.py::f", None), (":/sub/a.py::f", None), ("{}/sub/a.py::f", None), ("link.py::f", None), ("folder/a.py::f", None), ("sub/../sub/a.py::f", None),
    ("a.py::f", "sub"), ("./a.py::f", "sub"), (":/sub/a.py::f", "sub"), ("../sub/a.py::f", "sub"), ("{}/sub/a.py::f", "sub"), ("a.py::f", "folder"),
])
def test_each_name_of_a_leased_region_names_it_to_be_written(world: World, leased: str, name: str, below: str | None) -> None:
    world.acquire("ann", leased)
    done = world.ask(commit(name.format(world.root), None if below is None else f"{world.root}/{below}"))
    assert (done.regions[0].resource, is_written(world)) == ("sub/a.py::f", ["sub/a.py"])


def test_a_name_below_the_root_is_no_name_at_the_root(world: World) -> None:
    below = f"{world.root}/sub"
    world.acquire("ann", "a.py::f")
    refusal = world.refused(commit("a.py::f", below))
    assert refusal.code is Code.UNKNOWN_LEASE and "sub/a.py::f" in refusal.message and "`:/a.py::f`" in str(refusal.next)
    assert world.refused(commit("a.py::g", below)).next == "`coord lock :/sub/a.py::g --agent ann`, read it, then commit."
    assert world.refused(rq.Release(agent="ann", resources=["a.py::f"], cwd=below)).code is Code.UNKNOWN_LEASE
    world.acquire("bob", "sub/a.py::f")
    assert world.ask(rq.Explain(subject="a.py::f", cwd=below)).subject == "sub/a.py::f"
    refusal = world.refused(commit("a.py::f", below))
    assert refusal.code is Code.NOT_HOLDER and "`coord request file :/sub/a.py::f " in str(refusal.next)
    assert is_written(world) == []
    world.ask(rq.Release(agent="bob", resources=["sub/a.py::f"]))
    # Both held: what is meant here is written, and given back
    world.acquire("ann", "sub/a.py::f")
    world.ask(commit("a.py::f", below))
    world.ask(rq.Release(agent="ann", resources=["a.py::f"], cwd=below))
    assert is_written(world) == ["sub/a.py"] and [one.resource for one in world.ask(rq.Locks()).items] == ["a.py::f"]


def test_a_name_as_it_is_printed_is_told_how_to_be_typed_below_the_root(world: World) -> None:
    world.acquire("ann", "sub/a.py::f")
    refusal = world.refused(commit("sub/a.py::f", f"{world.root}/sub"))
    assert refusal.code is Code.UNKNOWN_LEASE and "`:/sub/a.py::f`" in str(refusal.next)
    assert is_written(world) == []


def test_what_was_leased_is_meant_where_a_link_was_put_there_since(world: World) -> None:
    world.acquire("ann", "a.py::f")
    world.acquire("ann", "sub/a.py::f")
    (world.root / "a.py").unlink()
    os.symlink("sub/a.py", world.root / "a.py")
    assert world.refused(commit("a.py::f")).code is Code.REGION_CHANGED
    assert is_written(world) == []


def test_a_name_that_leads_out_of_the_repository_is_refused(world: World) -> None:
    assert world.refused(commit("../x.py::f")).code is Code.OUTSIDE_REPO
    assert world.refused(commit("sub/::f")).code is Code.INVALID


@pytest.mark.parametrize(("leased_in", "typed_in", "written"), [("", "", "main"), ("other", "other", "other"), ("", None, "main"), ("other", None, "other"), ("", "other", ""), ("other", "", "")])
def test_a_region_is_written_in_the_working_tree_that_was_named_or_nowhere(
        tmp_path: Path, leased_in: str, typed_in: str | None, written: str) -> None:
    world = World(tmp_path / "r", git=True)
    world.write("a.py", BEFORE)
    other = tmp_path / "other"
    for words in (["add", "a.py"], ["commit", "-qm", "x"], ["worktree", "add", "-q", "--detach", str(other)]):
        subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@localhost", *words], cwd=world.root, check=True)
    places = {"": str(world.root), "other": str(other)}
    world.ask(rq.Acquire(agent="ann", resources=["a.py::f"], cwd=places[leased_in]))
    request = commit("a.py::f", None if typed_in is None else places[typed_in])
    if written:
        world.ask(request)
    else:
        refusal = world.refused(request)
        assert refusal.code is Code.INVALID and f"leased in the working tree {places[leased_in]}, not in the working tree {places[str(typed_in)]}" in refusal.message
        assert f"`cd {places[leased_in]}`" in str(refusal.next) and "`coord unlock a.py::f --agent ann`" in str(refusal.next)
    assert ["return 9" in (folder / "a.py").read_text() for folder in (world.root, other)] == [written == "main", written == "other"]
    world.close()


@pytest.mark.parametrize("ends", ["fails", "lapses"])
def test_in_a_launchs_worktree_all_that_was_done_to_a_file_is_shown_and_reverted(tmp_path: Path, ends: str) -> None:
    """Nobody else works there: what a review leaves out would be merged unseen."""
    world = World(tmp_path / "r", git=True)
    world.write("a.py", BEFORE)
    there = world.root / ".coord/worktrees/w"
    for words in (["add", "a.py"], ["commit", "-qm", "x"], ["worktree", "add", "-q", str(there), "-b", "w"]):
        subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@localhost", *words], cwd=world.root, check=True)
    task = world.task("mine", "a.py::f")
    world.ask(rq.TaskClaim(agent="ann"))
    world.ask(rq.TaskWorktree(agent="ann", task=task, worktree=str(there)))
    (there / "a.py").write_text(BEFORE.replace("return 1", "return 10").replace("return 2", "return 20"))
    if ends == "fails":
        world.ask(rq.TaskFail(agent="ann", task=task, reason="no"))
    else:
        world.clock.advance(86_400_000)
        world.ask(rq.Sweep())
    diff = world.ask(rq.ReviewShow(review="R-1")).files[0].diff
    assert "+    return 10" in diff and "+    return 20" in diff
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert (there / "a.py").read_text() == BEFORE
    assert world.replay_differs() == []
    world.close()
