"""A program that is run again is the same agent: its name, messages and idempotency keys last."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator import AsyncClient, Client, Refusal
from coordinator.client.owner import Owner
from tests.conftest import Repo
from tests.waiting import until

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
    with Client(repo.root, agent="ann") as ann:
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


#: A program that prints its name, and then waits, or dies before it hears its last answer.
LIVES = """
import os, sys
from pathlib import Path
from coordinator import Client
client = Client(agent="billing")
client.name()
if "idle" not in sys.argv:
    client.heartbeat()
print(client.name(), client.token, flush=True)
if "holds" in sys.argv:
    client.acquire("a.py", "key:account", ttl=600)
    Path("a.py").write_text("half")
    print("holds", flush=True)
sys.stdin.read()
"""
CHARGE = """
import os, sys
from coordinator import Client
from coordinator.client import transport
from coordinator.client.asking import json
from coordinator.words import requests as rq
client = Client(agent="billing")
me = client.name()
if sys.argv[1] == "die":
    transport.Link._receive = lambda *args: os._exit(9)
client.call(rq.ChangeAdd(agent=me, key="key:account:1", wanted=json({"add": 50}, "wanted")), key="late-fee")
print(me)
"""


class Program:
    """A program that runs; its first line is its name and token."""

    def __init__(self, repo: Repo, *args: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", LIVES, *args], cwd=repo.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.name, self.token = self.line().split()
        if "holds" in args:
            assert self.line() == "holds"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> str:
        self.process.kill()
        return self.process.communicate()[1]


@pytest.mark.parametrize("coordinator", ["stays", "is killed", "is killed before"])
def test_a_program_that_was_killed_is_the_same_agent(repo: Repo, coordinator: str) -> None:
    repo.write("a.py", "one")
    first = Program(repo, "holds")
    if coordinator == "is killed before":
        os.kill(repo.pid(), 9)
        Client(repo.root).status()  # a living program that has not asked since keeps its name
        second = Program(repo)
        assert second.name == "billing-2" and "billing is there already" in second.kill()
    first.kill()
    if coordinator == "is killed":
        os.kill(repo.pid(), 9)
    again = Program(repo)
    assert again.name == first.name == "billing" and again.token != first.token
    person = Client(repo.root)
    assert person.locks().items == []
    (review,) = person.review_list().items
    assert (review.agent, [file.path for file in review.files]) == ("billing", ["a.py"])
    again.kill()


def test_two_at_once_are_told_apart(repo: Repo) -> None:
    first, second = Program(repo), Program(repo)
    assert (first.name, second.name) == ("billing", "billing-2")
    assert "billing is there already and lives, so this is billing-2." in second.kill()
    third = Program(repo)
    assert third.name == "billing-2" and there(repo) == {"billing": "active", "billing-2": "active"}
    first.kill()
    assert Program(repo).name == "billing"


def test_a_process_that_only_registered_may_have_handed_its_token_on(repo: Repo) -> None:
    Program(repo, "idle").kill()
    assert Program(repo).name == "billing-2"


def test_a_token_that_was_handed_on_keeps_its_agent(repo: Repo) -> None:
    first = Program(repo)
    heir = Client(repo.root, agent="billing", token=first.token)
    heir.acquire("a.py", ttl=600)
    first.kill()
    for _ in range(2):
        other = Program(repo)
        assert other.name == "billing-2", "it has a connection, or was heard of just now"
        other.kill()
        heir.close()
    assert "billing" in there(repo) and [lease.locked_by for lease in Client(repo.root).locks().items] == ["billing"]
    assert heir.heartbeat().agent == "billing"


def test_a_key_takes_effect_once_over_a_kill(repo: Repo) -> None:
    assert run(repo, CHARGE, "die") == ""
    assert run(repo, CHARGE, "ok") == "billing"
    with Client(repo.root, agent="owner") as owner:
        owner.state_put("key:account:1", {"balance": 100}, version=0)
        Owner(owner, "key:account", lambda value, wanted, change: {"balance": value["balance"] + wanted["add"]}).run(until_idle=True)
        assert owner.state_get("key:account:1").decoded() == {"balance": 150}


def test_a_message_waits_for_the_next_life(repo: Repo) -> None:
    assert run(repo, IN_ORDER) == "importer"
    with repo.client("boss") as boss:
        boss.message_send("importer", "stop before noon")
        with pytest.raises(Refusal, match="not registered"):
            boss.message_send("nobody", "x")
        for n in range(2):
            boss.message_send("importer", f"and {n}")
    person = Client(repo.root)
    assert person.message_list(reader="importer", unread=True).items[-1].text.startswith("and")
    heard = run(repo, IN_ORDER)
    assert heard.startswith("importer boss says") and "stop before noon" in heard and heard.count("boss says") == 3


def test_a_fork_that_lives_keeps_the_name_of_its_parent(repo: Repo) -> None:
    code = """
import os, sys, time
from coordinator import Client
client = Client(agent="web")
client.name()
client.heartbeat()
if not os.fork():
    print(client.name(), os.getpid(), flush=True)
    client.acquire("key:a", ttl=600)
    print("holds", flush=True)
    time.sleep(60)
sys.stdin.readline()
os._exit(0)
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=repo.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    name, child = process.stdout.readline().split()
    assert name == "web.1" and process.stdout.readline()
    process.stdin.close()
    process.wait()
    assert repo.client("web").name() == "web-2"
    assert there(repo)["web.1"] == "active" and len(Client(repo.root).locks().items) == 1
    os.kill(int(child), 9)
    until(lambda: repo.client("web").name() == "web")
    assert "web.1" not in there(repo)
