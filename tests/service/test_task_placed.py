"""A person gives a task a place before or behind another: the order that follows, and when that is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from coordinator.rules.placing import Ranked, make_room
from coordinator.slices.backlog.editing import RAISED_MAX
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World


def order(world: World) -> list[str]:
    return [task.task for task in world.ask(rq.Tasks(order="priority", state="ready")).items]


def place(world: World, task: str, **beside: Any) -> int:
    return int(world.ask(rq.TaskEdit(task=task, **beside)).priority)


def test_a_task_is_put_between_two_of_one_priority(world: World) -> None:
    for n in range(5):
        world.task(f"task {n + 1}")
    place(world, "T-5", before="T-3")
    assert order(world) == ["T-1", "T-2", "T-5", "T-3", "T-4"]
    place(world, "T-1", behind="T-3")
    assert order(world) == ["T-2", "T-5", "T-3", "T-1", "T-4"]
    place(world, "T-2", behind="T-4")
    assert order(world) == ["T-5", "T-3", "T-1", "T-4", "T-2"]
    place(world, "T-2", before="T-5")
    assert order(world) == ["T-2", "T-5", "T-3", "T-1", "T-4"]
    assert [world.ask(rq.TaskClaim(agent=agent)).task.task for agent in ("ann", "bob")] == ["T-2", "T-5"]
    assert world.replay_differs() == []


def test_any_task_gets_any_place_and_the_others_stay_in_their_order() -> None:
    chance = random.Random(1)
    for _ in range(2000):
        tasks = sorted((Ranked(f"T-{n}", chance.randint(-2, 3), n) for n in range(chance.randint(2, 9))),
                       key=lambda task: task.rank)
        moved = chance.choice(tasks)
        others = [task for task in tasks if task is not moved]
        at = chance.randint(0, len(others))
        own, raised = make_room(moved, others[:at][::-1], others[at] if at < len(others) else None)
        after = [task._replace(priority=raised.get(task.task, task.priority)) for task in others]
        after.append(moved._replace(priority=own))
        wanted = [task.task for task in (*others[:at], moved, *others[at:])]
        assert [task.task for task in sorted(after, key=lambda task: task.rank)] == wanted
        if tasks.index(moved) == at:
            assert (own, raised) == (moved.priority, {}), "it is there already"


@pytest.mark.parametrize(("beside", "code", "said"), [
    ({"before": "T-1"}, Code.BAD_TRANSITION, "the same"), ({"before": "T-3"}, Code.BAD_TRANSITION, "claimed"),
    ({"behind": "T-9"}, Code.UNKNOWN_TASK, "T-9"), ({"before": "T-2", "behind": "T-2"}, Code.INVALID, "one place"),
    ({"before": "T-2", "priority": 3}, Code.INVALID, "one place"), ({"before": "T-4"}, Code.INVALID, "1001"),
    ({"before": "T-2", "seen": "2020-01-01T00:00:00.000Z"}, Code.VERSION_CHANGED, "after you had read it")])
def test_what_has_no_place_is_refused(world: World, beside: dict[str, str], code: Code, said: str) -> None:
    world.task("one"), world.task("two"), world.task("three"), world.task("zero", priority=1000)
    world.ask(rq.TaskEdit(task="T-2", title="another"))
    world.ask(rq.TaskClaim(agent="ann", task="T-3"))
    if beside == {"before": "T-4"}:
        world.task("zero too", priority=1000)
        beside = {"before": "T-5"}
    else:
        assert place(world, "T-2", before="T-1") == 1
    refusal = world.refused(rq.TaskEdit(task="T-1", **beside))  # type: ignore[arg-type]
    assert refusal.code is code and said in refusal.message


def test_too_many_are_not_raised_for_one(world: World) -> None:
    for n in range(RAISED_MAX + 3):
        world.task(f"task {n}")
    last = f"T-{RAISED_MAX + 3}"
    refusal = world.refused(rq.TaskEdit(task=last, before=f"T-{RAISED_MAX + 2}"))
    assert refusal.code is Code.LIMIT
    place(world, last, before=f"T-{RAISED_MAX + 1}")
    assert order(world)[RAISED_MAX] == last
