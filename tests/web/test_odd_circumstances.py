"""The page where something is not as usual: clocks, sleep, what goes away below the keyboard's focus."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.conftest import Repo
from tests.waiting import until
from tests.web.conftest import Person

pytestmark = pytest.mark.web
Leave = Callable[..., str]
HOUR_MS = 3_600_000
#: The browser's own clock is so much ahead of the coordinator's (ms).
CLOCK_AHEAD = """ahead => {
    const Real = Date;
    window.Date = class extends Real {
        constructor(...given) { given.length === 0 ? super(Real.now() + ahead) : super(...given); }
        static now() { return Real.now() + ahead; }
    };
}"""

#: How thick the outline of what has the focus is; in a difference the whole side has it.
OUTLINE = """() => {
    const inside = document.activeElement.shadowRoot?.activeElement;
    const at = inside ? inside.closest('.cm-editor') ?? inside : document.activeElement;
    const {outlineStyle, outlineWidth} = getComputedStyle(at);
    return outlineStyle === 'none' ? 0 : outlineStyle === 'auto' ? 3 : parseFloat(outlineWidth);
}"""


def focused(page: Any) -> str:
    """What has the focus: its label, its id, or its text."""
    return str(page.evaluate("""() => {
        const {id, ariaLabel, textContent, localName} = document.activeElement;
        return localName === 'body' ? 'nothing' : ariaLabel || id || textContent;
    }"""))


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, -HOUR_MS])
def test_times_are_told_by_the_coordinators_clock(person: Person, repo: Repo, ahead_ms: int) -> None:
    person.page.add_init_script(f"({CLOCK_AHEAD})({ahead_ms})")
    repo.coord("lock", "src/pay.py", "--agent", "ann")
    page = person.open()
    person.go("Agents and leases")
    page.get_by_text("30 min left").wait_for()
    assert page.get_by_role("row", name="ann").get_by_text("s ago").count() == 1
    assert person.errors == []


def test_a_clock_that_is_put_while_the_page_is_open_changes_no_time(person: Person, repo: Repo) -> None:
    person.page.clock.install()
    repo.coord("lock", "src/pay.py", "--agent", "ann")
    page = person.open()
    person.go("Agents and leases")
    page.get_by_text("30 min left").wait_for()
    page.evaluate(f"({CLOCK_AHEAD})({HOUR_MS})")
    page.clock.run_for(15_000)
    page.get_by_text("30 min left").wait_for()
    assert page.get_by_text("over", exact=True).count() == 0


def test_an_answer_that_came_late_for_the_page_slept_delays_nothing_after_it(person: Person, repo: Repo) -> None:
    page = person.page
    page.clock.install()
    person.open()
    person.go("Agents and leases")
    slept: list[bool] = []

    def sleep_meanwhile(route: Any) -> None:
        answer = route.fetch()
        if not slept:
            slept.append(True)
            page.clock.fast_forward(HOUR_MS)
        route.fulfill(response=answer)

    page.route("**/v1/status?*", sleep_meanwhile)
    repo.coord("lock", "src/a.py", "--agent", "ann")
    page.get_by_role("button", name="ann", exact=True).wait_for()
    assert slept == [True]
    repo.coord("lock", "src/b.py", "--agent", "bob")

    def bob_is_shown() -> bool:
        page.clock.run_for(1_000)
        return page.get_by_role("button", name="bob", exact=True).count() == 1

    until(bob_is_shown)


def test_a_stream_that_says_nothing_any_more_is_taken_up_again(person: Person, repo: Repo) -> None:
    page = person.page
    page.clock.install()
    streams: list[str] = []
    page.on("request", lambda request: streams.append(request.url) if request.url.endswith("/events/stream") else None)
    # Of the first connection nobody is at the other end, and nothing says so.
    page.add_init_script("""
        const real = window.fetch;
        let first = true;
        window.fetch = (url, options) => {
            if (!String(url).endsWith('/events/stream') || !first) return real(url, options);
            first = false;
            const silent = new ReadableStream({start(end) {
                options.signal?.addEventListener('abort', () => end.error(new DOMException('aborted', 'AbortError')));
            }});
            return Promise.resolve(new Response(silent, {status: 200}));
        };""")
    person.open()
    person.go("Agents and leases")
    repo.coord("lock", "src/a.py", "--agent", "ann")

    def ann_is_shown() -> bool:
        page.clock.run_for(5_000)
        return page.get_by_role("button", name="ann", exact=True).count() == 1

    until(ann_is_shown)
    assert len(streams) == 1, "it was asked for again"


def test_the_focus_stays_near_what_has_gone(person: Person, repo: Repo, leave_review: Leave) -> None:
    with repo.client() as client:
        client.call(rq.Register(agent="ann"))
        for text in ("first", "second", "third"):
            client.call(rq.MessageSend(agent="ann", to="human", text=text))
    page = person.open()
    page.get_by_role("button", name="Mark as read").first.focus()
    page.keyboard.press("Enter")
    page.get_by_text("first").wait_for(state="detached")
    # The neighbour has the focus, and none of its buttons: a key that is held down deals with one thing alone.
    until(lambda: "second" in focused(page))
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.card') !== null"), "the next key goes on from there"
    assert page.get_by_role("button", name="Mark as read").count() == 2

    for name in ("src/a.py", "src/b.py"):
        repo.coord("lock", name, "--agent", "ann")
    person.go("Agents and leases")
    page.get_by_role("button", name="src/a.py", exact=True).focus()
    page.keyboard.press("Enter")
    until(lambda: focused(page) == "About src/a.py")
    page.keyboard.press("Escape")
    until(lambda: focused(page) == "src/a.py")

    page.get_by_role("button", name="Unlock src/a.py").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="src/a.py", exact=True).wait_for(state="detached")
    until(lambda: "b.py" in focused(page))
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="src/b.py", exact=True).count() == 1, "nothing else was unlocked"

    leave_review({"pay.py": ("a = 1\n", "a = 2\n")}, agent="cyd")
    person.go("Needs you")
    page.get_by_role("button", name="Look at it").focus()
    page.keyboard.press("Enter")
    page.get_by_role("article").wait_for()
    assert focused(page) == "main", "another screen begins at its beginning"
    assert person.errors == []


def test_a_person_who_leaves_a_place_is_not_brought_back(person: Person, repo: Repo) -> None:
    repo.coord("lock", "src/a.py", "--agent", "ann")
    page = person.open()
    person.go("Agents and leases")
    page.get_by_role("button", name="src/a.py", exact=True).focus()
    page.evaluate("document.activeElement.blur()")
    repo.coord("unlock", "src/a.py", "--agent", "ann")
    page.get_by_role("button", name="src/a.py", exact=True).wait_for(state="detached")
    assert focused(page) == "nothing"


def test_the_focus_is_seen_and_nothing_keeps_it(person: Person, repo: Repo, leave_review: Leave) -> None:
    with repo.client() as client:
        client.call(rq.Register(agent="ann"))
        client.call(rq.TaskAdd(title="a task"))
    repo.coord("lock", "src/a.py", "--agent", "ann")
    leave_review({"pay.py": ("a = 1\n", "a = 2\n")}, agent="cyd")
    page = person.open()
    page.emulate_media(color_scheme="dark")
    for screen in ("Agents and leases", "Reviews", "Backlog", "Time", "More", "Needs you"):
        person.go(screen)
        page.get_by_role("heading", level=2).first.wait_for()
        if screen == "Reviews":
            page.locator(".cm-mergeView").wait_for()
        page.evaluate("document.activeElement.blur()")
        stops = 0
        while stops < 200:
            page.keyboard.press("Tab")
            if focused(page) == "nothing":
                break
            until(lambda: page.evaluate(OUTLINE) >= 2, seconds=3)
            stops += 1
        assert 5 < stops < 200, (screen, "the keyboard comes out at the end")


def test_what_is_chosen_is_seen_where_colours_are_forced(person: Person, repo: Repo, leave_review: Leave) -> None:
    leave_review({"a.py": ("a\n", "b\n"), "b.py": ("a\n", "b\n")})
    person.page.emulate_media(forced_colors="active", reduced_motion="reduce")
    page = person.open()
    person.go("Reviews")
    page.locator(".cm-mergeView").wait_for()
    wide = """selector => [...document.querySelectorAll(selector)].map(element => parseFloat(getComputedStyle(element).borderTopWidth))"""
    chosen = page.evaluate(wide, "[aria-current], [aria-pressed=true], [aria-selected=true]")
    others = page.evaluate(wide, "nav button:not([aria-current]), [aria-pressed=false], .files button:not([aria-current])")
    assert len(chosen) >= 4 and len(others) >= 4 and min(chosen) >= 3 > 1 >= max(others)
    assert page.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize("width", [360, 640, 3840])
def test_names_and_texts_as_long_as_they_may_be_fit_into_the_page(person: Person, repo: Repo, leave_review: Leave, width: int) -> None:
    name, path = "A" * 100, "/".join(letter * 200 for letter in "xyz") + ".py"
    with repo.client() as client:
        token = client.call(rq.Register(agent=name, description="D" * 1000)).token
        client.call(rq.MessageSend(agent=name, to="human", text="M" * 2000))
        client.call(rq.TaskAdd(title="T" * 200, prompt="P" * 50_000, resources=[path]))
        waiting = client.call(rq.Register(agent="B" * 100)).token
    with repo.client(name, token=token) as client:
        client.call(rq.Acquire(agent=name, resources=[path, "src/a.py"], description="Q" * 500))
    with repo.client("B" * 100, token=waiting) as client:
        with contextlib.suppress(Refusal):
            client.call(rq.Acquire(agent="B" * 100, resources=[path], description="W" * 500))
        client.call(rq.RequestFile(agent="B" * 100, resource="src/a.py", reason="R" * 500))
    leave_review({path.replace("x", "r"): ("a\n", "b" * 5000 + "\n")}, agent="C" * 100)
    page = person.open()
    page.set_viewport_size({"width": width, "height": 800})

    def assert_fits(where: str) -> None:
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), where

    for screen in ("Needs you", "Agents and leases", "Reviews", "Backlog", "Time", "More"):
        person.go(screen)
        page.get_by_role("heading", level=2).first.wait_for()
        assert_fits(screen)
    person.go("Agents and leases")
    page.get_by_role("button", name=name, exact=True).click()
    for tab in ("Leases", "Changes", "Requests", "Story"):
        page.get_by_role("tab", name=tab).click()
        page.get_by_role("tabpanel").locator("> *").first.wait_for()
        assert_fits(tab)
    person.go("Backlog")
    page.locator(".task-card .title").first.click()
    page.get_by_role("complementary").get_by_text("PPPP").first.wait_for()
    assert_fits("a task's panel")
    assert person.errors == []


def test_three_hundred_agents_leave_room_for_what_they_hold(person: Person, repo: Repo) -> None:
    with repo.client() as client:
        for number in range(300):
            client.call(rq.Register(agent=f"agent-{number:03}"))
    repo.coord("lock", "hot.py", "--agent", "agent-000")
    page = person.open()
    person.go("Agents and leases")
    page.get_by_role("button", name="agent-299", exact=True).wait_for()
    page.get_by_role("button", name="Unlock hot.py").wait_for()
    assert page.evaluate("document.documentElement.scrollHeight < 3 * window.innerHeight")
    page.get_by_role("button", name="agent-150", exact=True).focus()
    repo.coord("lock", "other.py", "--agent", "aaa")
    page.get_by_role("button", name="aaa", exact=True).wait_for()
    assert focused(page) == "agent-150", "what is drawn anew keeps the focus"
    person.check_accessible()


#: Has the page take itself to be in a tab that is seen, or is not.
SET_HIDDEN = """hidden => {
    Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
    Object.defineProperty(document, 'visibilityState', {configurable: true, get: () => hidden ? 'hidden' : 'visible'});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_more_tabs_than_a_browser_has_connections(person: Person, repo: Repo) -> None:
    tabs = [person.open()]
    for _ in range(8):
        tabs[-1].evaluate(SET_HIDDEN, True)
        tab = person.context.new_page()
        tab.set_default_timeout(15_000)
        tab.goto(person.url())
        tab.get_by_role("heading", name="Needs you").wait_for()
        tabs.append(tab)
    with repo.client() as client:
        client.call(rq.Register(agent="ann"))
        client.call(rq.MessageSend(agent="ann", to="human", text="Which currency?"))
    tabs[-1].get_by_text("Which currency?").wait_for()
    until(lambda: sum(tab.title().startswith("(1)") for tab in tabs) == 2)  # and one that nobody sees tells it, too
    tabs[-1].evaluate(SET_HIDDEN, True)
    tabs[3].evaluate(SET_HIDDEN, False)
    tabs[3].get_by_text("Which currency?").wait_for()
    # Whoever of the unseen has told it so far is closed, or is not: another goes on.
    for tab in tabs[1:3] + tabs[4:-1]:
        tab.close()
    left = [tabs[0], tabs[3], tabs[-1]]
    with repo.client() as client:
        client.call(rq.MessageSend(agent="ann", to="human", text="And which year?"))
    until(lambda: sum(tab.title().startswith("(2)") for tab in left) == 2)
    tabs[3].get_by_role("button", name="Mark as read").first.click()
    tabs[3].get_by_text("is read").wait_for()


@pytest.mark.parametrize("is_done", [True, False])
def test_a_verdict_that_was_not_answered_is_not_said_to_have_changed_nothing(
        person: Person, repo: Repo, leave_review: Leave, *, is_done: bool) -> None:
    review = leave_review({"src/pay.py": ("a = 1\n", "a = 2\n")})
    page = person.open()
    person.go("Reviews")
    page.locator(".cm-mergeView").wait_for()

    def kill_before_the_answer(route: Any) -> None:
        if is_done:
            route.fetch()
        os.kill(repo.pid(), signal.SIGKILL)
        route.abort("connectionreset")

    page.route("**/decide", kill_before_the_answer)
    page.get_by_role("article").get_by_role("button", name="Revert").first.click()
    page.get_by_text("this may be done, or not").wait_for()
    assert page.get_by_text("nothing was changed").count() == 0
    repo.coord("review", "list")  # starts it again
    page.get_by_text("The coordinator does not answer.").wait_for(state="detached")
    page.get_by_text("No review waits." if is_done else f"{review}:").first.wait_for()
    assert repo.read("src/pay.py") == ("a = 1\n" if is_done else "a = 2\n")


def test_sentences_run_from_left_to_right_whatever_name_they_begin_with(person: Person, repo: Repo) -> None:
    name, path = "\u05d0\u05d1\u05d2-1", "\u05d0/\u05d1.py"
    with repo.client() as client:
        token = client.call(rq.Register(agent=name)).token
    with repo.client(name, token=token) as client:
        client.call(rq.Acquire(agent=name, resources=[path], description="\u05d0\u05d1\u05d2"))
    page = person.open()
    person.go("Agents and leases")
    page.get_by_role("button", name=name, exact=True).click()

    def order(sentence: Any, *texts: str) -> bool:
        """Whether these parts of it stand from left to right in this order."""
        lefts = [sentence.evaluate("""(element, text) => {
            const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) {
                const at = walk.currentNode.data.indexOf(text);
                if (at >= 0) {
                    const range = document.createRange();
                    range.setStart(walk.currentNode, at);
                    range.setEnd(walk.currentNode, at + text.length);
                    return range.getBoundingClientRect().left;
                }
            }
        }""", text) for text in texts]
        return lefts == sorted(lefts)

    panel = page.get_by_role("tabpanel")
    assert order(panel.get_by_role("listitem").first, name, "holds", path, "until")
    page.get_by_role("tab", name="Story").click()
    assert order(panel.get_by_text(" got ").first, name, "got", path, "exclusive")
    person.go("Time")
    held = page.get_by_role("list", name="Leases at that moment").get_by_role("listitem").first
    assert order(held, name, "held", path)


def test_of_three_hundred_lanes_those_in_view_are_drawn(person: Person, repo: Repo) -> None:
    with repo.client() as client:
        for number in range(300):
            client.call(rq.Register(agent=f"agent-{number:03}"))
            client.call(rq.Acquire(agent=f"agent-{number:03}", resources=[f"src/f{number}.py"]))
    page = person.open()
    person.go("Time")
    page.locator(".lane[data-agent=agent-000]").wait_for()
    assert 5 < page.locator(".lane").count() < 60
    page.locator(".lanes").evaluate("element => element.scrollTo(0, element.scrollHeight)")
    page.locator(".lane[data-agent=agent-299]").wait_for()
    assert 5 < page.locator(".lane").count() < 60
    assert person.errors == []
