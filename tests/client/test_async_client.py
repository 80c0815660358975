"""The asyncio client: leases, waiting beside renewal, cancelling, a coordinator that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from coordinator import AsyncClient, Code, LeaseLost, Refusal
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from tests.conftest import Repo
from tests.effort import crossed, examples
from tests.waiting import patience


async def until(true: Callable[[], Awaitable[object]], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not await true():
            await asyncio.sleep(0.01)


async def held_by(client: AsyncClient) -> list[str]:
    return [one.locked_by for one in (await client.locks()).items]


def test_a_lease_is_held_renewed_and_released_without_threads(repo: Repo) -> None:
    async def work() -> None:
        before = threading.active_count()
        async with AsyncClient(repo.root, agent="ann") as ann:
            async with ann.lease("key:account:12345", ttl=0.6) as held:
                first = (await ann.locks()).items[0].expires_at

                async def renewed() -> bool:
                    return (await ann.locks()).items[0].expires_at > first

                await until(renewed)
                assert held.fencing_token == 1 and await held_by(ann) == ["ann.1"]
                assert repr(held) == "<AsyncHeld key:account:12345 (fencing token 1)>"
            assert await held_by(ann) == [] and "given back" in repr(held)
            assert "ann" in repr(ann)
        assert threading.active_count() == before

    asyncio.run(work())


def test_waiting_starves_no_renewal_and_nobody_else(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await bob.acquire("key:b")
            async with ann.lease("key:a", ttl=2) as held:
                waiting = [asyncio.create_task(ann.acquire("key:b", wait=60)),
                           *(asyncio.create_task(ann.task_claim(wait=60)) for _ in range(50))]
                await until(lambda: waiters(bob))
                first = next(x.expires_at for x in (await bob.locks()).items if x.resource == "key:a")

                async def passed() -> bool:
                    await ann.status()
                    return iso(time.time_ns() // 1_000_000) > first

                await until(passed)
                held.check()
                await bob.release("key:b")
                assert (await waiting[0]).leases[0].resource == "key:b"  # type: ignore[union-attr]
                for one in waiting:
                    one.cancel()
                await asyncio.wait(waiting)

    asyncio.run(work())


async def waiters(client: AsyncClient) -> list[rq.Waiter]:
    return (await client.locks()).waiters


@pytest.mark.parametrize("retry", [True, False])
def test_who_is_cancelled_in_line_leaves_it(repo: Repo, retry: bool) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await bob.acquire("a.py")
            waiting = asyncio.create_task(ann.acquire("a.py", wait=60, retry=retry))
            await until(lambda: waiters(bob))
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await waiters(bob) == []
            await bob.release("a.py")
            assert await held_by(bob) == [], "nothing was granted to who does not listen"

    asyncio.run(work())


def test_a_grant_in_the_moment_of_the_cancelling_is_given_back(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await ann.name()
            for turn in range(examples(30)):
                await bob.acquire("a.py")
                waiting = asyncio.create_task(ann.acquire("a.py", wait=60, retry=False))
                await until(lambda: waiters(bob))
                freed = asyncio.create_task(bob.release("a.py"))
                for _ in range(turn % 6):
                    await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait([waiting, freed])
                if not waiting.cancelled():
                    await ann.release("a.py")
                assert await held_by(bob) == []

    asyncio.run(work())


@pytest.mark.parametrize("wait", [0, 20])
def test_what_a_cancelled_body_was_granted_is_given_back_by_the_other(repo: Repo, wait: float) -> None:
    """Whoever of several is cancelled in the moment of the grant, and told of it."""
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await ann.name()
            for turn in range(examples(60)):
                if held := wait and turn % 2:
                    await bob.acquire("a.py")

                async def body() -> str:
                    async with ann.lease("a.py", wait=wait):
                        await asyncio.sleep(0.002)
                    return "had it"

                bodies = [asyncio.create_task(body()) for _ in range(3)]
                if held:
                    await until(lambda: waiters(bob))
                    freed = asyncio.create_task(bob.release("a.py"))
                for _ in range(turn % 5):
                    await asyncio.sleep(0)
                if turn >= 5:
                    await asyncio.sleep(0.00015 * (turn % 20))
                gone = {turn % 3} if turn % 4 else {turn % 3, (turn + 1) % 3}
                for one in gone:
                    bodies[one].cancel()
                ends = await asyncio.wait_for(asyncio.gather(*bodies, return_exceptions=True), patience(10))
                assert all(end == "had it" or (not wait and isinstance(end, Refusal)) for n, end in enumerate(ends) if n not in gone), ends
                if held:
                    await freed
                assert await held_by(bob) == [] and await waiters(bob) == [], turn

    asyncio.run(work())


@pytest.mark.parametrize("wait", [0, 20])
def test_whoever_is_cancelled_of_bodies_that_overlap_nothing_is_left_nor_taken(repo: Repo, wait: float) -> None:
    """Readers and writers, of one resource and of two, some within a shared body of their own."""
    wanted: list[tuple[tuple[str, ...], rq.Mode]] = [
        (("key:a",), "exclusive"), (("key:a", "key:b"), "exclusive"), (("key:b", "key:a"), "shared"), (("key:b",), "exclusive")]

    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await ann.name()
            for turn in range(examples(40)):
                await bob.acquire("key:a", "key:b")

                async def body(names: tuple[str, ...], mode: rq.Mode) -> str:
                    async with ann.lease(*names, mode=mode, wait=wait) as held:
                        await asyncio.sleep(0.001)
                        held.check()
                    return "had it"

                bodies = [asyncio.create_task(body(*one)) for one in [*wanted, *wanted[turn % 4:]]]
                await asyncio.sleep(0.01 if wait else 0)
                freed = asyncio.create_task(bob.release("key:a", "key:b"))
                await asyncio.sleep(0.0002 * (turn % 15))
                gone = {turn % len(bodies), (turn * 5 + 2) % len(bodies)}
                for one in gone:
                    bodies[one].cancel()
                ends = await asyncio.wait_for(asyncio.gather(*bodies, return_exceptions=True), patience(20))
                assert all(end == "had it" or (not wait and isinstance(end, Refusal)) for n, end in enumerate(ends) if n not in gone), ends
                await freed
                assert await held_by(bob) == [] and await waiters(bob) == [], turn

    asyncio.run(work())


@pytest.mark.parametrize("wait", [0, 20])
def test_what_a_cancelled_question_was_granted_stays_with_the_other_that_was_told_of_it(repo: Repo, wait: float) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await ann.name()
            for turn in range(examples(60)):
                asked = [asyncio.create_task(ann.acquire("a.py", wait=wait, reentrant=True)) for _ in range(2)]
                for _ in range(turn % 5):
                    await asyncio.sleep(0)
                if turn >= 5:
                    await asyncio.sleep(0.00015 * (turn % 20))
                asked[turn % 2].cancel()
                await asyncio.wait(asked)
                assert await held_by(bob) == ["ann"], turn
                await ann.release("a.py")

    asyncio.run(work())


def test_who_is_cancelled_while_the_coordinator_dies_holds_nothing(repo: Repo) -> None:
    """Its answer is lost with it: it asks again, under the key that it had."""
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await ann.name()
            for turn in range(examples(12)):
                await bob.acquire("a.py")
                waiting = asyncio.create_task(ann.acquire("a.py", wait=60, retry=bool(turn % 2)))
                await until(lambda: waiters(bob))
                freed = asyncio.create_task(bob.release("a.py"))
                await asyncio.sleep(0.0003 * (turn % 6))
                os.kill(repo.pid(), signal.SIGKILL)
                waiting.cancel()
                await asyncio.wait([waiting, freed])
                if not waiting.cancelled():
                    await ann.release("a.py")
                assert await held_by(bob) == [] and await waiters(bob) == [], turn

    asyncio.run(work())


def test_who_is_cancelled_before_the_answer_holds_nothing(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await ann.name()
            await bob.acquire("b.py")
            for turn in range(20):
                asked = [asyncio.create_task(ann.acquire("a.py", retry=bool(turn % 2))),
                         asyncio.create_task(ann.acquire("b.py"))]
                for _ in range(turn % 5):
                    await asyncio.sleep(0)
                if turn % 4 == 3:
                    await asyncio.sleep(0.002)
                for one in asked:
                    one.cancel()
                await asyncio.wait(asked)
                if not asked[0].cancelled():
                    await ann.release("a.py")
                if not asked[1].cancelled() and (in_line := await waiters(bob)):
                    await ann.withdraw(in_line[0].acquisition_id)
                assert await held_by(bob) == ["bob"] and await waiters(bob) == []

    asyncio.run(work())


@pytest.mark.parametrize("twice", [False, True])
def test_who_is_cancelled_as_it_is_granted_what_it_waits_for_holds_nothing(repo: Repo, twice: bool) -> None:
    """The holder gives it back, and the waiter is cancelled before it hears of that."""
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            for turn in range(20):
                await ann.acquire("a.py")
                asked = [asyncio.create_task(bob.acquire("a.py", wait=5, reentrant=True)) for _ in range(2 if twice else 1)]
                while not await waiters(ann):
                    await asyncio.sleep(0.005)
                back = asyncio.create_task(ann.release("a.py"))
                for _ in range(turn % 4):
                    await asyncio.sleep(0)
                asked[0].cancel()
                ends = await asyncio.gather(*asked, back, return_exceptions=True)
                if not isinstance(ends[0], asyncio.CancelledError) or twice:
                    assert await held_by(ann) == ["bob"], "who was not cancelled has it"
                    await bob.release("a.py")
                assert await held_by(ann) == [] and await waiters(ann) == [], turn

    asyncio.run(work())


class CutOff(AsyncClient):
    """One whose question is cancelled so many turns of the loop after its answer has come."""

    asking: asyncio.Task[Any] | None = None
    turns = 0

    async def _ask_over(self, wire: Any, request: Any, *how: Any) -> Any:
        try:
            return await super()._ask_over(wire, request, *how)
        finally:
            if isinstance(request, rq.Acquire) and self.asking is not None:
                self._after(self.turns, self.asking)

    def _after(self, turns: int, asking: asyncio.Task[Any]) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._after, turns - 1, asking)
        else:
            asking.cancel()


@pytest.mark.parametrize("name", ["a.py", "b.py"])
def test_whatever_turn_of_the_loop_it_is_cancelled_in_nothing_is_left(repo: Repo, name: str) -> None:
    async def work() -> None:
        ended = set()
        async with CutOff(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await ann.name()
            await bob.acquire("b.py")
            for ann.turns in range(12):
                ann.asking = asyncio.create_task(ann.acquire(name))
                await asyncio.wait([ann.asking])
                cancelled, ann.asking = ann.asking.cancelled(), None
                ended.add(cancelled)
                if not cancelled and name == "a.py":
                    await ann.release("a.py")
                elif not cancelled:
                    await ann.withdraw((await waiters(bob))[0].acquisition_id)
                assert await held_by(bob) == ["bob"] and await waiters(bob) == [], ann.turns
        assert ended == {True, False}

    asyncio.run(work())


@pytest.mark.parametrize("wait", [0, 60])
def test_who_is_cancelled_while_it_claims_has_no_task(repo: Repo, wait: float) -> None:
    """Whenever in those moments: before it is sent, decided or answered."""
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root) as boss:
            await ann.name()
            for turn in range(examples(24)):
                await boss.task_add(f"{turn}", resources=["a.py"])
                claiming = asyncio.create_task(ann.task_claim(wait=wait))
                for _ in range(turn % 6):
                    await asyncio.sleep(0)
                if turn >= 6:
                    await asyncio.sleep(0.0004 * (turn - 6))
                claiming.cancel()
                await asyncio.wait([claiming])
                if not claiming.cancelled():
                    await ann.done(claiming.result().task.task)
                left = (await boss.task_list()).items
                assert {(one.state, one.attempts) for one in left} <= {("ready", 0), ("done", 1)}
                assert await held_by(boss) == []
                for one in left:
                    if one.state == "ready":
                        await ann.task_claim(one.task)
                        await ann.done(one.task)

    asyncio.run(work())


@pytest.mark.parametrize("passes", range(5))
def test_who_is_cancelled_in_the_first_passes_of_the_loop_waits_no_more(repo: Repo, passes: int) -> None:
    """It has no connection yet, or is about to have one."""
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await bob.acquire("a.py")
            await ann.name()
            asked = [asyncio.create_task(ann.acquire("a.py", wait=60)), asyncio.create_task(ann.acquire("a.py", "b.py", wait=60)),
                     asyncio.create_task(ann.task_claim(wait=60)), asyncio.create_task(ann.change_next("key:k", wait=60))]
            for _ in range(passes):
                await asyncio.sleep(0)
            for one in asked:
                one.cancel()
            _, pending = await asyncio.wait(asked, timeout=20)
            assert not pending
            assert await waiters(bob) == [] and await held_by(bob) == ["bob"]

    asyncio.run(work())


def test_who_rests_and_waits_for_a_task_is_given_one_when_the_rest_ends(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann:
            await ann.task_add("one")
            await ann.limit_reached(for_s=1.0)
            with pytest.raises(Refusal) as met:
                await ann.task_claim()
            assert met.value.facts["rests_until"] > iso(time.time_ns() // 1_000_000)
            got = await asyncio.wait_for(ann.task_claim(wait=60), patience(20))
            assert got.task.task == "T-1" and str(got.task.claimed_at) >= met.value.facts["rests_until"]

    asyncio.run(work())


def test_a_claim_that_it_had_before_outlives_a_cancelled_one(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann:
            task = (await ann.task_add("one", resources=["a.py"])).task
            await ann.task_claim(task)
            for wait in (0, 60):
                again = asyncio.create_task(ann.task_claim(task, wait=wait))
                await asyncio.sleep(0)
                again.cancel()
                await asyncio.wait([again])
                assert (await ann.task_show(task)).claimed_by == "ann"
            assert await held_by(ann) == ["ann"]

    asyncio.run(work())


def test_in_another_event_loop_it_says_so(repo: Repo) -> None:
    ann = AsyncClient(repo.root, agent="ann")
    asyncio.run(ann.name())
    with pytest.raises(RuntimeError, match="make one for each"):
        asyncio.run(ann.locks())
    asyncio.run(ann.close())  # (what it had open went with its loop)


def test_a_cancelled_body_gives_back_first(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann:
            inside = asyncio.Event()

            async def body() -> None:
                async with ann.lease("a.py"):
                    inside.set()
                    await asyncio.sleep(60)

            running = asyncio.create_task(body())
            await inside.wait()
            running.cancel()
            await asyncio.wait([running])
            assert running.cancelled() and await held_by(ann) == []

    asyncio.run(work())


def test_a_lost_lease_is_told_to_the_body(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann:
            with pytest.raises(LeaseLost, match=r"a\.py"):
                async with ann.lease("a.py", ttl=0.3) as held:
                    await asyncio.to_thread(repo.coord, "unlock", "a.py", "--agent", "eve", "--force")

                    async def lost() -> bool:
                        return held.lost

                    await until(lost)
                    assert "lost:" in repr(held)
                    held.progress()

    asyncio.run(work())


def test_a_hung_body_loses_its_lease(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann:
            with pytest.raises(LeaseLost, match="no progress"):
                async with ann.lease("a.py", ttl=0.2, stall=0.1):
                    async def gone() -> bool:
                        return not await held_by(ann)

                    await until(gone)

    asyncio.run(work())


def test_questions_outlive_the_daemon_and_take_effect_once(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, ann.lease("a.py", ttl=30) as held:
            asked = [asyncio.create_task(ann.task_add(f"t{n}")) for n in range(40)]
            await asyncio.sleep(0)
            os.kill(repo.pid(), signal.SIGKILL)
            added = await asyncio.gather(*asked)
            assert len({one.task for one in added}) == 40
            assert sorted(one.title for one in (await ann.task_list()).items) == sorted(f"t{n}" for n in range(40))
            held.progress()
            assert await held_by(ann) == ["ann.1"]

    asyncio.run(work())


def test_it_starts_a_coordinator_and_says_what_keeps_it_from_that(repo: Repo) -> None:
    async def work() -> None:
        before = threading.active_count()
        async with AsyncClient(repo.root, autostart=False) as asks:
            with pytest.raises(Refusal) as met:
                await asks.status()
            assert met.value.code is Code.DAEMON_DOWN
        async with AsyncClient(repo.root) as asks:
            assert (await asks.health()).root == str(repo.root.resolve())
        assert threading.active_count() == before
        repo.down()
        repo.write("coord.toml", "[leases]\nttl_s = 'x'\n")
        async with AsyncClient(repo.root) as asks:
            with pytest.raises(Refusal) as met:
                await asks.status()
            assert met.value.code is Code.INVALID and "ttl_s" in met.value.message

    asyncio.run(work())


def test_a_refusal_is_raised_with_its_facts(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await ann.acquire("a.py")
            with pytest.raises(Refusal) as met:
                async with bob.lease("a.py"):
                    raise AssertionError("entered")
            assert met.value.code is Code.LOCKED and met.value.facts["conflicts"][0]["holder"] == "ann"
            assert await waiters(ann) == []
            with pytest.raises(Refusal) as met:
                await bob.task_import("x" * 9_000_000, "yaml")
            assert met.value.code is Code.LIMIT

    asyncio.run(work())


def test_events_are_followed(repo: Repo) -> None:
    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann:
            begun = (await ann.task_add("one")).task
            told = ann.follow(after=0)
            seen = set()
            async for event in told:
                seen.add(event.kind)
                if event.task == begun:
                    break
            await told.aclose()  # type: ignore[attr-defined]
            assert "task_added" in seen
            assert (await ann.task_list()).items[0].task == begun

    asyncio.run(work())


@pytest.mark.parametrize(("kind", "late"), crossed(["step", "change"], [False, True]))
def test_who_is_cancelled_while_it_waits_for_work_is_given_none(make_repo: Callable[..., Repo], kind: str, late: bool) -> None:
    """`late`: just as something is there to be given."""
    repo = make_repo(config="[backlog]\nbackoff_s = 0.1\n")

    async def work() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            if kind == "change":
                await ann.acquire("key:a")
            done: list[str] = []
            attempts: list[int] = []
            # (What was given to who had just gone comes back after that and a rest, and not before.)
            give = 2 if late else 60

            async def take(wait: float) -> None:
                """Whoever has been given it finishes it, cancelled or not."""
                if kind == "step":
                    step = await ann.step_next(["s"], wait=wait, give=give)
                    await asyncio.shield(finish(step.step, step.attempts))
                else:
                    change = (await ann.change_next("key:a", wait=wait, give=give)).change
                    await asyncio.shield(finish(change.change, change.attempts))

            async def finish(name: str, attempt: int) -> None:
                await (ann.step_done(name, attempt) if kind == "step" else ann.change_done(name, attempt, 1))
                done.append(name)
                attempts.append(attempt)

            async def put() -> str:
                if kind == "step":
                    return (await bob.step_add("s", delay=0, attempts_max=3)).step
                return (await bob.change_add("key:a", 1, attempts_max=3)).change

            there = []
            for turn in range(8):
                waits = asyncio.create_task(take(30))
                await asyncio.sleep(0.02)
                if late:
                    adds = asyncio.create_task(put())
                    for _ in range(turn):
                        await asyncio.sleep(0)
                waits.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await waits
                there.append(await adds if late else await put())
                if not late:
                    await take(20)  # at once
            deadline = time.monotonic() + patience(60)
            while len(done) < len(there) and time.monotonic() < deadline:
                with contextlib.suppress(Refusal):
                    await take(2)
            assert sorted(done) == sorted(there)
            assert late or set(attempts) == {1}, "somebody who is gone was given it before"

    asyncio.run(work())


def test_who_waits_in_a_circle_that_is_over_is_granted_and_not_refused_without_a_word(repo: Repo) -> None:
    """Two agents take two files at once, again and again: who is told to give way asks while the other gives back."""
    refused: list[Refusal] = []

    async def take(client: AsyncClient, name: str) -> None:
        for _ in range(5):
            try:
                async with client.lease(name, wait=60):
                    await asyncio.sleep(0.001)
            except Refusal as refusal:
                refused.append(refusal)

    async def main() -> None:
        async with AsyncClient(repo.root, agent="ann") as ann, AsyncClient(repo.root, agent="bob") as bob:
            await asyncio.gather(*(take(one, name) for one in (ann, bob) for name in ("x.txt", "y.txt")))

    for _ in range(3):
        asyncio.run(main())
    assert [one for one in refused if one.code is not Code.DEADLOCK] == [], refused
