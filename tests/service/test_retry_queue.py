"""What is tried again, whatever it is: attempts, rests, a limit, dead letters that a person retries or drops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from coordinator.kernel import blocked_steps
from coordinator.kernel.blocked_steps import STEPS, NewStep
from coordinator.kernel.holders.settled_notices import NoticeRow
from coordinator.store.rows import BlockedStepRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code, Refusal
from tests.world import World

KEY = "key:account:1"
RAW = msgspec.Raw(b"1")
#: Longer than any rest (ms).
LONG_MS = 800_000


class Tasks:
    """Tasks that an agent takes and gives back."""

    waits, rests, dropped, unknown, ann_hears = "ready", "failed", "cancelled", "T-99", False
    base_s, jitter = 10.0, 0.0

    def __init__(self, world: World) -> None:
        self.world = world

    def add(self, attempts_max: int) -> str:
        return self.world.task("hard", attempts_max=attempts_max)

    def give(self) -> int:
        return int(self.world.ask(rq.TaskClaim(agent="own")).task.attempts)

    def fail(self, name: str, attempt: int, why: str) -> None:
        self.world.ask(rq.TaskFail(agent="own", task=name, reason=why))

    def show(self, name: str) -> Any:
        return self.world.ask(rq.TaskShow(task=name))


class Changes:
    """Changes of a key, that its owner applies."""

    waits, rests, dropped, unknown, ann_hears = "queued", "queued", "dropped", "K-99", True
    base_s, jitter = 1.0, 0.0

    def __init__(self, world: World) -> None:
        self.world = world

    def add(self, attempts_max: int) -> str:
        return str(self.world.ask(rq.ChangeAdd(agent="ann", key=KEY, wanted=RAW, attempts_max=attempts_max)).change)

    def give(self) -> int:
        self.world.acquire("own", KEY, ttl_s=60.0)
        given = self.world.ask(rq.ChangeNext(agent="own", key=KEY, give_s=20.0))
        assert isinstance(given, rq.ChangeGiven)
        return given.change.attempts

    def fail(self, name: str, attempt: int, why: str) -> None:
        self.world.ask(rq.ChangeFail(agent="own", change=name, attempt=attempt, why=why))

    def show(self, name: str) -> Any:
        return self.world.ask(rq.ChangeShow(change=name))


class Calls:
    """Steps of programs, given to whoever asks."""

    waits, rests, dropped, unknown, ann_hears = "waiting", "waiting", "dropped", "S-99", True
    base_s, jitter = 10.0, 0.25

    def __init__(self, world: World) -> None:
        self.world = world

    def add(self, attempts_max: int) -> str:
        return str(self.world.ask(rq.StepAdd(agent="ann", name="f", arguments=RAW, delay_s=0.0, attempts_max=attempts_max)).step)

    def give(self) -> int:
        given = self.world.ask(rq.StepNext(agent="own", names=["f"], give_s=20.0))
        assert isinstance(given, rq.Step)
        return given.attempts

    def fail(self, name: str, attempt: int, why: str) -> None:
        self.world.ask(rq.StepFail(agent="own", step=name, attempt=attempt, why=why))

    def show(self, name: str) -> Any:
        return next(step for step in self.world.ask(rq.Steps(state="all")).items if step.step == name)


class Webhooks(Calls):
    """What the daemon itself tries: nobody is told of it."""

    ann_hears = False

    def add(self, attempts_max: int) -> str:
        step = NewStep("webhook", "http://x", b"1", None, attempts_max=attempts_max)
        return str(self.world.commit(lambda tx: blocked_steps.put(self.world.service, tx, step)).step_id)

    def give(self) -> int:
        view = self.world.view()
        due = view.each(BlockedStepRow, "steps_due", "webhook", view.now, 1, None)
        if not due:
            raise Refusal(Code.NOTHING_TO_DO, "No webhook is due.")
        self.world.commit(partial(blocked_steps.begin, due[0].step_id, 20_000))
        return int(self.show(due[0].step_id).attempts)

    def fail(self, name: str, attempt: int, why: str) -> None:
        self.world.commit(lambda tx: STEPS.fail(self.world.service, tx, STEPS.find(tx, name), why))


@pytest.fixture(params=[Tasks, Changes, Calls, Webhooks])
def kind(world: World, request: pytest.FixtureRequest) -> Iterator[Any]:
    yield request.param(world)
    assert world.replay_differs() == []


def nothing_is_due(kind: Any) -> bool:
    try:
        kind.give()
    except Refusal as refusal:
        assert refusal.code is Code.NOTHING_TO_DO
        return True
    return False


def list_dead(world: World) -> dict[str, str]:
    return {letter.id: letter.why for letter in world.ask(rq.Dead()).items}


def hears(world: World, name: str) -> list[str]:
    return [row.text for row in world.view().each(NoticeRow, "notices_of", "ann", 0) if row.text.startswith(name)]


def kill(kind: Any) -> str:
    """One that failed as often as it may, typed in each of its spellings."""
    name = str(kind.add(2))
    for spelling in (name.replace("-", ""), name.partition("-")[2]):
        kind.fail(spelling, kind.give(), "broken")
        kind.world.clock.advance(LONG_MS)
    return name


def test_it_rests_twice_as_long_each_time_and_is_dead_past_its_limit(world: World, kind: Any) -> None:
    name = kind.add(4)
    for attempt in (1, 2, 3):
        assert kind.give() == attempt
        failed_at = world.clock.now_ms()
        kind.fail(name, attempt, "broken")
        row = kind.show(name)
        assert row.state == kind.rests and nothing_is_due(kind) and list_dead(world) == {}
        rest_s = (from_iso(row.not_before) - failed_at) / 1000
        assert rest_s == pytest.approx(kind.base_s * 2 ** (attempt - 1), rel=kind.jitter, abs=0.001)
        world.clock.advance(LONG_MS)
    kind.fail(name, kind.give(), "hopeless")
    assert (kind.show(name).state, kind.show(name).attempts) == ("dead", 4)
    assert list_dead(world) == {name: "hopeless"} and nothing_is_due(kind)
    assert bool(hears(world, name)) is kind.ann_hears
    assert all('"hopeless"' in text and "4 " in text for text in hears(world, name))


@pytest.mark.parametrize("kind", [Changes, Calls, Webhooks], indirect=True)  # a task's claim ends as a lease does
def test_an_attempt_that_hangs_is_one_that_failed(world: World, kind: Any) -> None:
    name = kind.add(2)
    for attempt in (1, 2):
        assert kind.give() == attempt
        world.clock.advance(21_000)
        world.tend()
        assert kind.show(name).why.endswith(" did not answer in time")
        world.clock.advance(LONG_MS)
    assert kind.show(name).state == "dead"


def test_a_person_lets_it_be_tried_again_from_its_first_attempt_on(world: World, kind: Any) -> None:
    name = kill(kind)
    world.ask(rq.DeadRetry(id=name.lower()))
    assert list_dead(world) == {} and kind.show(name).state == kind.waits
    assert world.refused(rq.DeadRetry(id=name)).code is Code.BAD_TRANSITION
    assert kind.give() == 1


def test_a_person_gives_it_up(world: World, kind: Any) -> None:
    name = kill(kind)
    world.ask(rq.DeadDrop(id=name))
    assert list_dead(world) == {} and kind.show(name).state == kind.dropped
    world.clock.advance(LONG_MS)
    assert nothing_is_due(kind) and world.refused(rq.DeadDrop(id=name)).code is Code.BAD_TRANSITION
    assert any("was given up by a person" in text for text in hears(world, name)) is kind.ann_hears
    if not isinstance(kind, Tasks):
        world.clock.advance(90_000_000)
        world.ask(rq.Sweep())
        assert not world.rows()["steps"] and not world.rows()["changes"], "it is forgotten after a day"


def test_what_is_unknown_is_said_in_the_words_of_its_kind(world: World, kind: Any) -> None:
    refusal = world.refused(rq.DeadShow(id=kind.unknown))
    assert refusal.code is {"T": Code.UNKNOWN_TASK, "K": Code.UNKNOWN_CHANGE, "S": Code.UNKNOWN_STEP}[kind.unknown[0]]
