"""Steps that were blocked: kept, tried again after a rest, dead in the end, retried or dropped by a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.kernel.holders.settled_notices import NoticeRow
from coordinator.rules.retrying import JITTER, rest_ms
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World


@pytest.fixture(autouse=True)
def the_log_gives_the_state(world: World) -> Iterator[None]:
    yield
    assert world.replay_differs() == []


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def put_off(world: World, name: str = "billing.add", agent: str = "ann", **more: Any) -> str:
    return str(world.ask(rq.StepAdd(agent=agent, name=name, arguments=raw({"n": 1}), **more)).step)


def next_(world: World, *names: str, agent: str = "worker", **more: Any) -> rq.Step:
    given = world.ask(rq.StepNext(agent=agent, names=list(names or ("billing.add",)), **more))
    assert isinstance(given, rq.Step)
    return given


def dead(world: World) -> dict[str, tuple[str, str]]:
    return {one.id: (one.kind, one.why) for one in world.ask(rq.Dead()).items}


def told(world: World, agent: str) -> list[str]:
    return [row.text for row in world.view().each(NoticeRow, "notices_of", agent, 0)]


@given(st.text(max_size=8), st.integers(1, 60), st.integers(1, 10**6), st.integers(1, 10**7))
def test_a_rest_is_bounded_and_always_the_same(step: str, attempts: int, base: int, most: int) -> None:
    rest = rest_ms(step, attempts, base, most)
    assert rest == rest_ms(step, attempts, base, most)
    plain = min(most, base * 2 ** (attempts - 1))
    assert plain * (1 - JITTER) - 1 <= rest <= plain * (1 + JITTER) + 1 and rest >= 1


def test_many_that_failed_together_do_not_come_again_together() -> None:
    rests = {rest_ms(f"S-{n}", 1, 10_000, 600_000) for n in range(100)}
    assert len(rests) > 90 and max(rests) - min(rests) > 4_000


def test_given_when_its_time_has_come_and_done_once(world: World) -> None:
    step = put_off(world, delay_s=30.0, resources=["key:user:7"])
    assert world.refused(rq.StepNext(agent="worker", names=["billing.add"])).code is Code.NOTHING_TO_DO
    world.clock.advance(31_000)
    assert world.refused(rq.StepNext(agent="worker", names=["other"])).code is Code.NOTHING_TO_DO
    world.acquire("bob", "key:user:7")
    assert world.refused(rq.StepNext(agent="worker", names=["billing.add"])).code is Code.NOTHING_TO_DO, "still held"
    world.ask(rq.Release(agent="bob", resources=["key:user:7"]))
    one = next_(world)
    assert (one.step, one.attempts, json.loads(bytes(one.content))) == (step, 1, {"n": 1})
    assert world.refused(rq.StepNext(agent="two", names=["billing.add"])).code is Code.NOTHING_TO_DO
    assert world.refused(rq.StepDone(agent="two", step=step, attempt=1)).code is Code.NOT_HOLDER
    assert world.ask(rq.StepDone(agent="worker", step=step, attempt=1)).state == "done"
    assert world.refused(rq.StepDone(agent="worker", step=step, attempt=1)).code is Code.BAD_TRANSITION


def test_a_dead_one_keeps_its_content_and_takes_no_answer(world: World) -> None:
    step = put_off(world, delay_s=0.0, attempts_max=1)
    next_(world, give_s=5.0)
    world.clock.advance(6_000)
    world.tend()
    assert dead(world) == {step: ("call", "worker did not answer in time")}
    assert world.refused(rq.StepDone(agent="worker", step=step, attempt=1)).code is Code.BAD_TRANSITION
    assert json.loads(bytes(world.ask(rq.DeadShow(id=step)).content)) == {"n": 1}


def test_all_dead_letters_are_in_one_list(world: World) -> None:
    world.task("hopeless", attempts_max=1)
    world.ask(rq.TaskClaim(agent="ann"))
    world.ask(rq.TaskFail(agent="ann", task="T-1", reason="cannot"))
    change = world.ask(rq.ChangeAdd(agent="ann", key="key:a:1", wanted=raw(1), attempts_max=1)).change
    world.acquire("own", "key:a:1")
    world.ask(rq.ChangeNext(agent="own", key="key:a:1"))
    world.ask(rq.ChangeFail(agent="own", change=change, attempt=1, why="broken"))
    step = put_off(world, delay_s=0.0, attempts_max=1)
    world.ask(rq.StepFail(agent="worker", step=step, attempt=next_(world).attempts, why="no"))
    assert set(dead(world)) == {"T-1", change, step}
    assert [one.id for one in world.ask(rq.Dead(kind="change")).items] == [change]
    for one in ("T-1", change, step):
        world.ask(rq.DeadRetry(id=one))
    assert dead(world) == {} and world.refused(rq.DeadRetry(id=step)).code is Code.BAD_TRANSITION
    assert world.ask(rq.TaskShow(task="T-1")).state == "ready"
    assert world.ask(rq.ChangeNext(agent="own", key="key:a:1")).change.attempts == 1
    for unknown, code in (("S-99", Code.UNKNOWN_STEP), ("K-99", Code.UNKNOWN_CHANGE), ("T-99", Code.UNKNOWN_TASK)):
        assert world.refused(rq.DeadShow(id=unknown)).code is code


def test_only_a_person_lets_it_be_tried_again(world: World) -> None:
    """An agent could count its own attempts afresh, and the log would call it a person."""
    token = world.ask(rq.Register(agent="st")).token
    step = put_off(world, delay_s=0.0, attempts_max=1)
    world.ask(rq.StepFail(agent="worker", step=step, attempt=next_(world).attempts, why="no"))
    task = world.task("t", attempts_max=1)
    world.ask(rq.TaskClaim(agent="st", task=task), token)
    world.ask(rq.TaskFail(agent="st", task=task, reason="no"), token)
    for letter in (step, task):
        assert world.refused(rq.DeadRetry(id=letter), token).code is Code.UNAUTHORIZED
    assert set(dead(world)) == {step, task}


def test_a_change_that_is_dropped_tells_by_whom(world: World) -> None:
    change = world.ask(rq.ChangeAdd(agent="ann", key="key:a:1", wanted=msgspec.Raw(b"1"), attempts_max=1)).change
    world.acquire("own", "key:a:1")
    world.ask(rq.ChangeNext(agent="own", key="key:a:1"))
    world.ask(rq.ChangeFail(agent="own", change=change, attempt=1, why="broken"))
    world.ask(rq.DeadDrop(id=change))
    last = world.ask(rq.Events(tail=True, limit=20)).items
    assert any(one.kind.startswith("change") and one.agent == "a person" for one in last), [(one.kind, one.agent) for one in last]
    assert any(f"{change}, a change of key:a:1, was given up by a person" in one for one in told(world, "ann")) and dead(world) == {}


def test_who_waited_in_vain_is_asked_for_again_by_a_person(world: World) -> None:
    world.write("a.py", "x = 1\n")
    world.acquire("ann", "a.py", ttl_s=7200.0)
    world.refused(rq.Acquire(agent="bob", resources=["a.py"], description="mine"))
    world.clock.advance(700_000)
    world.tend()
    ((letter, (kind, why)),) = dead(world).items()
    assert (kind, why) == ("acquire", "it did not become free in time")
    world.refused(rq.Acquire(agent="bob", resources=["a.py"], description="mine"))
    world.clock.advance(700_000)
    world.tend()
    assert len(dead(world)) == 1, "one for each that is waited for"
    (letter,) = dead(world)
    world.ask(rq.DeadRetry(id=letter))
    assert [(one.agent, one.resources) for one in world.ask(rq.Locks()).waiters] == [("bob", ["a.py"])]
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert [row.locked_by for row in world.live()] == ["bob"]


def test_of_an_agent_that_has_left_nothing_is_asked_again(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=7200.0)
    world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    world.clock.advance(700_000)
    world.tend()
    (letter,) = dead(world)
    world.ask(rq.Leave(agent="bob"))
    world.ask(rq.Sweep())
    assert dead(world) == {} and world.refused(rq.DeadRetry(id=letter)).code is Code.BAD_TRANSITION


@pytest.mark.parametrize("more", [
    {"name": ""}, {"name": "a b"}, {"attempts_max": 0}, {"attempts_max": 10**6}, {"delay_s": -1.0}, {"delay_s": 1e9},
    {"arguments": msgspec.Raw(b'"' + b"x" * 70_000 + b'"')}, {"resources": ["a:"]},
])
def test_what_cannot_be_put_off(world: World, more: dict[str, Any]) -> None:
    before = world.rows()
    refusal = world.refused(rq.StepAdd(**{"agent": "ann", "name": "f", **more}))
    assert refusal.code in (Code.INVALID, Code.LIMIT) and world.rows() == before
