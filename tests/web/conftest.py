"""The page in a real Chromium, over a real coordinator (make test-web)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.resources import page_folder
from coordinator.words import requests as rq
from tests.conftest import Repo

AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
#: Whatever the browser would fetch by itself stays out of the tests; in a container it has no sandbox of its own.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium here: CHROMIUM=path names one")
    if not (page_folder() / "index.html").is_file():
        pytest.skip("the page is not built: `make web`")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


class Person:
    """A person at a browser: one tab, and whatever its page complains of."""

    def __init__(self, browser: Any, repo: Repo) -> None:
        self.repo = repo
        self.context = browser.new_context()
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self) -> Any:
        """Open the page as `coord web` does; the tab."""
        self.page.goto(self.url())
        self.page.get_by_role("heading", name="Needs you").wait_for()
        return self.page

    def url(self) -> str:
        return str(json.loads(self.repo.coord("web", "--json").stdout)["url"])

    def check_accessible(self) -> None:
        """No violation of WCAG 2.2 AA, as far as axe can tell; and no scrolling sideways."""
        if not self.page.evaluate("'axe' in window"):
            # As the browser's own tools would: the page's policy lets no script in.
            self.page.evaluate(AXE.read_text("utf-8"))
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        told = self.page.evaluate("tags => axe.run({runOnly: {type: 'tag', values: tags}})", tags)
        found = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in told["violations"]]
        assert found == []
        assert self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    def go(self, screen: str) -> None:
        self.page.get_by_role("navigation", name="Screens").get_by_role("button", name=screen).click()


@pytest.fixture
def person(browser: Any, repo: Repo) -> Iterator[Person]:
    repo.coord("up")
    made = Person(browser, repo)
    yield made
    # Of use where a test has failed: pytest shows what was printed then.
    print(made.page.locator("body").inner_text(), made.errors)
    made.context.close()


@pytest.fixture
def leave_review(repo: Repo) -> Callable[..., str]:
    """An agent changes leased files and is gone: the review of what it left."""

    def leave(files: dict[str, tuple[str, str]], agent: str = "ann") -> str:
        for path, (before, _) in files.items():
            repo.write(path, before)
        with repo.client() as client:
            token = client.call(rq.Register(agent=agent)).token
        with repo.client(agent, token=token) as client:
            client.call(rq.Acquire(agent=agent, resources=list(files), description="round the totals"))
            for path, (_, after) in files.items():
                repo.write(path, after)
            (review,) = client.call(rq.Leave(agent=agent, clean=False, reason="it was stopped")).reviews
        return review

    return leave


