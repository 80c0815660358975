"""A person changes what a task says: what follows for the order of tasks, and when that is refused."""

from __future__ import annotations

from typing import Any

from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World


def edit(world: World, task: str, **changes: Any) -> rq.Task:
    return world.ask(rq.TaskEdit(task=task, **changes))


def test_what_is_given_is_changed_and_the_rest_stays(world: World) -> None:
    task = world.task("titel", "a.py", "shared:b.py", prompt="p", priority=1)
    before = world.ask(rq.TaskShow(task=task))
    world.clock.advance(1000)
    after = edit(world, task, title="title", resources=["./a.py", "c/", "shared:d.py"])
    assert (after.title, after.prompt, after.priority, after.resources) == ("title", "p", 1, ["a.py", "c/", "shared:d.py"])
    assert after.updated_at > before.updated_at and after.attempts_max == before.attempts_max
    assert edit(world, task, priority=5, prompt="", attempts_max=7).prompt == ""
    shown = world.ask(rq.TaskShow(task=task))
    assert (shown.priority, shown.attempts_max, shown.title) == (5, 7, "title")
    assert world.ask(rq.Explain(subject=task)).sentences[-1].endswith('priority, attempts_max of T-1: "title"')
    assert world.replay_differs() == []


def test_nothing_changed_is_no_change(world: World) -> None:
    task = world.task("t", "b.py", "a.py", prompt="p")
    row = world.ask(rq.TaskShow(task=task))
    seq = world.ask(rq.Events()).items[-1].seq
    world.clock.advance(1000)
    assert edit(world, task, title="t", resources=["b.py", "a.py"], after=[]).updated_at == row.updated_at
    assert world.ask(rq.Events()).items[-1].seq == seq


def test_it_is_offered_by_what_it_says_now(world: World) -> None:
    world.acquire("bob", "held.py")
    parked, other = world.task("parked", "held.py"), world.task("other")
    assert world.ask(rq.TaskClaim(agent="ann")).task.task == other  # parked is set aside on held.py
    edit(world, parked, resources=["free.py"])
    assert world.ask(rq.TaskClaim(agent="cyd")).task.task == parked
    low, high = world.task("low"), world.task("high")
    edit(world, high, priority=9)
    assert [world.ask(rq.TaskClaim(agent=name)).task.task for name in ("dan", "eve")] == [high, low]
    assert world.replay_differs() == []


def test_what_it_comes_after_decides_its_state_and_that_of_others(world: World) -> None:
    first, second = world.task("first"), world.task("second")
    third = world.task("third", after=[second])
    assert edit(world, second, after=[first]).state == "pending"
    world.ask(rq.TaskCancel(task=first))
    assert world.ask(rq.TaskShow(task=third)).state == "blocked"
    assert edit(world, second, after=[]).state == "ready"
    assert world.ask(rq.TaskShow(task=third)).state == "pending"
    assert edit(world, third, after=[first]).state == "blocked"
    assert world.replay_differs() == []


def test_what_is_refused_changes_nothing(world: World) -> None:
    first = world.task("first", "a.py")
    second = world.task("second", after=[first])
    for request, code, said in (
        (rq.TaskEdit(task=first, after=[second]), Code.INVALID, "T-1 -> T-2 -> T-1"),
        (rq.TaskEdit(task=first, after=[first]), Code.INVALID, "T-1 -> T-1"),
        (rq.TaskEdit(task=first, after=["T-9"]), Code.UNKNOWN_TASK, "T-9"),
        (rq.TaskEdit(task="T-9", title="x"), Code.UNKNOWN_TASK, "T-9"),
        (rq.TaskEdit(task=first, title=" "), Code.INVALID, "Nothing was changed."),
        (rq.TaskEdit(task=first, priority=1001), Code.INVALID, "priority"),
        (rq.TaskEdit(task=first, attempts_max=0), Code.INVALID, "attempts_max"),
        (rq.TaskEdit(task=first, resources=["../out"]), Code.OUTSIDE_REPO, "not inside"),
        (rq.TaskEdit(task=first, title="x", seen="2020-01-01T00:00:00.000Z"), Code.VERSION_CHANGED, "after you had read it"),
    ):
        refusal = world.refused(request)
        assert refusal.code is code and said in refusal.message, refusal
    world.ask(rq.TaskClaim(agent="ann", task=first))
    refusal = world.refused(rq.TaskEdit(task=first, title="x"))
    assert refusal.code is Code.BAD_TRANSITION and "claimed by ann" in refusal.message and "coord tell ann" in refusal.next
    world.ask(rq.TaskDone(agent="ann", task=first))
    assert "coord task add" in world.refused(rq.TaskEdit(task=first, title="x")).next
    world.ask(rq.TaskCancel(task=second))
    assert "coord task retry T-2" in world.refused(rq.TaskEdit(task=second, title="x")).next
    assert world.ask(rq.TaskShow(task=first)).title == "first" and world.replay_differs() == []


def test_a_circle_through_very_many_tasks_is_not_looked_for_while_others_wait(world: World) -> None:
    world.ask(rq.TaskImport(format="jsonl", text="\n".join(
        f'{{"id": "t{n}", "title": "{n}"' + (f', "after": ["t{n - 1}"]' if n else "") + "}" for n in range(6_000))))
    task = world.task("one more")
    refused = world.refused(rq.TaskEdit(task=task, after=["T-6000"]))
    assert refused.code is Code.LIMIT and "5,000 tasks come before T-6000" in refused.message
    assert edit(world, task, after=["T-4000"]).after == ["T-4000"]
