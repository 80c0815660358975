"""What is carried from one commit to the next never contradicts the database."""

import sqlite3

from coordinator.store.writer_cache import COUNTER_BLOCKS
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World


def stored(world: World) -> int:
    return int(world.db.execute("SELECT value FROM counters WHERE name = 'fencing'").get)


def test_fencing_tokens_rise_over_restarts_and_their_block_is_never_given_twice(
    world: World,
) -> None:
    given: list[int] = []
    for number in range(3 * COUNTER_BLOCKS["fencing"]):
        given.append(world.acquire("ann", f"f{number}.py").leases[0].fencing_token)
        assert given[-1] <= stored(world), "a number was told that is not on disk"
        if number % 50 == 49:
            world.restart()
    assert given == sorted(set(given))
    assert given[-1] < 3 * COUNTER_BLOCKS["fencing"] + 4 * COUNTER_BLOCKS["fencing"]


def test_what_somebody_else_writes_to_the_database_is_seen(world: World) -> None:
    world.checked = False  # for the state is not what the log gives then
    token = world.ask(rq.Register(agent="ann")).token
    asked = rq.Acquire(agent="ann", resources=["a.py"])
    world.ask(asked, token=token)
    other = sqlite3.connect(world.state_dir.database)
    other.execute("UPDATE agents SET state = 'gone' WHERE agent = 'ann'")
    other.execute("UPDATE counters SET value = 5000 WHERE name = 'fencing'")
    other.commit()
    other.close()
    assert world.refused(asked, token=token).code is Code.UNAUTHORIZED
    assert world.acquire("bob", "b.py").leases[0].fencing_token > 5000


def test_a_token_ends_with_its_agent_and_with_the_next_registration(world: World) -> None:
    first = world.ask(rq.Register(agent="ann")).token
    beat = rq.Heartbeat(agent="ann")
    world.ask(beat, token=first)
    world.ask(rq.Leave(agent="ann"))
    second = world.ask(rq.Register(agent="ann")).token
    world.ask(beat, token=second)
    assert world.refused(beat, token=first).code is Code.UNAUTHORIZED
    world.ask(rq.Leave(agent="ann"))
    assert world.refused(beat, token=second).code is Code.UNAUTHORIZED
