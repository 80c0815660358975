"""Work on the disk is done beside everybody's requests, by processes that can be killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.waiting import until


def fill(repo: Repo, count: int) -> None:
    for n in range(count):
        repo.write(f"many/d{n // 100}/f{n}.txt", f"number {n}\n")


def workers(repo: Repo) -> list[int]:
    """The processes that look for this repository's coordinator."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"coordinator.daemon.look_worker" in words and os.fsencode(repo.root) in words:
                found.append(int(entry.name))
    return found


@pytest.fixture
def slow(make_repo: Callable[..., Repo]) -> Repo:
    return make_repo(config="[look]\nbytes_max = 100000\n[watch]\nenabled = false\n")


def test_a_large_directory_is_looked_at_by_a_worker(repo: Repo) -> None:
    fill(repo, 600)
    with repo.client("ann") as ann:
        ann.acquire("many/", ttl=60)
        assert workers(repo)
        repo.write("many/d1/f150.txt", "changed\n")
        (repo.root / "many/d2/f250.txt").unlink()
        repo.write("many/new.txt", "new\n")
        ann.call(rq.Leave(agent="ann", clean=False))
    with repo.client() as person:
        (review,) = person.call(rq.Reviews()).items
        shown = person.call(rq.ReviewShow(review=review.review))
        assert {f.path: f.change for f in shown.files} == {
            "many/d1/f150.txt": "modified", "many/d2/f250.txt": "deleted",
            "many/new.txt": "created"}
        assert all(f.kept for f in shown.files)
    repo.down()
    assert until(lambda: not workers(repo))


def test_a_budget_is_refused_in_words_and_harms_nobody(slow: Repo) -> None:
    slow.write("big/a.bin", "x" * 60_000)
    slow.write("big/b.bin", "y" * 60_000)
    with slow.client("ann") as ann:
        with pytest.raises(Refusal) as no:
            ann.acquire("big/")
        assert no.value.code is Code.LIMIT and "look.bytes_max" in no.value.message
        assert ann.acquire("big/a.bin").leases[0].resource == "big/a.bin"


def test_a_killed_worker_is_a_refusal_for_one_and_started_again(repo: Repo) -> None:
    fill(repo, 400)
    with repo.client("ann") as ann:
        ann.acquire("many/")
        ann.release("many/")
        (worker,) = workers(repo)
        os.kill(worker, signal.SIGSTOP)  # it hangs in the middle of a look
        with repo.client("bob") as bob, socket.socket(socket.AF_UNIX) as link:
            bob.register()
            asked = {"id": 1, "op": "acquire", "token": bob.token,
                     "params": {"agent": "bob", "resources": ["many/"]}}
            link.settimeout(30)
            link.connect(str(repo.state.socket()))
            link.sendall(json.dumps(asked).encode() + b'\n{"id": 2, "op": "locks"}\n')
            answers = link.makefile("rb")
            assert json.loads(answers.readline())["id"] == 2  # the first one has come, and waits
            for n in range(20):  # nobody else feels it
                ann.acquire(f"small{n}.txt")
            os.kill(worker, signal.SIGKILL)
            answer = json.loads(answers.readline())
        assert (answer["id"], answer["error"]["code"]) == (1, Code.STORAGE), answer
        assert ann.acquire("many/").leases[0].resource == "many/"


def test_too_deep_a_path_is_refused_at_once(repo: Repo) -> None:
    with repo.client("ann") as ann, pytest.raises(Refusal) as no:
        ann.acquire(*("/".join(["d"] * 1_990) + f"/{n}" for n in range(10)))
    assert no.value.code is Code.LIMIT and "256 parts" in no.value.message


def test_a_client_that_was_killed_in_line_gets_only_an_offer(repo: Repo) -> None:
    with repo.client("ann") as ann:
        ann.acquire("q.py")
        link = repo.client("bob")
        token = link.register()
        assert token
        asking = threading.Thread(target=lambda: _ask(link), daemon=True)
        asking.start()
        with repo.client() as person:
            assert until(lambda: [w.agent for w in person.call(rq.Locks()).waiters] == ["bob"])
            link.hang_up()  # as when its process is killed: the connection ends
            asking.join(10)
            assert until(lambda: _not_held(repo))
            ann.release("q.py")
            assert until(lambda: [x.locked_by for x in person.call(rq.Locks()).items] == ["bob"])
            (lease,) = person.call(rq.Locks()).items
            assert _seconds(lease.locked_at, lease.expires_at) <= 120


def _ask(link: object) -> None:
    try:
        link.acquire("q.py", wait=60)  # type: ignore[attr-defined]
    except Refusal:
        return


def _not_held(repo: Repo) -> bool:
    import apsw

    db = apsw.Connection(str(repo.state.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute("SELECT count(*) FROM waiters WHERE held = 1").get == 0
    finally:
        db.close()


def _seconds(since: str, later: str) -> float:
    from coordinator.words.clock import from_iso

    return (from_iso(later) - from_iso(since)) / 1000
