"""Postponed steps on disk: run by a worker when what they need is free, also after a crash."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import msgspec
import pytest

from coordinator.frameworks.mutex import acquire_agent_lock, lock_key
from coordinator.frameworks.postponing import StepPostponed
from coordinator.frameworks.step_queue import StepQueue
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.waiting import until


def test_a_step_that_was_blocked_is_run_when_its_key_is_free(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config="[leases]\nretry_s = 1\n")
    booked: list[int] = []
    client, other, worker = repo.client("ann"), repo.client("bob"), repo.client("worker")
    queue = StepQueue(client)

    def book(user_id: str, cents: int) -> None:
        with acquire_agent_lock(user_id, client=worker):
            booked.append(cents)

    with other.lease(lock_key("u1")), pytest.raises(StepPostponed), acquire_agent_lock(
            "u1", client=client, step="book", arguments={"user_id": "u1", "cents": 7}, on_blocked=queue.put):
        raise AssertionError("somebody else holds it")
    (step,) = client.call(rq.Steps()).items
    assert (step.name, step.resources, step.state) == ("book", [lock_key("u1")], "waiting")
    os.kill(repo.pid(), signal.SIGKILL)
    runs = StepQueue(worker)
    thread = threading.Thread(target=runs.run, args=({"book": book},))
    thread.start()
    until(lambda: booked == [7], 60)
    until(lambda: client.call(rq.Steps(state="done")).items)
    runs.stop()
    worker.hang_up()
    thread.join()


def test_one_that_fails_is_a_dead_letter_in_the_end(repo: Repo) -> None:
    client = repo.client("ann")
    client.call(rq.StepAdd(agent=client.name(), name="breaks", arguments=msgspec.Raw(b"{}"), delay_s=0.0, attempts_max=1))

    def breaks(**_: object) -> None:
        raise ValueError("no network")

    client.call(rq.StepAdd(agent=client.name(), name="works", arguments=msgspec.Raw(b"{}"), delay_s=0.0))
    assert StepQueue(client).run({"breaks": breaks, "works": dict}, wait=0.0) == 1
    (letter,) = client.call(rq.Dead()).items
    assert (letter.kind, letter.what) == ("call", "breaks")


def test_what_nobody_could_run_later_is_not_kept(repo: Repo) -> None:
    client, other = repo.client("ann"), repo.client("bob")
    with other.lease(lock_key("u1")), pytest.raises(Refusal) as no, acquire_agent_lock(
            "u1", client=client, on_blocked=StepQueue(client).put):
        raise AssertionError("somebody else holds it")
    assert no.value.code is Code.INVALID and "not kept" in no.value.message


@pytest.mark.parametrize("wrong", [float("nan"), object(), "\ud800"])
def test_arguments_that_are_no_json_are_not_kept(repo: Repo, wrong: object) -> None:
    client, other = repo.client("ann"), repo.client("bob")
    with other.lease(lock_key("u1")), pytest.raises(Refusal) as no, acquire_agent_lock(
            "u1", client=client, step="book", arguments={"cents": wrong}, on_blocked=StepQueue(client).put):
        raise AssertionError("somebody else holds it")
    assert no.value.code is Code.INVALID and "arguments" in no.value.message
    assert client.call(rq.Steps()).items == []


@pytest.mark.parametrize("asked", [True, False])
def test_whoever_is_stopped_and_hung_up_on_has_ended(repo: Repo, asked: bool) -> None:
    """A lost connection is an end where one was asked for; else it is told."""
    worker = repo.client("worker")
    worker.name()
    runs, ends = StepQueue(worker), list[object]()

    def run() -> None:
        try:
            ends.append(runs.run({"book": dict}))
        except Refusal as refusal:
            ends.append(refusal.code)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: worker._wire.asking)  # it asks for the next step
    if asked:
        runs.stop()
    worker.hang_up()
    thread.join(30)
    assert ends == [0 if asked else Code.DAEMON_DOWN]


def test_a_step_without_arguments_is_run(repo: Repo) -> None:
    with repo.client("ann") as client:
        client.call(rq.StepAdd(agent=client.name(), name="bare", delay_s=0.0))
        assert StepQueue(client).run({"bare": lambda: None}, wait=0.0) == 1


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("attempts", [1, 5])
def test_a_worker_whose_attempt_ends_too_late_goes_on(repo: Repo, fails: bool, attempts: int) -> None:
    """Whatever has become of the step meanwhile: it waits for its next attempt, or is a dead letter."""
    with repo.client("ann") as client, repo.client("bob") as other:
        for name, most in (("slow", attempts), ("next", 5)):
            client.call(rq.StepAdd(agent=client.name(), name=name, arguments=msgspec.Raw(b"{}"), delay_s=0.0, attempts_max=most))
        done = list[str]()

        def slow() -> None:
            until(lambda: all(one.state != "given" for one in other.call(rq.Steps(state="all")).items), 20)
            if fails:
                raise ValueError("too late")

        assert StepQueue(client, give=1.0).run({"slow": slow, "next": lambda: done.append("next")}, wait=0.3) == 1
        assert done == ["next"]
        assert [one.what for one in client.call(rq.Dead()).items] == (["slow"] if attempts == 1 else [])
