"""What waits to land and what lands now is seen by everybody, until the claim of its task ends."""

from __future__ import annotations

from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World


def claimed(world: World, agent: str) -> str:
    task = world.task(f"the work of {agent}")
    world.ask(rq.TaskClaim(agent=agent, task=task))
    return task


def queue(world: World, agent: str, task: str, *, turn: bool = False) -> rq.Landing:
    world.clock.advance(1000)
    return world.ask(rq.LandQueue(agent=agent, task=task, target="refs/heads/main", turn=turn))


def queued(world: World) -> list[tuple[str, str]]:
    return [(row.task, row.state) for row in world.ask(rq.Landings()).items]


def test_the_queue_is_told_in_order_with_since_when(world: World) -> None:
    for agent in ("ann", "bob", "cyd"):
        claimed(world, agent)
    waits = queue(world, "bob", "T-2")
    assert (waits.title, waits.agent, waits.target, waits.began_at) == ("the work of bob", "bob", "main", None)
    queue(world, "ann", "T-1")
    queue(world, "cyd", "T-3")
    lands = queue(world, "ann", "T-1", turn=True)
    assert lands.began_at is not None and lands.queued_at < lands.began_at
    assert queued(world) == [("T-1", "landing"), ("T-2", "waiting"), ("T-3", "waiting")]
    page = world.ask(rq.Landings(limit=2))
    assert page.next == 2 and [row.task for row in world.ask(rq.Landings(skip=2)).items] == ["T-3"]
    assert world.ask(rq.Events(kind="landing_begun")).items[-1].text == "the work of ann on T-1 lands on main"
    assert world.replay_differs() == []


def test_who_ends_its_claim_leaves_the_queue(world: World) -> None:
    for agent in ("ann", "bob", "cyd"):
        queue(world, agent, claimed(world, agent))
    world.ask(rq.TaskDone(agent="ann", task="T-1"))
    world.ask(rq.TaskFail(agent="bob", task="T-2", reason="conflict"))
    assert queued(world) == [("T-3", "waiting")]
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())  # the launch is gone, and its claim lapses
    assert queued(world) == []
    assert world.replay_differs() == []


def test_only_claimed_work_waits_to_land(world: World) -> None:
    task = claimed(world, "ann")
    for request, code in ((rq.LandQueue(agent="bob", task=task, target="main"), Code.NOT_HOLDER),
                          (rq.LandQueue(agent="ann", task="T-9", target="main"), Code.UNKNOWN_TASK)):
        assert world.refused(request).code is code
    world.ask(rq.TaskDone(agent="ann", task=task))
    assert world.refused(rq.LandQueue(agent="ann", task=task, target="main")).code is Code.BAD_TRANSITION
    assert queued(world) == []
