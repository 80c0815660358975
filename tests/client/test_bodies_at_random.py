"""Bodies of one client, of both kinds, on overlapping sets, at random: none is told a loss that was none, and nothing is left."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest

from coordinator.client.async_client import AsyncClient
from coordinator.client.client import Client, LeaseLost
from coordinator.words.refusals import Refusal
from tests.conftest import Repo
from tests.effort import crossed, examples

SETS = [("key:a",), ("key:b",), ("key:a", "key:b"), ("key:b", "key:a")]
MODES = ["exclusive", "shared"]


async def held(client: AsyncClient) -> list[tuple[str, str, str]]:
    return [(one.resource, one.mode, one.locked_by) for one in (await client.locks()).items]


@pytest.mark.parametrize(("cancels", "wait"), crossed([0.0, 0.5], [0, 0.3]))
def test_tasks_of_two_agents(repo: Repo, cancels: float, wait: float) -> None:
    dice = random.Random(f"{cancels} {wait}")

    async def body(client: AsyncClient) -> None:
        async with client.lease(*dice.choice(SETS), mode=dice.choice(MODES), wait=dice.choice([0, wait]), ttl=30):  # type: ignore[arg-type]
            await asyncio.sleep(dice.choice([0, 0.001, 0.003]))

    async def one(client: AsyncClient, lost: list[LeaseLost]) -> None:
        task = asyncio.create_task(body(client))
        if dice.random() < cancels:
            await asyncio.sleep(dice.random() * 0.005)
            task.cancel()
        try:
            await task
        except LeaseLost as bad:
            lost.append(bad)
        except (asyncio.CancelledError, Refusal):
            pass

    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            lost: list[LeaseLost] = []
            for turn in range(examples(60)):
                await asyncio.gather(*[one(client, lost) for client in (ann, bob, ann, ann, bob, ann)])
                assert lost == [] and await held(ann) == [] and (await ann.locks()).waiters == [], turn

    asyncio.run(work())


def test_threads(repo: Repo) -> None:
    lost: list[BaseException] = []

    def work(client: Client, seed: int, start: threading.Barrier) -> None:
        dice = random.Random(seed)
        for _ in range(examples(20)):
            start.wait(60)
            try:
                with client.lease(*dice.choice(SETS), mode=dice.choice(MODES), wait=dice.choice([0, 2]), ttl=30):  # type: ignore[arg-type]
                    pass
            except Refusal:
                pass
            except BaseException as bad:
                lost.append(bad)

    with Client(repo.root, agent="ann") as ann, Client(repo.root, agent="bob") as bob:
        start = threading.Barrier(6)
        threads = [threading.Thread(target=work, args=(bob if n == 5 else ann, n, start)) for n in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(120)
        assert lost == [] and ann.locks().items == []
