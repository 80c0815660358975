"""A large file of a review is shown by its hunks, some at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import Repo
from tests.web.conftest import Person

pytestmark = pytest.mark.web


def lines(count: int, *changed: int) -> str:
    return "".join(f"line {n}{' <b>changed</b>' if n in changed else ''}\n" for n in range(count))


@pytest.mark.parametrize("many", [450_000, 250_000])
def test_a_large_file_is_read_hunk_by_hunk(person: Person, repo: Repo, leave_review: Callable[..., str], many: int) -> None:
    changed = range(1000, many, 10_000)
    leave_review({"big.txt": (lines(many), lines(many, *changed))})
    page = person.open()
    person.go("Reviews")
    changes = page.get_by_role("list", name="Changes of big.txt").get_by_role("listitem")
    changes.first.get_by_text("+line 1000 <b>changed</b>").wait_for()
    assert changes.count() == 20
    while page.get_by_role("button", name="Show the next changes").count():
        shown = changes.count()
        page.get_by_role("button", name="Show the next changes").click()
        changes.nth(shown).wait_for()
    assert changes.count() == len(changed)
    changes.last.get_by_text(f"+line {changed[-1]} <b>changed</b>").wait_for()
    assert page.get_by_role("button", name="Edit e").count() == 0
    person.check_accessible()
    page.keyboard.press("r")
    page.get_by_text("R-1 is reverted").wait_for()
    assert repo.read("big.txt") == lines(many) and person.errors == []
