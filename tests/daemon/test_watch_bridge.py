"""What the watcher saw may be recorded after something newer of the same file: a hook, say, was faster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.running_calls import RunningCalls
from coordinator.daemon.watch_bridge import WatchBridge
from coordinator.slices.guard import shell_commands
from coordinator.slices.guard.attribution import Running
from coordinator.store.ledger import Job
from coordinator.store.rows import VersionRow
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from tests.sessions import Session
from tests.world import World


class Engine:
    """The world's; before what it writes first, `meanwhile` happens."""

    def __init__(self, world: World, meanwhile: Callable[[], object]) -> None:
        self._world, self._meanwhile = world, [meanwhile]
        self.tasks: list[asyncio.Task[Any]] = []

    async def write(self, job: Job) -> Any:
        if self._meanwhile:
            self._meanwhile.pop()()
        self._world.engine.now_ms = self._world.clock.now_ms()
        return self._world.engine.write(job)

    async def decide(self, job: Job) -> Any:
        if self._meanwhile:
            self._meanwhile.pop()()
        self._world.engine.now_ms = self._world.clock.now_ms()
        return self._world.engine.decide(job)

    async def do(self, work: Callable[[], Any]) -> Any:
        return work()

    def task(self, work: Coroutine[Any, Any, Any]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.engine, name)


def looked_at(world: World, path: str, calls: RunningCalls, meanwhile: Callable[[], object]) -> None:
    """The watcher looks at this path, and hands over what it saw; before that is recorded, `meanwhile` happens."""
    async def work() -> None:
        engine = Engine(world, meanwhile)
        router = SimpleNamespace(engine=engine, now_ms=world.clock.now_ms, now=lambda: iso(world.clock.now_ms()))
        bridge = WatchBridge(asyncio.get_running_loop(), world.service, cast(RequestRouter, router), lambda: None, calls,
                             lambda agent, path: False)
        bridge.look_at([path])
        await asyncio.sleep(0)
        await asyncio.gather(*engine.tasks)

    asyncio.run(work())


@pytest.mark.parametrize("left", ["two\n", None])
def test_what_a_hook_has_recorded_is_not_forgotten_for_an_older_look(world: World, left: str | None) -> None:
    """And it is not told twice, as if it had been changed again."""
    ann, bob = Session(world, "ann"), Session(world, "bob")
    calls = RunningCalls()
    for one in (ann, bob):
        one.hook("SessionStart", source="startup")
    world.write("a.py", "one\n")
    world.acquire(ann.name, "a.py")
    before = world.service.tree.root / "a.py"

    def changes() -> None:
        world.clock.advance(100)
        began = world.clock.now_ms()
        calls.began(Running(bob.name, is_command=True), "c", began)
        world.clock.advance(100)
        if left is None:
            before.unlink()
        else:
            world.write("a.py", left)
        calls.ended(bob.name, "c", world.clock.now_ms())
        assert world.view().has("lease_get", world.live()[0].fencing_token)
        bob.broke(shell_commands.Broken("a.py", ann.name, world.live()[0].content_hash, since=iso(began)))
        world.clock.advance(100)

    world.clock.advance(1_000)
    looked_at(world, "a.py", calls, changes)
    looked_at(world, "a.py", calls, lambda: None)
    known = world.view().first(VersionRow, "version_get", "a.py")
    assert known is not None and known.agent == bob.name and (known.hash is None) == (left is None)
    assert len(world.ask(rq.Reviews()).items) == 1
