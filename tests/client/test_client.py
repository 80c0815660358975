"""The Python client: leases as context managers, lost leases, reconnecting, threads."""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import apsw
import psutil
import pytest

from coordinator import AsyncClient, Client, Code, LeaseLost, Refusal
from coordinator.client import connection
from coordinator.client.transport import Link
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso
from tests.conftest import Repo
from tests.effort import examples
from tests.waiting import patience, until


def held_by(repo: Repo) -> list[str]:
    return [x.locked_by for x in repo.client().call(rq.Locks()).items]


def test_a_lease_is_held_renewed_and_released(repo: Repo) -> None:
    with Client(repo.root, agent="ann") as ann:
        with ann.lease("key:account:12345", ttl=0.6) as held:
            first = ann.call(rq.Locks()).items[0].expires_at
            until(lambda: ann.call(rq.Locks()).items[0].expires_at > first)
            assert held.fencing_token == 1 and held_by(repo) == ["ann.1"]
        assert held_by(repo) == []


def test_who_follows_hears_of_a_coordinator_that_is_killed_before_it_has_read_that(repo: Repo) -> None:
    with Client(repo.root, agent="ann") as ann, Client(repo.root, agent="bob") as bob:
        bob.name()  # so that it is connected
        ann.task_add("one")
        pid = ann.health().pid
        os.kill(pid, signal.SIGSTOP)
        heard: list[BaseException] = []

        def follow() -> None:
            try:
                for _ in bob.follow(after=0):
                    pass
            except BaseException as bad:
                heard.append(bad)

        thread = threading.Thread(target=follow)
        thread.start()
        time.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        thread.join(20)
        assert [getattr(one, "code", one) for one in heard] == [Code.DAEMON_DOWN]


def test_the_body_is_not_entered_when_it_is_locked(repo: Repo) -> None:
    repo.client("ann").acquire("a.py")
    with pytest.raises(Refusal) as met, repo.client("bob").lease("a.py"):
        raise AssertionError("entered")
    assert met.value.code is Code.LOCKED
    assert repo.client().call(rq.Locks()).waiters == []


def test_whoever_checks_knows_at_once(repo: Repo) -> None:
    """Also long before it is renewed; and where nobody answers, the last renewal tells."""
    with pytest.raises(LeaseLost, match=r"a\.py"), repo.client("ann").lease("a.py", "b.py") as held:
        held.check()
        os.kill(repo.pid(), signal.SIGSTOP)
        held.check()
        os.kill(repo.pid(), signal.SIGCONT)
        repo.coord("unlock", "a.py", "--agent", held.agent, "--force")
        held.check()
        raise AssertionError("it went on")
    assert held.lost and repo.client().call(rq.Locks()).items == []

    async def body() -> None:
        async with AsyncClient(repo.root, agent="kim") as kim, kim.lease("a.py") as theirs:
            await theirs.confirm()
            repo.coord("unlock", "a.py", "--agent", theirs.agent, "--force")
            theirs.check()
            await theirs.confirm()

    with pytest.raises(LeaseLost):
        asyncio.run(body())


def test_a_lost_lease_is_told_to_the_body(repo: Repo) -> None:
    ann = repo.client("ann")
    with pytest.raises(LeaseLost, match=r"a\.py"), ann.lease("a.py", ttl=0.3) as held:
        repo.coord("unlock", "a.py", "--agent", "eve", "--force")
        until(lambda: held.lost)
        held.progress()


def test_a_lease_lost_unnoticed_is_told_at_the_end(repo: Repo) -> None:
    ann = repo.client("ann")
    with pytest.raises(LeaseLost), ann.lease("a.py", ttl=30):
        repo.coord("unlock", "a.py", "--agent", "eve", "--force")


def test_a_hung_body_loses_its_lease(repo: Repo) -> None:
    ann = repo.client("ann")
    with pytest.raises(LeaseLost, match="no progress"), ann.lease("a.py", ttl=0.2, stall=0.1) as h:
        until(lambda: h.lost)
        until(lambda: not held_by(repo))


def test_being_inside_twice_is_asked_for(repo: Repo) -> None:
    with repo.client("ann") as ann, ann.lease("a.py") as outer:
        with pytest.raises(Refusal, match="already") as no, ann.lease("a.py", "b.py", wait=20):
            raise AssertionError("as every lock")
        assert no.value.code is Code.LOCKED and held_by(repo) == ["ann.1"]
        with ann.lease("a.py", "b.py", reentrant=True) as inner:
            assert held_by(repo) == ["ann.1", "ann.1"] and inner.leases[0].fencing_token == outer.fencing_token
        assert held_by(repo) == ["ann.1"]
        outer.check()
    assert held_by(repo) == []


def test_an_error_in_the_body_releases(repo: Repo) -> None:
    ann = repo.client("ann")
    with pytest.raises(ZeroDivisionError), ann.lease("a.py"):
        _ = 1 / 0
    assert held_by(repo) == []


def test_the_lease_outlives_the_daemon(repo: Repo) -> None:
    with repo.client("ann") as ann, ann.lease("a.py", ttl=5) as held:
        os.kill(repo.pid(), signal.SIGKILL)
        until(lambda: held_by(repo) == ["ann.1"])
        held.progress()


def test_clients_without_a_name_exclude_each_other(repo: Repo) -> None:
    with Client(repo.root) as one, Client(repo.root) as two:
        one.acquire("a.py")
        with pytest.raises(Refusal):
            two.acquire("a.py")


def test_a_root_that_does_not_exist_is_an_error(repo: Repo) -> None:
    """It does not mean the folder above."""
    with pytest.raises(Refusal) as met:
        Client(repo.root / "mistyped")
    assert met.value.code is Code.INVALID and "mistyped" in met.value.message
    assert not repo.state.path.exists()


def test_one_client_in_many_threads(repo: Repo) -> None:
    ann = repo.client("ann")
    ann.register()
    wrong: list[BaseException] = []

    def work(i: int) -> None:
        try:
            for j in range(20):
                assert ann.acquire(f"{i}/{j}.py").leases[0].resource == f"{i}/{j}.py"
        except BaseException as bad:
            wrong.append(bad)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(held_by(repo)) == 160


def test_a_lease_is_renewed_while_its_body_waits(repo: Repo) -> None:
    # Given a lease, and a body that waits for another one for longer than the lease lasts
    ann, bob = repo.client("ann"), repo.client("bob")
    bob.acquire("key:b")
    with ann.lease("key:a", ttl=0.6) as held:
        waiting = threading.Thread(target=lambda: ann.acquire("key:b", wait=60))
        waiting.start()
        until(lambda: bob.call(rq.Locks()).waiters)
        first = next(x.expires_at for x in bob.call(rq.Locks()).items if x.resource == "key:a")
        # I expect it to be renewed beyond its first end
        until(lambda: iso(time.time_ns() // 1_000_000) > first)
        held.check()
        assert {x.resource for x in bob.call(rq.Locks()).items} == {"key:a", "key:b"}
        bob.release("key:b")
        waiting.join(30)
    ann.close()


def test_threads_of_one_client_do_not_wait_for_each_other(repo: Repo) -> None:
    ann, bob = repo.client("ann"), repo.client("bob")
    ann.register()
    bob.acquire("key:b")
    waiting = threading.Thread(target=lambda: ann.acquire("key:b", wait=20))
    waiting.start()
    until(lambda: bob.call(rq.Locks()).waiters)
    ann.acquire("key:a")
    assert bob.call(rq.Locks()).waiters, "it was served beside the one that waits"
    bob.release("key:b")
    waiting.join(30)
    assert {x.locked_by for x in bob.call(rq.Locks()).items} == {"ann"}


def test_hanging_up_ends_every_question_and_closing_leaves_no_connection(repo: Repo) -> None:
    ann, bob = repo.client("ann"), repo.client("bob")
    ann.register()
    bob.acquire("key:b")
    met: list[Code] = []

    def ask() -> None:
        with pytest.raises(Refusal) as no:
            ann.acquire("key:b", wait=60)
        met.append(no.value.code)

    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    until(lambda: connections(repo) == 4)
    until(lambda: bob.call(rq.Locks()).waiters)
    ann.hang_up()
    for thread in asking:
        thread.join(10)
    assert met == [Code.DAEMON_DOWN] * 3
    assert ann.call(rq.Status()).agents, "what is asked later is asked as always"
    ann.close()
    bob.close()
    until(lambda: connections(repo) == 0)


def test_a_lease_is_given_back_by_who_has_hung_up_while_it_was_held(repo: Repo) -> None:
    with repo.client("ann") as ann:
        with ann.lease("a.py", ttl=600):
            ann.hang_up()
        assert not ann.locks().items
        assert ann.hang_ups == 1
        mark = ann.hang_ups
        ann.hang_up()
        with pytest.raises(Refusal, match="hung up: `status` was not asked") as no:
            ann.call(rq.Status(), mark=mark)
        assert no.value.code is Code.DAEMON_DOWN


def test_hanging_up_ends_what_follows(repo: Repo) -> None:
    met: list[Refusal] = []
    with repo.client("ann") as ann:
        ann.register()

        def follow() -> None:
            try:
                for _ in ann.follow(0):
                    seen.set()
            except Refusal as refusal:
                met.append(refusal)

        seen = threading.Event()
        thread = threading.Thread(target=follow)
        thread.start()
        assert seen.wait(10)
        ann.hang_up()
        thread.join(10)
        assert [one.code for one in met] == [Code.DAEMON_DOWN] and "hung up" in met[0].message
        assert next(iter(ann.follow(0))).seq == 1, "and may do so again"


class Alarm(Exception):
    """What a program's own signal handler raises."""


@pytest.mark.parametrize(("take", "stays"), [
    (lambda ann: ann.acquire("a.py", wait=60), True),
    (lambda ann: ann.acquire("a.py", wait=60, retry=False), False),
    (lambda ann: ann.lease("a.py", wait=60).__enter__(), False),
], ids=["acquire", "no retry", "lease"])
def test_who_is_interrupted_in_line_is_granted_nothing_as_if_it_listened(
    repo: Repo, take: Callable[[Client], object], stays: bool,
) -> None:
    """With `retry` it is offered the file for a while, as whoever was refused; else it has left."""
    def interrupt(*_: object) -> None:
        raise Alarm

    def when_waiting() -> None:
        until(lambda: bob.call(rq.Locks()).waiters)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    ann, bob = repo.client("ann"), repo.client("bob")
    bob.acquire("a.py")
    before = signal.signal(signal.SIGUSR1, interrupt)
    watching = threading.Thread(target=when_waiting)
    try:
        watching.start()
        with pytest.raises(Alarm):
            take(ann)
    finally:
        watching.join()
        signal.signal(signal.SIGUSR1, before)
    gone_from_line(repo, stays)
    bob.release("a.py")
    if stays:
        until(lambda: held_by(repo) == ["ann"])
    offers(repo, stays)
    assert ann.acquire("a.py").leases  # it can be used on


def gone_from_line(repo: Repo, stays: bool) -> None:
    """Nobody is taken to listen any more; with `stays` the place in line is kept."""
    def place() -> list[int]:
        db = apsw.Connection(str(repo.state.database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return [int(held) for (held,) in db.execute("SELECT held FROM waiters")]
        finally:
            db.close()

    until(lambda: place() == ([0] if stays else []))


def offers(repo: Repo, stays: bool) -> None:
    """What is held is an offer, for `leases.offered_ttl_s`."""
    items = repo.client().call(rq.Locks()).items
    assert [one.locked_by for one in items] == (["ann"] if stays else [])
    for one in items:
        assert from_iso(one.expires_at) - from_iso(one.locked_at) == 120_000


@pytest.mark.parametrize("retry", [True, False])
def test_who_hangs_up_in_line_is_granted_nothing_as_if_it_listened(repo: Repo, retry: bool) -> None:
    bob = repo.client("bob")
    bob.acquire("a.py")
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(str(repo.state.socket()))
        wire.sendall(json.dumps({"id": 1, "op": "acquire", "params": {
            "agent": "ann", "resources": ["a.py"], "wait_s": 60, "retry": retry}}).encode() + b"\n")
        until(lambda: bob.call(rq.Locks()).waiters)
    gone_from_line(repo, retry)
    bob.release("a.py")
    if retry:
        until(lambda: held_by(repo) == ["ann"])
    offers(repo, retry)


def test_what_is_too_long_is_refused_before_it_is_sent(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    with repo.client("ann") as ann:
        assert ann.task_list().items == []
        with monkeypatch.context() as patched:
            patched.setattr(Link, "exchange", lambda *_: pytest.fail("it was sent"))
            with pytest.raises(Refusal) as no:
                ann.task_add("long", prompt="x" * 9_000_000)
        assert no.value.code is Code.LIMIT
        assert ann.task_list().items == []


@pytest.mark.parametrize("wrong", [math.inf, -math.inf, math.nan])
def test_a_number_that_json_does_not_have_is_refused(repo: Repo, wrong: float) -> None:
    with repo.client("ann") as ann:
        with pytest.raises(Refusal, match="`wait_s`") as no:
            ann.acquire("a.py", wait=wrong)
        assert no.value.code is Code.INVALID
        with pytest.raises(Refusal, match="`ttl`"), ann.lease("a.py", ttl=wrong):
            raise AssertionError("entered")
        with pytest.raises(Refusal, match="JSON does not have") as no:
            ann.state_put("key:a", {"deep": [1, (wrong,)], "none": None}, version=0)
        assert no.value.facts["field"] == "value"
        assert ann.state_put("key:a", {"none": None}, version=0).version == 1
        assert held_by(repo) == []


def test_bytes_are_no_name_and_a_word_is_no_time(repo: Repo) -> None:
    with repo.client("ann") as ann:
        for wrong in (lambda: ann.acquire(b"a.py"), lambda: ann.acquire("a.py", wait="x")):  # type: ignore[arg-type]
            with pytest.raises(Refusal, match="must be"):
                wrong()
        assert ann.call(rq.Locks()).items == []


def test_a_name_that_is_no_text_is_refused(repo: Repo) -> None:
    with repo.client("ann") as ann, pytest.raises(Refusal, match=r"\\udcff") as no:
        ann.acquire("caf\udcff.py")  # as os.listdir gives what is not UTF-8
    assert no.value.code is Code.INVALID


HALF = "half a sign: \ud800"


SAYS_HALF: list[tuple[str, Callable[[Any], Any]]] = [
    ("value", lambda client: client.state_put("key:a", {"deep": [HALF]}, version=0)),
    ("value", lambda client: client.state_put("key:a", {HALF: 1}, version=0)),
    ("patch", lambda client: client.state_patch("key:a", HALF, version=0)),
    ("key", lambda client: client.state_put(f"key:{HALF}", 1, version=0)),
    ("wanted", lambda client: client.change_add("key:a", HALF)),
    ("arguments", lambda client: client.step_add("mail", arguments=[HALF])),
    ("text", lambda client: client.message_send("bob", HALF)),
    ("resources", lambda client: client.acquire("a.py", HALF)),
    ("regions", lambda client: client.commit_region("a.py::f", HALF)),
    ("prompt", lambda client: client.task_add("one", prompt=HALF)),
    ("key", lambda client: client.call(rq.TaskAdd(title="one"), key=HALF)),
    ("after", lambda client: client.task_add("one", after=[HALF])),
]


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_text_that_is_no_unicode_is_refused_wherever_it_stands(repo: Repo, kind: type) -> None:
    async def run() -> None:
        client: Any = kind(repo.root, agent="ann")
        for field, ask in SAYS_HALF * 2:  # and the connection goes on
            with pytest.raises(Refusal, match="UTF-8") as no:
                answer = ask(client)
                if kind is AsyncClient:
                    await answer
            assert no.value.code is Code.INVALID and no.value.facts["field"] == field and f"`{field}`" in no.value.message
        closed = client.close()
        if kind is AsyncClient:
            await closed

    asyncio.run(run())
    with repo.client("boss") as boss:
        assert boss.task_list().items == [] and boss.locks().items == []


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_name_or_token_that_is_no_unicode_is_refused(repo: Repo, kind: type) -> None:
    async def run() -> None:
        for how in ({"agent": HALF}, {"agent": "ann", "token": HALF}):
            client: Any = kind(repo.root, **how)
            with pytest.raises(Refusal, match="UTF-8") as no:
                answer = client.acquire("a.py")
                if kind is AsyncClient:
                    await answer
            assert no.value.code is Code.INVALID and no.value.facts["field"] == list(how)[-1]

    asyncio.run(run())


def test_refusals_pass_between_processes(repo: Repo) -> None:
    repo.client("bob").acquire("a.py")
    with pytest.raises(Refusal) as no:
        repo.client("ann").acquire("a.py", retry=False)
    copy = pickle.loads(pickle.dumps(no.value))
    assert copy.body() == no.value.body() and str(copy) == str(no.value)
    lost = pickle.loads(pickle.dumps(LeaseLost(["a.py", "b.py"], "it lapsed")))
    assert str(lost) == "The lease on a.py, b.py was lost: it lapsed"
    assert lost.resources == ["a.py", "b.py"]
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(Refusal) as over:
        pool.apply(_take_a, (str(repo.root),))
    assert over.value.code is Code.LOCKED and over.value.facts["conflicts"][0]["holder"] == "bob"


def _take_a(root: str) -> None:
    Client(root, agent="cyd").acquire("a.py", retry=False)


def connections(repo: Repo) -> int:
    """How many the coordinator has."""
    path = str(repo.state.socket())
    found = psutil.Process(repo.pid()).net_connections(kind="unix")
    return [one.laddr for one in found].count(path) - 1  # it listens with one


def test_a_forked_child_speaks_for_itself_and_ends_no_lease_of_its_parent(repo: Repo) -> None:
    with repo.client("ann") as ann, ann.lease("key:a", ttl=2) as held:
        child = os.fork()
        if child == 0:  # as `multiprocessing` does; the child leaves the body by an exception
            code = 1
            try:
                ann.acquire("key:child")
                held.end()
                code = 0
            finally:
                os._exit(code)
        for n in range(20):  # answers would be taken by the wrong one
            assert ann.acquire(f"key:{n}").leases[0].resource == f"key:{n}"
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        held.check()
        assert "key:a" in {x.resource for x in ann.call(rq.Locks()).items}


@pytest.mark.usefixtures("from_nothing")
def test_who_starts_it_in_vain_leaves_nobody_behind_to_take_over(repo: Repo) -> None:
    # Given many that start the coordinator at one moment
    starters = [threading.Thread(target=connection.start, args=(repo.state,)) for _ in range(8)]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    # When it is stopped at once
    repo.down()
    # Then none of those that came too late serves instead
    still = [one for one in psutil.process_iter(["cmdline"])
             if str(repo.root) in (one.info["cmdline"] or [])]
    psutil.wait_procs(still, timeout=10)
    with pytest.raises(Refusal) as met:
        Client(repo.root, autostart=False).call(rq.Locks())
    assert met.value.code is Code.DAEMON_DOWN


@pytest.mark.parametrize("names", [("a.py::f", "a.py::g"), ("a.py", "b.py"), ("a.py::f", "b.py::f"), ("key:a", "a.py::g")])
def test_a_circle_of_two_that_wait_ends_at_once(repo: Repo, names: tuple[str, str]) -> None:
    """Whatever has to be looked at before it is decided."""
    for name in ("a.py", "b.py"):
        repo.write(name, "def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    for n in range(examples(5)):
        both = {repo.client(f"ann{n}"): names, repo.client(f"bob{n}"): names[::-1]}
        for client, (mine, _) in both.items():
            client.acquire(mine)
        told: list[Code | None] = []

        def goes(client: Client, mine: str, theirs: str, told: list[Code | None] = told) -> None:
            try:
                client.acquire(theirs, wait=600)
                told.append(None)
            except Refusal as no:
                told.append(no.code)
                client.release(mine)

        threads = [threading.Thread(target=goes, args=(client, *words), daemon=True) for client, words in both.items()]
        for one in threads:
            one.start()
            until(lambda both=both: next(iter(both)).call(rq.Locks()).waiters)
        for one in threads:
            one.join(patience(30))
        assert sorted(told, key=str) == [Code.DEADLOCK, None], told
        for client in both:
            client.leave()


def test_a_claim_that_waits_is_noted_once_however_often_it_looks_again(repo: Repo) -> None:
    """As soon as others hold what it could have; for the report."""
    with repo.client("ann") as ann, repo.client("bob") as bob, repo.client() as person:
        noted = lambda: [one.agent for one in person.call(rq.Events(kind="claim_waits")).items]  # noqa: E731
        person.call(rq.TaskAdd(title="one", resources=["a.py"]))
        ann.claim()
        waits = threading.Thread(target=lambda: bob.claim(wait=20, ttl=60))
        waits.start()
        time.sleep(0.3)
        assert noted() == [], "nothing is ready"
        person.call(rq.TaskAdd(title="two", resources=["a.py"]))
        until(lambda: noted() == ["bob"])
        for n in range(5):  # (each has it look again)
            person.call(rq.TaskAdd(title="three", resources=["a.py"]))
            ann.acquire(f"f{n}.py")
        assert noted() == ["bob"]
        ann.done("T-1", "ok")
        waits.join(20)
        assert person.call(rq.TaskShow(task="T-2")).claimed_by == "bob"
        report = person.call(rq.Report())
        assert [(one.agent, one.holder) for one in report.waited] in ([("bob", "ann")], []), "less than a second is nobody's"
