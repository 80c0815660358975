"""Who waits for whom, and the panel of an agent or a file."""

from __future__ import annotations

import threading

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.conftest import Repo
from tests.waiting import until
from tests.web.conftest import Person

pytestmark = pytest.mark.web


def wait_for(repo: Repo, agent: str, resource: str) -> None:
    """Ask for it and stay in the queue."""
    def ask() -> None:
        with repo.client(agent) as client:
            try:
                client.call(rq.Acquire(agent=agent, resources=[resource], wait_s=60))
            except Refusal:
                pass

    threading.Thread(target=ask, daemon=True).start()

    def is_queued() -> bool:
        with repo.client() as client:
            return any(waiter.agent == agent for waiter in client.call(rq.Locks()).waiters)

    until(is_queued)


def test_who_waits_for_whom_is_a_picture_and_a_deadlock_is_marked(person: Person, repo: Repo) -> None:
    repo.there("ann", "bob", "cyd")
    for agent, resource in (("ann", "a.py"), ("bob", "b.py")):
        repo.coord("lock", resource, "--agent", agent)
    wait_for(repo, "cyd", "a.py")
    wait_for(repo, "ann", "b.py")
    page = person.open()
    person.go("Agents and leases")
    page.get_by_role("img", name="Who waits for whom").wait_for()
    picture = page.locator(".wait-graph")
    assert sorted(picture.locator("text").all_text_contents()) == ["ann", "bob", "cyd"]
    assert picture.locator("path.wait").count() == 2
    wait_for(repo, "bob", "a.py")
    page.get_by_role("img", name="Deadlock of ann, bob").wait_for()
    assert picture.locator(".agent.deadlocked").count() == 2 and picture.locator("path.wait.deadlocked").count() == 2
    assert person.errors == []
