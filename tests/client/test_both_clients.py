"""What the blocking client could do and the asynchronous one could not, or the other way round: both do it now."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from coordinator import AsyncClient, AsyncHeld, Client, Code, Held, Refusal
from coordinator.client import async_connection, connection, locating
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import patience, until


async def until_true(true: Callable[[], Awaitable[object]], seconds: float = 20.0) -> None:
    async with asyncio.timeout(patience(seconds)):
        while not await true():
            await asyncio.sleep(0.01)


def signatures(kind: type) -> dict[str, list[tuple[str, object, object]]]:
    """Each public method of a client, with its parameters and their defaults."""
    return {
        name: [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]
        for name, method in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_") or name == "__init__"}


def test_both_clients_have_the_same_methods_with_the_same_parameters() -> None:
    assert signatures(AsyncClient) == signatures(Client)
    asynchronous, blocking = signatures(AsyncHeld), signatures(Held)
    assert asynchronous.pop("confirm") == asynchronous.get("check")
    assert asynchronous.keys() == blocking.keys()


def test_what_differs_by_nature_has_the_same_names_on_both_sides() -> None:
    for name in ("concurrency", "transport"):
        sides = [__import__(f"coordinator.client.{prefix}{name}", fromlist=["x"]) for prefix in ("async_", "")]
        asynchronous, blocking = ({name.removeprefix("Async") for name in getattr(side, "__all__", ())} for side in sides)
        assert asynchronous == blocking - {"Grants"}, name


def test_an_asynchronous_client_hangs_up_on_what_waits_and_asks_as_always_later(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await bob.acquire("a.py")
            await ann.name()
            waits = [asyncio.create_task(ann.acquire("a.py", wait=60)), asyncio.create_task(ann.task_claim(wait=60))]

            async def in_line() -> object:
                return (await bob.locks()).waiters

            await until_true(in_line)
            mark = ann.hang_ups
            ann.hang_up()
            ends = await asyncio.wait_for(asyncio.gather(*waits, return_exceptions=True), patience(10))
            assert [end.code for end in ends if isinstance(end, Refusal)] == [Code.DAEMON_DOWN] * 2
            assert (await ann.status()).agents and ann.hang_ups == mark + 1
            with pytest.raises(Refusal, match="hung up: `status` was not asked"):
                await ann.call(rq.Status(), mark=mark)
            ann.hang_up(for_good=True)
            with pytest.raises(Refusal, match="has hung up"):
                await ann.status()

    asyncio.run(work())


def test_hanging_up_ends_what_an_asynchronous_client_follows(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann:
            await ann.name()
            seen = 0
            with pytest.raises(Refusal, match="hung up") as met:
                async for _ in ann.follow(0):
                    seen += 1
                    ann.hang_up()
            assert seen and met.value.code is Code.DAEMON_DOWN

    asyncio.run(work())


def test_an_asynchronous_client_holds_what_it_has_acquired_until_nobody_has_that(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann:
            async def expires() -> list[str]:
                return [lease.expires_at for lease in (await ann.locks()).items]

            held = ann.hold(await ann.acquire("key:a", ttl=0.6), ttl=0.6)
            first = await expires()

            async def renewed() -> bool:
                return await expires() > first

            await until_true(renewed)
            await held.end()
            assert await expires() == []
            held = ann.hold(await ann.acquire("key:b", ttl=0.6), ttl=0.6)
            del held
            gc.collect()

            async def gone() -> bool:
                return await expires() == []

            await until_true(gone)

    asyncio.run(work())


def test_a_body_asks_as_its_holder_also_where_it_waits(repo: Repo) -> None:
    """The owner of a key waits for changes of it: of a key that its body holds."""
    with Client(repo.root, agent="bob") as bob, Client(repo.root, agent="ann") as ann:
        bob.change_add("key:n", 1)
        with ann.lease("key:n"):
            given = ann.change_next("key:n", wait=5)
            ann.change_done(given.change.change, given.change.attempts, 1)
        bob.change_add("key:n", 2)

    async def work() -> None:
        async with AsyncClient(repo.root, agent="cyd") as cyd, cyd.lease("key:n"):
            given = await cyd.change_next("key:n", wait=5)
            await cyd.change_done(given.change.change, given.change.attempts, 2)
            assert (await cyd.state_get("key:n")).decoded() == 2

    asyncio.run(work())


def test_a_question_prepares_nothing_for_either_client(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    told: list[int] = []
    blocking = Client(tmp_path, prepares=False, starting=lambda: told.append(1))
    with pytest.raises(Refusal, match="is not prepared for coord"):
        blocking.status()

    async def work() -> None:
        async with AsyncClient(tmp_path, prepares=False, starting=lambda: told.append(2)) as client:
            with pytest.raises(Refusal, match="is not prepared for coord"):
                await client.status()

    asyncio.run(work())
    assert not (tmp_path / ".coord").exists() and told == []


def test_either_client_tells_that_a_coordinator_is_started(repo: Repo) -> None:
    told: list[str] = []

    async def work() -> None:
        async with AsyncClient(repo.root, starting=lambda: told.append("asynchronous")) as client:
            await asyncio.gather(client.status(), client.status())

    asyncio.run(work())
    repo.down()
    with Client(repo.root, starting=lambda: told.append("blocking")) as client:
        client.status()
    assert told == ["asynchronous", "blocking"]


def test_a_forked_child_of_an_asynchronous_client_is_another_agent(repo: Repo) -> None:
    ann = AsyncClient(repo.root, agent="ann")
    asyncio.run(ann.name())
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if asyncio.run(ann.name()).startswith("ann.") else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("wrong", ["5", None])
def test_what_a_blocking_client_waits_with_is_looked_at_first(repo: Repo, wrong: object) -> None:
    with Client(repo.root, agent="ann", autostart=False) as ann, pytest.raises(Refusal) as refused:
        ann.call(rq.Acquire(agent="ann", resources=["a.py"], wait_s=wrong if wrong else "x"))  # type: ignore[arg-type]
    assert refused.value.code is Code.INVALID, "before anybody is asked"


def test_who_finds_the_coordinator_busy_with_connections_tries_again(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.coord("up")
    refused: list[str] = []

    def full_at_first(path: Path) -> socket.socket | None:
        if len(refused) % 3 < 2:
            refused.append(threading.current_thread().name)
            raise BlockingIOError(11, "Resource temporarily unavailable")
        refused.append("")
        return locating.try_to_reach(path)

    for module in (connection, async_connection):
        monkeypatch.setattr(module, "try_to_reach", full_at_first)
    with Client(repo.root) as client:
        assert client.health().root == str(repo.root.resolve())

    async def work() -> None:
        async with AsyncClient(repo.root) as client:
            assert (await client.health()).root == str(repo.root.resolve())

    asyncio.run(work())
    assert len(refused) == 6
    for module in (connection, async_connection):
        monkeypatch.setattr(module, "CONNECT_S", 0.0)
    refused.clear()
    began = time.monotonic()
    with Client(repo.root) as client, pytest.raises(Refusal, match="temporarily unavailable") as met:
        client.health()
    assert met.value.code is Code.DAEMON_DOWN and time.monotonic() - began < patience(10)


def test_a_lease_that_is_given_back_is_renewed_no_more(repo: Repo) -> None:
    with Client(repo.root, agent="ann") as ann:
        before = threading.active_count()
        held = ann.hold(ann.acquire("key:a", ttl=0.3), ttl=0.3)
        until(lambda: len(ann.locks().items) == 1)
        held.end()
        assert threading.active_count() == before and ann.locks().items == []
