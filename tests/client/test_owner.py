"""Values that several change, through `update` and through their owner: nothing is lost, and what is no JSON is refused."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from coordinator.client.client import Client
from coordinator.client.owner import ChangeRefused, Owner, update
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.waiting import patience, until


def one_more(value: Any) -> Any:
    return {"n": (value or {"n": 0})["n"] + 1}


def test_threads_of_one_client_lose_no_update(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: update(client, "key:n", one_more), range(120)))
        assert client.state_get("key:n").decoded() == {"n": 120}
        assert client.locks().items == []


def test_a_thread_that_takes_long_loses_to_none_for_ever(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, ThreadPoolExecutor(3) as pool:
        over = threading.Event()

        def quick() -> int:
            done = 0
            while not over.is_set():
                update(client, "key:n", one_more)
                done += 1
            return done

        def slow(value: Any) -> Any:
            time.sleep(0.3)
            return one_more(value)

        others = [pool.submit(quick) for _ in range(2)]
        try:
            for _ in range(2):
                update(client, "key:n", slow)
        finally:
            over.set()
        done = sum(one.result(patience(30)) for one in others)
        assert client.state_get("key:n").decoded() == {"n": 2 + done}


def test_a_thread_stands_in_line_for_another_no_longer_than_it_may(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, ThreadPoolExecutor(1) as pool:
        at_it, go_on = threading.Event(), threading.Event()

        def slow(value: Any) -> Any:
            at_it.set()
            go_on.wait(30)
            return one_more(value)

        first = pool.submit(update, client, "key:n", slow, tries=0)
        assert at_it.wait(10)
        try:
            with pytest.raises(Refusal) as no:
                update(client, "key:n", one_more, wait=0.2)
        finally:
            go_on.set()
        assert no.value.code is Code.LOCKED and "key:n" in no.value.message and "web" in no.value.message
        assert first.result(patience(30)).version == 1 == client.state_get("key:n").version


def test_a_function_that_updates_what_it_is_asked_for_is_told_so(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client:
        def make(value: Any) -> Any:
            update(client, "key:n", one_more)
            return one_more(value)

        with pytest.raises(Refusal) as no:
            update(client, "key:n", make, wait=1)
        assert no.value.code is Code.VERSION_CHANGED


WRONG = pytest.mark.parametrize("wrong", [math.nan, math.inf, "half a sign: \ud800"])


@WRONG
def test_an_update_to_what_is_no_json_is_refused(repo: Repo, wrong: Any) -> None:
    with Client(repo.root, agent="web") as client:
        client.state_put("key:n", 1, version=0)
        for tries in (3, 0):  # optimistically, and under a lease
            with pytest.raises(Refusal) as no:
                update(client, "key:n", lambda value: {"n": [wrong]}, tries=tries)
            assert no.value.code is Code.INVALID and no.value.facts["field"] == "value"
        assert (client.state_get("key:n").decoded(), client.locks().items) == (1, [])


@WRONG
def test_an_owner_that_makes_what_is_no_json_has_failed(repo: Repo, wrong: Any) -> None:
    """As one whose function raises: nothing is stored, and the change is tried again."""
    with Client(repo.root, agent="bank") as bank, Client(repo.root, agent="ann") as ann:
        asked = ann.change_add("key:n", "this")
        assert Owner(bank, "key:n", lambda value, wanted, change: {"n": wrong}).run(until_idle=True) == 0
        shown = ann.change_show(asked.change)
        assert (shown.state, shown.attempts) == ("queued", 1) and "`value`" in shown.why
        with pytest.raises(Refusal):
            ann.state_get("key:n")


@pytest.mark.parametrize("asked", [True, False])
def test_an_owner_that_is_stopped_and_hung_up_on_has_ended(repo: Repo, asked: bool) -> None:
    bank, ends = Client(repo.root, agent="bank"), list[object]()
    owner = Owner(bank, "key:n", lambda value, wanted, change: wanted)

    def run() -> None:
        try:
            ends.append(owner.run())
        except Refusal as refusal:
            ends.append(refusal.code)

    thread = threading.Thread(target=run)
    thread.start()
    with repo.client("boss") as boss:
        until(lambda: boss.locks().items)
    until(lambda: bank._wire.asking)  # it asks for the next change
    if asked:
        owner.stop()
    bank.hang_up()
    thread.join(30)
    assert ends == [0 if asked else Code.DAEMON_DOWN]
    assert not bank.locks().items, "the key is given back"


def test_an_owner_goes_on_with_the_next_coordinator(repo: Repo) -> None:
    bank, ends = Client(repo.root, agent="bank"), list[int]()
    owner = Owner(bank, "key:n", lambda value, wanted, change: wanted)
    thread = threading.Thread(target=lambda: ends.append(owner.run()))
    thread.start()
    with repo.client("boss") as boss:
        until(lambda: boss.locks().items)
    until(lambda: bank._wire.asking)
    repo.coord("down")
    repo.coord("up")
    with repo.client("boss") as boss:
        boss.call(rq.ChangeAdd(agent=boss.name(), key="key:n", wanted=msgspec.Raw(b"7")))
        until(lambda: owner.applied == 1)
        owner.stop()
        bank.hang_up()
        thread.join(30)
        assert ends == [1] and not boss.locks().items


def test_a_refusal_that_comes_too_late_is_none(repo: Repo) -> None:
    with repo.client("bank") as bank, repo.client("boss") as boss:
        boss.call(rq.ChangeAdd(agent=boss.name(), key="key:n", wanted=msgspec.Raw(b"7")))

        def apply(value: Any, wanted: Any, change: rq.Change) -> Any:
            until(lambda: boss.call(rq.Changes()).items[0].state == "queued", 20)
            raise ChangeRefused("too late")

        owner = Owner(bank, "key:n", apply, give=1.0)
        owner.run(until_idle=True)
        assert owner.refused == 0 and boss.call(rq.Changes()).items[0].state == "queued"


def test_an_owner_that_is_stopped_ends_after_the_change_that_it_is_at(repo: Repo) -> None:
    bank, goes_on, is_at = Client(repo.root, agent="bank"), threading.Event(), threading.Event()

    def apply(value: Any, wanted: Any, change: rq.Change) -> Any:
        is_at.set()
        assert goes_on.wait(20)
        return wanted

    owner, ends = Owner(bank, "key:n", apply), list[int]()
    thread = threading.Thread(target=lambda: ends.append(owner.run()))
    thread.start()
    with repo.client("boss") as boss:
        until(lambda: boss.locks().items)
        asked = boss.call(rq.ChangeAdd(agent=boss.name(), key="key:n", wanted=msgspec.Raw(b"7")))
        assert is_at.wait(20) and owner.at == asked.change
        owner.stop()
        bank.hang_up()
        goes_on.set()
        thread.join(30)
        assert ends == [1] and owner.at is None
        assert boss.state_get("key:n").decoded() == 7 and not boss.locks().items
