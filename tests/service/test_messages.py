"""What a running agent is told of its leases and its work, once each."""

from __future__ import annotations

from typing import Any

from coordinator.kernel.holders import notice_delivery
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from tests.world import World


def told(world: World, agent: str) -> list[str]:
    """What its next hook prints, and confirms."""
    def job(tx: Tx) -> list[str]:
        receipt: list[Any] = []
        said = notice_delivery.deliver(world.service, tx, agent, receipt)
        for event in receipt:
            tx.record(event)
        return said

    return world.ledger.run(job, world.clock.now_ms())


def test_a_lease_that_cannot_be_renewed_is_announced_five_minutes_before(world: World) -> None:
    world.write("a.py", "1\n")
    lease = world.acquire("ann", "a.py").leases[0]
    began_ms = world.clock.now_ms()
    hold_s = world.settings.leases.max_hold_s
    while True:
        world.clock.advance(60_000)
        world.ask(rq.Heartbeat(agent="ann", progress="typing"))
        left_s = hold_s - (world.clock.now_ms() - began_ms) / 1000
        if left_s <= 300:
            break
        assert told(world, "ann") == [], left_s
    (said,) = told(world, "ann")
    assert "Your lease on a.py ends at" in said and "cannot be renewed" in said
    world.clock.advance(60_000)
    assert told(world, "ann") == []
    assert [row.fencing_token for row in world.live()] == [lease.fencing_token]
    assert world.replay_differs() == []


def test_who_lost_a_lease_and_whose_work_was_given_on_is_told(world: World) -> None:
    world.write("a.py", "1\n")
    task = world.task("work", "a.py")
    world.ask(rq.TaskClaim(agent="ann", task=task))
    world.write("a.py", "2\n")
    world.clock.advance(3 * 3_600_000)
    world.ask(rq.Sweep())
    (said,) = told(world, "ann")
    assert "Your lease on a.py has ended" in said and "R-1" in said
    world.ask(rq.ReviewDecide(review="R-1", verdict="reassign"))
    (said,) = told(world, "ann")
    assert "R-1" in said and "reassign" in said and f"do not go on with {task}" in said
    assert told(world, "ann") == []


def test_a_message_has_a_story_with_what_was_answered(world: World) -> None:
    for name in ("ann", "bob"):
        world.acquire(name, f"{name}.py")
    world.ask(rq.MessageSend(agent="ann", to="bob", text="may I have bob.py?"))
    world.ask(rq.MessageSend(agent="bob", to="ann", text="in a minute", reply_to="M-1"))
    world.ask(rq.MessageSend(agent="ann", to="human", text="about another thing"))
    told = world.ask(rq.Explain(subject="m-2")).sentences
    assert len(told) == 2 and "may I have bob.py?" in told[0] and "in a minute" in told[1]
