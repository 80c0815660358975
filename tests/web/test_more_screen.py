"""The screen of what is not looked at every day."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.web.conftest import Person

pytestmark = pytest.mark.web


def fill(repo: Repo) -> None:
    """Something of everything."""
    repo.write("context_archive/pay.md", "# Pay\n\n## 1. Rounding\n\nTotals are rounded half up. <b>Always.</b>\n")
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
    with repo.client("ann", token=token) as client:
        client.call(rq.StatePut(agent="ann", key="key:deploy", value=msgspec.Raw(b'{"to": "<i>prod"}'), version=0))
        client.call(rq.ChangeAdd(agent="ann", key="key:balance", wanted=msgspec.Raw(b'{"add": 5}'), note="a refund"))
        client.call(rq.SignalAdd(agent="ann", subject="src/pay.py", name="trouble", note="<u>flaky"))
        client.call(rq.ArchiveIndexNow())


@pytest.mark.parametrize("width", [360, 1000])
def test_each_section_shows_what_the_coordinator_knows(person: Person, repo: Repo, tmp_path: Path, width: int) -> None:
    fill(repo)
    other = tmp_path / "other"
    other.mkdir()
    repo.coord("init", cwd=other)
    repo.coord("lock", "a.py", "--agent", "bob", cwd=other)
    person.page.set_viewport_size({"width": width, "height": 800})
    page = person.open()
    person.go("More")
    page.get_by_text("No branch has landed.").wait_for()
    for section, text in (
        ("Values", "a refund"), ("Signals", "trouble on src/pay.py: <u>flaky"), ("Settings", "leases.ttl_s"),
        ("Metrics", "coord_events_total"), ("Repositories", str(other)),
    ):
        page.get_by_role("tab", name=section).click()
        page.get_by_role("tabpanel").get_by_text(text).first.wait_for()
        person.check_accessible()
    page.get_by_role("tab", name="Values").click()
    page.get_by_role("button", name="key:deploy").click()
    page.get_by_text('"to": "<i>prod"').wait_for()
    page.get_by_role("tab", name="Archive").click()
    page.get_by_role("searchbox").fill("rounded")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("button", name="1 Rounding").click()
    page.get_by_role("article").get_by_text("<b>Always.</b>").wait_for()
    person.check_accessible()
    assert person.errors == []


def test_a_value_is_shown_as_it_is_written(person: Person, repo: Repo) -> None:
    fill(repo)
    page = person.open()
    person.go("More")
    page.get_by_role("tab", name="Values").click()
    page.get_by_role("row", name="key:deploy 1").wait_for()
    with repo.client() as client:
        token = client.call(rq.Register(agent="bob")).token
    with repo.client("bob", token=token) as client:
        client.call(rq.StatePut(agent="bob", key="key:deploy", value=msgspec.Raw(b"2"), version=1))
    page.get_by_role("row", name="key:deploy 2").wait_for()
