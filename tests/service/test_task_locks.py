"""A task is something that can be leased, asked for and handed over, with or without a claim."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from coordinator.kernel.holders.settled_notices import NoticeRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World


@pytest.fixture(autouse=True)
def the_log_gives_the_state(world: World) -> Iterator[None]:
    yield
    assert world.replay_differs() == []


def claim(world: World, agent: str, task: str | None = None) -> str:
    return str(world.ask(rq.TaskClaim(agent=agent, task=task)).task.task)


def shown(world: World, task: str) -> Any:
    return world.ask(rq.TaskShow(task=task))


def ask(world: World, agent: str, resource: str) -> str:
    return str(world.ask(rq.RequestFile(agent=agent, resource=resource, reason="I know it best")).request)


def answer(world: World, agent: str, request: str, verdict: Any = "approve", **more: Any) -> Any:
    return world.ask(rq.RequestAnswer(agent=agent, request=request, verdict=verdict, **more))


def held(world: World) -> dict[str, str]:
    return {row.file_path: row.locked_by for row in world.live()}


def test_a_locked_task_is_claimed_by_nobody_else(world: World) -> None:
    world.task("a", "a.py")
    world.task("b", "b.py")
    world.ask(rq.Register(agent="ann", description="the importer"))
    world.acquire("ann", "task:T-1", description="mine")
    row = shown(world, "T-1")
    assert (row.locked_by, row.locked_by_name, row.locked_at) == ("ann", "the importer", row.locked_at)
    assert row.locked_at is not None and row.state == "ready"
    refusal = world.refused(rq.TaskClaim(agent="bob", task="T-1"))
    assert refusal.code is Code.LOCKED and 'T-1 is already locked by ann ("mine")' in refusal.message
    assert claim(world, "bob") == "T-2", "dispatch goes past it"
    assert world.refused(rq.TaskClaim(agent="cyd")).code is Code.NOTHING_TO_DO
    only = world.refused(rq.Release(agent="bob", resources=["task:T-1"]))
    assert only.code is Code.NOT_HOLDER and "Only the holder can unlock it" in only.message
    world.ask(rq.Release(agent="ann", resources=["task:T-1"]))
    assert claim(world, "cyd") == "T-1"


def test_its_holder_can_claim_it_and_has_it_no_longer_than_that(world: World) -> None:
    world.task("a", "a.py")
    world.acquire("ann", "task:T-1")
    assert claim(world, "ann") == "T-1"
    assert set(held(world)) == {"task:T-1", "a.py"}
    world.ask(rq.TaskDone(agent="ann", task="T-1"))
    assert held(world) == {}


def test_whoever_has_claimed_it_holds_it(world: World) -> None:
    world.task("a", "a.py")
    claim(world, "ann")
    row = shown(world, "T-1")
    assert (row.locked_by, row.locked_by_name) == ("ann", "ann")
    assert set(held(world)) == {"a.py"}, "without a lease of its own"
    refusal = world.refused(rq.Acquire(agent="bob", resources=["task:T-1"]))
    assert refusal.code is Code.LOCKED and "T-1 is already locked by ann" in refusal.message
    world.ask(rq.TaskDone(agent="ann", task="T-1"))
    assert held(world) == {"task:T-1": "bob"}, "it stood in line for it"


def test_a_claimed_task_is_asked_for_and_handed_over_with_all_its_leases(world: World) -> None:
    world.write("a.py", "one\n")
    world.write("d/x.py", "x\n")
    world.task("a", "a.py", "d/")
    world.task("mine", "m.py")
    claim(world, "ann", "T-1")
    claim(world, "bob", "T-2")
    tokens = {row.file_path: row.fencing_token for row in world.live()}
    world.write("d/x.py", "half done\n")
    request = ask(world, "bob", "task:T-1")
    done = answer(world, "ann", request)
    assert done.granted
    assert held(world) == {"a.py": "bob", "d/": "bob", "m.py": "bob", "task:T-1": "bob"}
    assert all(row.fencing_token > tokens[row.file_path] for row in world.live() if row.file_path in ("a.py", "d/"))
    row = shown(world, "T-1")
    assert (row.state, row.claimed_by, row.locked_by, row.attempts) == ("claimed", "bob", "bob", 1)
    (told,) = [row.text for row in world.view().each(NoticeRow, "notices_of", "ann", 0) if row.kind == "handed"]
    assert "T-1 is bob's now" in told
    assert world.refused(rq.TaskDone(agent="ann", task="T-1")).code is Code.NOT_HOLDER
    # what ann had begun is flagged as bob's, should bob leave
    world.ask(rq.Leave(agent="bob"))
    (review,) = world.ask(rq.Reviews()).items
    assert [file.path for file in world.ask(rq.ReviewShow(review=review.review)).files] == ["d/x.py"]


@pytest.mark.parametrize(("needs", "holds"), [("src/a.py", "src/"), ("src/", "src/a.py"), ("src/a.py", "src/a.py::f"),
                                              ("src/a.py", "src/*.py")])
@pytest.mark.parametrize("by", ["ann", "olga"])
def test_nobody_keeps_a_part_of_what_goes_over(world: World, needs: str, holds: str, by: str) -> None:
    world.write("src/a.py", "def f():\n    return 1\n")
    world.acquire("ann", holds)
    world.task("a", needs)
    claim(world, "ann", "T-1")
    request = ask(world, "bob", "task:T-1")
    refusal = world.refused(rq.RequestAnswer(agent=by, request=request, verdict="approve", force=by != "ann"))
    assert refusal.code is Code.BAD_TRANSITION and holds in refusal.message and needs in refusal.message
    assert set(held(world).values()) == {"ann"} and shown(world, "T-1").claimed_by == "ann"
    first, then = (one for one in refusal.next.split("`") if one.startswith("coord "))
    assert first == f"coord unlock {shlex.quote(holds)} --agent ann"
    world.ask(rq.Release(agent="ann", resources=[holds]))
    assert then == f"coord request approve {request} --agent {by}" + (" --force" if by != "ann" else "")
    answer(world, by, request, force=by != "ann")
    assert held(world) == {needs: "bob", "task:T-1": "bob"}


def test_both_had_a_file_shared(world: World) -> None:
    world.task("a", "shared:s.py")
    claim(world, "ann", "T-1")
    world.acquire("bob", "s.py", mode="shared")
    answer(world, "ann", ask(world, "bob", "task:T-1"))
    assert [row.locked_by for row in world.live() if row.file_path == "s.py"] == ["bob"]


def test_the_holder_keeps_it(world: World) -> None:
    world.task("a", "a.py")
    claim(world, "ann")
    request = ask(world, "bob", "task:T-1")
    answer(world, "ann", request, "reject")
    assert shown(world, "T-1").claimed_by == "ann"


def test_a_person_takes_it_over(world: World) -> None:
    world.task("a", "a.py")
    claim(world, "ann")
    request = ask(world, "bob", "task:T-1")
    assert answer(world, "olga", request, force=True).unlock.override
    assert shown(world, "T-1").claimed_by == "bob"


def test_a_request_is_for_one_thing(world: World) -> None:
    world.task("a")
    world.task("b")
    claim(world, "ann", "T-1")
    request = ask(world, "bob", "task:T-1")
    wrong = world.refused(rq.RequestAnswer(agent="ann", request=request, verdict="approve", resource="task:T-2"))
    assert wrong.code is Code.UNKNOWN_REQUEST and shown(world, "T-1").claimed_by == "ann"
    assert [r.request for r in world.ask(rq.Requests(resource="task:T-1")).items] == [request]
    assert world.ask(rq.Requests(resource="task:T-2")).items == []
    assert world.refused(rq.Acquire(agent="ann", resources=["task:T-9"])).code is Code.UNKNOWN_TASK
    assert world.refused(rq.RequestFile(agent="ann", resource="task:T-9", reason="x")).code is Code.UNKNOWN_TASK


def test_a_claim_that_has_lapsed_holds_nothing(world: World) -> None:
    world.task("a", "a.py")
    world.ask(rq.TaskClaim(agent="ann", ttl_s=5.0))
    world.clock.advance(6_000)
    world.acquire("bob", "task:T-1")
    assert held(world) == {"task:T-1": "bob"}


@pytest.mark.parametrize("names", [("same.txt", "same.txt"), ("shared:same.txt", "shared:same.txt"), ("d/", "d/")])
@pytest.mark.parametrize("ends", ["done", "fails"])
def test_an_agent_has_no_two_tasks_with_one_lease_between_them(world: World, names: tuple[str, str], ends: str) -> None:
    """It would end with the first of them, and the second go on without it."""
    one, two = (world.task(title, name) for title, name in zip(("one", "two"), names, strict=True))
    other = world.task("three", "other.txt")
    assert world.ask(rq.TaskClaim(agent="ann")).task.task == one
    refusal = world.refused(rq.TaskClaim(agent="ann", task=two))
    assert refusal.code is Code.TASK_NOT_READY and f"which you hold for {one}" in refusal.message and f"task done {one}" in refusal.next
    assert world.ask(rq.TaskClaim(agent="ann")).task.task == other, "another is given out in its place"
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    if ends == "done":
        world.ask(rq.TaskDone(agent="ann", task=one))
    else:
        world.ask(rq.TaskFail(agent="ann", task=one, reason="no"))
    assert world.ask(rq.TaskClaim(agent="ann")).task.task == two
    assert [row.task_id for row in world.live() if row.file_path in ("same.txt", "d/")] == [two]


def test_what_one_may_not_have_yet_is_given_to_others(world: World) -> None:
    """Two tasks read the same file: the second is not kept for whoever is at the first."""
    one, two = (world.task(title, "shared:same.txt") for title in ("one", "two"))
    assert claim(world, "ann") == one
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    assert claim(world, "bob") == two


def test_what_is_not_offered_beside_a_task_is_given_to_others(world: World) -> None:
    one, two = (world.task(title, "shared:same.txt") for title in ("one", "two"))
    world.acquire("bob", "x.py")
    assert claim(world, "ann") == one
    refusal = world.refused(rq.Acquire(agent="ann", resources=["x.py"]))
    assert refusal.code is Code.LOCKED and "offer" not in refusal.facts
    assert claim(world, "bob") == two


def test_a_task_for_later_hides_none_that_could_begin(world: World) -> None:
    one = world.task("one", "d/")
    world.write("d/a.py", "a\n")
    assert claim(world, "bob") == one
    within = world.task("within", "d/a.py")
    again = world.task("again", "d/", priority=1)
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    assert claim(world, "bob") == within
    world.ask(rq.TaskDone(agent="bob", task=one))
    world.ask(rq.TaskDone(agent="bob", task=within))
    assert claim(world, "ann") == again


def test_all_that_read_a_file_begin_when_its_writer_has_left(world: World) -> None:
    world.acquire("wim", "s.py")
    tasks = [world.task(f"read {n}", "shared:s.py") for n in range(3)]
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    world.ask(rq.Release(agent="wim", resources=["s.py"]))
    assert [claim(world, agent) for agent in ("ann", "bob", "cyd")] == tasks


def test_a_task_that_writes_keeps_none_back_that_reads(world: World) -> None:
    for agent in ("wim", "wes"):
        world.acquire(agent, "s.py", mode="shared")
    world.task("write", "s.py")
    world.task("write, too", "s.py")
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    world.acquire("xi", "x.py")
    last = world.task("read", "shared:s.py", "x.py")
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    world.ask(rq.Release(agent="wim", resources=["s.py"]))
    world.ask(rq.Release(agent="xi", resources=["x.py"]))
    assert claim(world, "ann") == last


def test_a_pattern_keeps_back_what_it_matches_only(world: World) -> None:
    """Patterns of one folder stand at one place."""
    world.write("a.md", "a\n")
    world.write("a.py", "a\n")
    world.acquire("wim", "*.md")
    world.acquire("wes", "*.py")
    world.task("python", "*.py")
    texts = world.task("texts", "*.md")
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    world.ask(rq.Release(agent="wim", resources=["*.md"]))
    assert claim(world, "ann") == texts


@pytest.mark.parametrize("name", ["a.py", "d/", "key:x"])
def test_a_task_keeps_what_its_agent_had_leased_before_and_gives_back(world: World, name: str) -> None:
    """A body of a program ends, and the task that was claimed in it goes on."""
    world.write("a.py", "one\n")
    world.write("d/x.py", "one\n")
    one, two = (world.task(title, name) for title in ("one", "two"))
    world.acquire("ann", name)
    world.write("a.py", "half\n")
    world.write("d/x.py", "half\n")
    assert claim(world, "ann", one) == one
    world.ask(rq.Release(agent="ann", resources=[name]))
    assert [(row.file_path, row.locked_by, row.task_id) for row in world.live()] == [(name, "ann", one)]
    assert world.refused(rq.TaskClaim(agent="bob", task=two)).code is Code.LOCKED
    world.ask(rq.TaskFail(agent="ann", task=one, reason="no"))
    assert world.live() == []
    if name != "key:x":
        (review,) = world.ask(rq.Reviews()).items
        assert [file.path for file in review.files] == ["a.py" if name == "a.py" else "d/x.py"], "since the lease began"
    assert claim(world, "bob", two) == two


def test_what_a_person_takes_by_force_no_task_keeps(world: World) -> None:
    one = world.task("one", "a.py")
    world.acquire("ann", "a.py")
    assert claim(world, "ann", one) == one
    world.ask(rq.Release(agent="maria", resources=["a.py"], force=True))
    assert world.live() == []


def test_what_is_granted_after_a_claim_is_over_does_not_end_with_that_claim(world: World) -> None:
    """Nobody has closed the claim yet; what its agent asks for now is not for that task."""
    world.write("a.py", "a = 1\n")
    task = world.task("its time is over", "d/")
    world.ask(rq.TaskClaim(agent="bob", task=task, ttl_s=60))
    world.clock.advance(60_000)
    world.acquire("ann", "a.py")
    asked = world.ask(rq.RequestFile(agent="bob", resource="a.py", reason="my turn"))
    assert world.ask(rq.RequestAnswer(agent="ann", request=asked.request, verdict="approve")).granted
    assert world.refused(rq.Acquire(agent="cyd", resources=["**/a.py"], retry=False)).facts["conflicts"][0]["holder"] == "bob"
    world.ask(rq.Sweep())
    assert [(lease.locked_by, lease.task) for lease in world.ask(rq.Locks()).items] == [("bob", None)]
