"""Lists by pages: nothing is left out and nothing comes twice, and `next` is null where there is no more."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from coordinator.words import requests as rq
from tests.service.test_steps import next_, put_off, raw
from tests.world import World

NUMBER = 5

#: What lists, and under which field the next page is asked for.
LISTS: dict[str, tuple[rq.Request[Any], str]] = {
    "leases": (rq.Locks(), "after"),
    "tasks": (rq.Tasks(state="ready"), "after"),
    "tasks that were done": (rq.Tasks(state="done"), "after"),
    "reviews": (rq.Reviews(), "after"),
    "reviews of an agent": (rq.Reviews(agent="gone-1", state="all"), "after"),
    "unlock requests": (rq.Requests(), "after"),
    "messages": (rq.Messages(), "before"),
    "messages to one": (rq.Messages(reader="bob", search="hello"), "before"),
    "events": (rq.Events(kind="task_added"), "after"),
    "keys": (rq.StateKeys(prefix="key:a"), "after"),
    "changes": (rq.Changes(), "after"),
    "steps": (rq.Steps(), "after"),
    "hints": (rq.Signals(), "after"),
    "dead letters": (rq.Dead(), "after"),
    "dead letters of a kind": (rq.Dead(kind="call"), "after"),
}


@pytest.fixture
def full(world: World) -> World:
    """A repository with five of each."""
    for n in range(NUMBER):
        world.task(f"hopeless {n}", attempts_max=1)
        claimed = world.ask(rq.TaskClaim(agent="ann")).task.task
        world.ask(rq.TaskFail(agent="ann", task=claimed, reason="cannot"))
    for _ in range(NUMBER):
        step = put_off(world, delay_s=0.0, attempts_max=1)
        world.ask(rq.StepFail(agent="worker", step=step, attempt=next_(world).attempts, why="no"))
    world.acquire("own", "key:b")
    for n in range(NUMBER):
        change = world.ask(rq.ChangeAdd(agent="ann", key="key:b", wanted=raw(n), attempts_max=1)).change
        world.ask(rq.ChangeNext(agent="own", key="key:b"))
        world.ask(rq.ChangeFail(agent="own", change=change, attempt=1, why="broken"))
    for n in range(NUMBER):
        world.write(f"r{n}.py", "x = 1\n")
        world.acquire(f"gone-{n}", f"r{n}.py", ttl_s=1.0)
        world.write(f"r{n}.py", "x = 2\n")
    world.clock.advance(5_000)
    world.ask(rq.Sweep())
    for n in range(NUMBER):
        world.acquire("ann", f"f{n}")
        world.ask(rq.RequestFile(agent="bob", resource=f"f{n}", reason="I need it"))
        world.ask(rq.MessageSend(agent="ann", to="bob", text=f"hello {n}"))
        world.ask(rq.StatePut(agent="ann", key=f"key:a:{n}", value=raw(n), version=0))
        world.ask(rq.ChangeAdd(agent="bob", key=f"key:a:{n}", wanted=raw(n)))
        put_off(world, delay_s=60.0)
        world.ask(rq.SignalAdd(agent="ann", subject=f"f{n}", name="priority"))
        world.task(f"done {n}")
        claimed = world.ask(rq.TaskClaim(agent="cyd")).task.task
        world.ask(rq.TaskDone(agent="cyd", task=claimed))
    for n in range(NUMBER):
        world.task(f"ready {n}")
    return world


def pages(world: World, request: Any, under: str, limit: int) -> list[list[Any]]:
    found, asked = [], msgspec.structs.replace(request, limit=limit)
    while len(found) < 100:
        page = world.ask(asked)
        found.append(page.items)
        if page.next is None:
            return found
        asked = msgspec.structs.replace(asked, **{under: page.next})
    raise AssertionError("it does not end")


@pytest.mark.parametrize("limit", [1, 2, 3, 4, NUMBER, NUMBER + 1, 2 * NUMBER])
def test_pages_have_all_of_it_and_the_last_one_says_so(full: World, limit: int) -> None:
    for name, (request, under) in LISTS.items():
        whole = full.ask(request)
        many = len(whole.items)
        assert whole.next is None and many >= (1 if "of an agent" in name else NUMBER), name
        found = pages(full, request, under, limit)
        assert [len(page) for page in found[:-1]] == [limit] * ((many - 1) // limit), name
        in_order = found if under == "after" else found[::-1]
        assert [one for page in in_order for one in page] == whole.items, name
