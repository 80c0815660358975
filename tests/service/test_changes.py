"""Changes of keys: queued, applied one by one by the key's single owner, once in effect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.kernel.holders.settled_notices import NoticeRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.world import World

KEY = "key:account:1"


@pytest.fixture(autouse=True)
def the_log_gives_the_state(world: World) -> Iterator[None]:
    yield
    assert world.replay_differs() == []


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def ask(world: World, wanted: Any, agent: str = "bob", key: str = KEY, **more: Any) -> str:
    return str(world.ask(rq.ChangeAdd(agent=agent, key=key, wanted=raw(wanted), **more)).change)


def next_(world: World, agent: str = "own", key: str = KEY, **more: Any) -> rq.ChangeGiven:
    given = world.ask(rq.ChangeNext(agent=agent, key=key, **more))
    assert isinstance(given, rq.ChangeGiven)
    return given


def apply(world: World, given: rq.ChangeGiven, agent: str = "own") -> rq.Change:
    before = json.loads(bytes(given.state.value)) or 0
    wanted = json.loads(bytes(given.change.wanted))
    done = world.ask(rq.ChangeDone(agent=agent, change=given.change.change, attempt=given.change.attempts, value=raw(before + wanted)))
    assert isinstance(done, rq.Change)
    return done


def value(world: World, key: str = KEY) -> Any:
    return json.loads(bytes(world.ask(rq.StateGet(key=key)).value))


def state(world: World, change: str) -> str:
    return str(world.ask(rq.ChangeShow(change=change)).state)


def told(world: World, agent: str) -> list[str]:
    return [row.text for row in world.view().each(NoticeRow, "notices_of", agent, 0)]


def test_applied_in_order_by_whoever_owns_the_key(world: World) -> None:
    first, second = ask(world, 50), ask(world, -20, agent="cyd")
    other = ask(world, 7, key="key:account:2")
    assert world.refused(rq.ChangeNext(agent="own", key="key:account")).code is Code.NOT_HOLDER
    world.acquire("own", "key:account")
    given = next_(world, key="key:account")
    assert (given.change.change, given.change.attempts, given.state.version) == (first, 1, 0)
    assert apply(world, given).version == 1
    assert [apply(world, next_(world, key="key:account")).change for _ in range(2)] == [second, other]
    assert value(world) == 30 and value(world, "key:account:2") == 7
    assert world.refused(rq.ChangeNext(agent="own", key="key:account")).code is Code.NOTHING_TO_DO
    assert f"{first} was applied: {KEY} is at version 1." in told(world, "bob")
    assert world.ask(rq.Changes()).items == [] and len(world.ask(rq.Changes(state="done", key="key:account")).items) == 3


def test_an_answer_counts_once(world: World) -> None:
    ask(world, 1)
    world.acquire("own", KEY)
    given = next_(world)
    apply(world, given)
    with pytest.raises(Refusal) as twice:
        apply(world, given)
    assert twice.value.code is Code.BAD_TRANSITION and value(world) == 1
    assert world.ask(rq.StateGet(key=KEY)).version == 1


def test_an_owner_that_crashed_begins_again_and_the_change_takes_effect_once(world: World) -> None:
    ask(world, 5)
    world.acquire("own", KEY, ttl_s=60.0)
    lost = next_(world)
    world.restart()
    again = next_(world, key=KEY)
    assert (again.change.change, again.change.attempts) == (lost.change.change, 2)
    with pytest.raises(Refusal) as late:
        apply(world, lost)
    assert late.value.code is Code.STALE_TOKEN
    apply(world, again)
    assert value(world) == 5


def test_another_owner_goes_on_where_one_was_lost(world: World) -> None:
    change = ask(world, 5)
    world.acquire("own", KEY, ttl_s=30.0)
    lost = next_(world)
    world.clock.advance(31_000)
    world.acquire("new", KEY)
    refusal = world.refused(rq.ChangeNext(agent="new", key=KEY))
    assert refusal.code is Code.NOTHING_TO_DO and state(world, change) == "queued", "it rests a moment"
    world.clock.advance(60_000)
    world.acquire("new", KEY)
    given = next_(world, "new", KEY)
    assert given.change.change == change
    with pytest.raises(Refusal) as zombie:
        apply(world, lost)
    assert zombie.value.code is Code.NOT_HOLDER
    apply(world, given, "new")
    assert value(world) == 5


def test_those_behind_a_dead_one_go_on(world: World) -> None:
    change, behind = ask(world, 5, attempts_max=1), ask(world, 1)
    world.acquire("own", KEY, ttl_s=3600.0)
    next_(world, give_s=10.0)
    world.clock.advance(11_000)
    given = next_(world)
    assert given.change.change == behind and state(world, change) == "dead"
    assert any("failed 1 times and is dead" in text for text in told(world, "bob"))
    apply(world, given)
    assert value(world) == 1


def test_a_failed_one_keeps_its_place_and_a_refused_one_is_over(world: World) -> None:
    change, behind = ask(world, 5), ask(world, 6)
    world.acquire("own", KEY, ttl_s=3600.0)
    given = next_(world)
    world.ask(rq.ChangeFail(agent="own", change=change, attempt=given.change.attempts, why="no network"))
    assert world.refused(rq.ChangeNext(agent="own", key=KEY)).code is Code.NOTHING_TO_DO, "changes of one key keep their order"
    world.clock.advance(60_000)
    given = next_(world)
    assert given.change.change == change and given.change.why == ""
    world.ask(rq.ChangeFail(agent="own", change=change, attempt=2, why="over the limit", refuse=True))
    assert state(world, change) == "refused" and any('"over the limit"' in one for one in told(world, "bob"))
    assert next_(world).change.change == behind


def test_only_its_owner_answers(world: World) -> None:
    change = ask(world, 5)
    world.acquire("own", KEY)
    none = world.refused(rq.ChangeDone(agent="bob", change=change, attempt=1, value=raw(1)))
    assert none.code is Code.STALE_TOKEN and "There was no attempt 1" in none.message
    next_(world)
    assert world.refused(rq.ChangeDone(agent="bob", change=change, attempt=1, value=raw(1))).code is Code.NOT_HOLDER
    assert world.refused(rq.ChangeDone(agent="own", change="K-9", attempt=1, value=raw(1))).code is Code.UNKNOWN_CHANGE
    world.ask(rq.Release(agent="own", resources=[KEY]))
    assert world.refused(rq.ChangeDone(agent="own", change=change, attempt=1, value=raw(1))).code is Code.NOT_HOLDER
    world.acquire("eve", "key:account", mode="shared")
    assert world.refused(rq.ChangeNext(agent="eve", key=KEY)).code is Code.NOT_HOLDER, "a shared lease owns nothing"


def test_owners_do_not_wait_for_themselves(world: World) -> None:
    for owner, key in (("a", "key:a"), ("b", "key:b"), ("c", "key:c")):
        world.acquire(owner, key, ttl_s=3600.0)
    first = ask(world, 1, key="key:a")
    next_(world, "a", "key:a")
    itself = world.refused(rq.ChangeAdd(agent="a", key="key:a:x", wanted=raw(1), during=first))
    assert itself.code is Code.DEADLOCK and "Nothing was asked" in itself.message
    second = ask(world, 1, agent="a", key="key:b", during=first)
    next_(world, "b", "key:b")
    third = ask(world, 1, agent="b", key="key:c", during=second)
    next_(world, "c", "key:c")
    refusal = world.refused(rq.ChangeAdd(agent="c", key="key:a", wanted=raw(1), during=third))
    assert refusal.code is Code.DEADLOCK and refusal.facts["circle"][0] == "key:c"
    ask(world, 1, agent="c", key="key:a")
    ask(world, 1, agent="c", key="key:d", during=third)


def test_there_is_no_room_for_endless_changes(world: World) -> None:
    world.checked = False
    for _ in range(world.settings.state.changes_of_key_max):
        ask(world, 1)
    full = world.refused(rq.ChangeAdd(agent="bob", key=KEY, wanted=raw(1)))
    assert full.code is Code.LIMIT and "Nothing was asked" in full.message
    ask(world, 1, key="key:account:2")


def test_closed_ones_are_forgotten_after_a_day(world: World) -> None:
    change = ask(world, 1)
    world.acquire("own", KEY)
    apply(world, next_(world))
    world.clock.advance(86_500_000)
    world.ask(rq.Sweep())
    assert world.refused(rq.ChangeShow(change=change)).code is Code.UNKNOWN_CHANGE and value(world) == 1


@given(st.data())
def test_no_change_is_lost_or_applied_twice(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Owners come, hang, crash, answer late and twice; the value is the sum of what is done."""
    world = World(tmp_path_factory.mktemp("changes"))
    world.checked = False
    asked: dict[str, int] = {}
    given: list[tuple[str, rq.ChangeGiven]] = []
    for _ in range(data.draw(st.integers(1, 40))):
        do = data.draw(st.sampled_from(["ask", "own", "next", "answer", "fail", "time", "crash", "release"]))
        owner = data.draw(st.sampled_from(["one", "two"]))
        try:
            if do == "ask":
                wanted = data.draw(st.integers(1, 9))
                asked[ask(world, wanted, attempts_max=3)] = wanted
            elif do == "own":
                world.acquire(owner, "key:account", ttl_s=20.0, retry=False)
            elif do == "next":
                given.append((owner, next_(world, owner, give_s=5.0)))
            elif do == "answer" and given:
                who, one = data.draw(st.sampled_from(given))
                apply(world, one, who)
            elif do == "fail" and given:
                who, one = data.draw(st.sampled_from(given))
                world.ask(rq.ChangeFail(agent=who, change=one.change.change, attempt=one.change.attempts, why="x"))
            elif do == "time":
                world.clock.advance(data.draw(st.integers(1, 30_000)))
                world.tend()
            elif do == "crash":
                world.restart()
            elif do == "release":
                world.ask(rq.Release(agent=owner, resources=["key:account"]))
        except Refusal:
            pass
    done = [one for one in world.ask(rq.Changes(state="all")).items if one.state == "done"]
    now = world.ask(rq.StateWatch(key=KEY, wait_s=0)).state
    total = json.loads(bytes(now.value)) or 0
    assert total == sum(asked[one.change] for one in done) and now.version == len(done)
    assert len(world.ask(rq.Changes(state="all")).items) == len(asked), "each is still known"
    assert world.replay_differs() == []
    world.close()
