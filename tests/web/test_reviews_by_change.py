"""Verdicts on single changes, and what stands beside a review."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.web.conftest import Person

pytestmark = pytest.mark.web
Leave = Callable[..., str]


def text(*changed: int) -> str:
    return "".join(f"line {n}{' changed' if n in changed else ''}\n" for n in range(40))


def test_each_change_has_a_verdict_of_its_own(person: Person, repo: Repo, leave_review: Leave) -> None:
    review = leave_review({"a.py": (text(), text(3, 20, 36))})
    page = person.open()
    person.go("Reviews")
    page.get_by_role("button", name="Change by change").click()
    changes = page.get_by_role("list", name="Changes of a.py")
    changes.get_by_text("Change 3 of 3").wait_for()
    changes.get_by_role("button", name="Revert change 2").click()
    page.get_by_text(f"The rest stays open in {review}.").wait_for()
    changes.get_by_text("Change 2 of 2").wait_for()
    assert repo.read("a.py") == text(3, 36)
    page.keyboard.press("u")
    page.get_by_text("is open again").wait_for()
    assert repo.read("a.py") == text(3, 20, 36)
    assert person.errors == []


def test_a_change_that_another_browser_has_decided_on_is_not_taken_for_the_next(
    person: Person, browser: Any, repo: Repo, leave_review: Leave
) -> None:
    leave_review({"a.py": (text(), text(3, 20, 36))})
    page = person.open()
    person.go("Reviews")
    page.get_by_role("button", name="Change by change").click()
    page.get_by_text("Change 3 of 3").wait_for()
    # The page does not hear what happens until it has asked: its stream is held up.
    page.route("**/v1/status*", lambda route: None)
    repo.coord("review", "keep", "R-1", "--file", "a.py", "--hunk", "1")
    page.get_by_role("button", name="Revert change 2").click()
    page.get_by_role("alert").get_by_text("have other numbers now").wait_for()
    assert repo.read("a.py") == text(3, 20, 36)


def test_the_task_and_the_last_words_stand_beside_a_review(person: Person, repo: Repo) -> None:
    repo.write("src/pay.py", "a = 1\n")
    with repo.client() as client:
        client.call(rq.TaskAdd(title="Round the totals", prompt="Half up, to cents.", resources=["src/pay.py"]))
        token = client.call(rq.Register(agent="ann")).token
    with repo.client("ann", token=token) as client:
        client.call(rq.TaskClaim(agent="ann"))
        repo.write("src/pay.py", "a = 2\n")
        client.call(rq.Leave(agent="ann", clean=False, log_tail="I was about to test it."))
    page = person.open()
    person.go("Reviews")
    beside = page.get_by_role("complementary", name=re.compile("About R-1"))
    beside.get_by_text("Half up, to cents.").wait_for()
    beside.get_by_text("I was about to test it.").wait_for()
    beside.get_by_text("got src/pay.py").first.wait_for()


@pytest.mark.parametrize(("name", "copied"), [("it's.py", True), ("a\u202eb.py", False)])
def test_a_file_is_copied_for_an_editor(person: Person, repo: Repo, leave_review: Leave, name: str, copied: bool) -> None:
    leave_review({name: ("a\n", "b\n")})
    person.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = person.open()
    person.go("Reviews")
    page.get_by_role("button", name="Copy to your editor").click()
    if copied:
        page.get_by_text("is in your clipboard").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == "${EDITOR:-vi} '" + str(repo.root / name).replace("'", "'\\''") + "'"
    else:
        page.get_by_role("alert").get_by_text("Nothing was copied").wait_for()
