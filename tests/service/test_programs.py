"""How long a program's life lasts: silence, what it holds, its connections and its process."""

from __future__ import annotations

import os

import pytest

from coordinator.daemon.program_presence import ProgramPresence
from coordinator.kernel.core import token_hash
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.world import World

MINUTE_MS = 60_000


class Seen:
    """What a daemon would see: processes that have ended, and connected tokens."""

    def __init__(self) -> None:
        self.ended: dict[str, bool | None] = {}
        self.connected: set[str | None] = set()

    def mark(self, pid: int) -> str:
        return ""

    def look_at(self, mark: str) -> bool | None:
        return self.ended.get(mark)

    def has_acted(self, token_hash: str | None) -> bool:
        return False

    def is_connected(self, token_hash: str | None) -> bool:
        return token_hash in self.connected


def states(world: World, everyone: bool = False) -> dict[str, str]:
    return {row.agent: row.state for row in world.ask(rq.Agents(all=everyone)).items}


def later(world: World, minutes: float) -> None:
    world.clock.advance(round(minutes * MINUTE_MS))
    world.tend()


def test_a_program_is_silent_after_a_quarter_of_an_hour_and_gone_after_a_day(world: World) -> None:
    token = world.ask(rq.Register(agent="ann")).token
    later(world, 14.9)
    assert states(world) == {"ann": "active"}
    later(world, 0.2)
    assert states(world) == {"ann": "stale"}
    world.ask(rq.Heartbeat(agent="ann"), token)
    assert states(world) == {"ann": "active"}
    later(world, 16)
    later(world, 24 * 60)
    assert states(world) == {} and states(world, True) == {"ann": "gone"}
    with pytest.raises(Refusal, match="has left"):
        world.ask(rq.Heartbeat(agent="ann"), token)


def test_a_lease_and_a_claim_are_dated_rights(world: World) -> None:
    for name, request in (("ann", rq.Acquire(agent="ann", resources=["key:a"], ttl_s=3600)), ("bob", rq.TaskClaim(agent="bob", ttl_s=3600))):
        world.ask(rq.Register(agent=name))
        if name == "bob":
            world.ask(rq.TaskAdd(title="work"))
        world.ask(request)
    later(world, 59)
    assert states(world) == {"ann": "active", "bob": "active"}
    later(world, 2)
    assert states(world) == {"ann": "stale", "bob": "stale"}


def test_a_connection_and_a_promise_of_ones_own_count(world: World) -> None:
    seen = world.service.presence = Seen()
    token = world.ask(rq.Register(agent="ann")).token
    world.ask(rq.Register(agent="bob", silence_s=3600))
    seen.connected.add(token_hash(token))
    later(world, 50)
    assert states(world) == {"ann": "active", "bob": "active"}
    later(world, 11)
    assert states(world) == {"ann": "active", "bob": "stale"}
    seen.connected.clear()
    later(world, 1)
    assert states(world)["ann"] == "stale"


@pytest.mark.parametrize("handed", [False, True])
def test_who_is_registered_again(world: World, handed: bool) -> None:
    seen = world.service.presence = Seen()
    world.write("a.py", "one\n")
    first = world.ask(rq.Register(agent="ann"))
    world.commit(lambda tx: tx.write_beside("program_put", "ann", "boot 1 2 3"))
    if handed:
        world.commit(lambda tx: tx.write_beside("program_handed", "ann"))
    with pytest.raises(Refusal, match="is live"):
        world.ask(rq.Register(agent="ann"))
    seen.ended["boot 1 2 3"] = True
    assert world.ask(rq.Register(agent="ann", unique=True)).agent == "ann-2", "it may just have handed it on"
    world.ask(rq.Leave(agent="ann-2"))
    world.acquire("ann", "a.py", ttl_s=7200)
    world.write("a.py", "half\n")
    seen.connected.add(token_hash(first.token))
    assert world.ask(rq.Register(agent="ann", unique=True)).agent == "ann-2"
    seen.connected.clear()
    if handed:
        with pytest.raises(Refusal, match="is live"):
            world.ask(rq.Register(agent="ann"))
        world.clock.advance(16 * MINUTE_MS)
    again = world.ask(rq.Register(agent="ann", unique=True))
    assert (again.agent, again.warnings) == ("ann", []) and again.token != first.token
    assert world.ask(rq.Locks()).items == [] and [review.agent for review in world.ask(rq.Reviews()).items] == ["ann"]


def test_a_dead_program_is_gone_when_it_falls_silent_with_what_is_below_it(world: World) -> None:
    seen = world.service.presence = Seen()
    token = world.ask(rq.Register(agent="ann")).token
    below = world.ask(rq.Register(agent="ann.1", parent="ann"), token).token
    for name in ("ann", "ann.1"):
        world.commit(lambda tx, name=name: tx.write_beside("program_put", name, f"mark of {name}"))  # type: ignore[misc]
    seen.ended = {"mark of ann": True, "mark of ann.1": False}
    seen.connected.add(token_hash(below))
    later(world, 16)
    assert states(world) == {"ann": "active", "ann.1": "active"}, "a process of its lives"
    seen.ended["mark of ann.1"] = True
    seen.connected.clear()
    later(world, 16)
    assert states(world) == {}


def test_messages_to_who_may_return_are_bounded(world: World) -> None:
    world.ask(rq.Register(agent="boss"))
    world.ask(rq.Register(agent="ann"))
    world.ask(rq.Leave(agent="ann"))
    for n in range(20):
        assert world.ask(rq.MessageSend(agent="boss", to="ann", text=f"no. {n}")).told == ["ann"]
        world.clock.advance(7 * MINUTE_MS)
    with pytest.raises(Refusal, match="has not read 20 messages"):
        world.ask(rq.MessageSend(agent="boss", to="ann", text="one more"))
    world.ask(rq.Register(agent="ann"))
    assert len(world.ask(rq.Heartbeat(agent="ann")).notices) == 20
    assert len(world.ask(rq.Messages(reader="ann", unread=True)).items) == 20
    world.raise_unsound()


def test_those_who_ended_cost_nothing(world: World) -> None:
    world.checked = False
    for n in range(300):
        world.ask(rq.Register(agent=f"cron-{n}"))
        world.ask(rq.Leave(agent=f"cron-{n}"))
    world.ask(rq.Register(agent="cron", unique=True))
    assert states(world) == {"cron": "active"}
    for statement in ("agents_there", "agents_named", "agents_silent", "programs_silent"):
        text = Q[statement]
        plan = " ".join(str(row) for row in world.db.execute(f"EXPLAIN QUERY PLAN {text}", (None,) * 3 if "?3" in text else (None,) * ("?1" in text)))
        assert "agents_there" in plan or "agents_token" in plan or "PRIMARY KEY" in plan, (statement, plan)


def test_a_process_is_told_over_starts_of_the_machine() -> None:
    presence = ProgramPresence()
    mark = presence.mark(os.getpid())
    boot, space, pid, began = mark.split()
    assert presence.look_at(mark) is False
    assert presence.look_at(f"{boot} {space} {pid} {int(began) + 1}") is True
    assert presence.look_at(f"another {space} {pid} {began}") is True
    assert presence.look_at(f"{boot} 1 {pid} {began}") is None
    assert presence.look_at("") is None and presence.mark(0) == ""
