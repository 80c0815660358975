"""A program that is run again is the same agent: its name, messages and idempotency keys last."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator import AsyncClient, Client
from tests.conftest import Repo

#: A program that ends in order, prints its name and what it was told.
IN_ORDER = """
from coordinator import Client
with Client(agent="importer") as client, client.lease("key:x", wait=5):
    print(client.name(), *[notice.text for notice in client.heartbeat().notices])
"""


def run(repo: Repo, code: str, *args: str, cwd: Path | None = None) -> str:
    """What a program prints that runs to its end."""
    done = subprocess.run([sys.executable, "-c", code, *args], cwd=cwd or repo.root, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or done.stderr.strip()[-300:]


def there(repo: Repo) -> dict[str, str]:
    return {row.agent: row.state for row in Client(repo.root).agents().items}


def test_a_program_that_ends_in_order_leaves(repo: Repo) -> None:
    assert [run(repo, IN_ORDER) for _ in range(3)] == ["importer"] * 3
    assert there(repo) == {}


def test_a_body_that_fails_leaves_its_work_unfinished(repo: Repo) -> None:
    repo.write("a.py", "one\n")

    async def work() -> None:
        async with AsyncClient(repo.root, agent="bob") as bob:
            await bob.acquire("a.py")
            repo.write("a.py", "half\n")
            raise KeyError("a fault")

    with pytest.raises(KeyError):
        asyncio.run(work())
    person = Client(repo.root)
    assert there(repo) == {} and [review.agent for review in person.review_list().items] == ["bob"]


def test_whom_others_share_stays(repo: Repo) -> None:
    with repo.client("ann") as ann:
        ann.acquire("a.py")
        with Client(repo.root, agent="ann", token=ann.token) as other:
            other.heartbeat()
        assert there(repo) == {"ann": "active"}, "it was given the token"
        child = os.fork()
        if not child:
            ann._process = -1  # as in a child that asks nothing
            ann.__exit__(None)
            os._exit(0)
        os.waitpid(child, 0)
        assert there(repo) == {"ann": "active"}
    assert there(repo) == {"ann": "active"}, "a fork may share it"


def test_a_client_that_is_closed_keeps_what_it_has(repo: Repo) -> None:
    ann = repo.client("ann")
    ann.acquire("a.py")
    ann.close()
    assert there(repo) == {"ann": "active"} and [lease.resource for lease in Client(repo.root).locks().items] == ["a.py"]
