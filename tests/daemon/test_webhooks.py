"""Addresses are told of events, each delivery tried again until it is answered; nobody waits for it."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import signal
import socket
import threading
import time
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
        self.calls: list[tuple[dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/coord"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Listener)
        data = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(data)
        server.calls.append((dict(self.headers), data))
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


def test_who_calls_is_known_by_a_signature_and_which_delivery_by_its_name(make_repo: Callable[..., Repo], listener: Listener) -> None:
    repo = make_repo(config=f'[webhooks.urls]\n"{listener.url}" = ["task_added"]\n[backlog]\nbackoff_s = 0.1\n')
    listener.answers = [500]
    repo.client().call(rq.TaskAdd(title="one"))
    until(lambda: len(listener.heard) == 1)
    secret = repo.state.webhook_secret.read_bytes().strip()
    assert len(secret) >= 32 and repo.state.webhook_secret.stat().st_mode & 0o777 == 0o600
    for headers, data in listener.calls:
        assert headers["X-Hub-Signature-256"] == "sha256=" + hmac.new(secret, data, hashlib.sha256).hexdigest()
    assert [headers["X-Coord-Attempt"] for headers, _ in listener.calls] == ["1", "2"]
    assert len({headers["X-Coord-Delivery"] for headers, _ in listener.calls}) == 1


def drips(link: socket.socket, what: bytes) -> None:
    """An answer that never ends, of which a piece comes all the time."""
    with contextlib.suppress(OSError):
        link.recv(65536)
        link.sendall(what)
        while True:
            link.sendall(b"x")
            time.sleep(0.2)


@pytest.mark.parametrize("what", [b"", b"HTTP/1.1 200 OK\r\nX-A: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"])
def test_a_slow_receiver_delays_nobody(make_repo: Callable[..., Repo], listener: Listener, what: bytes) -> None:
    slow = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=drips, args=(slow.accept()[0], what), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    url = f"http://127.0.0.1:{slow.getsockname()[1]}/a"
    repo = make_repo(config=f'[webhooks]\nattempts_max = 1\n[webhooks.urls]\n"{url}" = ["task_added"]\n"{listener.url}" = ["task_added"]\n')
    boss = repo.client()
    for number in range(5):
        boss.call(rq.TaskAdd(title=f"t{number}"))
    until(lambda: len(listener.heard) == 5, 8)
    until(lambda: any(step.name == url and step.state in ("done", "dead") for step in boss.call(rq.Steps(state="all", kind="webhook")).items), 30)
    slow.close()
