"""What was decided on is seen in the page, and taken back where that can be."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until
from tests.web.conftest import Person

pytestmark = pytest.mark.web
Leave = Callable[..., str]


def open_decided(person: Person) -> Any:
    page = person.open()
    person.go("Reviews")
    page.get_by_role("tab", name="Decided").click()
    return page


def test_verdicts_are_listed_and_taken_back(person: Person, repo: Repo, leave_review: Leave) -> None:
    for path in ("a.py", "b.py", "c.py"):
        leave_review({path: ("before\n", "after\n")})
    repo.coord("review", "revert", "R-1", "-m", "not now")
    page = open_decided(person)
    first = page.get_by_role("row").filter(has_text="R-1")
    first.get_by_text("not now").wait_for()
    assert "reverted" in first.inner_text() and "a.py" in first.inner_text()
    person.check_accessible()
    repo.coord("review", "keep", "R-2")
    rows = page.locator(".decided tbody tr:not(.gap) th")
    until(lambda: rows.all_inner_texts() == ["R-2", "R-1"])
    first.get_by_role("button", name="Undo the verdict on R-1").click()
    page.get_by_text("R-1 is open again.").wait_for()
    assert repo.read("a.py") == "after\n"
    until(lambda: rows.all_inner_texts() == ["R-2"])
    assert person.errors == []


def test_only_what_can_be_taken_back_has_a_button(person: Person, repo: Repo) -> None:
    with repo.client() as client:
        client.call(rq.TaskAdd(title="one", resources=["a.py"]))
        client.call(rq.TaskAdd(title="two", after=["T-1"]))
        token = client.call(rq.Register(agent="ann")).token
    with repo.client("ann", token=token) as client:
        client.call(rq.TaskClaim(agent="ann", task="T-1"))
        repo.write("a.py", "half\n")
        client.call(rq.TaskFail(agent="ann", task="T-1", reason="no luck"))
    page = open_decided(person)
    page.get_by_role("tab", name="Waiting").click()
    page.get_by_role("button", name="Reassign g").wait_for()
    page.get_by_role("tab", name="Decided").click()
    repo.coord("review", "keep", "R-1")
    button = page.get_by_role("button", name="Undo the verdict on R-1")
    button.wait_for()
    with repo.client("ann", token=token) as client:
        client.call(rq.TaskClaim(agent="ann", task="T-2"))
    button.wait_for(state="detached")
    page.get_by_role("row").filter(has_text="R-1").get_by_text("kept").wait_for()


def test_a_long_list_is_asked_for_by_parts(person: Person, repo: Repo, leave_review: Leave) -> None:
    count = 60
    for n in range(count):
        leave_review({f"f{n}.py": ("before\n", "after\n")}, agent=f"ann{n}")
    repo.coord("review", "keep", *(f"R-{n + 1}" for n in range(count)))
    page = open_decided(person)
    rows = page.locator(".decided tbody tr:not(.gap)")
    page.get_by_role("row").filter(has_text=f"R-{count}").wait_for()
    assert page.locator(".decided table").get_attribute("aria-rowcount") == str(count + 1)
    assert 0 < rows.count() < count
    page.locator(".decided").evaluate("element => element.scrollTo(0, element.scrollHeight)")
    page.locator(".decided th[scope=row]").get_by_text("R-1", exact=True).wait_for()


def test_work_that_did_not_land_is_told_apart_and_the_queue_is_seen(person: Person, repo: Repo, leave_review: Leave) -> None:
    leave_review({"a.py": ("before\n", "after\n")})
    with repo.client() as client:
        for agent in ("bob", "cyd"):
            client.call(rq.Register(agent=agent))
            task = client.call(rq.TaskAdd(title=f"the work of {agent}")).task
            client.call(rq.TaskClaim(agent=agent, task=task))
            client.call(rq.LandQueue(agent=agent, task=task, target="refs/heads/main"))
        client.call(rq.LandQueue(agent="bob", task="T-1", target="refs/heads/main", turn=True))
    page = person.open()
    person.go("More")
    queue = page.get_by_role("list", name="Landing queue").get_by_role("listitem")
    until(lambda: [text[:5] for text in queue.all_inner_texts()] == ["lands", "waits"])
    assert "T-2 the work of cyd, of cyd, on main" in queue.nth(1).inner_text()
    with repo.client() as client:
        client.call(rq.TaskDone(agent="bob", task="T-1"))
    until(lambda: [text[:9] for text in queue.all_inner_texts()] == ["waits T-2"])
    person.go("Needs you")
    assert page.locator(".card .kind").all_inner_texts() == ["Review"]


def test_work_that_did_not_land_is_another_card_than_a_review(person: Person, repo: Repo, leave_review: Leave) -> None:
    leave_review({"a.py": ("before\n", "after\n")})
    place = repo.root / ".coord/worktrees/run/bob"

    def git(*args: str, where: Path = repo.root) -> str:
        named = ("-c", "user.name=P", "-c", "user.email=p@example.org")
        return subprocess.run(["git", *named, *args], cwd=where, capture_output=True, text=True, check=True).stdout.strip()

    git("add", "a.py")
    git("commit", "-qm", "first")
    git("worktree", "add", "-q", "-b", "work", str(place))
    began = git("rev-parse", "HEAD")
    with repo.client() as client:
        client.call(rq.Register(agent="bob"))
        client.call(rq.TaskAdd(title="Round the totals", resources=["b.py"]))
        client.call(rq.TaskClaim(agent="bob", task="T-1"))
        client.call(rq.TaskWorktree(agent="bob", task="T-1", worktree=str(place)))
        (place / "b.py").write_text("rounded\n")
        git("add", "b.py", where=place)
        git("commit", "-qm", "round", where=place)
        client.call(rq.TaskFail(agent="bob", task="T-1", reason="main has another b.py", unlanded=rq.Unlanded(
            worktree=str(place), began=began, commit=git("rev-parse", "HEAD", where=place))))
    page = person.open()
    card = page.locator(".card").filter(has_text="Did not land")
    card.get_by_text("main has another b.py").wait_for()
    assert sorted(page.locator(".card .kind").all_inner_texts()) == ["Did not land", "Review"]
    card.get_by_role("button", name="Look at it").click()
    page.get_by_text("did not land").first.wait_for()
