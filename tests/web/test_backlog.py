"""The backlog in the page: what is done there is in the coordinator, and the other way round."""

from __future__ import annotations

import re
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until
from tests.web.conftest import Person

pytestmark = pytest.mark.web
HOSTILE = "<img src=x onerror=alert(1)>\u202egpj.exe"


def show(repo: Repo, task: str) -> rq.TaskShown:
    with repo.client() as client:
        return client.call(rq.TaskShow(task=task))


def add(repo: Repo, title: str, **more: Any) -> str:
    with repo.client() as client:
        return client.call(rq.TaskAdd(title=title, **more)).task


def open_backlog(person: Person) -> Any:
    page = person.open()
    person.go("Backlog")
    page.get_by_role("heading", name="Backlog").wait_for()
    return page


def column(page: Any, state: str) -> Any:
    return page.get_by_role("region", name=re.compile(f"^{state}"))


def titles(within: Any) -> list[str]:
    return [" ".join(text.split()) for text in within.locator(".title").all_inner_texts()]


def test_a_task_is_added_changed_cancelled_and_put_back_in_the_page(person: Person, repo: Repo) -> None:
    page = open_backlog(person)
    page.get_by_text("The backlog is empty.").wait_for()
    page.get_by_text("Add a task", exact=True).click()
    page.get_by_label("Title").fill("Round the totals")
    page.get_by_label("Prompt").fill("All of them.")
    page.get_by_label("Resources, one a line").fill("src/pay.py\nshared:docs/a,b.md\n")
    page.get_by_label("Priority").fill("4")
    page.get_by_role("button", name="Add it").click()
    page.get_by_text("T-1 is added, and ready.").wait_for()
    added = show(repo, "T-1")
    assert (added.title, added.prompt, added.resources, added.priority) == (
        "Round the totals", "All of them.", ["shared:docs/a,b.md", "src/pay.py"], 4)
    until(lambda: page.get_by_label("Title").input_value() == "")  # ready for another one
    column(page, "ready").get_by_role("button", name="T-1 Round the totals").click()
    panel = page.get_by_role("complementary", name="About T-1")
    panel.get_by_role("button", name="Edit", exact=True).click()
    panel.get_by_label("Title").fill("Round all totals")
    panel.get_by_role("button", name="Save").click()
    page.get_by_text("T-1 is changed.").wait_for()
    changed = show(repo, "T-1")
    assert (changed.title, changed.prompt) == ("Round all totals", "All of them.")
    page.get_by_role("button", name="Undo").click()
    until(lambda: show(repo, "T-1").title == "Round the totals")
    column(page, "ready").get_by_role("button", name="T-1 Round the totals").wait_for()
    column(page, "ready").get_by_role("button", name="Cancel T-1").click()
    page.get_by_text("T-1 is cancelled.").wait_for()
    assert show(repo, "T-1").state == "cancelled"
    page.get_by_role("button", name="Undo").click()
    until(lambda: show(repo, "T-1").state == "ready")
    column(page, "ready").get_by_role("button", name="T-1 Round the totals").wait_for()
    assert person.errors == []


def test_what_the_terminal_does_to_tasks_is_there_in_the_page(person: Person, repo: Repo) -> None:
    page = open_backlog(person)
    repo.there("ann")
    repo.coord("task", "add", "Add the parser")
    column(page, "ready").get_by_role("button", name="T-1 Add the parser").click()
    panel = page.get_by_role("complementary", name="About T-1")
    repo.coord("task", "claim", "T-1", "--agent", "ann")
    column(page, "claimed").get_by_text("ann").wait_for()
    panel.get_by_text("Claimed by").wait_for()
    column(page, "ready").wait_for(state="detached")
    repo.coord("task", "done", "T-1", "--agent", "ann", "--result", "it parses")
    column(page, "done").get_by_role("button", name="T-1 Add the parser").wait_for()
    panel.get_by_text("it parses").first.wait_for()
    assert panel.get_by_role("button", name=re.compile("Cancel|Retry|Edit")).count() == 0, "nothing is offered that would be refused"


def test_a_task_that_was_given_up_is_retried(person: Person, repo: Repo) -> None:
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
        client.call(rq.TaskAdd(title="Never works", attempts_max=1))
    with repo.client("ann", token=token) as client:
        client.call(rq.TaskClaim(agent="ann", task="T-1"))
        client.call(rq.TaskFail(agent="ann", task="T-1", reason="no luck"))
    page = open_backlog(person)
    column(page, "dead").get_by_role("button", name="Retry T-1").click()
    column(page, "ready").get_by_role("button", name="T-1 Never works").wait_for()
    assert show(repo, "T-1").state == "ready"


def test_a_claimed_task_is_cancelled_and_its_agents_work_is_kept(person: Person, repo: Repo) -> None:
    repo.write("src/pay.py", "a = 1\n")
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
        client.call(rq.TaskAdd(title="Round", resources=["src/pay.py"]))
    with repo.client("ann", token=token) as client:
        client.call(rq.TaskClaim(agent="ann", task="T-1"))
    repo.write("src/pay.py", "a = 2\n")
    page = open_backlog(person)
    column(page, "claimed").get_by_role("button", name="Cancel T-1").click()
    page.get_by_text("T-1 is cancelled.").wait_for()
    column(page, "cancelled").get_by_role("button", name="T-1 Round").click()
    panel = page.get_by_role("complementary", name="About T-1")
    panel.get_by_text("Wrote").wait_for()
    with repo.client() as client:
        (review,) = client.call(rq.Reviews()).items
    assert [file.path for file in review.files] == ["src/pay.py"] and repo.read("src/pay.py") == "a = 2\n"


def order(repo: Repo) -> list[str]:
    with repo.client() as client:
        return [task.task for task in client.call(rq.Tasks(order="priority")).items]


@pytest.mark.parametrize("view", ["Board", "Table"])
def test_tasks_are_ordered_by_dragging_and_put_back(person: Person, repo: Repo, view: str) -> None:
    for n in range(1, 5):
        add(repo, f"task {n}")
    page = open_backlog(person)
    page.get_by_role("button", name=view).click()
    if view == "Table":
        page.get_by_role("button", name="Priority", exact=True).click()
    cards = page.locator(".task-card" if view == "Board" else "tbody tr:not(.gap)")

    def drag(task: str, onto: str, part: float) -> None:
        """Drop a task on a part of another's height."""
        card, other = (cards.filter(has_text=re.compile(rf"{name}(?!\d)")) for name in (task, onto))
        box = other.bounding_box()
        card.drag_to(other, target_position={"x": 60, "y": box["height"] * part})

    drag("T-4", "T-2", 0.2)
    page.get_by_text("T-4 is given out before T-2 now.").wait_for()
    assert order(repo) == ["T-1", "T-4", "T-2", "T-3"]
    until(lambda: [text[:3] for text in cards.all_inner_texts()] == ["T-1", "T-4", "T-2", "T-3"])
    drag("T-1", "T-3", 0.8)
    page.get_by_text("T-1 is given out after T-3 now.").wait_for()
    assert order(repo) == ["T-4", "T-2", "T-3", "T-1"]
    page.get_by_role("button", name="Undo").click()
    until(lambda: order(repo) == ["T-1", "T-4", "T-2", "T-3"])
    assert person.errors == []


def test_a_place_is_changed_step_by_step_and_taken_back(person: Person, repo: Repo) -> None:
    for title in ("one", "two", "three"):
        add(repo, title)
    page = open_backlog(person)
    ready = column(page, "ready")
    until(lambda: titles(ready) == ["T-1 one", "T-2 two", "T-3 three"])
    ready.get_by_role("button", name="Move T-3 up").click()
    until(lambda: titles(ready) == ["T-1 one", "T-3 three", "T-2 two"])
    ready.get_by_role("button", name="Move T-1 down").click()
    until(lambda: titles(ready) == ["T-3 three", "T-1 one", "T-2 two"])
    assert ready.get_by_role("button", name="Move T-3 up").get_attribute("aria-disabled") == "true"
    page.get_by_role("button", name="Undo").click()
    until(lambda: titles(ready) == ["T-1 one", "T-3 three", "T-2 two"])
    assert order(repo) == ["T-1", "T-3", "T-2"]


def test_the_priority_itself_is_raised_in_the_panel(person: Person, repo: Repo) -> None:
    add(repo, "one"), add(repo, "two")
    page = open_backlog(person)
    column(page, "ready").get_by_role("button", name="T-2 two").click()
    page.get_by_role("complementary").get_by_role("button", name="Raise the priority of T-2").click()
    until(lambda: show(repo, "T-2").priority == 1)
    page.get_by_role("button", name="Undo").click()
    until(lambda: show(repo, "T-2").priority == 0)


def test_a_change_on_what_is_not_so_any_more_is_refused_and_said(person: Person, repo: Repo) -> None:
    add(repo, "one")
    page = open_backlog(person)
    column(page, "ready").get_by_role("button", name="T-1 one").click()
    panel = page.get_by_role("complementary", name="About T-1")
    panel.get_by_role("button", name="Edit", exact=True).click()
    with repo.client() as client:
        client.call(rq.TaskEdit(task="T-1", prompt="by somebody else"))
    panel.locator("pre").get_by_text("by somebody else").wait_for()
    panel.get_by_label("Title").fill("mine")
    panel.get_by_role("button", name="Save").click()
    page.get_by_role("alert").get_by_text("T-1 was changed").wait_for()
    assert (show(repo, "T-1").title, show(repo, "T-1").prompt) == ("one", "by somebody else")


def test_files_of_tasks_are_dropped_and_chosen_and_taken_back(person: Person, repo: Repo) -> None:
    page = open_backlog(person)
    page.get_by_text("The backlog is empty.").wait_for()
    page.evaluate("""() => {
        const files = new DataTransfer();
        files.items.add(new File(['- [ ] one (id: a)\\n- [ ] two (after: a)\\n'], 'plan.md'));
        const zone = document.querySelector('.drop');
        zone.dispatchEvent(new DragEvent('dragover', {dataTransfer: files, bubbles: true, cancelable: true}));
        zone.dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true, cancelable: true}));
    }""")
    page.get_by_text("2 tasks are added from plan.md.").wait_for()
    assert show(repo, "T-2").after == ["T-1"]
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("2 tasks are cancelled.").wait_for()
    assert [show(repo, task).state for task in ("T-1", "T-2")] == ["cancelled", "cancelled"]
    page.get_by_label("Import a file").set_input_files({"name": "plan.jsonl", "mimeType": "text/plain", "buffer": b'{"title": "three"}\n'})
    page.get_by_text("1 task is added from plan.jsonl.").wait_for()
    page.get_by_label("Import a file").set_input_files({"name": "odd.yaml", "mimeType": "text/plain", "buffer": b"- titel: four\n"})
    page.get_by_role("alert").get_by_text("titel").first.wait_for()
    page.get_by_label("Import a file").set_input_files({"name": "plan.md", "mimeType": "text/plain", "buffer": b"- [ ] caf\xe9\n"})
    page.get_by_role("alert").get_by_text("plan.md cannot be read as text.").wait_for()
    with repo.client() as client:
        assert sum(client.call(rq.Tasks()).counts.values()) == 3, "of a file with a mistake nothing is added"


def test_dependencies_are_drawn_and_lead_on(person: Person, repo: Repo) -> None:
    first = add(repo, "parser")
    second = add(repo, "use it", after=[first])
    add(repo, "document it", after=[second])
    page = open_backlog(person)
    column(page, "pending").get_by_role("button", name=f"{second} use it").click()
    graph = page.get_by_role("group", name="What comes before and after it")
    graph.get_by_role("button").first.wait_for()
    assert graph.locator("path").count() == 2
    boxes = [graph.get_by_role("button", name=re.compile(f"^T-{n} ")).bounding_box()["x"] for n in (1, 2, 3)]
    assert boxes == sorted(boxes) and len(set(boxes)) == 3, "what comes after stands to the right"
    graph.get_by_role("button", name=re.compile("^T-1 ")).click()
    page.get_by_role("complementary", name="About T-1").wait_for()
    page.get_by_text("waits for", exact=False).first.wait_for(state="detached")


def test_the_panel_tells_what_was_tried_and_what_it_waits_for(person: Person, repo: Repo) -> None:
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
        client.call(rq.Register(agent="bob"))
        client.call(rq.TaskAdd(title="Round", resources=["src/pay.py"], prompt="Mind the cents."))
    with repo.client("ann", token=token) as client:
        client.call(rq.TaskClaim(agent="ann", task="T-1"))
        client.call(rq.TaskOutcome(agent="ann", task="T-1", outcome="VERIFY_FAILED", note="two tests fail"))
        client.call(rq.TaskFail(agent="ann", task="T-1", reason="it was late"))
        client.call(rq.Acquire(agent="ann", resources=["src/pay.py"]))
    page = open_backlog(person)
    page.get_by_role("button", name="T-1 Round").click()
    panel = page.get_by_role("complementary", name="About T-1")
    for words in ("VERIFY_FAILED", "two tests fail", "rests until", "ann holds src/pay.py", "Mind the cents.", "Leased for it"):
        panel.get_by_text(words).first.wait_for()
    panel.get_by_text("Its story").click()
    panel.get_by_text("Round").first.wait_for()
    panel.locator(".story li").first.wait_for()


def test_the_table_is_filtered_and_sorted_by_the_coordinator(person: Person, repo: Repo) -> None:
    for n in range(1, 4):
        add(repo, f"task {n}", priority=n, resources=[f"src/{'abc'[n - 1]}.py"])
    page = open_backlog(person)
    page.get_by_role("button", name="Table").click()
    rows = page.locator("tbody tr:not(.gap) th")
    until(lambda: rows.all_inner_texts() == ["T-1", "T-2", "T-3"])
    page.get_by_role("button", name="Priority", exact=True).click()
    until(lambda: rows.all_inner_texts() == ["T-3", "T-2", "T-1"])
    page.get_by_label("Filter").fill("SRC/B")
    until(lambda: rows.all_inner_texts() == ["T-2"])
    page.get_by_role("status").get_by_text("1 task", exact=True).wait_for()
    page.get_by_role("button", name="Board").click()
    until(lambda: titles(column(page, "ready")) == ["T-2 task 2"])
    page.get_by_label("Filter").fill("nothing says this")
    page.get_by_text("No task says this").wait_for()


def test_titles_that_others_chose_are_text(person: Person, repo: Repo) -> None:
    dialogs: list[str] = []
    person.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    first = add(repo, HOSTILE, prompt=f"{HOSTILE}\n<script>alert(1)</script>", resources=["x/<b onclick=x>.py"])
    add(repo, f"<i>{HOSTILE}", after=[first])
    page = open_backlog(person)
    page.get_by_text("<img src=x onerror=alert(1)>\\u202egpj.exe").first.wait_for()
    page.get_by_role("button", name="Table").click()
    page.get_by_role("row", name=re.compile("T-2")).get_by_role("button", name="T-2", exact=True).click()
    graph = page.get_by_role("group", name="What comes before and after it")
    graph.get_by_role("button", name=re.compile("^T-1 ")).click()
    page.get_by_role("complementary", name="About T-1").locator("pre").get_by_text("<script>").wait_for()
    assert "\u202e" not in page.locator("main").inner_text()
    assert page.evaluate("document.querySelectorAll('main img, main i, main b, main script').length") == 0
    assert dialogs == [] and not [url for url in person.asked if url.endswith("/x")] and person.errors == []


def test_the_backlog_by_the_keyboard_alone(person: Person, repo: Repo) -> None:
    """Each key goes where the focus is: to the screen, a task, its panel, and back."""
    add(repo, "one")
    add(repo, "two")
    page = person.open()

    def go_to(name: str) -> None:
        """Tab until this has the focus."""
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("""() => { const it = document.activeElement;
                    return it.getAttribute('aria-label') ?? it.innerText.replaceAll('\\n', ' ').trim() }""").startswith(name):
                return
        raise AssertionError(name)

    go_to("Backlog")
    page.keyboard.press("Enter")
    column(page, "ready").get_by_role("button", name="T-2 two").wait_for()
    go_to("Move T-2 up")
    page.keyboard.press("Enter")
    until(lambda: show(repo, "T-2").priority == 1)
    until(lambda: titles(column(page, "ready")) == ["T-2 two", "T-1 one"])
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Move T-2 up", "the focus goes with the task"
    go_to("T-1 one")
    page.keyboard.press("Enter")
    page.get_by_role("complementary", name="About T-1").get_by_role("button", name="Cancel T-1").wait_for()
    assert page.evaluate("document.activeElement.id") == "task"
    go_to("Cancel T-1")
    page.keyboard.press("Enter")
    column(page, "cancelled").get_by_role("button", name="T-1 one").wait_for()
    page.get_by_role("complementary").get_by_role("button", name="Retry T-1").wait_for()
    assert page.evaluate("document.activeElement.id") == "task", "the button is gone, and the focus is still in the panel"
    page.keyboard.press("Escape")
    page.get_by_role("complementary", name="About T-1").wait_for(state="detached")
    go_to("Cancel T-2")
    page.keyboard.press("Enter")
    column(page, "ready").wait_for(state="detached")
    until(lambda: page.evaluate("document.activeElement.id") == "main")
