"""A session and its sub-agents: what goes from one to the other, and what a refusal leaves where it is."""

from __future__ import annotations

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.service.test_region_edits import TEXT, edits, given, proposes
from tests.sessions import Session, holders
from tests.world import World


@pytest.fixture
def ann(world: World) -> Session:
    world.write("a.py", TEXT)
    world.write("b.txt", "one\n")
    world.write("c.txt", "one\n")
    return Session(world, "ann")


@pytest.fixture
def sub(world: World, ann: Session) -> Session:
    return Session(world, "ann", "s1")


@pytest.fixture
def bob(world: World) -> Session:
    return Session(world, "bob")


def tokens(world: World) -> dict[str, tuple[str, int]]:
    return {row.file_path: (row.locked_by, row.fencing_token) for row in world.live()}


def test_a_refusal_hands_nothing_down(world: World, ann: Session, sub: Session, bob: Session) -> None:
    """Of the whole file, of which the parent has a part and another agent one, too."""
    edits(ann, "return 1", "return 10")
    edits(bob, "return 2", "return 20")
    before = tokens(world)
    why = sub.edit("a.py", "x = 1\n")
    assert f"a.py::C.m is leased by {bob.name}" in why and ann.name not in why, why
    assert tokens(world) == before
    assert not proposes(ann, "return 10", "return 11").deny, "its parent goes on"


def test_a_refused_command_hands_nothing_down(world: World, ann: Session, sub: Session, bob: Session) -> None:
    assert ann.edit("b.txt", "two\n") == bob.edit("c.txt", "two\n") == ""
    before = tokens(world)
    assert f"c.txt is leased by {bob.name}" in sub.shell("sed -i s/x/y/ b.txt c.txt").deny
    assert tokens(world) == before and ann.edit("b.txt", "three\n") == ""


def test_what_was_refused_is_handed_down_with_the_grant(world: World, ann: Session, sub: Session, bob: Session) -> None:
    edits(ann, "return 1", "return 10")
    edits(bob, "return 2", "return 20")
    assert sub.edit("a.py", "x = 1\n")
    bob.hook("SessionEnd")
    assert "return 20" in sub.edit("a.py", "x = 1\n"), "it never read what became of it"
    sub.read("a.py")
    assert sub.edit("a.py", "x = 1\n") == ""
    assert set(holders(world).values()) == {sub.name}
    sub.hook("SubagentStop")
    assert holders(world)["a.py::f"] == ann.name


def test_a_sub_agent_waits_for_its_parents_edit_and_for_nothing_else(world: World, ann: Session, sub: Session) -> None:
    """Who has an edit in the middle waits for nobody: it is over in a moment, whatever its sub-agents do."""
    assert not proposes(ann, "return 1", "return 10").deny
    for _ in range(2):
        asked = sub.hook("PreToolUse", tool_name="Edit", tool_input=given(sub, "return 2", "return 20"), tool_use_id="s",
                         window_wait_s=20.0)
        assert asked.waiting is not None and asked.waiting.code is Code.LOCKED
        assert f"{ann.name} is writing a.py just now" in asked.deny and "each other" not in asked.deny
        assert "unlock" not in asked.deny
    assert not [one for one in world.ask(rq.Heartbeat(agent=ann.name)).notices if one.kind == "gives_way"]
    ann.call("Edit", given(ann, "return 1", "return 10"), "PostToolUse", tool_response={})
    world.settle()
    asked = sub.hook("PreToolUse", tool_name="Edit", tool_input=given(sub, "return 2", "return 20"), tool_use_id="s",
                     window_wait_s=20.0, goes_on=True)
    assert asked.waiting is None and not asked.deny


def test_who_waited_for_what_it_never_read_is_told_what_became_of_it(world: World, ann: Session, bob: Session) -> None:
    """As where it is refused at once: its first write would wipe out what the other has made."""
    assert ann.edit("b.txt", "two\n") == ""
    write = {"file_path": str(world.root / "b.txt"), "content": "mine\n"}
    asked = bob.hook("PreToolUse", tool_name="Write", tool_input=write, tool_use_id="w", wait_s=30.0)
    assert asked.waiting is not None
    ann.hook("SessionEnd")
    world.settle()
    asked = bob.hook("PreToolUse", tool_name="Write", tool_input=write, tool_use_id="w", wait_s=30.0, goes_on=True)
    assert asked.waiting is None and "+two" in asked.deny
    assert bob.edit("b.txt", "two\nmine\n") == ""
