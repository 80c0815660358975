"""A task's blackboard: what was tried, what came of it, and what coord has follow from that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.launch.prompt import compose
from coordinator.rules import recovery
from coordinator.settings import Backlog, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.service.test_region_commits import ORDERS, PAY, charge, commit, f, with_all_read
from tests.world import World

TEXT = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
BROKEN = "def f(:\n"


def claimed(world: World, *resources: str, agent: str = "ann", title: str = "Make f faster") -> str:
    task = world.task(title, *resources)
    world.ask(rq.TaskClaim(agent=agent, task=task))
    return task


def tried(world: World, task: str) -> list[rq.Candidate]:
    found: list[rq.Candidate] = world.ask(rq.TaskShow(task=task)).tried
    return found


@pytest.fixture
def world(world: World) -> World:
    world.write("a.py", TEXT)
    return world


@pytest.fixture
def judged(world: World) -> World:
    """With the meaning of the repository's files known."""
    with_all_read(world, "eve")
    world.ask(rq.Release(agent="eve", resources=["pay.py::charge"]))
    return world


def test_what_was_tried_is_kept_with_what_came_of_it(world: World) -> None:
    task = claimed(world, "a.py::f")
    refusal = world.refused(commit("ann", ("a.py::f", BROKEN)))
    assert refusal.code is Code.PARSE_INVALID and (refusal.facts["round"], refusal.facts["remedy"]) == (1, "correct")
    assert refusal.facts["intent"] == {"title": "Make f faster", "prompt": ""} and refusal.facts["task"] == task
    world.ask(commit("ann", ("a.py::f", f(10))))
    one, two = tried(world, task)
    assert (one.n, one.outcome, one.remedy, one.agent, [r.resource for r in one.regions]) == (1, "PARSE_INVALID", "correct", "ann", ["a.py::f"])
    assert (two.n, two.outcome, two.remedy) == (2, "COMMITTED", "none")
    assert one.regions[0].stale is True, "what it was made from is not there any more"
    story = " ".join(world.ask(rq.Explain(subject=task)).sentences)
    assert "ann tried a.py::f" in story and "PARSE_INVALID, so it is to be corrected" in story and "COMMITTED" in story
    assert world.replay_differs() == []
    world.ask(rq.TaskDone(agent="ann", task=task))
    assert tried(world, task) == [] and world.replay_differs() == []


def test_what_was_refused_is_there_for_whoever_takes_the_task_next(world: World) -> None:
    task = claimed(world, "a.py::f")
    world.refused(commit("ann", ("a.py::f", BROKEN)))
    world.ask(rq.Compact(keep_days=0.0001))
    world.ask(rq.TaskFail(agent="ann", task=task, reason="no idea"))
    world.clock.advance(3_600_000)
    got = world.ask(rq.TaskClaim(agent="bob", task=task))
    (one,) = got.tried
    assert (one.regions[0].text, one.regions[0].stale, one.agent) == (BROKEN, False, "ann")
    told = compose(got, "bob")
    assert "What was tried before, and not written" in told and BROKEN in told and "PARSE_INVALID" in told and "changed since" not in told
    world.ask(rq.TaskFail(agent="bob", task=task, reason="nor I"))
    world.write("a.py", TEXT.replace("return 1", "return 100"))
    world.clock.advance(3_600_000)
    got = world.ask(rq.TaskClaim(agent="cyd", task=task))
    assert got.tried[0].regions[0].stale is True and "which has changed since" in compose(got, "cyd")


def test_what_it_needs_too_is_leased_at_once_and_is_part_of_its_plan(judged: World) -> None:
    task = claimed(judged, "pay.py::charge")
    refusal = judged.refused(commit("ann", ("pay.py::charge", charge("account, amount, currency"))))
    assert refusal.code is Code.REQUIRE_ADDITIONAL_LOCKS and refusal.facts["remedy"] == "widen"
    assert "orders.py::a is leased to you now" in refusal.message
    (lease,) = refusal.facts["leases"]
    assert (lease["resource"], lease["task"]) == ("orders.py::a", task) and lease["content_hash"]
    assert judged.ask(rq.TaskShow(task=task)).resources == ["orders.py::a", "pay.py::charge"]
    judged.ask(commit("ann", ("pay.py::charge", charge("account, amount, currency")),
                      ("orders.py::a", "def a(account):\n    return charge(account, 1, 'CHF')\n")))
    assert [one.remedy for one in tried(judged, task)] == ["widen", "none"]
    judged.ask(rq.TaskDone(agent="ann", task=task))
    assert judged.ask(rq.Locks()).items == [] and judged.replay_differs() == []


def test_what_another_holds_of_it_is_waited_for_with_all_of_the_plan(judged: World) -> None:
    judged.acquire("bob", "orders.py")
    task = claimed(judged, "pay.py::charge")
    refusal = judged.refused(commit("ann", ("pay.py::charge", charge("account, amount, currency"))))
    assert "orders.py is leased by bob" in refusal.message and refusal.facts["conflicts"][0]["holder"] == "bob"
    assert f"coord task fail {task} --agent ann --blocked orders.py::a" in refusal.next
    judged.ask(rq.TaskFail(agent="ann", task=task, blocked=["orders.py::a"]))
    assert judged.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    judged.ask(rq.Release(agent="bob", resources=["orders.py"]))
    got = judged.ask(rq.TaskClaim(agent="cyd"))
    assert got.task.task == task and {one.resource for one in got.leases} == {"pay.py::charge", "orders.py::a"}
    assert "currency" in str(got.tried[0].regions[0].text)


def test_what_nobody_can_tell_is_done_with_the_whole_file(judged: World) -> None:
    judged.write("pay.py", PAY)
    judged.clock.advance(1_000)
    judged.write("orders.py", ORDERS.replace("charge(account, 1)", "1"))
    judged.service.impact.note(["pay.py", "orders.py"])  # type: ignore[union-attr]
    task = claimed(judged, "pay.py::charge", "pay.py::spread")
    asked = commit("ann", ("pay.py::charge", charge("account, amount, currency")))
    refusal = judged.refused(asked)
    assert (refusal.code, refusal.facts["remedy"]) == (Code.ESCALATION_REQUIRED, "escalate") and "pay.py is leased to you now" in refusal.message
    judged.ask(asked)
    assert [one.remedy for one in tried(judged, task)] == ["escalate", "none"]


def test_more_than_its_region_is_to_be_corrected(world: World) -> None:
    task = claimed(world, "a.py::f")
    refusal = world.refused(commit("ann", ("a.py::f", f(3) + "\n\ndef g():\n    return 7\n")))
    assert refusal.code is Code.OUT_OF_SCOPE_EDIT and refusal.facts["remedy"] == "correct"
    assert tried(world, task)[0].outcome == "OUT_OF_SCOPE_EDIT" and world.ask(rq.TaskShow(task=task)).resources == ["a.py::f"]


def test_what_is_not_there_is_no_part_of_a_plan(judged: World) -> None:
    """The index may know of what is gone by now: the task could never be claimed again."""
    task = claimed(judged, "pay.py::charge")
    judged.write("orders.py", "def nothing():\n    return 1\n")
    refusal = judged.refused(commit("ann", ("pay.py::charge", charge("account, amount, currency"))))
    assert refusal.code is Code.REQUIRE_ADDITIONAL_LOCKS and "could not be leased" in refusal.message
    assert judged.ask(rq.TaskShow(task=task)).resources == ["pay.py::charge"]


def test_a_changed_region_is_told_with_the_intent_and_the_fresh_text(world: World) -> None:
    task = world.task("Make f faster", "a.py::f", prompt="It is slow.")
    world.ask(rq.TaskClaim(agent="ann", task=task))
    world.write("a.py", TEXT.replace("return 1", "return 100"))
    refusal = world.refused(commit("ann", ("a.py::f", f(2))))
    assert refusal.code is Code.REGION_CHANGED and refusal.facts["remedy"] == "afresh"
    assert "return 100" in refusal.facts["text"] and refusal.facts["intent"]["prompt"] == "It is slow."
    world.ask(commit("ann", ("a.py::f", f(2)), content_hash=refusal.facts["content_hash"]))


@pytest.mark.parametrize("written", [False, True])
def test_after_so_many_rounds_a_person_is_next(tmp_path: Path, written: bool) -> None:
    world = World(tmp_path / "repo", Settings(backlog=Backlog(rounds_max=3)))
    world.write("a.py", TEXT)
    task = claimed(world, "a.py::f", "a.py::g")
    world.refused(commit("ann", ("a.py::f", BROKEN)))
    if written:
        world.ask(commit("ann", ("a.py::g", "def g():\n    return 20\n")))
        world.refused(commit("ann", ("a.py::f", BROKEN)))
    assert world.refused(commit("ann", ("a.py::f", BROKEN))).facts["round"] == 2
    refusal = world.refused(commit("ann", ("a.py::f", BROKEN)))
    assert refusal.facts["remedy"] == "person" and "is a person's now" in refusal.message and f"coord task show {task}" in refusal.next
    shown = world.ask(rq.TaskShow(task=task))
    assert shown.state == ("review" if written else "dead") and "after 3 rounds" in " ".join(world.ask(rq.Explain(subject=task)).sentences)
    assert world.ask(rq.Locks()).items == [] and world.replay_differs() == []
    assert world.refused(rq.TaskClaim(agent="bob")).code is Code.NOTHING_TO_DO
    if not written:
        world.ask(rq.TaskRetry(task=task))
        assert len(world.ask(rq.TaskClaim(agent="bob", task=task)).tried) == 3
        assert world.refused(commit("bob", ("a.py::f", BROKEN))).facts["round"] == 1
    world.close()


def test_a_commit_for_no_task_has_no_blackboard(world: World) -> None:
    world.acquire("ann", "a.py::f")
    refusal = world.refused(commit("ann", ("a.py::f", BROKEN)))
    assert "remedy" not in refusal.facts and world.ask(rq.Events(kind="candidate_judged")).items == []


def test_only_so_much_is_kept(world: World) -> None:
    world.service.settings = Settings(backlog=Backlog(rounds_max=100))
    task = claimed(world, "a.py::f")
    for n in range(25):
        world.refused(commit("ann", ("a.py::f", f"def f(:  # {n}\n")))
    found = tried(world, task)
    assert [one.n for one in found] == list(range(6, 26)) and world.replay_differs() == []


@given(st.sampled_from(sorted(recovery.REMEDIES)), st.integers(1, 20), st.integers(1, 10))
def test_no_outcome_is_tried_for_ever(outcome: str, rounds: int, most: int) -> None:
    remedy: Any = recovery.remedy(outcome, rounds, most)
    assert (remedy == "person") == (rounds >= most and outcome != "COMMITTED")


def test_how_things_were_after_an_event_is_told(world: World) -> None:
    task = claimed(world, "a.py::f")
    world.refused(commit("ann", ("a.py::f", BROKEN)))
    seq = world.ask(rq.Events(limit=1, tail=True)).items[-1].seq
    world.ask(commit("ann", ("a.py::f", f(10))))
    world.ask(rq.TaskDone(agent="ann", task=task))
    world.acquire("bob", "b.py")
    then = world.ask(rq.Moment(event=seq)).sentences
    assert any(one.startswith("ann holds a.py::f (exclusive) for T-1 until ") for one in then)
    assert f"{task} is claimed by ann: " in " ".join(then) and f"{task}, attempt 1 by ann: PARSE_INVALID, so it is to be corrected" in then
    assert "bob" not in " ".join(then) and world.ask(rq.Moment(event=0)).sentences == []
    assert "bob holds b.py" in " ".join(world.ask(rq.Moment(event=world.ask(rq.Events(limit=1, tail=True)).items[-1].seq)).sentences)
    refusal = world.refused(rq.Moment(event=10**9))
    assert refusal.code is Code.INVALID and "not after 1000000000" in refusal.message


def test_an_outcome_that_somebody_else_found_is_noted(tmp_path: Path) -> None:
    world = World(tmp_path / "repo", Settings(backlog=Backlog(rounds_max=2)))
    world.write("a.py", TEXT)
    task = claimed(world, "a.py::f")
    said = world.ask(rq.TaskOutcome(agent="ann", task=task, outcome="VERIFY_FAILED", note="two tests fail"))
    assert (said.remedy, said.round, said.state) == ("correct", 1, "claimed")
    assert world.refused(rq.TaskOutcome(agent="ann", task=task, outcome="BAD_LUCK")).code is Code.INVALID
    assert world.refused(rq.TaskOutcome(agent="bob", task=task, outcome="VERIFY_FAILED")).code is Code.NOT_HOLDER
    said = world.ask(rq.TaskOutcome(agent="ann", task=task, outcome="VERIFY_FAILED", note="still"))
    assert (said.remedy, said.round, said.state) == ("person", 2, "dead")
    assert [one.note for one in tried(world, task)] == ["two tests fail", "still"]
    world.ask(rq.TaskRetry(task=task))
    world.ask(rq.TaskClaim(agent="ann", task=task))
    world.ask(rq.TaskFail(agent="ann", task=task, reason="it did not land", outcome="VERIFY_FAILED"))
    assert tried(world, task)[-1].note == "it did not land" and world.replay_differs() == []
    world.close()


def test_a_check_that_is_passed_ends_the_row_of_those_that_were_not(tmp_path: Path) -> None:
    world = World(tmp_path / "repo", Settings(backlog=Backlog(rounds_max=3)))
    world.write("a.py", "def f():\n    return 1\n")
    task = world.task("t", "a.py::f")
    world.ask(rq.TaskClaim(agent="ann"))
    rounds = []
    for n, outcome in enumerate(["VERIFY_FAILED", "VERIFY_FAILED", "COMMITTED", "VERIFY_FAILED", "VERIFY_FAILED", "VERIFY_FAILED"]):
        world.ask(rq.CommitRegion(agent="ann", regions=[rq.RegionText(resource="a.py::f", text=f"def f():\n    return 1{n}\n")]))
        said = world.ask(rq.TaskOutcome(agent="ann", task=task, outcome=outcome))
        rounds.append((said.round, said.remedy))
    assert rounds == [(1, "correct"), (2, "correct"), (0, "none"), (1, "correct"), (2, "correct"), (3, "person")]
    assert world.replay_differs() == []
    world.close()
