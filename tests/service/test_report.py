"""What a time of work came to: waits, files, refusals and agents, told by the log alone."""

from __future__ import annotations

import pytest

from coordinator.words import requests as rq
from coordinator.words.clock import iso
from coordinator.words.refusals import Code, Refusal
from tests.world import World


def refused(world: World, agent: str, *resources: str, wait_s: float = 0.0, retry: bool = True) -> str:
    with pytest.raises(Refusal) as met:
        world.ask(rq.Acquire(agent=agent, resources=list(resources), wait_s=wait_s, retry=retry))
    assert met.value.code is Code.LOCKED
    return str(met.value.facts["acquisition_id"])


@pytest.fixture
def told(world: World) -> World:
    # Given ann, who holds a.py for 10 s and b.py for 30 s
    for name in ("ann", "bob", "cyd"):
        world.ask(rq.Register(agent=name))
    world.ask(rq.TaskAdd(title="one", resources=["a.py"]))
    world.ask(rq.TaskClaim(agent="ann", task="T-1"))
    world.ask(rq.Acquire(agent="ann", resources=["b.py"]))
    # and bob, who stands in line for a.py from 2 s on, and does nothing else, and cyd for b.py from 4 s on
    world.clock.advance(2_000)
    refused(world, "bob", "a.py", wait_s=60)
    world.clock.advance(2_000)
    refused(world, "cyd", "b.py")
    refused(world, "cyd", "a.py", retry=False)
    world.clock.advance(6_000)
    world.ask(rq.TaskDone(agent="ann", task="T-1", result="done"))  # bob has a.py from 10 s on
    world.clock.advance(20_000)
    return world


def test_who_waited_for_whom_and_how_long(told: World) -> None:
    found = told.ask(rq.Report())
    assert [(one.agent, one.holder, one.times, one.waited_s, one.stood_s) for one in found.waited] == [
        ("cyd", "ann", 2, 26.0, 0.0), ("bob", "ann", 1, 8.0, 8.0), ("cyd", "bob", 1, 0.0, 0.0)]  # bob stood before it
    assert (found.waited_s, found.stood_s, found.span_s) == (34.0, 8.0, 30.0)
    assert [(one.code, one.count) for one in found.refusals] == [("LOCKED", 3)]
    assert found.tasks == {"claim": 1, "done": 1}


def test_which_files_were_in_demand(told: World) -> None:
    found = {one.resource: one for one in told.ask(rq.Report()).files}
    assert list(found) == ["b.py", "a.py"], "the longest waited for first"
    a, b = found["a.py"], found["b.py"]
    assert (a.grants, a.refused, a.agents, a.held_s, a.waited_s) == (2, 2, 3, 30.0, 8.0)
    assert (b.grants, b.refused, b.agents, b.held_s, b.waited_s) == (1, 1, 2, 30.0, 26.0)


def test_what_each_agent_did(told: World) -> None:
    found = {one.agent: one for one in told.ask(rq.Report()).agents}
    assert set(found) == {"ann", "bob", "cyd"}
    ann = found["ann"]
    assert (ann.claimed, ann.done, ann.failed, ann.grants, ann.refused, ann.held_s, ann.waited_s) == (1, 1, 0, 2, 0, 40.0, 0.0)
    assert (found["bob"].held_s, found["bob"].stood_s, found["cyd"].refused) == (20.0, 8.0, 2)


def test_only_the_time_that_is_asked_for(told: World) -> None:
    whole = told.ask(rq.Report())
    assert whole.since is not None
    before = told.ask(rq.Report(until=whole.since))
    assert before.waited == [] and before.span_s == 0
    after = told.ask(rq.Report(since=whole.until))
    assert after.events == 0 and after.agents == [] and after.files == []
    assert len(told.ask(rq.Report(limit=1)).files) == 1
    with pytest.raises(Refusal) as met:
        told.ask(rq.Report(since="yesterday"))
    assert met.value.code is Code.INVALID and "yesterday" in met.value.message and "`since`" in met.value.message


def test_a_failed_attempt_a_lost_write_and_a_moved_file_count(world: World) -> None:
    for name in ("ann", "bob"):
        world.ask(rq.Register(agent=name))
    world.ask(rq.TaskAdd(title="one", resources=["a.py"]))
    world.ask(rq.TaskClaim(agent="ann", task="T-1"))
    world.clock.advance(5_000)
    world.ask(rq.TaskFail(agent="ann", task="T-1", reason="no"))
    world.write("c.py", "x = 1\n")
    with pytest.raises(Refusal) as met:
        world.ask(rq.Propose(agent="bob", changes=[rq.ProposedChange(resource="c.py", version="sha256:" + "0" * 64, content="y\n")]))
    assert met.value.code is Code.VERSION_CHANGED
    found = world.ask(rq.Report())
    assert [one.failed for one in found.agents if one.agent == "ann"] == [1]
    assert ("VERSION_CHANGED", 1) in [(one.code, one.count) for one in found.refusals]
    assert [one.refused for one in found.files if one.resource == "c.py"] == [1]
    assert [one.held_s for one in found.files if one.resource == "a.py"] == [5.0]


def test_coord_itself_is_no_agent_while_it_writes(world: World) -> None:
    world.write("a.py", "x = 1\n")
    world.acquire("ann", "a.py")
    world.write("a.py", "x = 2\n")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    found = world.ask(rq.Report())
    assert [one.agent for one in found.agents] == ["ann"]
    assert [(one.resource, one.grants) for one in found.files] == [("a.py", 1)]


def test_an_empty_log(world: World) -> None:
    found = world.ask(rq.Report())
    assert found.since is None and found.span_s == 0 and found.waited == found.files == found.agents == []


def test_the_time_without_a_task_for_others_hold_what_is_ready_is_lost_too(world: World) -> None:
    """Agents of a launch stand in no line then; and who holds it had it before the time that is asked for."""
    world.acquire("maria", "a.py", ttl_s=600)
    for title in ("one", "two"):
        world.ask(rq.TaskAdd(title=title, resources=["a.py"]))
    world.clock.advance(60_000)
    since = iso(world.clock.now_ms())
    for name in ("w-1", "w-2"):
        world.ask(rq.Register(agent=name, launch="1"))
    world.ask(rq.Register(agent="idle", description="a person's"))
    world.clock.advance(10_000)
    world.ask(rq.Release(agent="maria", resources=["a.py"]))
    world.ask(rq.TaskClaim(agent="w-1", task="T-1"))
    world.clock.advance(3_000)
    world.ask(rq.TaskDone(agent="w-1", task="T-1", result="done"))
    world.ask(rq.TaskClaim(agent="w-2", task="T-2"))
    world.clock.advance(5_000)
    world.ask(rq.TaskDone(agent="w-2", task="T-2", result="done"))
    world.clock.advance(50_000)  # nothing is ready any more
    found = world.ask(rq.Report(since=since))
    assert [(one.agent, one.holder, one.times, one.waited_s, one.stood_s) for one in found.waited] == [
        ("w-1", "maria", 1, 10.0, 10.0), ("w-2", "maria", 1, 10.0, 10.0), ("w-2", "w-1", 1, 3.0, 3.0)]
    assert (found.waited_s, found.stood_s) == (23.0, 23.0)
    assert [(one.resource, one.waited_s, one.agents) for one in found.files] == [("a.py", 23.0, 2)]
    assert {one.agent: (one.done, one.waited_s) for one in found.agents} == {"w-1": (1, 10.0), "w-2": (1, 13.0)}


@pytest.mark.parametrize("claims", [True, False])
def test_the_time_in_which_a_program_waits_for_a_task_is_lost_too(world: World, claims: bool) -> None:
    """Its claim is held open: it stands in no line. It ends with a task, or when its time is over."""
    for title in ("one", "two"):
        world.ask(rq.TaskAdd(title=title, resources=["a.py"]))
    world.ask(rq.TaskClaim(agent="w-1"))
    world.refused(rq.TaskClaim(agent="asks"))  # and does not wait
    assert world.refused(rq.TaskClaim(agent="w-2", wait_s=5)).code is Code.NOTHING_TO_DO
    world.clock.advance(3_000 if claims else 20_000)
    world.ask(rq.TaskDone(agent="w-1", task="T-1", result="done"))
    if claims:
        world.ask(rq.TaskClaim(agent="w-2"))
    world.clock.advance(60_000)
    found = world.ask(rq.Report())
    lost = 3.0 if claims else 5.0
    assert [(one.agent, one.holder, one.stood_s) for one in found.waited] == [("w-2", "w-1", lost)]
    assert (found.waited_s, found.stood_s) == (lost, lost)
    assert [(one.resource, one.waited_s) for one in found.files if one.waited_s] == [("a.py", lost)]
    assert world.replay_differs() == []


def test_nobody_waits_for_others_where_nothing_is_ready(world: World) -> None:
    world.task("one", "a.py")
    world.ask(rq.TaskClaim(agent="w-1"))
    world.refused(rq.TaskClaim(agent="w-2", wait_s=5))
    assert world.ask(rq.Events(kind="claim_waits")).items == []
