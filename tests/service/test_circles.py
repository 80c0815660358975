"""Agents that wait for each other: one is chosen to give way, told alone, and its work is kept."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.kernel.leasing import deadlocks
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.effort import examples
from tests.sessions import Session
from tests.world import World


def ask(world: World, agent: str, *names: str, **more: Any) -> Refusal:
    refusal = world.refused(rq.Acquire(agent=agent, resources=list(names), reentrant=True, **more))
    assert refusal.code is (Code.DEADLOCK if refusal.facts["give_way"] else Code.LOCKED)
    return refusal


def notices(world: World, agent: str) -> list[rq.Notice]:
    """What an agent is told at its next call; it acknowledges it."""
    told = list(world.ask(rq.Heartbeat(agent=agent)).notices)
    if told:
        world.ask(rq.Heartbeat(agent=agent, ack=told[-1].notice))
    return told


def ways(world: World, agent: str) -> list[rq.Notice]:
    return [one for one in notices(world, agent) if one.kind == "gives_way"]


def type_(world: World, command: str) -> None:
    """What a refusal says to type, done."""
    match shlex.split(command):
        case ["coord", "task", "fail", task, *rest]:
            agent = rest[rest.index("--agent") + 1]
            blocked = [rest[at + 1] for at, word in enumerate(rest) if word == "--blocked"]
            world.ask(rq.TaskFail(agent=agent, task=task, blocked=blocked))
        case ["coord", "unlock", *names, "--agent", agent]:
            world.ask(rq.Release(agent=agent, resources=names))
        case other:
            raise AssertionError(other)


def claim(world: World, agent: str, name: str, **more: Any) -> str:
    task = world.task(f"change {name}", name, **more)
    world.ask(rq.TaskClaim(agent=agent, task=task))
    return task


# ------------------------------------------------------------ who it is


def test_to_who_stands_in_no_line_nobody_gives_way(world: World) -> None:
    world.acquire("ann", "x")
    world.clock.advance(1000)
    world.acquire("bob", "y")
    ask(world, "bob", "x")
    told = ask(world, "ann", "y", retry=False)
    assert told.facts["victim"] is None and told.facts["deadlock"] == []
    assert "each other" not in told.message and not ways(world, "bob"), "it would be told alone"
    assert "bob was chosen" in ask(world, "ann", "y").message and len(ways(world, "bob")) == 1


def test_the_one_that_began_last_gives_way_and_the_other_waits(world: World) -> None:
    # Given two that wait for each other, each in the middle of its task
    claim(world, "ann", "a.py")
    world.clock.advance(1000)
    bobs = claim(world, "bob", "b.py")
    ask(world, "ann", "b.py")
    # If the one that began last closes the circle
    told = ask(world, "bob", "a.py")
    # I expect it alone to be told to give way, and how
    assert told.facts["give_way"] is True and told.facts["victim"] == "bob"
    assert told.facts["deadlock"] == ["ann"] and told.facts["redirect"] is None
    assert told.next == f"coord task fail {bobs} --blocked a.py --agent bob"
    assert told.next in told.message and "What you changed is kept" in told.message
    again = ask(world, "ann", "b.py")
    assert again.facts["give_way"] is False and again.facts["victim"] == "bob"
    assert "bob was chosen to give its work back; keep yours" in again.message
    assert "give way" not in again.message and not ways(world, "ann") and not ways(world, "bob")
    # And the other to get what it waits for, once that is done
    type_(world, told.next)
    assert {row.file_path for row in world.live() if row.locked_by == "ann"} == {"a.py", "b.py"}
    assert world.ask(rq.TaskShow(task=bobs)).state == "ready"
    assert world.replay_differs() == []


def test_one_whose_work_is_less_urgent_gives_way_though_it_began_first(world: World) -> None:
    claim(world, "ann", "a.py", priority=1)
    world.clock.advance(1000)
    claim(world, "bob", "b.py", priority=2)
    ask(world, "ann", "b.py")
    told = ask(world, "bob", "a.py")
    # It was not its request that closed the circle: it is told at its next call, once
    assert told.facts["give_way"] is False and told.facts["victim"] == "ann"
    (way,) = ways(world, "ann")
    assert way.data["give_way"] is True and way.data["deadlock"] == ["bob"]
    assert str(way.data["next"]) in way.text and "it is you who give way" in way.text
    for _ in range(3):
        assert ask(world, "bob", "a.py").facts["victim"] == "ann"
        again = ask(world, "ann", "b.py")
        assert again.facts["give_way"] is True and again.next == way.data["next"]
    assert not ways(world, "ann") and not ways(world, "bob")


@pytest.mark.parametrize("restarts", [False, True])
def test_it_stays_the_same_one_while_the_circle_stands(world: World, restarts: bool) -> None:
    for agent, name in (("ann", "a.py"), ("bob", "b.py"), ("cyd", "c.py")):
        world.acquire(agent, name)
        world.clock.advance(1000)
    ask(world, "ann", "b.py")
    assert ask(world, "bob", "a.py").facts["give_way"] is True
    if restarts:
        world.restart()
    # A third that would be chosen by the rule comes into it
    ask(world, "ann", "b.py", "c.py")
    assert ask(world, "cyd", "b.py").facts["victim"] == "bob"
    assert ask(world, "ann", "b.py", "c.py").facts["victim"] == "bob"
    told = ask(world, "bob", "a.py")
    assert told.facts["give_way"] is True and set(told.facts["deadlock"]) == {"ann", "cyd"}
    assert not [one for agent in ("ann", "bob", "cyd") for one in ways(world, agent)]


def test_another_circle_later_is_told_anew(world: World) -> None:
    world.acquire("ann", "a.py")
    world.acquire("cyd", "c.py")
    world.clock.advance(1000)
    world.acquire("bob", "b.py")
    ask(world, "bob", "a.py", "c.py")
    assert ask(world, "ann", "b.py").facts["victim"] == "bob" and len(ways(world, "bob")) == 1
    world.ask(rq.Release(agent="ann", resources=["a.py"]))  # it gave in all the same
    for one in world.ask(rq.Locks()).waiters:
        if one.agent == "ann":
            world.ask(rq.Withdraw(agent="ann", acquisition_id=one.acquisition_id))
    assert not ways(world, "bob")
    assert ask(world, "cyd", "b.py").facts["victim"] == "bob"
    assert len(ways(world, "bob")) == 1


def test_what_is_no_circle_tells_nobody(world: World) -> None:
    world.acquire("ann", "a.py")
    world.acquire("bob", "b.py")
    told = ask(world, "bob", "a.py")
    assert told.facts["give_way"] is False and told.facts["deadlock"] == []
    told = ask(world, "cyd", "a.py", "b.py")
    assert told.facts["victim"] is None and told.facts["deadlock"] == []
    world.clock.advance(700_000)  # bob has left the line
    assert ask(world, "ann", "b.py").facts["deadlock"] == []


# ------------------------------------------------------------ of what kind it is


CIRCLES: dict[str, Callable[[World], None]] = {}


def circle(case: Callable[[World], None]) -> Callable[[World], None]:
    CIRCLES[case.__name__] = case
    return case


@circle
def shared(world: World) -> None:
    world.acquire("ann", "a.py", mode="shared")
    world.acquire("bob", "b.py")
    ask(world, "ann", "b.py", mode="shared")
    ask(world, "bob", "a.py")


@circle
def two_that_read_want_to_write(world: World) -> None:
    world.acquire("ann", "a.py", mode="shared")
    world.acquire("bob", "a.py", mode="shared")
    ask(world, "ann", "a.py")
    ask(world, "bob", "a.py")


@circle
def directory(world: World) -> None:
    world.acquire("ann", "d/x.py")
    world.acquire("bob", "e/")
    ask(world, "ann", "e/y.py")
    ask(world, "bob", "d/")


@circle
def globs(world: World) -> None:
    world.acquire("ann", "src/**/*.sql")
    world.acquire("bob", "b.py::C")
    ask(world, "ann", "b.py")
    ask(world, "bob", "src/x/")


@circle
def keys(world: World) -> None:
    world.acquire("ann", "key:account:1")
    world.acquire("bob", "key:account:2:balance")
    ask(world, "ann", "key:account:2")
    ask(world, "bob", "key:account:1:name")


@circle
def hard_link(world: World) -> None:
    world.write("a.py", "1\n")
    (world.root / "link.py").hardlink_to(world.root / "a.py")
    world.acquire("ann", "a.py")
    world.acquire("bob", "b.py")
    ask(world, "bob", "link.py")
    ask(world, "ann", "b.py")


@circle
def through_the_line(world: World) -> None:
    # cyd wants to read what ann reads, too, but stands behind dan, who waits for ann
    world.acquire("ann", "g.py", mode="shared")
    world.acquire("bob", "b.py")
    ask(world, "dan", "g.py")
    ask(world, "bob", "g.py", mode="shared")
    ask(world, "ann", "b.py")


@circle
def of_three_with_several_wants(world: World) -> None:
    for agent, name in (("ann", "a.py"), ("bob", "b.py"), ("cyd", "c.py"), ("dan", "d.py")):
        world.acquire(agent, name)
    ask(world, "ann", "b.py", "d.py")
    ask(world, "cyd", "d.py", "a.py")
    ask(world, "bob", "c.py")


@pytest.mark.parametrize("kind", CIRCLES)
def test_every_kind_of_circle_has_one_that_gives_way(world: World, kind: str) -> None:
    CIRCLES[kind](world)
    told = {}
    for waiter in world.ask(rq.Locks()).waiters:
        if waiter.agent == "dan":
            continue  # in none of them
        refusal = ask(world, waiter.agent, *waiter.resources, mode=waiter.mode)
        assert refusal.facts["deadlock"], (kind, waiter.agent)
        told[waiter.agent] = refusal
    (victim,) = {str(one.facts["victim"]) for one in told.values()}
    assert [name for name, one in told.items() if one.facts["give_way"]] == [victim]
    step = told[victim].next
    assert step is not None
    type_(world, step)
    for waiter in world.ask(rq.Locks()).waiters:  # nobody is in a circle any more
        assert not ask(world, waiter.agent, *waiter.resources, mode=waiter.mode).facts["deadlock"]


def test_a_grant_from_the_line_closes_a_circle(world: World) -> None:
    # Given one that waits for two things, and gets one of them while the other's holder wants it
    world.acquire("cyd", "x.py")
    world.acquire("bob", "y.py")
    ask(world, "ann", "x.py", priority=5)
    world.acquire("ann", "own.py")
    ask(world, "ann", "y.py")
    ask(world, "bob", "x.py")
    world.ask(rq.Release(agent="cyd", resources=["x.py"]))
    # I expect the one that gives way to hear of it, though nobody has asked
    assert len(ways(world, "ann")) + len(ways(world, "bob")) == 1


# ------------------------------------------------------------ whoever it is told


def test_a_session_hears_of_it_at_its_next_tool_call(world: World) -> None:
    ann, bob = Session(world, "ann"), Session(world, "bob")
    assert not ann.edit("a.py", "a\n")
    world.clock.advance(1000)
    assert not bob.edit("b.py", "b\n")
    assert bob.edit("a.py", "b\n")
    denied = ann.edit("b.py", "a\n")
    assert f"{bob.name} was chosen to give its work back" in denied
    ann.read("a.py")
    assert "way:" not in ann.came[-1].context + ann.came[-2].context
    bob.read("b.py")
    said = bob.came[-2].context + bob.came[-1].context
    assert f"coord unlock b.py --agent {bob.name}" in said and "it is you who give way" in said
    bob.read("b.py")
    assert "way:" not in bob.came[-2].context + bob.came[-1].context


@pytest.mark.parametrize("how", ["its lease ends", "its wait ends", "it leaves", "the other gives up"])
@pytest.mark.parametrize("hooked", [True, False])
def test_who_hears_of_it_late_is_not_told_to_give_way_for_nobody(world: World, how: str, hooked: bool) -> None:
    """In the same answer it would be told that it has what it waited for; and would give back work that nobody waits for."""
    ann, bob = Session(world, "ann"), Session(world, "bob")
    assert not ann.edit("a.py", "a\n")
    world.clock.advance(1000)
    assert not bob.edit("b.py", "b\n")
    assert bob.edit("a.py", "b\n") and ann.edit("b.py", "a\n")
    match how:
        case "its lease ends":
            world.ask(rq.Release(agent=ann.name, resources=["a.py"]))
        case "its wait ends":
            for waiter in world.ask(rq.Locks()).waiters:
                if waiter.agent == ann.name:
                    world.ask(rq.Withdraw(agent=ann.name, acquisition_id=waiter.acquisition_id))
        case "it leaves":
            world.ask(rq.Leave(agent=ann.name))
        case "the other gives up":
            for waiter in world.ask(rq.Locks()).waiters:
                if waiter.agent == bob.name:
                    world.ask(rq.Withdraw(agent=bob.name, acquisition_id=waiter.acquisition_id))
    if hooked:
        bob.read("b.py")
        told = "".join(came.context for came in bob.came)
    else:
        told = "".join(one.text for one in notices(world, bob.name))
    assert "give way" not in told, told
    assert ("You waited for a.py" in told) is (how in ("its lease ends", "it leaves"))


def test_a_sub_agent_gives_way_for_its_session(world: World) -> None:
    # Given a session that holds a file and works through a sub-agent, which needs another's
    bob = Session(world, "bob")
    assert not bob.edit("b.py", "b\n")
    world.clock.advance(1000)
    ann, sub = Session(world, "ann"), Session(world, "ann", "sub")
    assert not ann.edit("a.py", "a\n")
    assert sub.edit("b.py", "a\n")
    # If the other needs the session's file
    told = bob.edit("a.py", "b\n")
    assert f"{ann.name} was chosen to give its work back" in told
    # I expect the sub-agent to be told, for its session waits for it and asks nothing itself
    sub.read("b.py")
    said = sub.came[-2].context + sub.came[-1].context
    assert f"{ann.name}, for whom you work" in said and f"coord unlock a.py --agent {ann.name}" in said
    denied = sub.edit("b.py", "a\n")
    assert f"coord unlock a.py --agent {ann.name}" in denied
    type_(world, f"coord unlock a.py --agent {ann.name}")
    assert "+a" in bob.edit("a.py", "b\n"), "it has never read what came of that"
    bob.read("a.py")
    assert not bob.edit("a.py", "b\n")


def test_its_half_done_work_is_kept(world: World) -> None:
    world.write("a.py", "before\n")
    claim(world, "bob", "b.py")
    world.clock.advance(1000)
    task = claim(world, "ann", "a.py")
    world.write("a.py", "half\n")
    ask(world, "ann", "b.py")
    ask(world, "bob", "a.py")
    (way,) = ways(world, "ann")
    type_(world, str(way.data["next"]))
    (review,) = world.ask(rq.Reviews()).items
    assert review.task == task and [one.path for one in review.files] == ["a.py"]
    assert (world.root / "a.py").read_text() == "half\n"
    world.ask(rq.Release(agent="bob", resources=["a.py"]))
    world.ask(rq.ReviewDecide(review=review.review, verdict="reassign"))
    world.ask(rq.TaskDone(agent="bob", task="T-1"))
    again = world.ask(rq.TaskClaim(agent="cyd", task=task))
    assert again.partial is not None and "half" in again.partial.diff
    assert {lease.resource for lease in again.leases} == {"a.py", "b.py"}  # what it was found to need


# ------------------------------------------------------------ every schedule


@settings(max_examples=examples(25))
@given(st.data())
def test_agents_that_do_as_they_are_told_get_on_whatever_the_order(data: st.DataObject) -> None:
    """N agents, each with a task on one file, need the next one's, too. Whatever the order in which
    they ask, one of the circle gives way, and in the end all is done."""
    import tempfile

    count = data.draw(st.integers(2, 7), "agents")
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            _play(world, count, data)
        finally:
            world.close()


def _play(world: World, count: int, data: st.DataObject) -> None:
    names = [f"ag{n}" for n in range(count)]
    doing, needs, told = {}, {}, list[str]()
    for n, agent in enumerate(names):
        task = world.task(f"t{n}", f"{n}.py", priority=data.draw(st.integers(0, 1)))
        world.ask(rq.TaskClaim(agent=agent, task=task))
        doing[agent], needs[task] = task, f"{(n + 1) % count}.py"
        world.clock.advance(data.draw(st.sampled_from([0, 1000])))
    for turn in range(40 * count):
        if not doing:
            idle = [t.task for t in world.ask(rq.Tasks()).items if t.state == "ready"]
            for task in idle:
                world.ask(rq.TaskClaim(agent="later", task=task))
                world.ask(rq.TaskDone(agent="later", task=task))
            break
        # Whoever is next; after a while each in turn, as agents do that go on for ever
        agent = (data.draw(st.sampled_from(sorted(doing))) if turn < 4 * count
                 else sorted(doing)[turn % len(doing)])
        task = doing[agent]
        way = ways(world, agent)
        step = str(way[0].data["next"]) if way else None
        if step is None:
            try:
                world.acquire(agent, needs[task], task=task)
            except Refusal as refusal:
                assert bool(refusal.facts["give_way"]) == (refusal.facts["victim"] == agent)
                step = refusal.next if refusal.facts["give_way"] else None
            else:
                world.ask(rq.TaskDone(agent=agent, task=task))
                del doing[agent]
                continue
        if step is not None:
            assert f"task fail {task} " in step
            told.append(agent)
            type_(world, step)
            del doing[agent]
    counts = world.ask(rq.Tasks(limit=1)).counts
    assert counts == {"done": count}, counts
    assert len(told) <= 1, f"{told} were told"


def test_of_two_circles_that_one_request_closes_the_second_is_told_when_the_first_is_over(world: World) -> None:
    """Else those in it would wait until their time in line is over."""
    for agent, names in (("ada", ["x"]), ("ben", ["y1", "z"]), ("cyd", ["y2"])):
        world.acquire(agent, *names)
        world.clock.advance(1000)
    world.refused(rq.Acquire(agent="cyd", resources=["z"]))
    world.refused(rq.Acquire(agent="ben", resources=["x"]))
    world.refused(rq.Acquire(agent="ada", resources=["y1", "y2"]))
    agents = ["ada", "ben", "cyd"]
    told = {agent: ways(world, agent) for agent in agents}
    chosen = [agent for agent in agents if told[agent]]
    for _ in agents:  # each that is told does what it is told to
        for agent in chosen:
            for way in told[agent]:
                type_(world, str(way.data["next"]))
        world.tend()
        told = {agent: ways(world, agent) for agent in agents}
        chosen += [agent for agent in agents if told[agent]]
    assert len(chosen) == len(set(chosen)) == 2, chosen
    assert {row.file_path: row.locked_by for row in world.live() if row.file_path in ("y1", "y2")} == {"y1": "ada", "y2": "ada"}


def test_who_holds_it_shared_and_wants_it_alone_is_not_held_up_by_those_behind_who_waits_for_it(world: World) -> None:
    """The first waits for the holder, the second stands behind the first, and the holder behind the second."""
    world.acquire("holder", "a.py", mode="shared")
    for agent, mode in (("first", "exclusive"), ("second", "shared")):
        world.clock.advance(1000)
        assert world.refused(rq.Acquire(agent=agent, resources=["a.py"], mode=mode)).code is Code.LOCKED
    world.clock.advance(1000)
    world.acquire("holder", "a.py")
    world.ask(rq.Release(agent="holder", resources=["a.py"]))
    world.tend()
    assert [lease.locked_by for lease in world.live()] == ["first"]


@settings(max_examples=examples(60))
@given(st.data())
def test_who_asks_for_one_of_several_that_it_waits_for_stands_where_it_stood(data: st.DataObject) -> None:
    """It gets what nobody holds, whoever has asked for that since. So nobody is told that it is next for another, and the
    other the same."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            _play_places(world, data)
        finally:
            world.close()


def _meet(one: str, other: str) -> bool:
    return one == other or (one.endswith("/") and other.startswith(one)) or (other.endswith("/") and one.startswith(other))


def _play_places(world: World, data: st.DataObject) -> None:
    names = ["a.py", "b.py", "c.py", "d/x.py", "d/"]
    for name in names[:-1]:
        world.write(name, "x\n")
    wants = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    holds = data.draw(st.sampled_from(["a.py", "d/x.py"]))
    world.acquire("holder", holds)
    mine = data.draw(wants.filter(lambda some: any(_meet(holds, one) for one in some)))
    ask(world, "me", *mine)
    for other in ("one", "two", "three"):
        world.clock.advance(1000)
        with contextlib.suppress(Refusal):
            world.acquire(other, *data.draw(wants))
    held = {row.file_path for row in world.live()}
    world.clock.advance(1000)
    for name in names:
        if any(name == one or (one.endswith("/") and name.startswith(one)) for one in mine) and not any(_meet(name, one) for one in held):
            world.acquire("me", name)


POOL = ["d/a.py", "d/b.py", "d/", "e/a.py", "e/*.py", "f.py::C", "f.py", "key:k:1", "key:k"]


@settings(max_examples=examples(25))
@given(st.data())
def test_whatever_they_hold_and_want_all_is_done_in_the_end(data: st.DataObject) -> None:
    """Agents that hold, and find that they need, any of directories, globs, regions and keys, to
    read or to write; some want several things one after the other."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            _play_any(world, data)
        finally:
            world.close()


def _play_any(world: World, data: st.DataObject) -> None:
    doing: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    wants = st.tuples(st.sampled_from(POOL), st.sampled_from(["shared", "exclusive"]))
    for n in range(data.draw(st.integers(2, 5), "agents")):
        own = data.draw(wants)
        name = own[0] if own[1] == "exclusive" else f"shared:{own[0]}"
        task = world.task(f"t{n}", name, priority=data.draw(st.integers(0, 1)))
        try:
            world.ask(rq.TaskClaim(agent=f"ag{n}", task=task))
        except Refusal:
            continue  # somebody else will do it
        doing[f"ag{n}"] = task, data.draw(st.lists(wants, min_size=1, max_size=2))
        world.clock.advance(data.draw(st.sampled_from([0, 1000])))
    for turn in range(400):
        if not doing:
            break
        agent = (data.draw(st.sampled_from(sorted(doing))) if turn < 12
                 else sorted(doing)[turn % len(doing)])
        task, left = doing[agent]
        way = ways(world, agent)
        step = str(way[0].data["next"]) if way else None
        if step is None:
            try:
                world.acquire(agent, left[0][0], mode=left[0][1], task=task)
            except Refusal as refusal:
                step = refusal.next if refusal.facts["give_way"] else None
            else:
                left.pop(0)
                if not left:
                    world.ask(rq.TaskDone(agent=agent, task=task))
                    del doing[agent]
                continue
        if step is not None:
            assert f"task fail {task} " in step, step
            type_(world, step)
            del doing[agent]
        world.clock.advance(1000)
        world.tend()
    assert not doing, f"{doing} wait for ever"


# ------------------------------------------------------------ a long one


@pytest.mark.parametrize("order", ["forward", pytest.param("backward", marks=pytest.mark.slow)])
def test_a_long_circle_is_found_outside_of_the_transaction(
    world: World, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    world.checked = False
    count = 1000
    for n in range(count):
        world.acquire(f"ag{n}", f"key:k:{n}")
    world.clock.advance(1000)
    walked = list[int]()
    search = deadlocks._search

    def counted(*given: Any) -> Any:
        walked.append(given[-1])
        return search(*given)

    monkeypatch.setattr(deadlocks, "_search", counted)
    turns = range(count - 1) if order == "forward" else range(count - 2, -1, -1)
    for n in turns:
        told = ask(world, f"ag{n}", f"key:k:{n + 1}")
        assert not told.facts["deadlock"]
    # Nobody waits for one whose chain only begins, and a chain that ends is short: both cost nothing
    assert deadlocks.CHAIN_MAX not in walked
    told = ask(world, f"ag{count - 1}", "key:k:0")
    assert deadlocks.CHAIN_MAX in walked
    assert told.facts["victim"] == "ag0"  # all began at one instant: the first by name
    assert len(told.facts["deadlock"]) == deadlocks.NAMES_MAX
    assert "and 994 more wait for each other in a circle" in told.message
    (way,) = ways(world, "ag0")
    assert "key:k:0" in str(way.data["next"])
    assert len(msgspec.json.encode(way.data)) < 2_000


def test_a_question_to_a_holder_closes_a_circle(world: World) -> None:
    world.acquire("ann", "a.py")
    world.clock.advance(1000)
    world.acquire("bob", "b.py")
    ask(world, "bob", "a.py")
    world.ask(rq.RequestFile(agent="ann", resource="b.py", reason="the build is red"))
    (way,) = ways(world, "bob")
    assert not ways(world, "ann")
    type_(world, str(way.data["next"]))
    assert {row.locked_by for row in world.live()} == {"ann"}


def test_who_is_in_a_circle_by_another_place_is_told_though_it_asks_without_waiting(world: World) -> None:
    world.write("a.py", "def f():\n    return 1\n")
    world.ask(rq.Acquire(agent="ann", resources=["a.py"], mode="shared"))
    ask(world, "bob", "a.py::f")
    world.ask(rq.Acquire(agent="bob", resources=["a.py"], mode="shared"))
    assert ask(world, "ann", "a.py").facts["victim"] == "ann"
    told = ask(world, "bob", "a.py", retry=False).facts
    assert (told["deadlock"], told["victim"], told["give_way"]) == (["ann"], "ann", False)
    cyd = ask(world, "cyd", "a.py", retry=False).facts
    assert cyd["victim"] is None, "nobody waits for it"
