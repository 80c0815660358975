"""Agents that meet their provider's limit: they rest, and their tasks go to other profiles."""

from __future__ import annotations

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World


def joined(world: World, **profiles: str) -> dict[str, str]:
    return {name: world.ask(rq.Register(agent=name, profile=profile)).token for name, profile in profiles.items()}


def claim(world: World, agent: str) -> str:
    return str(world.ask(rq.TaskClaim(agent=agent)).task.task)


def limit(world: World, agent: str, **more: object) -> rq.Limited:
    done = world.ask(rq.LimitReached(agent=agent, **more))  # type: ignore[arg-type]
    assert isinstance(done, rq.Limited)
    return done


def test_its_task_goes_back_without_an_attempt_and_to_another_profile(world: World) -> None:
    joined(world, ann="claude", cy="claude", bob="codex")
    world.write("a.py", "1\n")
    first, second = world.task("first", "a.py", priority=5), world.task("second")
    assert claim(world, "ann") == first
    done = limit(world, "ann", for_s=3600, note="5-hour limit")
    assert (done.given_back, done.reviews) == ([first], []) and world.live() == []
    task = world.ask(rq.TaskShow(task=first))
    assert (task.state, task.attempts, task.claimed_by) == ("ready", 0, None)
    refusal = world.refused(rq.TaskClaim(agent="ann"))
    assert refusal.code is Code.NOTHING_TO_DO and "rests until" in refusal.message and refusal.facts["counts"]["ready"] == 2
    assert claim(world, "cy") == second, "of the same profile: its limit is reached, too"
    assert world.refused(rq.TaskClaim(agent="cy")).code is Code.NOTHING_TO_DO
    assert claim(world, "bob") == first
    (row,) = [one for one in world.ask(rq.Agents()).items if one.agent == "ann"]
    assert row.rests_until == done.rests_until and row.rests_why == "5-hour limit"
    assert any('ann has reached its provider\'s limit' in one and '"5-hour limit"' in one
               for one in world.ask(rq.Explain(subject="ann")).sentences)
    world.ask(rq.TaskDone(agent="bob", task=first))
    world.task("third")
    world.clock.advance(3_600_001)
    assert claim(world, "ann") == "T-3", "its rest is over"
    assert [one.rests_until for one in world.ask(rq.Agents()).items] == [None] * 3
    assert world.replay_differs() == []


def test_where_nobody_else_is_there_it_is_offered_as_ever(world: World) -> None:
    joined(world, ann="claude", cy="claude", bob="codex")
    task = world.task("only")
    claim(world, "ann")
    limit(world, "ann", for_s=60)
    assert world.refused(rq.TaskClaim(agent="cy")).code is Code.NOTHING_TO_DO
    limit(world, "bob", for_s=30)
    assert claim(world, "cy") == task, "the other one rests itself"
    world.ask(rq.TaskFail(agent="cy", task=task, model_error=True))
    world.clock.advance(30_001)
    assert world.refused(rq.TaskClaim(agent="cy")).code is Code.NOTHING_TO_DO, "bob is there again"
    world.ask(rq.Leave(agent="bob"))
    assert claim(world, "cy") == task
    world.ask(rq.TaskFail(agent="cy", task=task, model_error=True))
    joined(world, dan="codex")
    assert world.refused(rq.TaskClaim(agent="cy")).code is Code.NOTHING_TO_DO
    world.clock.advance(30_001)
    assert claim(world, "cy") == task, "until then, and no longer"


def test_what_it_had_begun_is_flagged_as_when_a_task_is_given_back(world: World) -> None:
    joined(world, ann="claude")
    world.write("a.py", "1\n")
    task = world.task("work", "a.py")
    claim(world, "ann")
    world.write("a.py", "half\n")
    done = limit(world, "ann", until="2026-05-28T22:00:00+01:00")
    assert done.rests_until == "2026-05-28T21:00:00.000Z" and done.reviews == ["R-1"] and world.live() == []
    assert world.ask(rq.TaskShow(task=task)).state == "review"
    assert [one.path for one in world.ask(rq.ReviewShow(review="R-1")).files] == ["a.py"]
    assert limit(world, "ann", for_s=0).rests_until is None
    task = world.task("more")
    assert claim(world, "ann") == task, "it said itself that it goes on"
    assert world.replay_differs() == []


def test_a_sub_agent_of_one_that_rests_is_given_nothing(world: World) -> None:
    token = joined(world, ann="claude")["ann"]
    world.ask(rq.Register(agent="ann.sub", profile="claude", parent="ann"), token)
    world.task("work")
    limit(world, "ann", for_s=60)
    assert "ann.sub rests until" in world.refused(rq.TaskClaim(agent="ann.sub")).message
    assert world.ask(rq.LimitReached(agent="ann.sub", for_s=0), token).rests_until is None
    assert world.refused(rq.TaskClaim(agent="ann.sub")).code is Code.NOTHING_TO_DO, "its parent's is its own"


@pytest.mark.parametrize("given", [
    {}, {"for_s": -1}, {"for_s": 7 * 86_400 + 1}, {"until": "tomorrow"}, {"until": "2026-05-28T23:00:00"},
    {"until": "2020-01-01T00:00:00Z"}, {"until": "2027-01-01T00:00:00Z"}, {"until": "2026-05-28T23:00:00Z", "for_s": 1},
    {"until": "99999-01-01T00:00:00Z"},
])
def test_a_rest_ends_in_the_future_and_within_a_week(world: World, given: dict[str, object]) -> None:
    tokens = joined(world, ann="claude", bob="codex")
    task = world.task("work")
    claim(world, "ann")
    before = world.rows()
    assert world.refused(rq.LimitReached(agent="ann", **given)).code is Code.INVALID  # type: ignore[arg-type]
    assert world.refused(rq.LimitReached(agent="ann", for_s=1), tokens["bob"]).code is Code.UNAUTHORIZED
    assert world.rows() == before and world.ask(rq.TaskShow(task=task)).claimed_by == "ann"
