"""What a person sees and does in the page, and what nobody can do by it."""

from __future__ import annotations

import http.server
import json
import os
import re
import signal
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until
from tests.web.conftest import Person

pytestmark = pytest.mark.web
HOSTILE = "<img src=x onerror=alert(1)>\u202egpj.exe"
Leave = Callable[..., str]


def review_state(repo: Repo, review: str) -> str:
    with repo.client() as client:
        return client.call(rq.ReviewShow(review=review)).state


def test_a_page_opens_once_by_its_code_and_keeps_nothing_that_lasts(person: Person) -> None:
    url = person.url()
    page = person.page
    page.goto(url)
    page.get_by_text("Nothing waits for you.").wait_for()
    assert "#" not in page.url, "the code has left the address"
    assert page.evaluate("document.cookie + JSON.stringify(localStorage)") == "{}"
    page.reload()
    page.get_by_text("Nothing waits for you.").wait_for()
    second = person.context.new_page()
    second.goto(url)
    second.get_by_text("code was used before").wait_for()
    second.get_by_text("This page is not open").wait_for()
    assert all(url.startswith(("http://127.0.0.1:", "data:,")) for url in person.asked), "nothing is fetched from elsewhere"


def test_a_verdict_in_the_page_is_there_for_the_terminal_and_can_be_undone(person: Person, repo: Repo, leave_review: Leave) -> None:
    review = leave_review({"src/pay.py": ("a = 1\n", "a = 2\n"), "src/tax.py": ("b = 1\n", "b = 2\n")})
    page = person.open()
    assert page.title() == "(1) coord repo"
    page.get_by_role("button", name="Look at it").click()
    page.get_by_role("group", name="Difference of src/pay.py").locator(".cm-mergeView").wait_for()
    page.get_by_role("button", name="Revert", exact=False).first.click()
    page.get_by_text(f"{review} is reverted").wait_for()
    assert repo.read("src/pay.py") == "a = 1\n" and review_state(repo, review) == "reverted"
    assert f"{review}" in repo.coord("review", "list", "--state", "reverted").stdout
    page.keyboard.press("u")
    page.get_by_text(f"{review} is open again").wait_for()
    assert repo.read("src/pay.py") == "a = 2\n" and review_state(repo, review) == "open"
    assert person.errors == []


def test_a_verdict_of_the_terminal_is_there_in_the_page(person: Person, repo: Repo, leave_review: Leave) -> None:
    page = person.open()
    review = leave_review({"src/pay.py": ("a = 1\n", "a = 2\n")})
    page.get_by_text(f"{review}:").wait_for()
    repo.coord("review", "keep", review)
    page.get_by_text("Nothing waits for you.").wait_for()
    assert page.title() == "coord repo"


def test_a_killed_coordinator_is_said_and_the_page_goes_on_when_it_is_back(person: Person, repo: Repo) -> None:
    page = person.open()
    os.kill(repo.pid(), signal.SIGKILL)
    page.get_by_text("The coordinator does not answer.").wait_for()
    repo.coord("lock", "src/pay.py", "--agent", "ann")
    page.get_by_text("The coordinator does not answer.").wait_for(state="detached")
    person.go("Agents and leases")
    page.get_by_role("button", name="src/pay.py", exact=True).wait_for()
    repo.coord("lock", "src/tax.py", "--agent", "ann")
    page.get_by_role("button", name="src/tax.py", exact=True).wait_for()
    repo.coord("down")
    page.get_by_text("The coordinator does not answer.").wait_for()


def test_whoever_listens_at_the_port_of_a_killed_coordinator_is_sent_no_token(person: Person, repo: Repo) -> None:
    page = person.open()
    port = int(page.url.rstrip("/").rpartition(":")[2])
    asked: list[tuple[str, str | None]] = []

    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"proof": "0" * 64}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815

    os.kill(repo.pid(), signal.SIGKILL)
    page.get_by_text("The coordinator does not answer.").wait_for()
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Stranger) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        page.get_by_text("This page is not open, or has ended").wait_for()
        stranger.shutdown()
    assert asked == [("/v1/page/prove", None)]


def test_two_browsers_show_the_same(person: Person, browser: Any, repo: Repo, leave_review: Leave) -> None:
    review = leave_review({"src/pay.py": ("a = 1\n", "a = 2\n")})
    page = person.open()
    other = Person(browser, repo)
    other.open().get_by_text(f"{review}:").wait_for()
    page.get_by_role("button", name="Look at it").click()
    page.get_by_role("button", name="Keep").first.click()
    other.page.get_by_text("Nothing waits for you.").wait_for()
    other.context.close()


def test_a_page_ends_with_a_coordinator_that_ends(person: Person, repo: Repo) -> None:
    page = person.open()
    port = page.url.rstrip("/").rpartition(":")[2]
    repo.coord("down")
    repo.coord("up", "--http", port)
    page.get_by_text("This page is not open, or has ended").wait_for()


def test_what_others_chose_is_text(person: Person, repo: Repo, leave_review: Leave) -> None:
    dialogs: list[str] = []
    person.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    name = "<b onclick=x>\u202e.py"
    review = leave_review({name: ("a = 1\n", f"{HOSTILE}\n</pre><script>alert(1)</script>\n")})
    with repo.client() as client:
        client.call(rq.Register(agent="<i>eve", description=HOSTILE))
        client.call(rq.MessageSend(agent="<i>eve", to="human", text=HOSTILE))
        client.call(rq.Acquire(agent="<i>eve", resources=["x/<img src=x onerror=alert(1)>.py"], description=HOSTILE))
    page = person.open()
    page.get_by_text("<img src=x onerror=alert(1)>\\u202egpj.exe").first.wait_for()
    person.go("Agents and leases")
    page.get_by_role("button", name="<i>eve", exact=True).wait_for()
    page.get_by_role("button", name="x/<img src=x onerror=alert(1)>.py", exact=True).click()
    page.get_by_role("tab", name="Story").click()
    page.get_by_role("tabpanel").get_by_text("got x/<img").first.wait_for()
    person.go("Reviews")
    page.get_by_text(review).first.wait_for()
    shown = page.locator(".diff .cm-mergeView")
    shown.wait_for()
    text = page.locator("main").inner_text()
    assert "\u202e" not in text and "\\u202e.py" in text
    assert page.evaluate("document.querySelectorAll('main img, main i, main b, main script').length") == 0
    assert page.evaluate("document.querySelector('.diff').shadowRoot.querySelectorAll('img[src], script').length") == 0
    assert page.locator(".diff .cm-specialChar").first.get_attribute("title") is not None, "the turn of direction is shown in the difference, too"
    assert dialogs == [] and not [url for url in person.asked if url.endswith("/x")]
    assert person.errors == []


def test_a_review_of_five_files_by_the_keyboard_alone(person: Person, repo: Repo, leave_review: Leave) -> None:
    first = leave_review({f"src/f{n}.py": (f"v = {n}\n", f"v = {n}0\n") for n in range(5)})
    second = leave_review({"src/other.py": ("a\n", "b\n")}, agent="bob")
    page = person.open()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the third screen: reviews
    page.get_by_role("article").wait_for()
    shown = [first, second] if first in page.get_by_role("article").inner_text() else [second, first]
    if shown[0] == second:
        page.keyboard.press("n")
        page.get_by_role("article", name=f"Review {first}").wait_for()
    for n in range(5):
        page.get_by_role("group", name=f"Difference of src/f{n}.py").wait_for()
        if n < 4:
            page.keyboard.press("j")
    page.keyboard.press("k")
    page.get_by_role("group", name="Difference of src/f3.py").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    page.keyboard.press("a")
    page.get_by_text(f"{first} is kept").wait_for()
    page.get_by_role("article", name=f"Review {second}").wait_for()
    page.keyboard.press("r")
    page.get_by_text("No review waits.").wait_for()
    assert (review_state(repo, first), review_state(repo, second)) == ("kept", "reverted")
    assert repo.read("src/f0.py") == "v = 00\n" and repo.read("src/other.py") == "a\n"
    page.keyboard.press("u")
    page.get_by_text(f"{second} is open again").wait_for()


def test_what_was_saved_meanwhile_is_said_and_not_overwritten(person: Person, repo: Repo, leave_review: Leave) -> None:
    review = leave_review({"src/pay.py": ("a = 1\n", "a = 2\n")})
    page = person.open()
    page.get_by_role("button", name="Look at it").click()
    page.get_by_role("article").wait_for()
    repo.write("src/pay.py", "a = 3  # mine\n")
    page.get_by_role("button", name="Revert").first.click()
    page.get_by_role("alert").get_by_text("src/pay.py was changed after it was flagged").wait_for()
    page.get_by_role("alert").get_by_text(f"coord review show {review}").wait_for()
    assert repo.read("src/pay.py") == "a = 3  # mine\n" and review_state(repo, review) == "open"


def test_files_that_are_new_gone_or_no_text_are_shown(person: Person, repo: Repo) -> None:
    repo.write("gone.py", "a = 1\n")
    repo.write("picture.png", "before")
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
    with repo.client("ann", token=token) as client:
        client.call(rq.Acquire(agent="ann", resources=["gone.py", "new.py", "picture.png"]))
        (repo.root / "gone.py").unlink()
        repo.write("new.py", "b = 1\n")
        (repo.root / "picture.png").write_bytes(b"\x89PNG\0\xff")
        client.call(rq.Leave(agent="ann", clean=False))
    page = person.open()
    person.go("Reviews")
    page.get_by_role("group", name="Difference of gone.py").locator(".cm-editor").first.wait_for()
    page.get_by_role("button", name=re.compile("new.py")).last.click()
    page.get_by_role("group", name="Difference of new.py").get_by_text("b = 1").wait_for()
    page.get_by_role("button", name=re.compile("picture.png")).last.click()
    page.locator("pre.diff").wait_for()
    assert person.errors == []


def test_a_key_means_the_review_that_is_seen(person: Person, repo: Repo, leave_review: Leave) -> None:
    """Also at the moment when another one has just come into view."""
    for n in range(6):
        leave_review({f"src/f{n}.py": ("a\n", "b\n")}, agent=f"ann{n}")
    page = person.open()
    person.go("Reviews")
    page.get_by_role("article").wait_for()
    seen = page.evaluate("""async () => {
        const shown = () => document.querySelector('article').getAttribute('aria-label').slice('Review '.length);
        const press = (key) => document.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
        const nextTask = () => new Promise((done) => {
            const channel = new MessageChannel();
            channel.port1.onmessage = done;
            channel.port2.postMessage(0);
        });
        const seen = [];
        for (let n = 0; n < 3; n++) {
            const before = shown();
            press('n');
            while (shown() === before) await nextTask();
            seen.push(shown());
            press('a');
            await new Promise((done) => setTimeout(done, 500));
        }
        return seen;
    }""")
    decided = [found[1] for url in person.asked if (found := re.search(r"reviews/(R-\d+)/decide", url))]
    assert seen == decided and len(seen) == 3


def test_locks_requests_and_messages_are_dealt_with_in_place(person: Person, repo: Repo) -> None:
    repo.there("ann", "bob")
    repo.coord("lock", "src/pay.py", "--agent", "ann", "-m", "rounding")
    repo.coord("request", "file", "src/pay.py", "--agent", "bob", "--reason", "a typo")
    with repo.client() as client:
        client.call(rq.MessageSend(agent="ann", to="human", text="Which currency?"))
    page = person.open()
    until(lambda: page.title() == "(2) coord repo")
    page.get_by_role("button", name="Mark as read").click()
    page.get_by_text("is read.").wait_for()
    person.go("Agents and leases")
    page.get_by_role("heading", name="Who waits for whom").wait_for()
    page.get_by_role("button", name="src/pay.py", exact=True).click()
    page.get_by_role("tab", name=re.compile("Requests")).click()
    page.get_by_role("tabpanel").get_by_role("button", name=re.compile("Approve")).click()
    page.get_by_role("button", name="Unlock src/pay.py, held by bob").wait_for()
    page.get_by_label("Lock", exact=False).first.fill("docs/")
    page.get_by_role("button", name="Lock it").click()
    page.get_by_role("button", name=re.compile("Unlock docs")).wait_for()
    page.get_by_label("Filter").fill("bob")
    page.get_by_role("button", name=re.compile("Unlock docs")).wait_for(state="detached")
    page.get_by_role("button", name="Unlock src/pay.py, held by bob").click()
    page.get_by_text("src/pay.py is free").wait_for()
    with repo.client() as client:
        assert [lease.resource for lease in client.call(rq.Locks()).items] == ["docs/"]
    assert person.errors == []


def test_a_person_answers_messages_and_asks_for_a_file(person: Person, repo: Repo) -> None:
    repo.there("ann")
    repo.coord("lock", "src/pay.py", "--agent", "ann", "-m", "rounding")
    with repo.client() as client:
        client.call(rq.MessageSend(agent="ann", to="human", text="Which currency?"))
    page = person.open()
    page.get_by_role("textbox", name="Reply to ann").fill("Euros, please.")
    page.keyboard.press("Enter")
    page.get_by_text("ann is told with its next tool call.").wait_for()
    page.get_by_text("Nothing waits for you.").wait_for()
    person.go("Agents and leases")
    page.get_by_role("button", name="src/pay.py", exact=True).click()
    page.get_by_role("tab", name="Requests").click()
    page.get_by_role("textbox", name="Why you need it").fill("a typo")
    page.get_by_role("button", name="Ask for it").click()
    page.get_by_text("ann is asked for src/pay.py").wait_for()
    with repo.client() as client:
        (asked,) = client.call(rq.Requests()).items
        (first, answer) = client.call(rq.Messages(reader="ann")).items
    assert (asked.holder, asked.reason) == ("ann", "a typo")
    assert (answer.text, answer.reply_to, first.unread) == ("Euros, please.", first.message, False)


def test_a_page_that_only_reads_shows_all_and_offers_no_action(person: Person, repo: Repo, leave_review: Leave) -> None:
    leave_review({"src/pay.py": ("a = 1\n", "a = 2\n")})
    repo.there("ann", "bob")
    repo.coord("lock", "src/tax.py", "--agent", "ann")
    repo.coord("request", "file", "src/tax.py", "--agent", "bob", "--reason", "a typo")
    page = person.page
    page.goto(str(json.loads(repo.coord("web", "--read-only", "--json").stdout)["url"]))
    page.get_by_text("This page only reads.").wait_for()
    page.get_by_text("bob asks ann for src/tax.py").wait_for()
    acts = re.compile("Approve|Reject|Keep|Revert|Reassign|Edit|Undo|Unlock|Lock it|Send|Ask for it")
    assert page.get_by_role("button", name=acts).count() == 0
    page.get_by_role("button", name="Look at it").click()
    page.get_by_role("group", name="Difference of src/pay.py").wait_for()
    assert page.get_by_role("button", name=acts).count() == 0
    page.keyboard.press("r")
    page.get_by_role("alert").get_by_text("This page only reads.").wait_for()
    page.keyboard.press("e")
    assert page.get_by_role("textbox", name="src/pay.py, your text").count() == 0
    assert repo.read("src/pay.py") == "a = 2\n"
    person.go("Agents and leases")
    page.get_by_role("button", name="src/tax.py", exact=True).wait_for()
    assert page.get_by_role("button", name=acts).count() == 0
    repo.coord("task", "add", "Round the totals")
    person.go("Backlog")
    page.get_by_role("button", name="Round the totals").click()
    assert page.get_by_role("button", name=re.compile("Add|Edit|Cancel T|Raise|Move")).count() == 0
    assert page.locator("[draggable=true]").count() == 0
    person.check_accessible()


def test_the_desktop_tells_what_came_while_the_person_looked_elsewhere(person: Person, repo: Repo, leave_review: Leave) -> None:
    person.page.add_init_script("""
        window.told = [];
        window.Notification = class { constructor(title, more) { window.told.push(more.body) } };
        Notification.permission = 'default';
        Notification.requestPermission = async () => 'granted';
        document.hasFocus = () => false;
    """)
    page = person.open()
    page.get_by_role("button", name="Show a desktop notification").click()
    page.get_by_role("button", name="Show a desktop notification").wait_for(state="detached")
    leave_review({"src/pay.py": ("a = 1\n", "a = 2\n")})
    until(lambda: page.evaluate("window.told.length") > 0)
    assert page.evaluate("window.told") == ["1 thing waits for you."]


def test_leases_are_a_tree_whose_folders_close(person: Person, repo: Repo) -> None:
    repo.write("src/pay.py", "def charge():\n    return 1\n\n\ndef refund():\n    return 2\n")
    repo.there("ann", "bob")
    for agent, resource in (("ann", "src/pay.py::charge"), ("bob", "src/pay.py::refund"), ("ann", "src/sql/**/*.sql"), ("ann", "docs/"), ("bob", "key:account:1")):
        repo.coord("lock", resource, "--agent", agent)
    page = person.open()
    person.go("Agents and leases")
    rows = page.locator(".lease")
    page.get_by_text("5 of 5").wait_for()
    assert [" ".join(text.split()) for text in rows.locator(".link").all_inner_texts()] == [
        "▾ ./", "docs/", "▾ src/", "pay.py::charge", "pay.py::refund", "▾ src/sql/", "**/*.sql", "▾ keys and git", "key:account:1"]
    page.get_by_role("button", name="src/", exact=True).click()
    page.get_by_role("button", name="src/pay.py::charge", exact=True).wait_for(state="detached")
    assert page.get_by_role("button", name="src/", exact=True).get_attribute("aria-expanded") == "false"
    page.get_by_label("Filter").fill("key")
    until(lambda: rows.count() == 2)


def test_times_are_those_of_the_browser(person: Person, browser: Any, repo: Repo) -> None:
    repo.coord("lock", "src/pay.py", "--agent", "ann", "--ttl", "30m")
    with repo.client() as client:
        (lease,) = client.call(rq.Locks()).items
    until_utc = datetime.fromisoformat(lease.expires_at)
    there = until_utc.astimezone(timezone(timedelta(hours=5, minutes=30))).strftime("%H:%M")
    person.context.close()
    person.context = browser.new_context(locale="en-GB", timezone_id="Asia/Kolkata")
    person.page = person.context.new_page()
    page = person.open()
    person.go("Agents and leases")
    page.get_by_role("button", name="src/pay.py", exact=True).click()
    page.get_by_role("tabpanel").get_by_text(f"until {there}").wait_for()
    page.get_by_role("tab", name="Story").click()
    page.get_by_role("tabpanel").get_by_text(f"until {there}").wait_for()
    assert "Z" not in page.get_by_role("tabpanel").inner_text()


def test_back_forward_and_reload_lead_where_the_person_was(person: Person, repo: Repo, leave_review: Leave) -> None:
    leave_review({"src/pay.py": ("a = 1\n", "a = 2\n")})
    page = person.open()
    person.go("Backlog")
    page.get_by_role("heading", name="Backlog").wait_for()
    person.go("Reviews")
    page.get_by_role("article", name="Review R-1").wait_for()
    page.go_back()
    page.get_by_role("heading", name="Backlog").wait_for()
    page.go_forward()
    page.get_by_role("article", name="Review R-1").wait_for()
    page.reload()
    page.get_by_role("article", name="Review R-1").wait_for()
    assert page.url.endswith("/"), "no name of a file is in the address"
    page.keyboard.press("u")
    page.get_by_role("alert").get_by_text("No verdict was given in this page").wait_for()


def test_an_address_with_a_code_that_is_opened_in_the_same_tab_is_another_page(person: Person, repo: Repo) -> None:
    page = person.open()
    page.goto(str(json.loads(repo.coord("web", "--read-only", "--json").stdout)["url"]))
    page.get_by_text("This page only reads.").wait_for()


def test_the_last_verdict_is_taken_back_where_no_review_is_left(person: Person, repo: Repo, leave_review: Leave) -> None:
    leave_review({"src/pay.py": ("a = 1\n", "a = 2\n")})
    page = person.open()
    person.go("Reviews")
    page.get_by_role("article").get_by_role("button", name="Revert").first.click()
    page.get_by_text("No review waits.").wait_for()
    assert repo.read("src/pay.py") == "a = 1\n"
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    page.get_by_role("article", name="Review R-1").wait_for()
    assert repo.read("src/pay.py") == "a = 2\n"


def test_a_review_of_many_long_names_leaves_room_for_its_difference(person: Person, repo: Repo, leave_review: Leave) -> None:
    names = ["/".join(["a" * 40] * 6) + "/x.py", *(f"src/file_{n:03}.py" for n in range(150))]
    leave_review(dict.fromkeys(names, ("a = 1\n", "a = 2\n")))
    page = person.page
    page.set_viewport_size({"width": 360, "height": 800})
    person.open()
    person.go("Reviews")
    page.get_by_role("button", name="src/file_149.py modified").click()
    page.get_by_role("group", name="Difference of src/file_149.py").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".files").bounding_box()["height"] < 200
    page.get_by_role("button", name=re.compile("aaaa")).first.click()
    page.locator(".diff .cm-editor").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_question_of_an_agent_that_has_ended_asks_for_no_reply(person: Person, repo: Repo) -> None:
    with repo.client() as client:
        client.call(rq.Register(agent="ann"))
        client.call(rq.MessageSend(agent="ann", to="human", text="Which currency?"))
    page = person.open()
    page.get_by_role("textbox", name="Reply to ann").wait_for()
    with repo.client() as client:
        client.call(rq.Leave(agent="ann"))
    page.get_by_text("It has ended.").wait_for()
    assert page.get_by_role("textbox", name="Reply to ann").count() == 0


def test_a_refusal_is_said_with_its_next_step(person: Person, repo: Repo) -> None:
    repo.coord("lock", "src/pay.py", "--agent", "ann")
    page = person.open()
    person.go("Agents and leases")
    page.get_by_label("Lock", exact=False).first.fill("src/pay.py")
    page.get_by_role("button", name="Lock it").click()
    page.get_by_role("alert").get_by_text("src/pay.py is leased by ann").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1000, 1900])
def test_each_screen_is_accessible_at_each_width(person: Person, repo: Repo, leave_review: Leave, width: int, scheme: str) -> None:
    """By axe, all its rules for WCAG 2.2 AA; and nothing has to be scrolled sideways."""
    leave_review({"src/pay.py": ("a = 1\n", "a = 2\n"), "src/tax.py": ("b = 1\n", "b = 2\n")}, agent="cyd")
    repo.there("ann", "bob")
    repo.coord("lock", "src/pay.py", "--agent", "ann", "-m", "rounding")
    repo.coord("request", "file", "src/pay.py", "--agent", "bob", "--reason", "a typo")
    for more in ([], ["--after", "T-1"], ["--after", "T-2", "--prompt", "with care", "--resource", "src/pay.py"]):
        repo.coord("task", "add", "Round the totals", *more)
    repo.coord("task", "cancel", "T-3")
    page = person.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    person.open()
    person.check_accessible()
    person.go("Agents and leases")
    page.get_by_role("button", name="src/pay.py", exact=True).click()
    person.check_accessible()
    page.get_by_role("tab", name=re.compile("Requests")).click()
    person.check_accessible()
    page.get_by_role("tab", name="Story").click()
    page.get_by_role("tabpanel").get_by_text("got src/pay.py").first.wait_for()
    person.check_accessible()
    person.go("Reviews")
    page.locator(".diff .cm-editor").first.wait_for()
    person.check_accessible()
    page.get_by_role("button", name="Side by side" if width < 720 else "Unified").click()
    page.locator(".diff .cm-mergeView" if width < 720 else ".diff .cm-deletedChunk").wait_for()
    person.check_accessible()
    page.get_by_role("button", name="Change by change").click()
    page.get_by_role("button", name="Revert change 1").wait_for()
    person.check_accessible()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    person.check_accessible()
    page.keyboard.press("Escape")
    person.go("Backlog")
    page.get_by_text("Add a task", exact=True).click()
    page.get_by_role("heading", name=re.compile("^ready")).scroll_into_view_if_needed()  # what is out of view is not drawn
    page.get_by_role("button", name="T-1 Round the totals").wait_for()
    person.check_accessible()
    page.get_by_role("button", name="T-2 Round the totals").click()
    page.get_by_role("group", name="What comes before and after it").wait_for()
    page.get_by_role("complementary", name="About T-2").get_by_role("button", name="Edit", exact=True).click()
    person.check_accessible()
    page.get_by_role("button", name="Table").click()
    page.get_by_role("row", name=re.compile("T-3")).wait_for()
    person.check_accessible()


def budgets(page: Any) -> dict[str, float]:
    return dict(page.evaluate("""() => ({
        paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1,
        bytes: performance.getEntriesByType('resource').reduce((sum, entry) => sum + entry.decodedBodySize, 0)})"""))


def test_a_thousand_leases_are_scrolled_and_the_first_paint_is_soon(person: Person, repo: Repo) -> None:
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
    with repo.client("ann", token=token) as client:
        for begin in range(0, 1000, 50):
            client.call(rq.Acquire(agent="ann", resources=[f"src/f{n:04}.py" for n in range(begin, begin + 50)]))
    page = person.open()
    person.go("Agents and leases")
    page.get_by_text("1000 of 1000").wait_for()
    assert page.locator(".lease").count() < 60, "only rows in view are drawn"
    page.locator(".leases").evaluate("box => box.scrollTop = box.scrollHeight")
    page.get_by_role("button", name="src/f0999.py", exact=True).wait_for()
    told = budgets(page)
    print(told)
    assert 0 < told["paint"] < 1000 and told["bytes"] < 1_000_000
