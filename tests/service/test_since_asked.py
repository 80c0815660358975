"""A granted waiter is told what changed since it asked; a circle's victim is refused DEADLOCK."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coordinator.kernel.holders.settled_notices import NoticeRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World

TWO = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


@pytest.fixture(autouse=True)
def the_log_gives_the_state(world: World) -> Iterator[None]:
    yield
    assert world.replay_differs() == []


def told(world: World, agent: str) -> str:
    return "\n".join(row.text for row in world.view().each(NoticeRow, "notices_of", agent, 0))


def test_what_others_wrote_meanwhile_is_told_by_region(world: World) -> None:
    world.write("a.py", TWO)
    world.acquire("ann", "a.py")
    refusal = world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    assert refusal.code is Code.LOCKED
    world.write("a.py", TWO.replace("return 2", "return 22"))
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    said = told(world, "bob")
    assert "a.py changed since you asked (two)" in said and "+    return 22" in said


def test_nothing_is_told_where_nothing_changed(world: World) -> None:
    world.write("a.py", TWO)
    world.acquire("ann", "a.py")
    world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert "changed since" not in told(world, "bob")


def test_of_a_region_only_its_own_change_counts(world: World) -> None:
    world.write("a.py", TWO)
    world.acquire("ann", "a.py")
    world.refused(rq.Acquire(agent="bob", resources=["a.py::one"]))
    world.refused(rq.Acquire(agent="cyd", resources=["a.py::two"]))
    world.write("a.py", TWO.replace("return 2", "return 22"))
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert "changed since" not in told(world, "bob")
    assert "a.py::two changed since you asked (two)" in told(world, "cyd")


def test_who_asks_again_hears_of_all_since_it_first_asked(world: World) -> None:
    world.write("a.py", TWO)
    world.acquire("ann", "a.py")
    world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    world.write("a.py", TWO.replace("return 2", "return 22"))
    world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert "+    return 22" in told(world, "bob")


def test_an_approval_tells_it_too(world: World) -> None:
    world.write("a.py", TWO)
    world.acquire("ann", "a.py")
    asked = world.ask(rq.RequestFile(agent="bob", resource="a.py", reason="mine"))
    world.write("a.py", TWO.replace("return 1", "return 11"))
    assert world.ask(rq.RequestAnswer(agent="ann", request=asked.request, verdict="approve")).granted
    assert "a.py changed since you asked (one)" in told(world, "bob")


def test_what_it_asked_for_is_kept_through_a_compaction(world: World) -> None:
    world.write("a.py", TWO)
    world.acquire("ann", "a.py")
    world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    world.write("a.py", TWO.replace("return 2", "return 22"))
    world.clock.advance(200_000)
    world.ask(rq.Compact(keep_days=0.001))
    world.restart()
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert "+    return 22" in told(world, "bob")


def test_the_one_that_gives_way_is_refused_deadlock_and_keeps_what_it_has(world: World) -> None:
    world.acquire("ann", "a.py")
    world.clock.advance(1_000)
    world.acquire("bob", "b.py")
    assert world.refused(rq.Acquire(agent="ann", resources=["b.py"])).code is Code.LOCKED
    refusal = world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    assert refusal.code is Code.DEADLOCK and refusal.facts["deadlock"] == ["ann"]
    assert refusal.next == "coord unlock b.py --agent bob"
    assert {row.file_path: row.locked_by for row in world.live()} == {"a.py": "ann", "b.py": "bob"}
    waiting = world.ask(rq.Locks()).waiters
    assert [(one.agent, one.held_by) for one in waiting] == [("ann", ["bob"]), ("bob", ["ann"])]
    world.ask(rq.Release(agent="bob", resources=["b.py"]))
    assert {row.file_path: row.locked_by for row in world.live()} == {"a.py": "ann", "b.py": "ann"}
