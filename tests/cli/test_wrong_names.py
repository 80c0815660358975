"""Names that nobody and nothing has, and forms that do not go together: told, with a code of their own, also as JSON."""

from __future__ import annotations

import json

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.world import World


@pytest.mark.parametrize(("subject", "code"), [("T-99", "UNKNOWN_TASK"), ("r-7", "UNKNOWN_REVIEW"), ("U-5", "UNKNOWN_REQUEST"), ("M-1", "UNKNOWN_MESSAGE"),
                                               ("K-2", "UNKNOWN_CHANGE"), ("W-3", "UNKNOWN_LEASE")])
def test_an_id_that_nothing_has_is_told_to_be_none(repo: Repo, subject: str, code: str) -> None:
    repo.coord("up")
    done = repo.coord("explain", subject, "--json")
    assert done.returncode == 7 and json.loads(done.stdout)["error"]["code"] == code, done
    assert repo.coord("explain", "no/such.py").returncode == 0


def test_a_file_that_is_called_as_an_id_has_its_story(world: World) -> None:
    world.acquire("ann", "T-9")
    assert "ann got T-9" in world.ask(rq.Explain(subject="T-9")).sentences[0]


@pytest.mark.parametrize("words", ["lokc --json", "task lst --json", "task list --limit abc --json", "explain --json", "lock --json --ttl", "locks -q --json",
                                   "agents -q --short --json"])
def test_what_is_mistyped_is_json_where_that_was_asked_for(repo: Repo, words: str) -> None:
    repo.coord("up")
    done = repo.coord(*words.split())
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2 and error["code"] == "INVALID" and error["next"] and error["message"] in done.stderr, done
    assert "next: " in done.stderr


def test_what_stands_behind_two_dashes_asks_for_nothing(repo: Repo) -> None:
    assert repo.coord("lokc", "--", "--json").stdout == ""


def test_an_agent_that_there_is_not_renews_nothing_and_is_not_made(world: World) -> None:
    world.acquire("ann", "a.py")
    for resources in ([], ["a.py"]):
        assert world.refused(rq.Renew(agent="anm", resources=resources)).code is Code.UNKNOWN_AGENT
    assert {one.agent for one in world.ask(rq.Agents()).items} == {"ann"}


@pytest.mark.parametrize("closed", [False, True])
def test_a_lease_that_has_lapsed_is_stale_whenever_that_is_asked(world: World, closed: bool) -> None:
    got = world.acquire("ann", "a.py", "b.py", ttl_s=5)
    world.clock.advance(6_000)
    if closed:
        world.ask(rq.Sweep())
    for how in ({"resources": ["a.py"]}, {"acquisition_id": got.acquisition_id}, {"resources": ["b.py"], "lease_token": got.leases[1].lease_token}):
        assert world.refused(rq.Renew(agent="ann", **how)).code is Code.STALE_TOKEN, how
    for how in ({"resources": ["never.py"]}, {"acquisition_id": "A-99"}):
        assert world.refused(rq.Renew(agent="ann", **how)).code is Code.UNKNOWN_LEASE, how
    world.acquire("bob", "a.py")
    assert world.refused(rq.Renew(agent="ann", resources=["a.py"])).code is Code.NOT_HOLDER
    assert world.refused(rq.Renew(agent="bob", resources=["b.py"])).code is Code.UNKNOWN_LEASE
    assert world.replay_differs() == []


@pytest.mark.parametrize("request_", [
    rq.Acquire(agent="a", resources=["x"], wait_s=-1), rq.TaskClaim(agent="a", wait_s=1e6), rq.StepNext(agent="a", names=["x"], wait_s=-1),
    rq.StepNext(agent="a", names=[]), rq.StepNext(agent="a", names=["x"], give_s=0), rq.ChangeNext(agent="a", key="key:a", wait_s=-2),
    rq.Propose(agent="a", changes=[]), rq.CommitRegion(agent="a", regions=[]), rq.Report(since="2999-01-01T00:00:00Z")])
def test_what_is_out_of_range_is_invalid(world: World, request_: rq.Request[object]) -> None:
    """Not LIMIT, which says to ask for less."""
    world.acquire("a", "key:a")
    assert world.refused(request_).code is Code.INVALID


def test_a_report_from_an_instant_begins_there(world: World) -> None:
    world.acquire("ann", "a.py")
    began = world.ask(rq.Events(limit=1)).items[0].at
    world.clock.advance(4_000)
    assert world.ask(rq.Report(since=began)).span_s == 4.0
    with pytest.raises(Refusal):
        world.ask(rq.Report(since=began, until="2001-01-01T00:00:00Z"))


@pytest.mark.parametrize(("request_", "said"), [
    (rq.TaskShow(task="R-1"), "No task has the id 'R-1': that is the id of a review."), (rq.ReviewShow(review="t-1"), "No review has the id 't-1': that is the id of a task."),
    (rq.RequestWithdraw(request="W-1", agent="a"), "No unlock request has the id 'W-1': that is the id of a place in line.")])
def test_an_id_of_another_kind_is_told_to_be_that_and_what_shows_it(world: World, request_: rq.Request[object], said: str) -> None:
    refusal = world.refused(request_)
    assert refusal.message == said
    assert {"R-1": "coord review show R-1", "t-1": "coord task show T-1", "W-1": "coord explain W-1"}[said.split("'")[1]] in refusal.next


def test_an_id_of_the_same_kind_is_told_to_be_no_other(world: World) -> None:
    assert world.refused(rq.TaskShow(task="T-9")).message == "No task has the id 'T-9'."


def test_a_verb_that_a_state_does_not_allow_is_told_with_the_states_that_do(world: World) -> None:
    task = world.task("one", "a.py")
    refusal = world.refused(rq.TaskRetry(task=task))
    assert (refusal.code, refusal.message) == (Code.BAD_TRANSITION, "T-1 is ready; `retry` is for tasks that are cancelled, dead or failed. It stays as it is.")
