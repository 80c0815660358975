"""Each screen at three widths in both themes looks as it did (tests/web/pictures.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.web.conftest import Person
from tests.web.pictures import check_picture, differing_pixels

pytestmark = pytest.mark.web
HEIGHT = 800


def fill(repo: Repo, leave_review: Callable[..., str]) -> None:
    """Something of everything that a person sees."""
    leave_review({"src/pay.py": ("def charge(total):\n    return total\n", "def charge(total):\n    return round(total, 2)\n"),
                  "src/tax.py": ("RATE = 19\n", "RATE = 20\n")}, agent="cyd")
    repo.there("ann", "bob")
    for resource in ("src/pay.py", "docs/", "key:account:1"):
        repo.coord("lock", resource, "--agent", "ann", "-m", "round the totals")
    repo.coord("request", "file", "src/pay.py", "--agent", "bob", "--reason", "a typo in it")
    with repo.client() as client:
        client.call(rq.MessageSend(agent="ann", to="human", text="Which currency?"))
        for n, title in enumerate(("Round the totals", "Describe the limits", "Test the refunds")):
            client.call(rq.TaskAdd(title=title, priority=n, after=[f"T-{n}"] if n else []))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1000, 1900])
def test_each_screen_looks_as_it_did(person: Person, repo: Repo, leave_review: Callable[..., str], width: int, scheme: str) -> None:
    pytest.importorskip("PIL")
    fill(repo, leave_review)
    page = person.page
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    person.open()
    page.get_by_text("Which currency?").wait_for()
    end = f"{width}-{scheme}"
    check_picture(page, f"needs-you-{end}")
    person.go("Agents and leases")
    page.get_by_role("button", name="src/pay.py", exact=True).click()
    page.get_by_text("3 of 3").wait_for()
    check_picture(page, f"agents-{end}")
    person.go("Reviews")
    page.locator(".diff .cm-editor").first.wait_for()
    page.get_by_role("complementary").get_by_text("How it came to this").wait_for()
    check_picture(page, f"review-{end}")
    person.go("Backlog")
    page.get_by_role("button", name="Test the refunds").wait_for()
    check_picture(page, f"backlog-{end}")
    person.go("Time")
    page.get_by_role("slider").wait_for()
    # Where each span lies depends on how fast the machine was.
    check_picture(page, f"time-{end}", hidden=[page.locator("svg"), page.get_by_role("slider"), page.locator("main table"), page.locator("main p, main li")])
    person.go("More")
    page.get_by_text("No branch has landed.").wait_for()
    check_picture(page, f"more-{end}")


def test_a_line_that_moved_is_seen_and_another_edge_of_a_letter_is_not() -> None:
    image = pytest.importorskip("PIL.Image")
    draw = pytest.importorskip("PIL.ImageDraw")

    def picture(top: int, colour: int) -> Any:
        made = image.new("RGB", (400, 400), "white")
        draw.Draw(made).rectangle((20, top, 300, top + 40), fill=(colour, colour, colour))
        return made

    def share(one: Any, other: Any) -> float:
        return float(differing_pixels(one, other).tobytes().count(b"\xff")) / 100**2

    assert share(picture(100, 0), picture(112, 0)) > 0.005
    assert share(picture(100, 0), picture(101, 0)) == 0 == share(picture(100, 0), picture(100, 40))
