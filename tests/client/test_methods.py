"""Every operation is a method of both clients, with the types of its request; programs that use them
type-check strictly, and run."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from coordinator import AsyncClient, Client
from coordinator.operations.listing import BY_HAND, METHODS, OPERATIONS, SHORT, method_of
from coordinator.words import requests as rq
from tests.conftest import Repo

ROOT = Path(__file__).resolve().parent.parent.parent
#: A program that uses many methods, both ways; its types are checked, and it is run.
PROGRAM = '''
from __future__ import annotations

import asyncio

from coordinator import AsyncClient, Client, Code, Refusal


def plain(root: str) -> int:
    with Client(root, agent="ann") as ann, Client(root) as person:
        task = ann.task_add("Rework the pool", resources=["pool.py"], priority=2, prompt="Do it.")
        claimed = ann.claim(task.task, ttl=60)
        assert claimed.leases[0].resource == "pool.py"
        ann.heartbeat("half of it")
        stored = ann.state_put("key:pool:size", {"size": 3}, version=0)
        patched = ann.state_patch("key:pool:size", {"size": 4}, version=stored.version)
        tokens: list[int] = [one.fencing_token for one in ann.renew("pool.py", ttl=30).leases]
        ann.signal_add(task.task, "priority", strength=2.0, half_life=60)
        ann.message_send("human", "It is half done.")
        shown = person.status(events=5)
        held = [one.locked_by for one in person.locks(resource="pool.py").items]
        ann.done(task.task, "4 connections")
        done = person.task_show(task.task)
        assert done.state == "done" and held == ["ann"] and shown.tasks, done
        assert person.message_list(reader="human").items[0].text == "It is half done."
        assert person.review_list(state="all").items == [] and person.dead_list().items == []
        assert person.state_get("key:pool:size").version == patched.version
        try:
            ann.request_file("pool.py", "I need it")
        except Refusal as refusal:
            assert refusal.code in (Code.UNKNOWN_LEASE, Code.NOT_HOLDER, Code.INVALID), refusal
        return len(tokens) + len(person.events(tail=True, limit=3).items)


async def awaited(root: str) -> str:
    async with AsyncClient(root, agent="bob") as bob:
        task = await bob.task_add("Two", resources=["a.py", "b.py"])
        got, other = await asyncio.gather(bob.task_claim(task.task), bob.agents(all=True))
        assert {one.resource for one in got.leases} == {"a.py", "b.py"} and other.items
        failed = await bob.fail(task.task, "not now", blocked=["c.py"])
        async with bob.lease("key:k", mode="shared") as held:
            held.check()
            number: int = held.fencing_token
        story = (await bob.explain(failed.task)).sentences
        return f"{number} {len(story)} {(await bob.health()).version}"


if __name__ == "__main__":
    import sys

    print(plain(sys.argv[1]), asyncio.run(awaited(sys.argv[1])))
'''


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_every_operation_is_a_method(client: type) -> None:
    for op, operation in OPERATIONS.items():
        method = getattr(client, method_of(op))
        assert callable(method), op
        assert inspect.iscoroutinefunction(method) == (client is AsyncClient), op
        if op in BY_HAND:
            continue
        taken = set(inspect.signature(method).parameters)
        fields = {f.name for f in msgspec.structs.fields(operation.request)} - {"cwd"}
        missing = {f for f in fields if not {f, f.removesuffix("_s").removesuffix("_id")} & taken}
        assert not missing, (op, missing)
        assert operation.meaning.split()[0] in (method.__doc__ or ""), op
    assert set(METHODS) <= set(OPERATIONS) and set(SHORT.values()) <= {method_of(op) for op in OPERATIONS}
    for short, name in SHORT.items():
        assert getattr(client, short) is getattr(client, name)


def test_a_program_of_many_methods_is_strictly_typed_and_runs(repo: Repo, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run([sys.executable, str(program), str(repo.root)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and ran.stdout.split()[0] == "4", ran.stderr
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program),
         *map(str, examples())], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout


def examples() -> list[Path]:
    """Those that need no framework; the others: tests/frameworks/test_examples.py."""
    found = [path for path in sorted((ROOT / "examples").glob("*.py"))
             if not re.search(r"^from (langgraph|agents|claude_agent_sdk)", path.read_text(), re.M)]
    assert len(found) >= 2
    return found


def test_a_wrong_program_is_told_so(tmp_path: Path) -> None:
    """The types say something: else the test above would pass with `Any` everywhere."""
    program = tmp_path / "program.py"
    program.write_text("from coordinator import Client\nClient().task_add(3)\nClient().locks().items[0].holder\n"
                       "Client().state_watch()\nClient().acquire('a', mode='both')\n")
    checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)],
                             capture_output=True, text=True, check=False, cwd=ROOT)
    assert checked.stdout.count(": error:") == 4, checked.stdout


def test_what_is_asked_is_the_same_by_either(repo: Repo) -> None:
    with Client(repo.root, agent="ann") as ann:
        task = ann.task_add("One", resources=["a.py"])

        async def show() -> rq.Task:
            async with AsyncClient(repo.root, agent="bob") as bob:
                return await bob.task_show(task.task)

        assert asyncio.run(show()) == ann.task_show(task.task)
        assert repr(ann) == f"<Client ann at {ann.root}>"
        with ann.lease("a.py") as held:
            assert repr(held) == f"<Held a.py (fencing token {held.fencing_token})>"


def test_answers_print_readably_and_without_secrets(repo: Repo) -> None:
    with Client(repo.root, agent="ann") as ann:
        got = ann.acquire("a.py")
        assert got.leases[0].lease_token and got.leases[0].lease_token not in repr(got)
        assert "lease_token=…" in repr(got) and "resource='a.py'" in repr(got) and "task=None" in repr(got)
        stored = ann.state_put("key:k", {"a": [1]}, version=0)
        assert ann.state_get("key:k").decoded() == {"a": [1]} and stored.version == 1
        assert 'value={"a":[1]}' in repr(ann.state_get("key:k")), repr(ann.state_get("key:k"))
        assert repr(rq.Registered(agent="x", token="secret")) == "Registered(agent='x', token=…, warnings=[])"


def test_a_client_acts_for_whom_it_names(repo: Repo) -> None:
    with Client(repo.root) as person:
        assert person.acquire("a.py", agent="ann").leases[0].locked_by == "ann"
        assert person.agent is None, "it did not register for that"
        with Client(repo.root, agent="bob") as bob:
            assert bob.request_file("a.py", "for the pool").holder == "ann"
            request = person.request_list().items[0].request
            assert person.request_answer(request, "approve", agent="eve", force=True).granted
