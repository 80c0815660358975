"""A file of a review is edited in the page, and kept so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Repo
from tests.waiting import until
from tests.web.conftest import Person

pytestmark = pytest.mark.web
Leave = Callable[..., str]


def open_editor(person: Person, path: str = "a.py") -> Any:
    page = person.open()
    person.go("Reviews")
    page.get_by_role("group", name=f"Difference of {path}").locator(".cm-content").first.wait_for()
    page.keyboard.press("e")
    editor = page.get_by_role("textbox", name=f"{path}, your text")
    editor.wait_for()
    until(lambda: editor.evaluate("element => element.getRootNode().activeElement === element"))
    return page


@pytest.mark.parametrize("layout", ["Side by side", "Unified"])
def test_a_file_is_edited_kept_and_taken_back_by_the_keyboard(person: Person, repo: Repo, leave_review: Leave, layout: str) -> None:
    review = leave_review({"a.py": ("rate = 19\r\n", "rate = 20\r\n"), "b.py": ("b\n", "c\n")})
    page = open_editor(person)
    page.get_by_role("button", name=layout).click()
    editor = page.get_by_role("textbox", name="a.py, your text")
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# n, j, a and r are letters here\n")
    person.check_accessible()
    page.keyboard.press("Control+Enter")
    page.get_by_text(f"The rest stays open in {review}.").wait_for()
    assert (repo.root / "a.py").read_bytes() == b"rate = 20\r\n# n, j, a and r are letters here\r\n"
    page.get_by_role("group", name="Difference of b.py").wait_for()
    page.keyboard.press("u")
    page.get_by_text("is open again").wait_for()
    assert (repo.root / "a.py").read_bytes() == b"rate = 20\r\n"
    assert person.errors == []


def test_what_was_saved_meanwhile_is_said_and_the_text_stays_in_the_editor(person: Person, repo: Repo, leave_review: Leave) -> None:
    leave_review({"a.py": ("rate = 19\n", "rate = 20\n")})
    page = open_editor(person)
    page.keyboard.press("Control+A")
    page.keyboard.type("rate = 21\n")
    repo.write("a.py", "rate = 22\n")
    page.get_by_role("button", name="Keep your text").click()
    page.get_by_role("alert").get_by_text("a.py was changed after it was flagged").wait_for()
    assert repo.read("a.py") == "rate = 22\n"
    assert "rate = 21" in page.get_by_role("textbox", name="a.py, your text").inner_text()
    repo.write("a.py", "rate = 20\n")
    page.get_by_role("button", name="Keep your text").click()
    page.get_by_text("R-1 is kept.").wait_for()
    assert repo.read("a.py") == "rate = 21\n"


def test_a_text_that_was_begun_outlasts_a_look_at_others_and_is_not_decided_over(person: Person, repo: Repo, leave_review: Leave) -> None:
    leave_review({"a.py": (text := "".join(f"line {n}\n" for n in range(40)), text.replace("line 3\n", "3\n").replace("line 30\n", "30\n")),
                  "b.py": ("b\n", "c\n")})
    page = open_editor(person)
    page.keyboard.press("Control+Home")
    page.keyboard.type("begun ")
    # Another verdict takes out a change: the editor stays, and what it was begun from is not what is there.
    repo.coord("review", "keep", "R-1", "--file", "a.py", "--hunk", "2")
    page.get_by_role("button", name="b.py modified").click()
    page.get_by_role("group", name="Difference of b.py").wait_for()
    page.get_by_role("button", name="Keep it", exact=True).click()
    page.get_by_role("alert").get_by_text("You edit a.py. Nothing was decided.").wait_for()
    page.get_by_role("button", name="a.py modified").click()
    assert page.get_by_role("textbox", name="a.py, your text").inner_text().startswith("begun line 0")
    page.get_by_role("button", name="Keep your text").click()
    page.get_by_role("alert").get_by_text("is shown with other contents").wait_for()
    page.get_by_role("button", name="Discard it").click()
    page.get_by_role("button", name="Edit e").wait_for()
    assert repo.read("a.py") == text.replace("line 3\n", "3\n").replace("line 30\n", "30\n")
