"""Addresses are told of events, each delivery tried again until it is answered; nobody waits for it."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until


class Listener(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.answers: list[int] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/coord"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Listener)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = server.answers.pop(0) if server.answers else 204
        if status == 302:
            self.send_response(302)
            self.send_header("Location", server.url + "/elsewhere")
        else:
            self.send_response(status)
            if status < 300:
                server.heard.append(body)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_told_once_after_failures(make_repo: Callable[..., Repo], listener: Listener) -> None:
    repo = make_repo(config=f'[webhooks.urls]\n"{listener.url}" = ["task_added", "step_moved", "step_added"]\n[backlog]\nbackoff_s = 0.1\n')
    listener.answers = [500, 302, 503]
    boss = repo.client()
    boss.call(rq.TaskAdd(title="one"))
    boss.call(rq.TaskAdd(title="two"))
    until(lambda: len(listener.heard) == 2)
    assert sorted(one["event"]["data"]["title"] for one in listener.heard) == ["one", "two"]
    assert all(one["event"]["kind"] == "task_added" and one["id"] for one in listener.heard)
    until(lambda: all(one.state == "done" for one in boss.call(rq.Steps(state="all", kind="webhook")).items))
    assert len(boss.call(rq.Steps(state="all")).items) == 2, "deliveries are not told of: that would never end"


def test_nobody_waits_and_a_dead_address_is_a_dead_letter(make_repo: Callable[..., Repo], listener: Listener) -> None:
    config = f'[webhooks]\nattempts_max = 2\n[webhooks.urls]\n"{listener.url}" = ["task_added"]\n[backlog]\nbackoff_s = 0.1\n'
    repo = make_repo(config=config)
    listener.answers = [500] * 2
    boss = repo.client()
    boss.call(rq.TaskAdd(title="one"))
    until(lambda: bool(boss.call(rq.Dead()).items))
    (letter,) = boss.call(rq.Dead()).items
    assert (letter.kind, letter.what, letter.why) == ("webhook", listener.url, "it answered 500")
    boss.call(rq.DeadRetry(id=letter.id))
    until(lambda: len(listener.heard) == 1)


def test_untrusted_addresses_are_told_nothing(make_repo: Callable[..., Repo], listener: Listener) -> None:
    repo = make_repo()
    (repo.root / "coord.toml").write_text(f'[webhooks.urls]\n"{listener.url}" = []\n')
    boss = repo.client()
    health = boss.call(rq.Health())
    assert any("webhooks.urls" in one for one in health.warnings)
    boss.call(rq.TaskAdd(title="one"))
    assert boss.call(rq.Steps(state="all")).items == []


def test_what_was_not_told_before_a_crash_is_told_after_it(make_repo: Callable[..., Repo], listener: Listener) -> None:
    repo = make_repo(config=f'[webhooks.urls]\n"{listener.url}" = ["task_added"]\n[backlog]\nbackoff_s = 0.1\n')
    boss = repo.client()
    boss.call(rq.TaskAdd(title="first"))
    until(lambda: len(listener.heard) == 1)
    for n in range(5):
        boss.call(rq.TaskAdd(title=f"task {n}"))
    os.kill(repo.pid(), signal.SIGKILL)
    boss.call(rq.TaskAdd(title="last"))
    until(lambda: {one["event"]["data"]["title"] for one in listener.heard} == {"first", "last", *(f"task {n}" for n in range(5))}, 40)
