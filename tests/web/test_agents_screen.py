"""Who waits for whom, and the panel of an agent or a file."""

from __future__ import annotations

import contextlib
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
        with repo.client(agent) as client, contextlib.suppress(Refusal):
            client.call(rq.Acquire(agent=agent, resources=[resource], wait_s=60))

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


def test_the_panel_shows_what_an_agent_has_changed_and_what_it_says(person: Person, repo: Repo) -> None:
    repo.write("src/pay.py", "a = 1\n")
    with repo.client() as client:
        client.call(rq.TaskAdd(title="Round the totals", resources=["src/pay.py"]))
        token = client.call(rq.Register(agent="ann")).token
    folder = repo.state.runs / "20261128T091501-42"
    folder.mkdir(parents=True)
    log = folder / "T-1-1.log"
    log.write_text("I read <b>pay.py</b>.\n", "utf-8")
    with repo.client("ann", token=token) as client:
        client.call(rq.TaskClaim(agent="ann"))
        repo.write("src/pay.py", "a = 2\n")
        page = person.open()
        person.go("Agents and leases")
        page.get_by_role("button", name="ann", exact=True).click()
        page.get_by_role("tab", name="Changes").click()
        panel = page.get_by_role("tabpanel")
        panel.get_by_text("+a = 2").wait_for()
        repo.write("src/pay.py", "a = 3\n")
        client.call(rq.Heartbeat(agent="ann", progress="nearly done"))
        repo.coord("lock", "other.py", "--agent", "bob")
        panel.get_by_text("+a = 3").wait_for()
        page.get_by_role("tab", name="Log").click()
        page.get_by_role("log").get_by_text("I read <b>pay.py</b>.").wait_for()
        with log.open("a", encoding="utf-8") as file:
            file.write("I write it now.\n")
        page.get_by_role("log").get_by_text("I write it now.").wait_for()
        person.check_accessible()
    page.get_by_role("button", name="Close this panel").click()
    page.get_by_role("button", name="src/pay.py", exact=True).click()
    page.get_by_role("tab", name="Changes").click()
    panel.get_by_text("+a = 3").wait_for()
    assert person.errors == []
