"""What a body of `lease` holds it holds to its end, wherever the program stands and whoever else holds it; or it is told."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from coordinator.client.async_client import AsyncClient
from coordinator.client.client import Client, Held, LeaseLost
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.waiting import patience, until

Leases = Callable[..., Any]


def held_by(repo: Repo) -> dict[str, str]:
    with repo.client() as boss:
        return {one.resource: one.locked_by for one in boss.call(rq.Locks()).items}


def worktree(repo: Repo) -> Path:
    """A second working tree of its repository, made once."""
    place = repo.root / "w"
    if not place.is_dir():
        repo.write("a.py", "one\n")
        repo.write("b.py", "one\n")
        git = ["git", "-C", str(repo.root), "-c", "user.name=n", "-c", "user.email=e@x"]
        for words in (["add", "."], ["commit", "-qm", "x"], ["worktree", "add", "-q", "--detach", str(place)]):
            subprocess.run([*git, *words], check=True, capture_output=True)
    return place


def taken_away(repo: Repo, *resources: str, agent: str = "ann") -> None:
    """By a person; and somebody else has it at once."""
    with repo.client() as person:
        person.call(rq.Release(agent=agent, resources=list(resources), force=True))


async def in_body(repo: Repo, kind: type, resources: tuple[str, ...], do: Callable[[], object], **how: Any) -> None:
    if kind is Client:
        with Client(repo.root, agent="ann") as client, client.lease(*resources, **how):
            do()
    else:
        async with AsyncClient(repo.root, agent="ann") as client, client.lease(*resources, **how):
            do()


KINDS = pytest.mark.parametrize("kind", [Client, AsyncClient])


@KINDS
def test_from_a_folder_below_it_gives_back_what_it_took(repo: Repo, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of grants are from the root: read from where the program stands they are others."""
    below = repo.root / "src/src"
    below.mkdir(parents=True)
    monkeypatch.chdir(repo.root / "src")
    with Client(repo.root, agent="ann") as first:
        first.call(rq.Acquire(agent=first.name(), resources=["src/src/z.py"]))
        mine = f"{first.agent}"

        async def run() -> None:
            if kind is Client:
                with first.lease("z.py", ttl=1.0):
                    assert set(held_by(repo)) == {"src/z.py", "src/src/z.py"}
            else:
                async with AsyncClient(repo.root, agent=mine, token=first.token) as other, other.lease("z.py", ttl=1.0):
                    await asyncio.sleep(0.8)  # and it is renewed
                    assert set(held_by(repo)) == {"src/z.py", "src/src/z.py"}

        asyncio.run(run())
        assert set(held_by(repo)) == {"src/src/z.py"}


@KINDS
def test_whoever_moves_or_loses_its_folder_meanwhile_gives_it_back(repo: Repo, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = repo.root / "gone"
    gone.mkdir()
    for do in (lambda: os.chdir(gone), lambda: gone.rmdir()):
        monkeypatch.chdir(repo.root)
        os.chdir(gone if do.__code__.co_names == ("rmdir",) else repo.root)
        asyncio.run(in_body(repo, kind, ("a.py",) if gone.exists() else ("key:a",), do))
        assert held_by(repo) == {}
    with Client(repo.root, agent="bob") as client, pytest.raises(Refusal) as no:
        client.acquire("a.py")
    assert no.value.code is Code.INVALID and "working directory" in no.value.message


@KINDS
def test_the_end_of_its_session_is_the_end_of_its_leases(repo: Repo, kind: type) -> None:
    def leave() -> None:
        with repo.client() as person:
            person.call(rq.Leave(agent="ann"))
            person.call(rq.Register(agent="bob"))
            person.call(rq.Acquire(agent="bob", resources=["a.py"]))

    with pytest.raises(LeaseLost):
        asyncio.run(in_body(repo, kind, ("a.py",), leave))
    assert held_by(repo) == {"a.py": "bob"}


@KINDS
def test_of_several_what_is_not_lost_is_given_back(repo: Repo, kind: type) -> None:
    with pytest.raises(LeaseLost):
        asyncio.run(in_body(repo, kind, ("a.py", "b.py", "c.py"), lambda: taken_away(repo, "b.py", agent="ann.1")))
    assert held_by(repo) == {}


def test_a_body_gives_back_its_own_trees_copy_and_not_another(repo: Repo) -> None:
    other = worktree(repo)
    with Client(repo.root, agent="ann") as client:
        client.call(rq.Acquire(agent=client.name(), resources=["a.py"], cwd=str(other)))
        with client.lease("a.py", "b.py", reentrant=True):
            assert [one.worktree for one in client.call(rq.Locks(resource="a.py")).items] == [str(other), None]
        assert [(one.resource, one.worktree) for one in client.call(rq.Locks()).items] == [("a.py", str(other))]


@KINDS
def test_a_body_leaves_what_another_of_its_agents_programs_was_given_a_moment_before(repo: Repo, kind: type) -> None:
    """As a launch claims a task for its program, which begins at once."""
    repo.write("a.py", "one\n")
    other = worktree(repo)

    async def run() -> None:
        with Client(repo.root, agent="ann") as launch:
            launch.task_add("t", resources=["a.py"])
            launch.call(rq.TaskClaim(agent=launch.name()))
            token = launch._wire.token
            with contextlib.chdir(repo.root):
                client: Any = kind(repo.root, agent="ann", token=token)
                for wait in (0, 1):
                    async with body(client, "a.py", wait=wait, reentrant=True):
                        pass
                    assert held_by(repo) == {"a.py": "ann"}
                os.chdir(other)  # what it got there itself it gives back
                async with body(client, "b.py", wait=1):
                    pass
                assert held_by(repo) == {"a.py": "ann"}
            closed = client.close()
            if kind is AsyncClient:
                await closed

    asyncio.run(run())


def modes(repo: Repo) -> dict[str, str]:
    with repo.client() as boss:
        return {one.resource: one.mode for one in boss.call(rq.Locks()).items}


@contextlib.asynccontextmanager
async def body(client: Any, *names: str, **how: Any) -> AsyncIterator[Any]:
    """One of either client's."""
    if isinstance(client, Client):
        with client.lease(*names, **how) as held:
            yield held
    else:
        async with client.lease(*names, **how) as held:
            yield held


@KINDS
@pytest.mark.parametrize("before", [False, True])
def test_an_inner_body_that_writes_gives_back_that_right_at_its_end(repo: Repo, kind: type, before: bool) -> None:
    async def run() -> None:
        client: Any = kind(repo.root, agent="ann")
        if before:  # what it shared before all bodies it shares after them
            asked = client.acquire("a.py", mode="shared")
            if kind is AsyncClient:
                await asked
        with repo.client("bob") as bob:
            async with contextlib.AsyncExitStack() as outer:
                if not before:
                    await outer.enter_async_context(body(client, "a.py", mode="shared", reentrant=before))
                async with body(client, "a.py", reentrant=True):
                    async with body(client, "a.py", mode="shared", reentrant=True):  # reading takes nothing from it
                        pass
                    assert modes(repo) == {"a.py": "exclusive"}
                    with pytest.raises(Refusal):
                        bob.acquire("a.py", mode="shared", retry=False)
                assert modes(repo) == {"a.py": "shared"}
                bob.acquire("a.py", mode="shared")  # others read it again
                with pytest.raises(Refusal):
                    bob.acquire("a.py", retry=False)
                bob.release("a.py")
                async with body(client, "a.py", reentrant=True):  # and it may be written again
                    assert modes(repo) == {"a.py": "exclusive"}
            assert modes(repo) == ({"a.py": "shared"} if before else {})
        closed = client.close()
        if kind is AsyncClient:
            await closed

    asyncio.run(run())


@KINDS
def test_an_inner_body_that_reads_takes_no_right_to_write(repo: Repo, kind: type) -> None:
    async def run() -> None:
        client: Any = kind(repo.root, agent="ann")
        async with body(client, "a.py"):
            async with body(client, "a.py", mode="shared", reentrant=True), body(client, "a.py", reentrant=True):
                pass
            assert modes(repo) == {"a.py": "exclusive"}
        assert modes(repo) == {}
        closed = client.close()
        if kind is AsyncClient:
            await closed

    asyncio.run(run())


@KINDS
def test_whoever_waits_to_read_gets_it_when_the_inner_body_ends(repo: Repo, kind: type) -> None:
    async def run() -> None:
        client: Any = kind(repo.root, agent="ann")
        with repo.client("bob") as bob, ThreadPoolExecutor(1) as pool:
            async with body(client, "a.py", mode="shared"):
                async with body(client, "a.py", reentrant=True):
                    got = pool.submit(bob.acquire, "a.py", mode="shared", wait=20)
                    await asyncio.to_thread(until, lambda: bob.locks().waiters)
                await asyncio.to_thread(got.result, 10)
                assert set(modes(repo).values()) == {"shared"}
        closed = client.close()
        if kind is AsyncClient:
            await closed

    asyncio.run(run())


def test_who_left_registers_again(repo: Repo) -> None:
    with Client(repo.root, agent="ann") as client:
        client.acquire("a.py")
        client.leave()
        client.acquire("b.py")
        assert list(held_by(repo)) == ["b.py"]
    assert not held_by(repo), "who ends its `with` leaves"

    async def again() -> None:
        async with AsyncClient(repo.root, agent="bob") as other:
            await other.acquire("c.py")
            await other.leave()
            await other.acquire("d.py")
            assert list(held_by(repo)) == ["d.py"]
    asyncio.run(again())
    assert not held_by(repo)


@KINDS
def test_a_text_is_no_list_of_letters(repo: Repo, kind: type, tmp_path: Path) -> None:
    async def run() -> None:
        client: Any = kind(repo.root, agent="ann")
        for ask in (lambda: client.task_add("x", resources="a.py"), lambda: client.task_add("x", after="T-1"), lambda: client.step_next("mail")):
            with pytest.raises(TypeError, match="a text, where a list"):
                done = ask()
                if kind is AsyncClient:
                    await done
        closed = client.close()
        if kind is AsyncClient:
            await closed

    asyncio.run(run())
    with repo.client() as boss:
        assert boss.call(rq.Tasks()).items == []


def test_threads_that_ask_first_are_one_agent(repo: Repo) -> None:
    with Client(repo.root, agent="pool") as client, ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda n: client.name(), range(8)))
        assert set(names) == {"pool"}
    with Client(repo.root, agent="pond") as client, ThreadPoolExecutor(8) as pool:
        def body(n: int) -> str:
            with client.lease(f"w{n}.txt") as held:
                return held.resources[0]

        assert sorted(pool.map(body, range(8))) == [f"w{n}.txt" for n in range(8)]
        assert held_by(repo) == {} and [one.agent for one in client.call(rq.Agents()).items if one.agent.startswith("pond") and one.parent is None] == ["pond"]


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_an_agent_that_may_not_be_silent_for_long_keeps_its_body(repo: Repo, kind: type) -> None:
    """It is heard of by what renews its lease."""
    async def body() -> None:
        if kind is Client:
            with Client(repo.root, agent="quick") as client:
                client.register(silence_s=1.5)
                with client.lease("f", ttl=60):
                    await asyncio.sleep(4)
                    with repo.client() as boss:
                        boss.call(rq.Sweep())
        else:
            async with AsyncClient(repo.root, agent="quick") as other:
                await other.register(silence_s=1.5)
                async with other.lease("f", ttl=60):
                    await asyncio.sleep(4)

    asyncio.run(body())


def test_bodies_that_wait_side_by_side_all_get_it(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, repo.client("other") as other, ThreadPoolExecutor(3) as pool:
        other.acquire("x.txt")
        client.name()

        def body(n: int) -> float:
            began = time.monotonic()
            with client.lease("x.txt", wait=20):
                return time.monotonic() - began

        waiting = [pool.submit(body, n) for n in range(3)]
        time.sleep(1)
        other.release("x.txt")
        assert all(one.result(patience(30)) < 10 for one in waiting)
        assert held_by(repo) == {}


def waits(client: Client, seconds: float = 20, mode: Any = "exclusive") -> float:
    """Until it has the lease, if it gets it in time; when that was."""
    with client.lease("x.txt", wait=seconds, mode=mode, reentrant=True):
        return time.monotonic()


Beside = Callable[[Client], object]


def tries(client: Client) -> None:
    with pytest.raises(Refusal) as no:
        client.acquire("x.txt")
    assert no.value.code is Code.LOCKED and no.value.facts["acquisition_id"] == "W-1"


def asks(client: Client) -> None:
    assert client.request_file("x.txt", "the build is red").status == "pending"


def tries_once(client: Client) -> None:
    with pytest.raises(Refusal):
        client.acquire("x.txt", retry=False)


BESIDE = pytest.mark.parametrize("beside", [tries, asks])


@pytest.mark.parametrize("beside", [tries, asks, tries_once])
def test_who_waits_keeps_its_place_when_its_agent_tries_or_asks_beside_it(repo: Repo, beside: Beside) -> None:
    with Client(repo.root, agent="web") as client, repo.client("other") as other, ThreadPoolExecutor(1) as pool:
        other.acquire("x.txt")
        client.name()
        waiting = pool.submit(waits, client)
        until(lambda: other.locks().waiters)
        beside(client)
        assert len(other.locks().waiters) == 1
        freed = time.monotonic()
        other.release("x.txt")
        assert waiting.result(patience(30)) - freed < 5
        assert held_by(repo) == {} and other.locks().waiters == []


@BESIDE
def test_who_tried_or_asked_stays_in_line_when_the_wait_beside_it_is_over(repo: Repo, beside: Beside) -> None:
    with Client(repo.root, agent="web") as client, repo.client("other") as other, ThreadPoolExecutor(1) as pool:
        other.acquire("x.txt")
        client.name()
        waiting = pool.submit(waits, client, 1.0)
        until(lambda: other.locks().waiters)
        beside(client)
        with pytest.raises(Refusal) as no:
            waiting.result(patience(30))
        assert no.value.code is Code.LOCKED and "other" in no.value.message
        assert len(other.locks().waiters) == 1
        other.release("x.txt")
        until(lambda: held_by(repo) == {"x.txt": "web"})
        assert [one.kind for one in client.heartbeat().notices] == ["granted"]  # as who went away is told


def test_a_single_try_leaves_a_question_where_it_is(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, repo.client("other") as other:
        other.acquire("x.txt")
        asks(client)
        tries_once(client)
        assert [one.acquisition_id for one in other.locks().waiters] == ["U-1"]
        assert other.request_answer("U-1", "approve").granted
        assert held_by(repo) == {"x.txt": "web"}


def test_a_single_try_leaves_no_place_behind(repo: Repo) -> None:
    """Nobody waits at it, and no question stands there."""
    with Client(repo.root, agent="web") as client, repo.client("other") as other:
        other.acquire("x.txt")
        tries(client)
        tries_once(client)
        assert other.locks().waiters == []
        tries_once(client)
        assert other.locks().waiters == []


def test_who_waits_hears_the_answer_to_what_its_agent_has_asked(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, repo.client("other") as other, ThreadPoolExecutor(1) as pool:
        other.acquire("x.txt")
        client.name()
        waiting = pool.submit(waits, client)
        until(lambda: other.locks().waiters)
        asks(client)
        assert other.request_answer("U-1", "reject", answer="not yet").unlock.status == "rejected"
        asks(client)
        assert other.request_answer("U-2", "approve").granted
        waiting.result(patience(5))
        assert held_by(repo) == {} and other.locks().waiters == []


def test_a_question_for_writing_leaves_who_waits_to_read_its_place(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, repo.client("other") as other, ThreadPoolExecutor(1) as pool:
        other.acquire("x.txt")
        client.name()
        waiting = pool.submit(waits, client, mode="shared")
        until(lambda: other.locks().waiters)
        asks(client)
        assert sorted(one.mode for one in other.locks().waiters) == ["exclusive", "shared"]
        client.request_withdraw("U-1")
        other.release("x.txt")
        waiting.result(patience(5))


def test_who_asks_without_staying_leaves_the_line(repo: Repo) -> None:
    with Client(repo.root, agent="web") as client, repo.client("other") as other:
        other.acquire("x.txt")
        tries(client)
        with pytest.raises(Refusal):
            client.acquire("x.txt", retry=False)
        assert other.locks().waiters == []


def test_who_is_cancelled_takes_no_place_from_another_that_waits(repo: Repo) -> None:
    async def body() -> None:
        async with AsyncClient(repo.root, agent="web") as web, AsyncClient(repo.root, agent="other") as other:
            for gone in (0, 1, 2):
                await other.acquire("key:q")

                async def wait() -> str:
                    async with web.lease("key:q", wait=20):
                        return "had it"

                waiting = [asyncio.create_task(wait()) for _ in range(3)]
                await asyncio.sleep(0.5)
                waiting[gone].cancel()
                await asyncio.sleep(0.3)
                await other.release("key:q")
                ends = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), patience(10))
                assert [end == "had it" for end in ends] == [n != gone for n in range(3)], ends

    asyncio.run(body())
    assert held_by(repo) == {}


def test_bodies_give_back_what_they_were_granted_while_the_coordinator_died(repo: Repo) -> None:
    """Whichever answer is lost with it: who asks again is not told that it had the lease before."""
    granted: list[int] = []

    def work(n: int) -> int:
        with repo.client(f"m{n}") as client:
            for _ in range(40):
                with client.lease("a.py", wait=patience(30)) as held:
                    assert not held.leases[0].reentrant
                    granted.append(n)
        return n

    with ThreadPoolExecutor(4) as pool:
        works = [pool.submit(work, n) for n in range(4)]
        for kill in range(3):
            until(lambda kill=kill: len(granted) > 12 * kill)  # it has got somewhere since the last one
            os.kill(repo.pid(), signal.SIGKILL)
        assert sorted(one.result(patience(60)) for one in works) == [0, 1, 2, 3]
    assert held_by(repo) == {}


def _is_lost(held: Held) -> bool:
    try:
        held.check()
    except LeaseLost:
        return True
    return False


