"""Signals: they fade, they are bounded, they order tasks of one priority, and never block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.kernel.holders.settled_notices import NoticeRow
from coordinator.rules import signals as rule
from coordinator.settings import Settings, Signalling
from coordinator.slices.signals import signals
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.world import World


@pytest.fixture(autouse=True)
def the_log_gives_the_state(world: World) -> Iterator[None]:
    yield
    assert world.replay_differs() == []


@pytest.fixture
def weighed(tmp_path: Path) -> Iterator[World]:
    weights = {"priority": 1.0, "saturation": -1.0, "files_blocked": -0.5}
    made = World(tmp_path / "weighed", Settings(signals=Signalling(weights=weights)))
    yield made
    assert made.replay_differs() == []
    made.close()


def add(world: World, subject: str, name: str, strength: float = 1.0, **more: Any) -> rq.Signal:
    made = world.ask(rq.SignalAdd(agent="ann", subject=subject, name=name, strength=strength, **more))
    assert isinstance(made, rq.Signal)
    return made


def there(world: World, **more: Any) -> dict[tuple[str, str], float]:
    return {(one.subject, one.name): one.strength for one in world.ask(rq.Signals(**more)).items}


@given(st.floats(0.001, 10), st.integers(1_000, 10**9), st.integers(0, 10**10), st.integers(0, 10**10))
def test_a_hint_only_fades(strength: float, half_life: int, age: int, more: int) -> None:
    now = rule.strength_at(strength, half_life, age)
    assert 0 <= rule.strength_at(strength, half_life, age + more) <= now <= strength
    assert rule.strength_at(strength, half_life, half_life) == pytest.approx(strength / 2)
    assert rule.strength_at(strength, half_life, -age) == strength, "a clock that went back makes none stronger"


@given(st.lists(st.floats(0.001, 10), max_size=40))
def test_a_hint_is_bounded_however_often_it_is_added_to(given: list[float]) -> None:
    left = 0.0
    for one in given:
        left = rule.added(left, one)
        assert 0 < left <= rule.STRENGTH_MAX


def test_it_halves_with_each_half_life_and_adds_up(world: World) -> None:
    task = world.task("a")
    assert add(world, task, "priority", 4, half_life_s=60).subject == "task:T-1"
    world.clock.advance(60_000)
    assert there(world) == {("task:T-1", "priority"): 2.0}
    assert add(world, "t-1", "priority", 1, half_life_s=60).strength == 3.0
    for _ in range(10):
        last = add(world, "task:T-1", "priority", 10, half_life_s=60)
    assert last.strength == rule.STRENGTH_MAX
    world.clock.advance(3_600_000)
    assert there(world) == {}
    world.ask(rq.Sweep())
    assert world.rows()["signals"] == [], "the sweep forgets what has faded"


def test_they_are_listed_by_what_they_are_on(world: World) -> None:
    world.write("src/db/a.py", "")
    world.write("src/b.py", "")
    add(world, "src/", "warning")
    add(world, "src/db/a.py", "careful", note="it is generated")
    add(world, "src/b.py", "warning", 2)
    assert set(there(world, subject="src/db/")) == {("src/db/a.py", "careful")}
    assert len(there(world, subject="src/")) == 3 and len(there(world, name="warning")) == 2
    first = world.ask(rq.Signals(limit=2))
    rest = world.ask(rq.Signals(limit=2, after=first.next))
    assert [one.subject for one in (*first.items, *rest.items)] == ["src/", "src/b.py", "src/db/a.py"]
    assert rest.next is None


@pytest.mark.parametrize("more, code", [
    ({"strength": 0.0}, Code.INVALID), ({"strength": -1.0}, Code.INVALID), ({"strength": 10.5}, Code.INVALID),
    ({"half_life_s": 0.0}, Code.INVALID), ({"half_life_s": 1e12}, Code.INVALID), ({"half_life_s": -5.0}, Code.INVALID),
    ({"name": "Loud"}, Code.INVALID), ({"name": ""}, Code.INVALID), ({"name": "x" * 41}, Code.INVALID),
    ({"name": "a b"}, Code.INVALID), ({"subject": "T-9"}, Code.UNKNOWN_TASK), ({"subject": "task:T-9"}, Code.UNKNOWN_TASK),
    ({"subject": "../x"}, Code.OUTSIDE_REPO), ({"subject": ""}, Code.INVALID),
])
def test_absurd_hints_are_refused_and_leave_nothing(world: World, more: dict[str, Any], code: Code) -> None:
    world.task("a")
    before = world.rows()
    refusal = world.refused(rq.SignalAdd(**{"agent": "ann", "subject": "T-1", "name": "warning", **more}))
    assert refusal.code is code and world.rows() == before


def test_there_is_no_room_for_endless_hints(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(signals.ON_ONE_MAX):
        add(world, "a.py", f"word_{n}")
    full = world.refused(rq.SignalAdd(agent="ann", subject="a.py", name="one_more"))
    assert full.code is Code.LIMIT and "Nothing was left" in full.message
    assert add(world, "a.py", "word_3").strength > 1, "what is there can be added to"
    monkeypatch.setattr(signals, "SIGNALS_MAX", signals.ON_ONE_MAX)
    assert world.refused(rq.SignalAdd(agent="ann", subject="b.py", name="warning")).code is Code.LIMIT
    world.acquire("ann", "b.py")
    with pytest.raises(Refusal) as told:
        world.acquire("bob", "b.py")
    assert told.value.code is Code.LOCKED, "coord's own hints fail nobody's request"


def test_of_one_priority_the_hints_decide_then_age(weighed: World) -> None:
    for name in ("a", "b", "c"):
        weighed.task(name)
    urgent = weighed.task("d", priority=1)
    add(weighed, "T-1", "saturation", 3)
    add(weighed, "T-3", "priority", 2)
    add(weighed, urgent, "saturation", 9)
    took = [weighed.ask(rq.TaskClaim(agent=f"agent-{n}")).task.task for n in range(4)]
    assert took == [urgent, "T-3", "T-2", "T-1"], "never before priority, and they block nobody"


def test_a_hint_on_a_file_is_one_on_the_tasks_that_need_it(weighed: World) -> None:
    weighed.task("a", "hot.py")
    weighed.task("b", "cold.py")
    add(weighed, "hot.py", "files_blocked", 3, half_life_s=60)
    weighed.clock.advance(30_000)
    assert weighed.ask(rq.TaskClaim(agent="bob")).task.task == "T-2"
    weighed.clock.advance(3_600_000)
    assert weighed.ask(rq.TaskClaim(agent="cyd")).task.task == "T-1"


def test_hints_weigh_nothing_unless_they_have_a_weight(world: World) -> None:
    assert not any(world.settings.signals.weights.values())
    world.task("a")
    world.task("b")
    add(world, "T-1", "saturation", 10)
    assert world.ask(rq.TaskClaim(agent="bob")).task.task == "T-1"


def test_coord_leaves_hints_itself(world: World) -> None:
    task = world.task("a", "a.py")
    world.ask(rq.TaskClaim(agent="ann", task=task))
    assert there(world) == {("task:T-1", "saturation"): 1.0}
    other = world.task("b", "b.py")
    third = world.task("c", "c.py")
    world.ask(rq.TaskClaim(agent="bob", task=other))
    assert world.refused(rq.Acquire(agent="bob", resources=["a.py"], task=other)).code is Code.LOCKED
    assert {("a.py", "files_blocked"), ("task:T-2", "files_blocked")} <= set(there(world))
    asked = world.ask(rq.RequestFile(agent="bob", resource="a.py", reason="I need it"))
    world.ask(rq.RequestAnswer(agent="ann", request=asked.request, verdict="reject", answer="no"))
    assert there(world)["task:T-2", "task_not_ready"] == 1.0
    told = [row.text for row in world.view().each(NoticeRow, "notices_of", "bob", 0)]
    assert f"coord task claim {third} --agent bob" in told[-1], "and is sent elsewhere"


def test_it_can_be_told_not_to(tmp_path: Path) -> None:
    world = World(tmp_path / "quiet", Settings(signals=Signalling(deposits=False)))
    world.task("a", "a.py")
    world.ask(rq.TaskClaim(agent="ann"))
    world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    assert there(world) == {}
    world.close()
