"""Idempotency keys: a request takes effect once, whatever becomes of the connection and the daemon."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import urllib.error
import urllib.request
from typing import Any

import msgspec
import pytest

from coordinator.client.client import Client
from coordinator.client.locating import connect
from coordinator.files.content import digest
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.effort import examples
from tests.waiting import until


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def titles(client: Client) -> list[str]:
    return [one.title for one in client.call(rq.Tasks()).items]


def test_asked_again_under_its_key_it_is_answered_as_before(repo: Repo) -> None:
    boss = repo.client()
    first = boss.call(rq.TaskAdd(title="one"), key="k-1")
    again = boss.call(rq.TaskAdd(title="one"), key="k-1")
    assert again == first and titles(boss) == ["one"]
    assert boss.call(rq.TaskAdd(title="one"), key="k-2").task == "T-2"
    with pytest.raises(Refusal) as other:
        boss.call(rq.TaskAdd(title="two"), key="k-1")
    assert other.value.code is Code.CONFLICT and titles(boss) == ["one", "one"]
    for bad in ("", "a b", "x" * 201, "ü"):
        with pytest.raises(Refusal) as wrong:
            boss.call(rq.TaskAdd(title="two"), key=bad)
        assert wrong.value.code is Code.INVALID
    os.kill(repo.pid(), signal.SIGKILL)
    assert boss.call(rq.TaskAdd(title="one"), key="k-1") == first, "also by the next daemon"
    assert titles(boss) == ["one", "one"]


def test_how_long_one_waits_is_no_part_of_what_is_asked(repo: Repo) -> None:
    boss, ann = repo.client(), repo.client("ann")
    boss.task_add("one")
    first = ann.call(rq.TaskClaim(agent=ann.name(), wait_s=30), key="k")
    again = ann.call(rq.TaskClaim(agent=ann.name()), key="k")
    assert again == first and first.task.task == "T-1"


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("asks", [False, True])
def test_a_grant_that_was_waited_for_is_answered_once(repo: Repo, killed: bool, asks: bool) -> None:
    """Nobody hears the first answer: who asks again under its key is told the same, and that it had it not before."""
    with repo.client("boss") as boss:
        boss.acquire("a.py")
        token = repo.client().call(rq.Register(agent="ann")).token
        ann = Client(repo.root, agent="ann", token=token)
        ask = rq.Acquire(agent="ann", resources=["a.py"], wait_s=30, retry=False)
        line = {"id": 1, "op": "acquire", "v": 1, "token": token, "key": "k", "params": msgspec.to_builtins(ask)}
        deaf = connect(repo.state)
        assert deaf is not None
        deaf.sendall(json.dumps(line).encode() + b"\n")
        until(lambda: boss.call(rq.Locks()).waiters)
        if asks:  # the place is called otherwise then
            ann.call(rq.RequestFile(agent=ann.name(), resource="a.py", reason="r"))
        boss.release("a.py")
        until(lambda: [one.locked_by for one in boss.call(rq.Locks()).items] == [ann.agent])
        if killed:
            os.kill(repo.pid(), signal.SIGKILL)
        first = ann.call(ask, key="k")
        assert [one.reentrant for one in first.leases] == [False]
        assert ann.call(msgspec.structs.replace(ask, wait_s=0.0), key="k") == first
        ann.release("a.py")
        assert ann.call(ask, key="k") == first and boss.call(rq.Locks()).items == [], "it takes effect once"
        deaf.close()
        ann.close()


def test_who_looks_after_the_coordinator_died_is_told_of_the_grant_that_came_then(repo: Repo) -> None:
    """It stands in line anew, by the same key: the grant from there is the answer to it, and nothing that it had before."""
    with repo.client("boss") as boss:
        boss.acquire("a.py", ttl=600)
        token = repo.client().call(rq.Register(agent="ann")).token
        ask = rq.Acquire(agent="ann", resources=["a.py"], wait_s=30)
        line = {"id": 1, "op": "acquire", "v": 1, "token": token, "key": "k", "params": msgspec.to_builtins(ask)}
        deaf = connect(repo.state)
        assert deaf is not None
        deaf.sendall(json.dumps(line).encode() + b"\n")
        until(lambda: boss.call(rq.Locks()).waiters)
        os.kill(repo.pid(), signal.SIGKILL)
        deaf.close()
        now = msgspec.structs.replace(ask, wait_s=0.0)
        with Client(repo.root, agent="ann", token=token) as ann:
            with pytest.raises(Refusal) as locked:
                ann.call(now, key="k")
            assert locked.value.code is Code.LOCKED
            boss.release("a.py")
            until(lambda: [one.locked_by for one in boss.call(rq.Locks()).items] == ["ann"])
            assert [one.reentrant for one in ann.call(now, key="k").leases] == [False]


def test_a_wait_that_was_in_vain_is_asked_anew(repo: Repo) -> None:
    with repo.client("boss") as boss, repo.client("ann") as ann:
        boss.acquire("a.py")
        ask = rq.Acquire(agent=ann.name(), resources=["a.py"], wait_s=0.2)
        with pytest.raises(Refusal):
            ann.call(ask, key="k")
        boss.release("a.py")
        until(lambda: boss.call(rq.Locks()).items)
        ann.release("a.py")
        assert ann.call(ask, key="k").leases[0].fencing_token == 3


@pytest.mark.parametrize("stays", [False, True])
def test_who_waits_when_the_coordinator_ends_stays_in_line_only_if_it_said_so(repo: Repo, stays: bool) -> None:
    codes: list[Code] = []

    def wait() -> None:
        try:
            ann.call(rq.Acquire(agent=ann.name(), resources=["a.py"], wait_s=30, retry=stays))
        except Refusal as refusal:
            codes.append(refusal.code)

    with repo.client("boss") as boss, repo.client("ann") as ann:
        boss.acquire("a.py")
        waits = threading.Thread(target=wait)
        waits.start()
        until(lambda: boss.call(rq.Locks()).waiters)
        repo.coord("down")
        waits.join()
        repo.coord("up")
        assert codes == [Code.SHUTTING_DOWN]
        assert len(boss.call(rq.Locks()).waiters) == stays


def test_a_refusal_is_not_kept(repo: Repo) -> None:
    boss, ann = repo.client(), repo.client("ann")
    ann.acquire("key:a:1")
    put = rq.StatePut(agent="boss", key="key:a:1", value=raw(1), version=0)
    with pytest.raises(Refusal) as held:
        boss.call(put, key="k")
    assert held.value.code is Code.LOCKED
    ann.release("key:a:1")
    assert boss.call(put, key="k").version == 1 and boss.call(put, key="k").version == 1


def test_tokens_are_told_again_and_not_kept(repo: Repo) -> None:
    boss = repo.client()
    ann = boss.call(rq.Register(agent="ann"), key="register-ann")
    assert boss.call(rq.Register(agent="ann"), key="register-ann") == ann
    assert boss.call(rq.Register(agent="bob")).token != ann.token
    mine = Client(repo.root, agent="ann", token=ann.token)
    lease = mine.call(rq.Acquire(agent="ann", resources=["a.py"]), key="lease")
    again = mine.call(rq.Acquire(agent="ann", resources=["a.py"]), key="lease")
    assert again == lease and again.leases[0].lease_token
    kept = b"".join(path.read_bytes() for path in repo.state.path.glob("coord.db*"))
    assert str(lease.leases[0].lease_token).encode() not in kept and ann.token.encode() not in kept


def test_a_key_is_its_askers_own(repo: Repo) -> None:
    one, two = repo.client("one"), repo.client("two")
    one.register()
    two.register()
    assert one.call(rq.TaskAdd(title="x"), key="k").task == "T-1"
    assert two.call(rq.TaskAdd(title="y"), key="k").task == "T-2"


def test_what_takes_several_transactions_is_done_once(repo: Repo) -> None:
    repo.write("a.py", "def f():\n    return 1\n")
    ann = repo.client("ann")
    ann.acquire("a.py::f")
    commit = rq.CommitRegion(agent="ann", regions=[rq.RegionText(resource="a.py::f", text="def f():\n    return 2\n")])
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(ann.call(commit, key="c"))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(answers) == 4 and all(one == answers[0] for one in answers)
    repo.write("a.py", "def f():\n    return 3\n")
    assert ann.call(commit, key="c") == answers[0] and "return 3" in repo.read("a.py")


def test_over_http(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    base, bearer = repo.state.http.read_text().strip(), repo.state.bearer.read_text().strip()

    def add(title: str) -> tuple[int, Any]:
        asked = urllib.request.Request(base + "/v1/tasks", json.dumps({"title": title}).encode(), {
            "Authorization": f"Bearer {bearer}", "Idempotency-Key": "from-http"}, method="POST")
        try:
            with urllib.request.urlopen(asked, timeout=20) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    assert add("one") == add("one") and add("one")[1]["task"] == "T-1"
    assert add("two")[0] == 409


def test_a_client_whose_daemon_is_killed_again_and_again_does_each_thing_once(repo: Repo) -> None:
    """The client sends a request again, under its own key, when the connection broke: nothing is
    lost, and nothing is done twice."""
    boss = repo.client()
    boss.call(rq.StatePut(agent="boss", key="key:n", value=raw(0), version=0))
    n, kills = -1, 0
    stop = threading.Event()

    def killing() -> None:
        nonlocal kills
        done = -1
        while not stop.wait(0.02):
            # (Not one that is just starting, nor before it has done something: on a busy machine no request would end.)
            if n > done and (serving := connect(repo.state)) is not None:
                serving.close()
                stop.wait(0.3)
                done = n + 1
                os.kill(repo.pid(), signal.SIGKILL)
                kills += 1

    killer = threading.Thread(target=killing)
    killer.start()
    try:
        while kills < 6:
            n += 1
            assert boss.call(rq.StatePut(agent="boss", key="key:n", value=raw(n + 1), version=n + 1)).version == n + 2
            boss.call(rq.TaskAdd(title=f"task {n}"))
    finally:
        stop.set()
        killer.join()
    titles: list[str] = []
    page = boss.call(rq.Tasks(limit=5000))
    titles += [one.title for one in page.items]
    while page.next is not None:
        page = boss.call(rq.Tasks(limit=5000, after=int(page.next)))
        titles += [one.title for one in page.items]
    assert titles == [f"task {one}" for one in range(n + 1)]
    assert boss.call(rq.StateGet(key="key:n")).version == n + 2


@pytest.mark.parametrize("by", ["propose", "commit-region"])
def test_what_a_kill_has_cut_off_while_it_was_written_is_answered_as_done(repo: Repo, by: str) -> None:
    """Who asks again is told of the write that landed, not that somebody had written before."""
    repo.write("n.py", "def f():\n    return 0\n")
    ann, region = repo.client("ann"), "n.py::f"
    if by == "commit-region":
        ann.call(rq.Acquire(agent="ann", resources=[region], ttl_s=3600))
    stop, chance = threading.Event(), random.Random(5)
    n, kills, last = 0, 0, digest(repo.read("n.py").encode())

    def killing() -> None:
        nonlocal kills
        done = 0
        while not stop.wait(0.02):
            if n > done and (serving := connect(repo.state)) is not None:  # (it has done something)
                serving.close()
                stop.wait(chance.uniform(0.05, 0.3))
                done = n + 1
                os.kill(repo.pid(), signal.SIGKILL)
                kills += 1

    killer = threading.Thread(target=killing)
    killer.start()
    try:
        while kills < examples(8):
            n += 1
            text = f"def f():\n    return {n}\n"
            if by == "propose":
                applied = ann.call(rq.Propose(agent="ann", changes=[
                    rq.ProposedChange(resource="n.py", content=text, version=last)]))
                last = str(applied.changes[0].version)
            else:
                made = ann.call(rq.CommitRegion(agent="ann", regions=[
                    rq.RegionText(resource=region, text=text, content_hash=last)]))
                last = str(made.regions[0].content_hash)
            assert repo.read("n.py") == text
    finally:
        stop.set()
        killer.join()


def test_a_proposal_that_is_kept_is_kept_once_however_often_it_is_asked(repo: Repo) -> None:
    repo.write("a.py", "one\n")
    ann, bob = repo.client("ann"), repo.client("bob")
    bob.acquire("a.py")
    asked = rq.Propose(agent="ann", retry=True, changes=[
        rq.ProposedChange(resource="a.py", content="two\n", version=digest(b"one\n"))])
    kept = set()
    for _ in range(3):
        with pytest.raises(Refusal) as no:
            ann.call(asked, key="night-1")
        kept.add(no.value.facts["step"])
    assert kept == {"S-1"}
