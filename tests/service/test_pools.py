"""Pools: each value has one holder, a task is given all that it needs or nothing, and all of it ends with the task."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from coordinator.mcp import answers
from coordinator.rules.pools import Pool, list_freed, name_need, name_value
from coordinator.settings import Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.effort import examples
from tests.world import World

LETTERS = Pool(values=["a", "b"], env="DB_NAME", template="db_{value}")
LAMPS = Pool(values=["x"], env="DEVICE_SERIAL")


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "pools", Settings(pools={"db": LETTERS, "lamp": LAMPS}))
    yield made
    assert made.replay_differs() == []
    made.close()


def claim(world: World, agent: str, task: str | None = None, **more: Any) -> rq.Claimed:
    claimed = world.ask(rq.TaskClaim(agent=agent, task=task, **more))
    assert isinstance(claimed, rq.Claimed)
    return claimed


def holders(world: World) -> dict[str, str]:
    return {row.file_path: row.locked_by for row in world.live()}


def test_the_scopes_of_a_pool() -> None:
    need, value = name_need("db"), name_value("db", "a")
    assert value.scope.startswith(need.scope)
    assert list_freed(value.scope) == (value.scope, need.scope) and list_freed(need.scope) == (need.scope,)
    assert list_freed("p/a.py/") == ("p/a.py/",) and list_freed("k/key/x/") == ("k/key/x/",)


def test_a_claim_is_given_a_value_of_each_and_ends_with_it(world: World) -> None:
    world.task("one", "a.py", needs=["db", "lamp"])
    claimed = claim(world, "ann")
    assert claimed.environment == {"DB_NAME": "db_a", "DEVICE_SERIAL": "x"}
    assert claimed.task.needs == ["db", "lamp"] and claimed.task.resources == ["a.py"]
    assert holders(world) == {"a.py": "ann", "key:pool:db:a": "ann", "key:pool:lamp:x": "ann"}
    assert claim(world, "ann", "T-1", reentrant=True).environment == claimed.environment
    world.ask(rq.TaskDone(agent="ann", task="T-1"))
    assert holders(world) == {}


def test_all_or_nothing_and_who_has_them_is_told(world: World) -> None:
    world.task("one", needs=["lamp"])
    world.task("two", needs=["db", "lamp"])
    world.task("three", "b.py", priority=-1)
    claim(world, "ann", "T-1")
    refusal = world.refused(rq.TaskClaim(agent="bob", task="T-2"))
    assert refusal.code is Code.LOCKED and refusal.facts["conflicts"][0]["holder"] == "ann"
    assert "No value of the pool lamp is free" in refusal.message
    assert holders(world) == {"key:pool:lamp:x": "ann"}, "nothing of db"
    assert claim(world, "bob").task.task == "T-3", "the other one is not offered"
    assert "ann" in world.ask(rq.TaskShow(task="T-2")).explanation
    world.ask(rq.TaskDone(agent="ann", task="T-1"))
    assert claim(world, "cid").environment == {"DB_NAME": "db_a", "DEVICE_SERIAL": "x"}


def test_any_value_that_comes_free_offers_the_next_task(world: World) -> None:
    for n in range(4):
        world.task(f"task {n}", needs=["db"])
    assert [claim(world, name).environment["DB_NAME"] for name in ("ann", "bob")] == ["db_a", "db_b"]
    assert world.refused(rq.TaskClaim(agent="cid")).code is Code.NOTHING_TO_DO
    world.ask(rq.TaskDone(agent="bob", task="T-2"))
    assert claim(world, "cid").environment == {"DB_NAME": "db_b"}, "though ann's was the first in the way"
    world.ask(rq.TaskDone(agent="ann", task="T-1"))
    assert claim(world, "dan").environment == {"DB_NAME": "db_a"}


def test_a_claim_that_fell_silent_gives_its_value_back(world: World) -> None:
    world.task("one", needs=["lamp"])
    world.task("two", needs=["lamp"])
    claim(world, "ann", "T-1", ttl_s=60)
    world.clock.advance(61_000)
    assert claim(world, "bob", "T-2").environment == {"DEVICE_SERIAL": "x"}


def test_a_session_has_the_same_value_until_it_gives_it_back(world: World) -> None:
    given = world.ask(rq.EnvironmentTake(agent="ann", pools=["db", "lamp"]))
    assert given.environment == {"DB_NAME": "db_a", "DEVICE_SERIAL": "x"} and given.new == ["db", "lamp"]
    again = world.ask(rq.EnvironmentTake(agent="ann", pools=["db"]))
    assert again.environment == {"DB_NAME": "db_a"} and again.new == []
    assert world.ask(rq.EnvironmentTake(agent="ann")).environment == given.environment
    other = world.refused(rq.EnvironmentTake(agent="bob", pools=["db", "lamp"]))
    assert other.code is Code.LOCKED and other.facts["conflicts"][0]["holder"] == "ann"
    assert set(holders(world).values()) == {"ann"}, "nor was bob given a database"
    shown = world.ask(rq.PoolValues())
    assert {(item.pool, item.value): item.locked_by for item in shown.items} == {
        ("db", "a"): "ann", ("db", "b"): None, ("lamp", "x"): "ann"}
    back = world.ask(rq.EnvironmentRelease(agent="ann", pools=["lamp"]))
    assert back.environment == {"DEVICE_SERIAL": "x"}
    assert world.ask(rq.EnvironmentTake(agent="bob", pools=["db", "lamp"])).environment["DB_NAME"] == "db_b"
    world.ask(rq.EnvironmentRelease(agent="ann"))
    assert set(holders(world).values()) == {"bob"}


def test_a_task_of_an_agent_that_has_a_value_goes_on_with_it(world: World) -> None:
    world.ask(rq.EnvironmentTake(agent="ann", pools=["lamp"]))
    world.task("one", needs=["lamp"])
    world.task("two", needs=["lamp"])
    assert claim(world, "ann", "T-1").environment == {"DEVICE_SERIAL": "x"}
    world.ask(rq.TaskDone(agent="ann", task="T-1"))
    world.ask(rq.EnvironmentRelease(agent="ann"))
    world.task("three", needs=["lamp"])
    claim(world, "ann", "T-2")
    refusal = world.refused(rq.TaskClaim(agent="ann", task="T-3"))
    assert refusal.code is Code.TASK_NOT_READY and "T-2" in refusal.message, "it would end with the other task"
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    assert list(holders(world)) == ["key:pool:lamp:x"], "never the whole pool"


def test_a_pool_that_is_held_as_a_whole_gives_nothing(world: World) -> None:
    world.acquire("ann", "key:pool:db")
    assert world.refused(rq.EnvironmentTake(agent="bob", pools=["db"])).code is Code.LOCKED
    assert world.ask(rq.EnvironmentTake(agent="ann", pools=["db"])).environment == {"DB_NAME": "db_a"}
    world.ask(rq.Release(agent="ann", resources=["key:pool:db"]))
    world.ask(rq.EnvironmentRelease(agent="ann"))
    assert world.ask(rq.EnvironmentTake(agent="bob", pools=["db"])).environment == {"DB_NAME": "db_a"}


def test_an_unknown_pool_is_refused_where_it_is_named(world: World) -> None:
    for request in (rq.TaskAdd(title="x", needs=["dB"]), rq.EnvironmentTake(agent="ann", pools=["port"]),
                    rq.TaskAdd(title="x", resources=["key:pool:port"]), rq.PoolValues(pool="port"),
                    rq.TaskImport(text="- {title: x, needs: port}")):
        refusal = world.refused(request)
        assert refusal.code is Code.INVALID and "No pool is called" in refusal.message, refusal
    world.task("one", needs=["lamp"])
    world.service.settings = Settings()
    assert world.refused(rq.TaskClaim(agent="ann", task="T-1")).code is Code.INVALID
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    assert "No pool is called 'lamp'" in world.ask(rq.Status()).aside[0].reason


def test_what_a_task_needs_is_edited_and_written_as_its_resources_are(world: World) -> None:
    world.task("one", "a.py", needs=["lamp"])
    assert world.ask(rq.TaskEdit(task="T-1", resources=["b.py"])).needs == ["lamp"]
    edited = world.ask(rq.TaskEdit(task="T-1", needs=["db"]))
    assert edited.resources == ["b.py"] and edited.needs == ["db"]
    for form in ("yaml", "jsonl", "markdown"):
        text = world.ask(rq.TaskExport(format=form)).text
        read = world.ask(rq.TaskImport(text=text, format=form)).items[0]
        assert read.needs == ["db"] and read.resources == ["b.py"], text
    assert world.ask(rq.TaskEdit(task="T-1", needs=[])).needs == []


def test_a_port_that_somebody_listens_on_is_passed_over(tmp_path: Path) -> None:
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1")):
        first, second = free_ports(2)
        pool = Pool(values=[first, second], env="PORT", kind="port")
        world = World(tmp_path / f"{family}{address[:3]}", Settings(pools={"port": pool}))
        with socket.socket(family) as server:
            server.bind((address, first))
            server.listen()
            world.task("one", needs=["port"])
            world.task("two", needs=["port"])
            claimed = claim(world, "ann")
            assert claimed.environment == {"PORT": str(second)}
            assert claimed.warnings == [f"PORT: {first} of the pool port was passed over, for somebody listens there "
                                        "(`coord ports`)."]
            shown = {item.value: item for item in world.ask(rq.PoolValues()).items}
            assert shown[str(first)].listened and shown[str(first)].locked_by is None
            assert not shown[str(second)].listened and shown[str(second)].locked_by == "ann"
            world.ask(rq.TaskDone(agent="ann", task="T-1"))
            world.ask(rq.EnvironmentTake(agent="bob", pools=["port"]))
            assert world.refused(rq.TaskClaim(agent="ann", task="T-2")).code is Code.LOCKED
        world.ask(rq.EnvironmentRelease(agent="bob"))
        assert claim(world, "ann", "T-2").environment == {"PORT": str(first)}
        world.close()


def test_only_strangers_listen_on_all_that_is_free(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    world = World(tmp_path / "w", Settings(pools={"port": Pool(values=[port], env="PORT", kind="port")}))
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        world.task("one", needs=["port"])
        refusal = world.refused(rq.TaskClaim(agent="ann", task="T-1"))
        assert refusal.code is Code.LOCKED and "listen on all" in refusal.message
        assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    world.clock.advance(40_000)
    world.ask(rq.Sweep())
    assert claim(world, "ann").environment == {"PORT": str(port)}
    world.close()


STEPS = st.lists(st.tuples(st.sampled_from(["claim", "done", "fail", "env", "back", "wait", "leave", "line", "last"]),
                           st.sampled_from(["ann", "bob", "cid"])), max_size=25)


@effort(max_examples=examples(40))
@given(STEPS)
def test_no_value_ever_has_two_holders(tmp_path_factory: pytest.TempPathFactory,
                                       steps: list[tuple[str, str]]) -> None:
    world = World(tmp_path_factory.mktemp("w") / "r", Settings(pools={"db": LETTERS, "lamp": LAMPS}))
    for n in range(8):
        world.task(f"task {n}", needs=[["db"], ["lamp"], ["db", "lamp"]][n % 3])
    for verb, agent in steps:
        claimed = [task.task for task in world.ask(rq.Tasks(agent=agent, state="claimed")).items]
        requests: dict[str, rq.Request[Any] | None] = {
            "claim": rq.TaskClaim(agent=agent), "env": rq.EnvironmentTake(agent=agent, pools=["db"]),
            "back": rq.EnvironmentRelease(agent=agent), "leave": rq.Leave(agent=agent),
            "line": rq.Acquire(agent=agent, resources=["key:pool:db:a", "key:pool:lamp:x"], wait_s=500, retry=True),
            "last": rq.Acquire(agent=agent, resources=["key:pool:db:b"], wait_s=500, retry=True, priority=-9),
            "done": rq.TaskDone(agent=agent, task=claimed[0]) if claimed else None,
            "fail": rq.TaskFail(agent=agent, task=claimed[0]) if claimed else None, "wait": None}
        if verb == "wait":
            world.clock.advance(900_000)
        with contextlib.suppress(Refusal):
            if (request := requests[verb]) is not None:
                world.ask(request)
        values = [row.file_path for row in world.live() if row.expires_at > world.view().now]
        assert len(values) == len(set(values)), values
        assert "key:pool:db" not in values and "key:pool:lamp" not in values, "never a whole pool"
    assert world.replay_differs() == []
    world.close()


def test_a_value_that_another_stands_in_line_for_is_left_to_it(world: World) -> None:
    world.acquire("ann", "a.py")
    line = rq.Acquire(agent="bob", resources=["key:pool:db:a", "a.py"], wait_s=600, retry=True)
    world.refused(line)
    assert world.ask(rq.EnvironmentTake(agent="cid", pools=["db"])).environment == {"DB_NAME": "db_b"}
    world.task("one", needs=["db"])
    refusal = world.refused(rq.TaskClaim(agent="dan", task="T-1"))
    assert refusal.code is Code.LOCKED and {c["holder"] for c in refusal.facts["conflicts"]} == {"bob"}
    assert world.refused(rq.TaskClaim(agent="dan")).code is Code.NOTHING_TO_DO
    world.ask(rq.EnvironmentRelease(agent="cid"))
    assert claim(world, "dan").environment == {"DB_NAME": "db_b"}
    world.task("two", needs=["db"])
    assert world.refused(rq.TaskClaim(agent="eve")).code is Code.NOTHING_TO_DO
    world.ask(rq.Leave(agent="bob"))
    assert claim(world, "eve").environment == {"DB_NAME": "db_a"}


def test_a_model_is_told_what_is_its_own(world: World) -> None:
    world.task("one", needs=["lamp"])
    assert "set it for the programs that you start: `DEVICE_SERIAL=x`." in answers.in_words(claim(world, "ann"))
