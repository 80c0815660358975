"""A crowded repository in the page: 10,000 tasks, 1,000 leases, and some 200 events a second.

What the browser itself reports is printed (`make web-frames`): frames that were dropped, tasks of its
main thread that took long, what was asked of the coordinator.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.web.conftest import Person

pytestmark = pytest.mark.web
TASKS, LEASES, EVENTS_A_SECOND, SECONDS = 10_000, 1_000, 200, 5
#: Watches frames for as long as it is asked to, and scrolls meanwhile whatever matches, a little each frame.
WATCH = """async ([seconds, scrolled]) => {
    const tasks = [];
    const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration)));
    observer.observe({type: 'longtask'});
    const frames = [];
    const end = performance.now() + 1000 * seconds;
    let before = await new Promise(requestAnimationFrame);
    while (performance.now() < end) {
        for (const box of document.querySelectorAll(scrolled)) {
            box.scrollTop = box.scrollTop + box.clientHeight >= box.scrollHeight ? 0 : box.scrollTop + 20;
        }
        const now = await new Promise(requestAnimationFrame);
        frames.push(now - before);
        before = now;
    }
    observer.disconnect();
    return {frames, tasks};
}"""


@pytest.fixture
def crowded(repo: Repo) -> Repo:
    repo.coord("up")
    lines = (json.dumps({"title": f"Task number {n}", "prompt": "Do it well. " * 40, "priority": n % 7, "resources": [f"src/p{n % 90}/t{n}.py"],
                         **({"id": str(n), "after": [str(n - 1)]} if n % 3 == 1 else {"id": str(n)})}) for n in range(TASKS))
    with repo.client() as client:
        client.call(rq.TaskImport(text="\n".join(lines), format="jsonl"))
        token = client.call(rq.Register(agent="ann")).token
    with repo.client("ann", token=token) as client:
        for begin in range(0, LEASES, 50):
            client.call(rq.Acquire(agent="ann", resources=[f"lib/d{n % 40}/f{n:04}.py" for n in range(begin, begin + 50)]))
    return repo


@contextmanager
def stream(repo: Repo) -> Iterator[None]:
    """Tasks and leases change, some 200 events a second, until this is left."""
    over = threading.Event()

    def change() -> None:
        with repo.client() as client:
            bob = client.call(rq.Register(agent="bob")).token
            with repo.client("bob", token=bob) as other:
                began = time.monotonic()
                for n in itertools.count():
                    if n % 4 == 3:
                        other.call(rq.Acquire(agent="bob", resources=[f"lib/d{n % 40}/b{n}.py"]))
                        other.call(rq.Release(agent="bob", resources=[f"lib/d{n % 40}/b{n}.py"]))
                    else:
                        client.call(rq.TaskEdit(task=f"T-{1 + n % 900}", priority=n % 11 - 20))
                    ahead = began + n * 1.25 / EVENTS_A_SECOND - time.monotonic()
                    if over.wait(max(0.0, ahead)):
                        return

    changing = threading.Thread(target=change)
    changing.start()
    try:
        yield
    finally:
        over.set()
        changing.join()


def last_event(repo: Repo) -> int:
    with repo.client() as client:
        return client.call(rq.Events(tail=True, limit=1)).items[0].seq


def watch(person: Person, repo: Repo, scrolled: str) -> dict[str, Any]:
    """What the browser reports of some seconds in which it is scrolled and events stream in."""
    began, asked = last_event(repo), len(person.asked)
    report = person.page.evaluate(WATCH, [SECONDS, scrolled])
    frames = sorted(report["frames"])
    usual = frames[len(frames) // 2]
    paths = Counter(url.split("?")[0].rsplit("/v1", 1)[-1] for url in person.asked[asked:])
    return {
        "events a second": round((last_event(repo) - began) / SECONDS), "frames a second": round(len(frames) / SECONDS, 1),
        "usual frame": round(usual, 1), "longest frame": round(frames[-1], 1), "99 of 100 within": round(frames[int(len(frames) * 0.99)], 1),
        "dropped": sum(round(frame / usual) - 1 for frame in frames if frame > 1.5 * usual),
        "long tasks": [round(ms) for ms in report["tasks"]], "asked": dict(paths),
    }


def test_a_crowded_repository_is_looked_at_without_a_pause(person: Person, crowded: Repo) -> None:
    page = person.open()
    page.set_viewport_size({"width": 1400, "height": 900})
    reports = {"nothing happens": watch(person, crowded, ".nothing")}
    drawn = {}
    with stream(crowded):
        person.go("Backlog")
        page.locator(".task-card .title").first.wait_for()
        reports["board"] = watch(person, crowded, ".column .scrolled")
        drawn["board"] = page.locator(".task-card").count()
        page.locator(".task-card .title").first.click()
        page.get_by_text("Its story").click()
        page.locator(".story li").first.wait_for()
        reports["board, panel and story"] = watch(person, crowded, ".column .scrolled")
        page.get_by_role("button", name="Table").click()
        page.locator("tbody th").first.wait_for()
        reports["table"] = watch(person, crowded, ".tasks")
        drawn["table"] = page.locator("tbody tr").count()
        person.go("Agents and leases")
        page.get_by_text(f"of {LEASES}").first.wait_for()
        reports["leases"] = watch(person, crowded, ".leases")
        drawn["leases"] = page.locator(".lease").count()
    print(json.dumps(reports, indent=2))
    assert max(drawn.values()) < 100, "only rows in view are drawn"
    for report in reports.values():
        # What else runs on the machine takes a frame here and there; a page that cannot keep up loses most of them.
        assert report["dropped"] < report["frames a second"] * SECONDS / 5 and sum(report["long tasks"]) < 1000 * SECONDS / 10, report
        assert report["asked"].get("/status", 0) <= 2 + 1000 * SECONDS / 120, "a crowd of events is answered by one question"
    assert set(reports["leases"]["asked"]) <= {"/locks", "/pools", "/status"}, "what is not seen is not asked for"
    assert reports["leases"]["events a second"] > EVENTS_A_SECOND / 2, "the stream was as dense as is claimed"
    assert person.errors == []
