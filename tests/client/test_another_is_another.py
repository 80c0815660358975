"""Another thread, task, process or program is another holder, whichever client, name or token it shares."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coordinator import AsyncClient, Client, Code, Refusal
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until

KEY = "key:account:12345"
#: Both read the balance, think, and write it, as somebody else may have done meanwhile.
PROGRAM = f"""
import os, sys, time
from pathlib import Path
from coordinator import Client
with Client() as client, client.lease({KEY!r}, wait=30) as held:
    before = int(Path("balance").read_text())
    time.sleep(0.1)
    held.check()
    Path("balance").write_text(str(before + 1))
"""


def book(balance: Path) -> None:
    """Not safe without a lock."""
    before = int(balance.read_text())
    threading.Event().wait(0.02)
    balance.write_text(str(before + 1))


@pytest.fixture
def balance(repo: Repo) -> Path:
    path = repo.root / "balance"
    path.write_text("0")
    return path


def by_threads(repo: Repo, balance: Path) -> None:
    with Client(repo.root, agent="web") as client, ThreadPoolExecutor(8) as pool:
        def handle(n: int) -> None:
            with client.lease(KEY, wait=30):
                book(balance)

        list(pool.map(handle, range(8)))


def by_tasks(repo: Repo, balance: Path) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="web") as client:
            async def handle() -> None:
                async with client.lease(KEY, wait=30):
                    before = int(balance.read_text())
                    await asyncio.sleep(0.02)
                    balance.write_text(str(before + 1))

            await asyncio.gather(*(handle() for _ in range(8)))

    asyncio.run(work())


def by_forks(repo: Repo, balance: Path) -> None:
    with Client(repo.root, agent="web") as client:
        client.name()  # used before: each child has its name, token and connection
        children = []
        for _ in range(8):
            child = os.fork()
            if child == 0:
                try:
                    with client.lease(KEY, wait=30) as held:
                        book(balance)
                        held.check()
                finally:
                    os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)


def by_programs(repo: Repo, balance: Path) -> None:
    """As what `coord run` and `coord launch` start, which all have the session's token."""
    with Client(repo.root, agent="session") as session:
        env = {**os.environ, "COORD_AGENT": session.name(), "COORD_AGENT_TOKEN": str(session.token)}
        started = [subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=repo.root, env=env) for _ in range(8)]
        assert [one.wait(60) for one in started] == [0] * 8


def by_forked_tasks(repo: Repo, balance: Path) -> None:
    """A server that makes its asynchronous client, and then forks workers with event loops of their own."""
    async def work() -> None:
        async with client.lease(KEY, wait=30) as held:
            before = int(balance.read_text())
            await asyncio.sleep(0.02)
            await held.confirm()
            balance.write_text(str(before + 1))

    client = AsyncClient(repo.root, agent="web")
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(work())
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def by_a_session(repo: Repo, balance: Path) -> None:
    """A shell in `coord run` that starts several programs at once."""
    repo.write("program.py", PROGRAM)
    each = f"{shlex.quote(sys.executable)} program.py & "
    done = repo.coord("run", "shell", "--", "sh", "-c", each * 8 + "wait")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("by", [by_threads, by_tasks, by_forks, by_forked_tasks, by_programs, by_a_session])
def test_as_many_bookings_as_by_as_many_clients(repo: Repo, balance: Path, by: Callable[[Repo, Path], None]) -> None:
    by(repo, balance)
    assert balance.read_text() == "8"
    with repo.client() as boss:
        assert boss.locks().items == []


def test_the_first_to_leave_frees_nothing_under_the_other(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, Client(repo.root, agent="web", token=None) as boss:
        with client.lease(KEY, mode="shared"):
            with ThreadPoolExecutor(1) as pool:
                def reads_too() -> str:
                    with client.lease(KEY, mode="shared") as held:
                        return held.agent

                other = pool.submit(reads_too).result(20)
            (left,) = boss.locks().items
            assert left.locked_by == "web.1" != other, "its own lease is still there"
        assert boss.locks().items == []


def test_what_a_body_writes_is_written_by_its_holder(repo: Repo) -> None:
    """And by no other thread or task of the client, which is refused."""
    with Client(repo.root, agent="web") as client:
        client.acquire("key:b")
        with client.lease(KEY) as held, ThreadPoolExecutor(1) as pool:
            with pytest.raises(Refusal) as no:
                pool.submit(lambda: client.state_put(KEY, 1, version=0)).result(20)
            assert no.value.code is Code.LOCKED
            assert client.state_put(KEY, 1, version=0, fencing_token=held.fencing_token).written_by == held.agent
            token = client.locks(resource="key:b").items[0].fencing_token
            assert client.state_put("key:b", 1, version=0, fencing_token=token).written_by == "web", "what the client has itself"

    async def tasks() -> None:
        async with AsyncClient(repo.root, agent="aweb") as client, client.lease("key:c") as held:
            put = asyncio.create_task(client.state_put("key:c", 1, version=0, fencing_token=held.fencing_token))
            assert (await put).written_by == held.agent, "a task that the body has started writes for it"

    asyncio.run(tasks())


def test_a_forked_child_is_an_agent_of_its_own(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client:
        client.acquire("a.py")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            said = "nothing"
            try:
                client.acquire("a.py", retry=False)
            except Refusal as refusal:
                said = f"{refusal.code.value} {client.agent}"
            finally:
                os.write(writer, said.encode())
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 100).decode() == "LOCKED web.1"
        assert client.name() == "web" and [one.locked_by for one in client.locks().items] == ["web"]


def test_a_second_acquisition_of_one_name_is_refused_at_every_door(repo: Repo) -> None:
    """Two programs that say `{"agent": "billing"}` with a person's rights; but whoever types it is one person."""
    with repo.client() as first, repo.client() as second:
        first.call(rq.Acquire(agent="billing", resources=["key:a"]))
        with pytest.raises(Refusal) as no:
            second.call(rq.Acquire(agent="billing", resources=["key:a"], wait_s=5))
        assert no.value.code is Code.LOCKED and no.value.facts["held_by_itself"] and "reentrant" in str(no.value.next)
        assert second.call(rq.Acquire(agent="billing", resources=["key:a"], reentrant=True)).leases[0].reentrant
    assert "held already" in repo.coord("lock", "key:a", "--agent", "billing").stdout
    repo.coord("unlock", "key:a", "--agent", "billing")
    with repo.client() as boss:
        assert boss.locks().items == []


def test_of_threads_that_wait_in_one_name_one_is_granted_it(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, repo.client("other") as other, ThreadPoolExecutor(4) as pool:
        other.acquire("x.txt")
        client.name()

        def ask(n: int) -> bool:
            try:
                client.acquire("x.txt", wait=20)
            except Refusal as refusal:
                assert refusal.code is Code.LOCKED and refusal.facts["held_by_itself"]
                return False
            return True

        waiting = [pool.submit(ask, n) for n in range(4)]
        until(lambda: other.locks().waiters)
        threading.Event().wait(0.3)  # (those who come later are refused at once, to the same end)
        other.release("x.txt")
        assert sorted(one.result(30) for one in waiting) == [False, False, False, True]


def test_what_was_granted_while_nobody_listened_is_the_first_ones_who_asks(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, repo.client("other") as other:
        other.acquire("x.txt")
        with pytest.raises(Refusal):
            client.acquire("x.txt")
        other.release("x.txt")
        until(lambda: [one.purpose for one in other.locks().items] == ["offered"])
        assert client.acquire("x.txt").leases[0].purpose == "asked"
        with pytest.raises(Refusal, match="already"):
            client.acquire("x.txt")
