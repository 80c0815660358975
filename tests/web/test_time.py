"""The time line in a real Chromium: live over a coordinator, and saved as a file of its own."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from coordinator.words.refusals import Refusal
from tests.conftest import Repo
from tests.waiting import until
from tests.web.conftest import Person

pytestmark = pytest.mark.web
HOSTILE = "</script><img src=x onerror=alert(1)>\u202egpj.exe"
HOSTILE_SHOWN = "</script><img src=x onerror=alert(1)>\\u202egpj.exe"


@pytest.fixture
def worked(repo: Repo) -> Repo:
    """ann had src/pay.py for T-1, bob was refused it and waited; now bob has it, and ann nothing."""
    with repo.client() as person:
        person.task_add(HOSTILE, resources=["src/pay.py"])
    with repo.client("ann") as ann, repo.client("bob") as bob:
        ann.claim("T-1")
        with pytest.raises(Refusal):
            bob.acquire("src/pay.py", description=HOSTILE)
        ann.done("T-1")
        until(lambda: [lease.locked_by for lease in bob.locks().items] == ["bob"])
        # A release that is known by its name alone, and the last thing that happened.
        bob.acquire("src/<b>tax.py")
        bob.release("src/<b>tax.py")
    return repo


def check_lanes(page: Any) -> None:
    """The lanes show the task, the wait and the refusal, each in the lane of whoever had it."""
    page.locator('.lane[data-agent="ann"] .span-task [data-subject="T-1"] path').wait_for(state="attached")
    assert page.locator('.lane[data-agent="ann"] .span-lease [data-subject="src/pay.py"]').count() == 1
    assert page.locator('.lane[data-agent="bob"] .span-wait [data-subject="src/pay.py"]').count() == 1
    assert page.locator('.lane[data-agent="bob"] .span-refusal path').count() == 1
    assert page.locator('.lane[data-agent="ann"] .span-refusal path').count() == 0
    assert "held by ann" in page.locator('.lane[data-agent="bob"] .span-wait title').text_content()
    page.locator('.heat-row[data-resource="src/pay.py"] .heat-wanted').first.wait_for(state="attached")
    row = page.get_by_role("row", name=re.compile("bob ann"))
    assert row.get_by_role("cell").nth(1).inner_text() == "1"


def shown_window(page: Any) -> tuple[float, float]:
    """How wide the task is drawn, and the lanes are (pixels)."""
    task = page.locator('.lane[data-agent="ann"] .span-task path').first
    lanes = page.locator(".lanes svg")
    return task.evaluate("path => path.getBBox().width"), float(lanes.get_attribute("width"))


def check_zoom_by_keyboard(page: Any) -> None:
    page.get_by_role("group", name="Lanes").focus()
    page.keyboard.press("0")
    until(lambda: shown_window(page)[1] > 0)  # it is drawn as wide as its room, once that is measured
    before, _ = shown_window(page)
    # The beginning of all is the beginning of the task: go there, so that it stays in view.
    for _ in range(40):
        page.keyboard.press("[")
    for _ in range(3):
        page.keyboard.press("+")
    until(lambda: shown_window(page)[0] > 1.5 * before)
    for _ in range(3):
        page.keyboard.press("-")
    until(lambda: abs(shown_window(page)[0] - before) < 0.2 * before)
    page.get_by_role("button", name="Back to the end").click()


def leases_shown(page: Any) -> list[str]:
    return [text.split(":")[0] for text in page.get_by_role("list", name="Leases at that moment").get_by_role("listitem").all_inner_texts()]


def check_past_moment(page: Any) -> None:
    """By the keyboard alone: at the refusal ann held what bob has now, and bob waited for it."""
    until(lambda: leases_shown(page) == ["bob held src/pay.py"])
    page.get_by_role("group", name="Lanes").focus()
    for _ in range(40):
        page.keyboard.press("[")
        page.locator('.moment[aria-busy="false"]').wait_for()
        waits = page.get_by_role("list", name="Waits at that moment").get_by_role("listitem").all_inner_texts()
        if waits and leases_shown(page):  # between a release and the next grant nobody has it
            break
    assert [wait.split(":")[0] for wait in waits] == ["bob waited for src/pay.py"]
    assert leases_shown(page) == ["ann held src/pay.py"]
    assert page.get_by_role("list", name="Tasks at that moment").inner_text().startswith("ann worked on T-1")
    slider = page.get_by_role("slider", name="Moment")
    assert slider.get_attribute("aria-valuetext") != "the end"
    page.get_by_role("button", name="Back to the end").click()
    until(lambda: leases_shown(page) == ["bob held src/pay.py"])


def check_text(page: Any) -> None:
    page.get_by_text("The lanes in sentences").click()
    page.locator(".span-table li").first.wait_for()
    text = page.locator("main").inner_text()
    assert HOSTILE_SHOWN in text and "\u202e" not in text and "src/<b>tax.py" in text
    assert page.evaluate("document.querySelectorAll('img, main b, main script, main i').length") == 0


def test_a_run_is_seen_in_lanes_and_any_moment_of_it_can_be_gone_to(person: Person, worked: Repo) -> None:
    dialogs: list[str] = []
    person.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page = person.open()
    person.go("Time")
    check_lanes(page)
    check_zoom_by_keyboard(page)
    check_past_moment(page)
    check_text(page)
    assert person.errors == [] and dialogs == []


def test_the_lanes_go_on_with_the_work_and_the_moment_stays(person: Person, worked: Repo) -> None:
    page = person.open()
    person.go("Time")
    check_lanes(page)
    page.get_by_role("button", name="Previous change").click()
    page.get_by_role("heading", name=re.compile("State at .*[0-9]")).wait_for()
    page.get_by_text(re.compile("After event [0-9]+")).wait_for()
    event = page.get_by_text(re.compile("After event [0-9]+")).inner_text()
    worked.coord("lock", "docs/", "--agent", "cyd")
    page.locator('.lane[data-agent="cyd"] .span-lease [data-subject="docs/"]').wait_for(state="attached")
    assert page.get_by_text(re.compile("After event [0-9]+")).inner_text() == event
    page.get_by_role("button", name="Back to the end").click()
    page.get_by_role("list", name="Leases at that moment").get_by_text("cyd held docs/").wait_for()


def test_the_wheel_and_the_pointer_zoom_and_choose_a_moment(person: Person, worked: Repo) -> None:
    page = person.open()
    person.go("Time")
    check_lanes(page)
    page.get_by_role("button", name="Show all").click()
    lanes = page.get_by_role("group", name="Lanes")
    box = lanes.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 40)
    before, _ = shown_window(page)
    page.mouse.wheel(0, -200)
    assert abs(shown_window(page)[0] - before) < 0.01, "a wheel that scrolls the page does not zoom"
    page.mouse.click(box["x"] + 3, box["y"] + 40)
    page.get_by_role("heading", name=re.compile("State at .*[0-9]")).wait_for()
    page.mouse.wheel(0, -200)
    until(lambda: shown_window(page)[0] > 1.2 * before)


def test_what_is_drawn_as_one_is_shown_one_by_one_where_it_is_zoomed(person: Person, repo: Repo) -> None:
    with repo.client("ann") as ann:
        for begin in range(0, 2200, 50):
            names = [f"src/f{number}.py" for number in range(begin, begin + 50)]
            ann.acquire(*names)
            ann.release(*names)
    page = person.open()
    person.go("Time")
    page.get_by_text("what is near each other is drawn as one").wait_for()
    assert page.locator(".lanes svg path").count() < 100
    page.get_by_role("group", name="Lanes").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.get_by_text("what is near each other is drawn as one").wait_for(state="detached")
    page.get_by_text("The lanes in sentences").click()
    page.get_by_role("group", name="Lanes").focus()
    for _ in range(16):  # how much of the window is work, and how much came after it, depends on the machine
        if page.locator(".span-table li").count() > 0:
            break
        with page.expect_response(lambda answer: "/v1/timeline" in answer.url):
            page.keyboard.press("ArrowLeft")
    page.locator(".span-table li").first.wait_for()
    assert " near each other" not in page.locator(".span-table").inner_text()
    asked = [url for url in person.asked if "/v1/timeline" in url]
    assert "since=" not in asked[0] and "since=" in asked[-1]
    assert person.errors == []


def test_a_moment_that_was_chosen_while_the_coordinator_was_down_is_told_when_it_is_back(person: Person, worked: Repo) -> None:
    page = person.open()
    person.go("Time")
    check_lanes(page)
    os.kill(worked.pid(), signal.SIGKILL)
    page.get_by_text("The coordinator does not answer.").wait_for()
    page.get_by_role("button", name="Previous change").click()
    page.get_by_role("heading", name=re.compile("State at .*[0-9]")).wait_for()
    assert page.get_by_text(re.compile("After event [0-9]+")).count() == 0
    worked.coord("up")
    page.get_by_text(re.compile("After event [0-9]+")).wait_for()
    assert all("Failed to load resource" in error for error in person.errors)


def test_a_saved_report_shows_the_same_without_a_network(browser: Any, worked: Repo, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert worked.coord("report", "--all", "--html", str(file)).returncode == 0
    worked.coord("down")
    person = Person(browser, worked)
    dialogs: list[str] = []
    person.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    person.context.set_offline(True)
    page = person.page
    page.goto(file.as_uri())
    page.get_by_role("heading", name="All of the log").wait_for()
    check_lanes(page)
    check_zoom_by_keyboard(page)
    check_past_moment(page)
    check_text(page)
    person.check_accessible()
    assert person.asked == [file.as_uri()], "it asks for nothing but itself"
    assert person.errors == [] and dialogs == []
    assert file.stat().st_size < 200_000
    person.context.close()


def test_a_saved_report_runs_no_script_but_its_own(browser: Any, worked: Repo, tmp_path: Path) -> None:
    """Whatever found a way into the file: its policy names one script by its hash."""
    file = tmp_path / "report.html"
    worked.coord("report", "--all", "--html", str(file))
    text = file.read_text("utf-8")
    file.write_text(text.replace("</body>", "<script>document.title = 'ran'</script><img src='http://127.0.0.1:9/x'><p style='color: red'>well</p></body>"), "utf-8")
    person = Person(browser, worked)
    person.page.goto(file.as_uri())
    person.page.get_by_role("heading", name="All of the log").wait_for()
    assert person.page.title() == "All of the log"
    assert len([error for error in person.errors if "Content Security Policy" in error]) >= 3
    person.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1000, 1900])
def test_the_time_line_is_accessible_at_each_width(person: Person, worked: Repo, width: int, scheme: str) -> None:
    page = person.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    person.open()
    person.go("Time")
    check_lanes(page)
    person.check_accessible()
    page.get_by_role("button", name="Previous change").click()
    page.get_by_text("After event").wait_for()
    page.get_by_text("The lanes in sentences").click()
    page.locator(".span-table li").first.wait_for()
    person.check_accessible()
