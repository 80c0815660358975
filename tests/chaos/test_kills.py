"""Sixteen clients, a daemon that is killed with SIGKILL twenty times, and then the history.

Every client notes what it was told (a grant, a release, a claim) with its fencing token. Afterwards
the log must hold all of it, no two live holders may ever have overlapped, fencing tokens rise
strictly, and replaying the log must give the state.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from coordinator import Client, Refusal
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("from_nothing")

CLIENTS = 16
NAMES = ["a.py", "b.py", "d/", "d/x.py", "d/*.py", "key:k", "key:k:1"]
MEANS = {
    "a.py": {"a"}, "b.py": {"b"}, "d/": {"dx", "dother"}, "d/x.py": {"dx"}, "d/*.py": {"dx"},
    "key:k": {"k1", "k2"}, "key:k:1": {"k1"},
}


def run(repo: Repo, kills: int) -> list[dict[str, object]]:
    """Kill the daemon `kills` times under load; what the clients were told."""
    told: list[dict[str, object]] = []
    stop = threading.Event()
    lock = threading.Lock()

    def note(**facts: object) -> None:
        with lock:
            told.append(facts)

    def work(number: int) -> None:
        chance = random.Random(number)
        client = Client(repo.root, agent=f"w{number}")
        while not stop.is_set():
            name = chance.choice(NAMES)
            with contextlib.suppress(Refusal):
                lease = client.acquire(name, ttl=60, retry=False).leases[0]
                if not lease.reentrant:
                    note(what="granted", agent=client.agent, name=name, token=lease.fencing_token)
                if chance.random() < 0.1:
                    task = client.call(rq.TaskAdd(title="t"))
                    note(what="added", task=task.task)
                client.release(name)
                note(what="released", agent=client.agent, token=lease.fencing_token)

    repo.coord("up")
    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    chance = random.Random(7)
    pause = threading.Event()
    for _ in range(kills):
        before = len(told)
        until(lambda n=before: len(told) > n + 20, 60)  # type: ignore[misc]
        pause.wait(chance.random() * 0.15)
        with contextlib.suppress(ProcessLookupError, ValueError):
            os.kill(repo.pid(), signal.SIGKILL)
    before = len(told)
    until(lambda: len(told) > before + 20, 60)
    stop.set()
    for thread in threads:
        thread.join(60)
    return told


def check(repo: Repo, told: list[dict[str, object]]) -> None:
    """Hold the history against the promises."""
    boss = repo.client()
    events, after = [], 0
    while True:
        page = boss.call(rq.Events(after=after, limit=5000)).items
        if not page:
            break
        events += page
        after = page[-1].seq
    granted = [e for e in events if e.kind == "lease_granted"]
    tokens = [e.data["fencing_token"] for e in granted]
    # 3: strictly rising, never given twice
    assert all(a < b for a, b in pairwise(tokens))
    # 4: everything acknowledged is in the log, as it was told
    logged = {(e.data["fencing_token"], e.agent, e.resource) for e in granted}
    ended = {e.data["fencing_token"] for e in events if e.kind in ("lease_released", "lease_lapsed")}
    tasks = {e.task for e in events if e.kind == "task_added"}
    for fact in told:
        if fact["what"] == "granted":
            assert (fact["token"], fact["agent"], fact["name"]) in logged, fact
        elif fact["what"] == "released":
            assert fact["token"] in ended, fact
        else:
            assert fact["task"] in tasks, fact
    # 1: at no point of the history do two holders overlap
    live: dict[int, tuple[str, str]] = {}
    for event in events:
        if event.kind == "lease_granted":
            mine = MEANS[str(event.resource)]
            for other, name in live.values():
                assert other == event.agent or not MEANS[name] & mine, event
            live[event.data["fencing_token"]] = (str(event.agent), str(event.resource))
        elif event.kind in ("lease_released", "lease_lapsed"):
            del live[event.data["fencing_token"]]
    # and what the log says is what is so
    assert {x.fencing_token for x in boss.call(rq.Locks()).items} == set(live)
    assert boss.call(rq.Replay()).equal
    assert boss.call(rq.Health(integrity=True)).integrity == "ok"


def test_two_kills(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo("kills")
    check(repo, run(repo, 2))


@pytest.mark.chaos
def test_twenty_kills(make_repo: Callable[..., Repo], capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    repo = make_repo("kills")
    told = run(repo, 20)
    check(repo, told)
    with capsys.disabled():
        facts = {"acknowledged": len(told), "kills": 20, "seconds": round(time.monotonic() - started)}
        print("\nchaos:", json.dumps(facts))


def test_what_was_not_read_is_asked_again(repo: Repo) -> None:
    """The kernel tells: a connection that ends with something unread is reset."""
    client = repo.client("ann")
    client.acquire("a.py")
    os.kill(repo.pid(), signal.SIGSTOP)
    pid = repo.pid()
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    assert [x.resource for x in client.release("a.py").released] == ["a.py"]


def test_a_reply_that_was_lost_is_asked_for_again(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client sends it again under its idempotency key: it was done once, and that is its answer."""
    client = repo.client("ann")
    client.acquire("a.py")
    between = repo.root.parent / "between"
    between.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(between / "s"))
        door.listen()

        def relay() -> None:
            for lost in (True, False):
                link, _ = door.accept()
                with link, socket.socket(socket.AF_UNIX) as further:
                    further.connect(str(repo.state.socket()))
                    further.sendall(link.recv(65536))
                    answer = further.recv(65536)  # carried out; whoever asked does not hear of it at first
                    if not lost:
                        link.sendall(answer)

        thread = threading.Thread(target=relay)
        thread.start()
        monkeypatch.setenv("COORD_SOCKET", str(between / "s"))
        released = Client(repo.root, "ann", client.token).release("a.py").released
        thread.join()
    assert [one.resource for one in released] == ["a.py"]
    assert not client.call(rq.Locks()).items
