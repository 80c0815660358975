"""Leases for asyncio: each call is a holder of its own, the loop never waits, a cancelled call leaves nothing."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

import pytest

from coordinator import Client, LeaseLost
from coordinator.frameworks.asynchronous import current, guarded, in_thread, lease
from coordinator.frameworks.postponing import StepPostponed
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import patience, until


@pytest.fixture
def client(repo: Repo) -> Client:
    return repo.client("service")


def locks(client: Client) -> rq.LockList:
    return client.call(rq.Locks())


async def eventually(condition) -> None:  # type: ignore[no-untyped-def]
    await in_thread(lambda: until(condition))


def test_many_coroutines_lose_no_update(client: Client, tmp_path: Path) -> None:
    """Each reads, lets the others run, and writes; with one client for all."""
    file = tmp_path / "balance"
    file.write_text("0")

    @guarded(lambda account, amount: f"key:account:{account}", client=client, wait=60)
    async def book(account: str, amount: int) -> None:
        before = int(file.read_text())
        for _ in range(5):
            await asyncio.sleep(0)
        file.write_text(str(before + amount))

    async def main() -> None:
        await asyncio.gather(*(book("1", amount) for amount in range(20)))

    asyncio.run(main())
    assert file.read_text() == str(sum(range(20))) and locks(client).items == []


def test_the_loop_runs_on_while_a_call_waits_in_line(client: Client, repo: Repo) -> None:
    other = repo.client("other")
    other.acquire("key:a")

    async def main() -> float:
        @guarded("key:a", client=client, wait=60)
        async def work() -> str:
            return "done"

        waiting = asyncio.create_task(work())
        longest, last = 0.0, time.monotonic()
        while not locks_of(other).waiters:
            await asyncio.sleep(0)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert not waiting.done()
        await in_thread(lambda: other.release("key:a"))
        assert await waiting == "done"
        return longest

    def locks_of(one: Client) -> rq.LockList:
        return one.call(rq.Locks())

    assert asyncio.run(main()) < 10, "a wait in line is 60 s"


def test_a_call_that_is_blocked_is_postponed_under_its_name(client: Client, repo: Repo) -> None:
    kept: list[StepPostponed] = []
    repo.client("other").acquire("key:a")

    @guarded(["key:a", "key:b"], client=client, on_blocked=kept.append)
    async def work(account: str, *, amount: int) -> None:
        raise AssertionError("entered")

    with pytest.raises(StepPostponed) as met:
        asyncio.run(work("1", amount=2))
    assert kept == [met.value] and met.value.step == f"{__name__}:{work.__qualname__}"
    assert met.value.arguments == {"args": ["1"], "kwargs": {"amount": 2}}
    assert [one.resource for one in locks(client).items] == ["key:a"]


def test_a_cancelled_call_has_released_before_it_ends(client: Client) -> None:
    async def main() -> None:
        entered = asyncio.Event()

        @guarded("key:a", client=client)
        async def work() -> None:
            entered.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await entered.wait()
        assert len(locks(client).items) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert locks(client).items == []

    asyncio.run(main())


def test_a_call_that_is_cancelled_in_line_leaves_the_line(client: Client, repo: Repo) -> None:
    other = repo.client("other")
    other.acquire("key:a")

    async def main() -> None:
        @guarded("key:a", client=client, wait=600)
        async def work() -> None:
            raise AssertionError("entered")

        task = asyncio.create_task(work())
        await eventually(lambda: locks(other).waiters)
        task.cancel()
        await asyncio.wait({task}, timeout=patience(60))
        assert task.done() and task.cancelled()
        assert locks(other).waiters == []
        other.release("key:a")
        async with lease("key:a", client=client):
            pass

    asyncio.run(main())


@pytest.mark.parametrize("steps", range(0, 60, 3))
def test_whenever_a_call_is_cancelled_nothing_is_left(client: Client, steps: int) -> None:
    async def main() -> None:
        @guarded("key:a", client=client, ttl=600)
        async def work() -> None:
            await asyncio.sleep(0.05)

        task = asyncio.create_task(work())
        for _ in range(steps):
            await asyncio.sleep(0.001)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):  # on a busy machine it may be over by then
            await task
        assert locks(client).items == [] and locks(client).waiters == []
        await asyncio.wait_for(work(), patience(30))

    asyncio.run(main())


def test_calls_within_a_call_are_one_holder_and_tasks_within_are_others(client: Client) -> None:
    @guarded("key:a", client=client)
    async def inner() -> int:
        return current().fencing_token

    @guarded("key:a", client=client)
    async def outer() -> None:
        first = current().fencing_token
        assert await inner() == first
        assert len(locks(client).items) == 1, "the outermost releases"
        with pytest.raises(StepPostponed):
            await asyncio.create_task(inner())
        async with lease("key:b", client=client):
            assert len({one.locked_by for one in locks(client).items}) == 1

    asyncio.run(outer())
    assert locks(client).items == []


def test_a_lost_lease_is_told_at_the_end_of_the_call(client: Client, repo: Repo) -> None:
    @guarded("key:a", client=client, ttl=30)
    async def work() -> None:
        await in_thread(lambda: repo.coord("unlock", "key:a", "--agent", "eve", "--force"))

    with pytest.raises(LeaseLost):
        asyncio.run(work())


def test_an_error_in_the_call_goes_through(client: Client) -> None:
    @guarded("key:a", client=client)
    async def work() -> None:
        _ = 1 // 0

    with pytest.raises(ZeroDivisionError):
        asyncio.run(work())
    assert locks(client).items == []


def test_a_plain_function_is_refused_in_words(client: Client) -> None:
    with pytest.raises(TypeError, match=r"not `async def`.*mutex"):
        guarded("key:a")(lambda: None)  # type: ignore[arg-type,return-value]
