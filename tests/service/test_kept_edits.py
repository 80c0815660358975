"""What a holder's own edits left is kept, whoever takes it out of the file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.sessions import Session
from tests.world import World

BEFORE = "x = 1\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"
ONE = BEFORE.replace("return 1", "return 10")
BOTH = ONE.replace("return 2", "return 20")


@pytest.fixture(params=["a.py", "a.txt"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "repo", git=True)
    for name in ("a.py", "a.txt", "b.py"):
        world.write(name, BEFORE)
    git(world, "add", "-A")
    git(world, "commit", "-qm", "one")
    return world


def git(world: World, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@x", *words], cwd=world.root, check=True, capture_output=True)


def edits(session: Session, name: str, old: str, new: str) -> None:
    path = session.world.root / name
    given: dict[str, object] = {"file_path": str(path), "old_string": old, "new_string": new}
    before = session.call("Edit", given)
    assert not before.deny, before.deny
    path.write_text(path.read_text().replace(old, new))
    session.call("Edit", given, "PostToolUse", tool_response={})


def kept(world: World) -> list[str]:
    """The lost texts that reviews have."""
    shown = [world.ask(rq.ReviewShow(review=one.review)) for one in world.ask(rq.Reviews()).items]
    return [file.diff for review in shown for file in review.files if "was taken out" in review.summary]


def test_an_edit_made_while_another_has_put_the_file_aside_is_kept(world: World, name: str) -> None:
    """As a hook manager does, which fails to bring the rest back."""
    bob = Session(world, "bob")
    bob.read(name)
    edits(bob, name, "return 1", "return 10")
    bob.busy = True
    world.write(name, BEFORE)  # put aside
    edits(bob, name, "return 2", "return 20")
    bob.busy = False
    world.write(name, ONE)  # and brought back over it
    said = bob.hook("UserPromptSubmit", prompt="go on").context
    assert f"What you wrote in {name} is not there any more" in said and "R-1" in said
    (diff,) = kept(world)
    assert "-    return 20" in diff
    assert "not there any more" not in bob.hook("UserPromptSubmit", prompt="go on").context, "it is told once"
    bob.hook("SessionEnd")
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert "return 20" in (world.root / name).read_text()
    assert world.replay_differs() == []


@pytest.mark.parametrize("by", [
    lambda world, name: world.write(name, BEFORE),
    lambda world, name: git(world, "stash", "-q"),
    lambda world, name: (world.root / name).unlink(),
    lambda world, name: world.write(name, "fixture\n"),
])
@pytest.mark.parametrize("ends", ["calls", "leaves", "dies", "lapses"])
def test_whoever_takes_it_out_and_whatever_becomes_of_its_holder(
        world: World, name: str, by: Callable[[World, str], None], ends: str) -> None:
    bob = Session(world, "bob")
    bob.read(name)
    edits(bob, name, "return 1", "return 10")
    by(world, name)
    if ends == "calls":
        assert "not there any more" in bob.hook("Stop").again
    elif ends == "leaves":
        bob.hook("SessionEnd")
    elif ends == "dies":
        world.ask(rq.Leave(agent=bob.name, clean=False))
    else:
        world.clock.advance(5 * 3_600_000)
        world.ask(rq.Sweep())
        world.ask(rq.Leave(agent=bob.name, clean=True))
    assert sum("-    return 10" in diff for diff in kept(world)) == 1, [one.summary for one in world.ask(rq.Reviews()).items]
    assert world.replay_differs() == []


def test_what_may_come_back_is_not_told_while_commands_of_others_run(world: World, name: str) -> None:
    bob = Session(world, "bob")
    edits(bob, name, "return 1", "return 10")
    world.write(name, BEFORE)
    bob.busy = True
    assert bob.hook("Stop").again == "" and kept(world) == []
    world.write(name, ONE)
    bob.busy = False
    assert bob.hook("Stop").again == "" and kept(world) == []


def test_what_the_holder_does_itself_is_no_loss(world: World, name: str) -> None:
    bob = Session(world, "bob")
    bob.read(name)
    edits(bob, name, "return 1", "return 10")
    edits(bob, name, "return 10", "return 1")
    edits(bob, name, "x = 1\n", "")
    edits(bob, name, "def g", "x = 1\n\n\ndef g")
    bob.shell(f"sed -i s/x/y/ {name}", {name: (world.root / name).read_text().replace("x", "y")})
    bob.shell("make format", {name: "# formatted\n" + (world.root / name).read_text().replace("y = 1", "y=1")})
    edits(bob, name, "return 1", "return 10")
    bob.shell(f"git checkout -- {name}", {name: BEFORE})
    edits(bob, name, "return 1", "return 10")
    git(world, "commit", "-qam", "done")
    bob.shell("make test", {name: BEFORE})  # it is in a commit
    assert bob.hook("Stop").again == "" and kept(world) == []
    bob.hook("SessionEnd")
    assert kept(world) == []


def test_what_a_script_of_the_holder_puts_aside_and_leaves_there_is_kept(world: World, name: str) -> None:
    bob = Session(world, "bob")
    bob.read(name)
    edits(bob, name, "return 1", "return 10")
    after = bob.shell("./run-tests.sh", {name: BEFORE})
    assert "not there any more" in after.context and len(kept(world)) == 1


def test_what_others_write_beside_it_is_no_loss(world: World) -> None:
    ann, bob = Session(world, "ann"), Session(world, "bob")
    for session, old in ((bob, "return 1"), (ann, "return 2")):
        session.read("a.py")
        edits(session, "a.py", old, old + "0")
    edits(ann, "a.py", "return 20", "return 200")
    edits(bob, "a.py", "return 10", "return 100")
    for session in (ann, bob):
        session.hook("Stop")
        session.hook("SessionEnd")
    assert kept(world) == []


def test_a_sub_agents_edit_is_its_parents_when_it_ends(world: World, name: str) -> None:
    bob, sub = Session(world, "bob"), Session(world, "bob", "sub1")
    bob.read(name)
    edits(sub, name, "return 1", "return 10")
    sub.hook("SubagentStop")
    world.write(name, BEFORE)
    assert "not there any more" in bob.hook("Stop").again and len(kept(world)) == 1


@pytest.mark.parametrize("ends", ["calls", "leaves"])
@pytest.mark.parametrize("sweep", ["restore", "files", "tree"])
def test_a_linked_worktree_that_is_swept(world: World, tmp_path: Path, name: str, ends: str, sweep: str) -> None:
    git(world, "worktree", "add", "-q", "--detach", str(tmp_path / "w"))
    bob = Session(world, "bob")
    place = tmp_path / "w" / name
    given: dict[str, object] = {"file_path": str(place), "content": ONE}
    assert not bob.call("Write", given).deny
    place.write_text(ONE)
    bob.call("Write", given, "PostToolUse", tool_response={})
    if sweep == "restore":
        subprocess.run(["git", "checkout", "-q", "--", "."], cwd=tmp_path / "w", check=True)
    elif sweep == "files":
        place.unlink()
    else:
        git(world, "worktree", "remove", "--force", str(tmp_path / "w"))
    if ends == "calls":
        assert f"What you wrote in {name} is not there any more" in bob.hook("Stop").again
    bob.hook("SessionEnd")
    assert sum("-    return 10" in diff for diff in kept(world)) == 1
    assert world.replay_differs() == []


def test_of_many_files_in_a_linked_worktree_a_mere_edit_asks_about_none(world: World, tmp_path: Path) -> None:
    """Nobody tells of changes there, so each would be read at every call: that is done when the agent rests."""
    git(world, "worktree", "add", "-q", "--detach", str(tmp_path / "w"))
    bob = Session(world, "bob")
    for n in range(9):
        given: dict[str, object] = {"file_path": str(tmp_path / f"w/n{n}.txt"), "content": "new\n"}
        bob.call("Write", given)
        (tmp_path / f"w/n{n}.txt").write_text("new\n")
        bob.call("Write", given, "PostToolUse", tool_response={})
    (tmp_path / "w/n3.txt").unlink()
    assert bob.call("Read", given, "PostToolUse", tool_response={}).context == "" and kept(world) == []
    assert "What you wrote in n3.txt is not there any more" in bob.hook("Stop").again
