"""The daemon killed again and again under owners, changes, values and proposals of sixteen clients: what was
acknowledged is there once, and each proposed file is wholly old or new."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable

import msgspec
import pytest

from coordinator.client.locating import connect
from coordinator.client.owner import Owner
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo

pytestmark = pytest.mark.chaos
CLIENTS, KILLS = 5, 12


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def again(do: Callable[[], object]) -> object:
    """Until it is answered: a daemon that is killed while it starts is met by another try."""
    for _ in range(200):
        try:
            return do()
        except Refusal as refusal:
            if refusal.code not in (Code.DAEMON_DOWN, Code.SHUTTING_DOWN):
                raise
            time.sleep(0.05)
    raise AssertionError("no daemon came up again")


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_done_twice(repo: Repo, seed: int) -> None:
    over, bad = threading.Event(), list[BaseException]()
    asked: list[list[str]] = [[] for _ in range(CLIENTS)]
    counted = [0] * CLIENTS
    written = [""] * CLIENTS
    for n in range(CLIENTS):
        repo.write(f"f{n}.txt", "")

    def asks(n: int) -> None:
        client = repo.client(f"asker-{n}")
        while not over.is_set():
            key = f"{n}-{len(asked[n])}"  # of the request: whoever tries again asks the same
            try:
                made = again(lambda key=key: client.call(rq.ChangeAdd(agent=client.name(), key="key:sum", wanted=raw(1), attempts_max=50), key=key))
                asked[n].append(made.change)  # type: ignore[attr-defined]
            except Refusal as refusal:
                assert refusal.code is Code.LIMIT, refusal  # they are asked for faster than they can be applied
            time.sleep(0.02)

    def counts(n: int) -> None:
        client = repo.client(f"counter-{n}")
        while not over.is_set():
            now = counted[n]
            again(lambda now=now: client.call(rq.StatePut(agent=client.name(), key=f"key:count:{n}", value=raw(now + 1), version=now), key=f"c{n}-{now}"))
            counted[n] += 1

    def proposes(n: int) -> None:
        client = repo.client(f"writer-{n}")
        while not over.is_set():
            before, after = written[n], written[n] + f"{len(written[n])}\n"
            version = "sha256:" + hashlib.sha256(before.encode()).hexdigest()
            change = rq.ProposedChange(resource=f"f{n}.txt", version=version, content=after)
            try:
                again(lambda change=change: client.call(rq.Propose(agent=client.name(), changes=[change])))
            except Refusal as refusal:  # a crash came after it was written and before that was told
                assert refusal.code is Code.VERSION_CHANGED and repo.read(f"f{n}.txt") == after, refusal
            written[n] = after
            assert repo.read(f"f{n}.txt") == after

    def owns() -> None:
        client = repo.client("owner")
        while not over.is_set():
            with contextlib.suppress(Refusal):
                Owner(client, "key:sum", lambda value, wanted, change: (value or 0) + wanted, ttl=20.0).run(until_idle=True, wait=5.0)

    def guarded(work: Callable[..., None], *given: int) -> None:
        try:
            work(*given)
        except BaseException as failed:
            bad.append(failed)
            over.set()

    works = [threading.Thread(target=guarded, args=(work, n)) for n in range(CLIENTS) for work in (asks, counts, proposes)]
    works.append(threading.Thread(target=guarded, args=(owns,)))
    dice = random.Random(seed)
    again(lambda: repo.client().call(rq.Health()))
    for one in works:
        one.start()
    kills = 0
    while kills < KILLS and not over.is_set():
        time.sleep(dice.uniform(0.2, 1.2))
        if (serving := connect(repo.state)) is not None:
            serving.close()
            os.kill(repo.pid(), signal.SIGKILL)
            kills += 1
    over.set()
    for one in works:
        one.join()
    assert bad == [] and kills == KILLS
    boss = repo.client()
    again(lambda: Owner(repo.client("owner"), "key:sum", lambda value, wanted, change: (value or 0) + wanted).run(until_idle=True, wait=30.0))
    while again(lambda: boss.call(rq.Changes(key="key:sum"))).items:  # type: ignore[attr-defined]
        time.sleep(0.5)  # one that a crash cut off rests before it is tried again
        again(lambda: Owner(repo.client("owner"), "key:sum", lambda value, wanted, change: (value or 0) + wanted).run(until_idle=True, wait=30.0))
    total = sum(len(one) for one in asked)
    assert len({change for one in asked for change in one}) == total > 0
    sums = boss.call(rq.StateGet(key="key:sum"))
    assert (json.loads(bytes(sums.value)), sums.version) == (total, total)
    for n in range(CLIENTS):
        now = boss.call(rq.StateGet(key=f"key:count:{n}"))
        assert (json.loads(bytes(now.value)), now.version) == (counted[n], counted[n]) and counted[n] > 0
        assert repo.read(f"f{n}.txt") == written[n]
    assert boss.call(rq.Replay()).equal
