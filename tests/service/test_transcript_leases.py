"""Leases and the line before them, told in full (tests/transcripts.py)."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from coordinator.files.state import StateDir
from coordinator.kernel import use_cases
from coordinator.kernel.leasing import waiting_line
from coordinator.settings import Leases, Reviewing, Settings
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from tests.transcripts import Heard, Transcript
from tests.world import World

ARCHIVE = """# Ordering

Requests to `src/order.py` are queued: whoever touches the queue keeps its order.
"""


@pytest.fixture
def told(world: World) -> Transcript:
    return Transcript(world)


def small(tmp_path: Path, name: str, **leases: float) -> Transcript:
    return Transcript(World(tmp_path / name, Settings(
        leases=Leases(**leases), review=Reviewing(files_max=4))))  # type: ignore[arg-type]


def acquire(agent: str, *resources: str, **more: object) -> rq.Acquire:
    return rq.Acquire(agent=agent, resources=list(resources), **more)  # type: ignore[arg-type]


def test_what_is_granted(told: Transcript) -> None:
    world = told.world
    for name in ("a.py", "d/one.py", "d/two.py", "lib/x.sql"):
        world.write(name, f"{name}\n")
    os.link(world.root / "a.py", world.root / "twin.py")
    told.ask(acquire("ann", "a.py", "new.py", description="ordering", ttl_s=60))
    told.later(10)
    told.ask(acquire("ann", "a.py", "d/", ttl_s=60, reentrant=True))
    told.ask(acquire("ann", "a.py", mode="shared", ttl_s=5, reentrant=True))
    told.ask(acquire("bob", "lib/*.sql", "key:account:1", "b.py::C.m", "./lib/*.sql"))
    told.ask(acquire("cyd", "s.py", mode="shared"))
    told.later(1)
    told.ask(acquire("cyd", "s.py", reentrant=True))
    told.ask(acquire("dan", "./", retry=False))
    told.ask(acquire("dan", "twin.py", retry=False))
    told.ask(acquire("dan", "lib/x.sql", "d/new.py", "key:account:1:x", retry=False))
    told.ask(rq.Locks())
    told.ask(rq.Locks(limit=2))
    told.ask(rq.Locks(limit=2, after=2, agent="ann"))
    told.ask(rq.Locks(resource="d/two.py"))
    told.ask(rq.Locks(limit=1))
    told.assert_is("granted")


def test_requests_for_leases_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leases, "wait_max_s", 20.0)
    told = small(tmp_path, "few", resources_max=3, ttl_s=50, ttl_max_s=100)
    token = told.ask(rq.Register(agent="ann")).token
    told.ask(acquire("ann"))
    told.ask(acquire("ann", "1", "2", "3", "4"))
    told.ask(acquire("ann", "1", "2", "3"))
    told.ask(rq.Release(agent="ann", resources=["1", "2", "3"]))
    for ttl_s in (0.0009, 0.001, 100.0, 100.1, 0.0, -1.0):
        told.ask(acquire("ann", f"ttl{ttl_s}.py", ttl_s=ttl_s))
    for wait_s in (-0.1, 20.0, 20.1):
        told.ask(acquire("ann", "t.py", wait_s=wait_s, reentrant=True))
    for priority in (-1001, -1000, 1000, 1001):
        told.ask(acquire("ann", "t.py", priority=priority, reentrant=True))
    told.ask(acquire("ann", "t.py", task="T-7"))
    told.ask(acquire("ann", "/etc/passwd"))
    told.ask(acquire("ann", ".coord/coord.db"))
    told.ask(acquire("ann", "key:"))
    told.ask(acquire("bob", "t.py"), token)
    told.ask(acquire("ann", "t.py"), token)
    for n in range(5):
        told.world.write(f"d/{n}.py", "x\n")
    told.ask(acquire("ann", "d/"))
    told.ask(rq.Leave(agent="ann"), token)
    told.ask(acquire("bob", "t.py"))
    told.assert_is("leases_refused")


def test_leases_given_back_and_renewed(told: Transcript) -> None:
    world = told.world
    world.write("a.py", "one\n")
    token = told.ask(rq.Register(agent="bob")).token
    got = told.ask(acquire("ann", "a.py", "b.py", "d/", "lib/*.py", ttl_s=60))
    told.ask(rq.Release(agent="ann", resources=["nobody.py"]))
    told.ask(rq.Release(agent="bob", resources=["a.py"]))
    told.ask(rq.Release(agent="ann", acquisition_id="A-99"))
    told.ask(rq.Release(agent="ann", acquisition_id="what"))
    told.ask(rq.Release(agent="ann", resources=["a.py"], lease_token="wrong"))
    told.ask(rq.Release(agent="ann", resources=["a.py"], lease_token=got.leases[0].lease_token))
    told.ask(rq.Renew(agent="bob", resources=["b.py"]))
    told.ask(rq.Renew(agent="ann", resources=["b.py"], lease_token="wrong"))
    told.later(30)
    told.ask(rq.Renew(agent="ann", resources=["b.py"], ttl_s=600))
    told.ask(rq.Renew(agent="ann", acquisition_id=got.acquisition_id))
    told.ask(rq.Renew(agent="ann", ttl_s=100_000))
    told.ask(rq.Release(agent="bob", resources=["d/"], force=True), token)
    told.ask(rq.Release(agent="ann", resources=["d/", "./lib/*.py"], cwd=str(world.root)))
    told.ask(rq.Release(agent="ann", resources=["b.py"], cwd=str(world.root / "sub")))
    task = told.ask(rq.TaskAdd(title="t", resources=["x.py", "y.py"])).task
    told.ask(rq.TaskClaim(agent="ann", task=task))
    told.ask(rq.Release(agent="bob", task=task))
    told.ask(rq.Release(agent="ann", task=task))
    told.later(60)
    told.ask(rq.Release(agent="ann", resources=["b.py"]))
    told.ask(rq.Renew(agent="ann"))
    told.later(600)
    told.ask(rq.Renew(agent="ann", resources=["b.py"]))
    told.ask(rq.Release(agent="ann", resources=["b.py"]))
    told.ask(rq.Release(agent="ann", resources=["b.py"], force=True))
    told.assert_is("given_back")


def test_a_person_ends_leases_by_force(told: Transcript) -> None:
    world = told.world
    for name in ("a.py", "d/x.py", "quiet.py"):
        world.write(name, "one\n")
    told.ask(acquire("ann", "a.py", "d/"))
    told.later(1)
    told.ask(acquire("bob", "quiet.py"))
    told.ask(acquire("bob", "a.py"))
    world.write("a.py", "two\n")
    world.write("d/y.py", "new\n")
    (world.root / "d/x.py").unlink()
    told.ask(rq.Release(agent="eve", resources=["a.py", "quiet.py", "d/"], force=True))
    told.ask(rq.Heartbeat(agent="ann"))
    told.ask(rq.Heartbeat(agent="bob"))
    told.assert_is("by_force")


def test_the_line(told: Transcript) -> None:
    world = told.world
    world.write("src/order.py", "1\n")
    (world.root / "context_archive").mkdir()
    (world.root / "context_archive/ordering.md").write_text(ARCHIVE)
    world.service.archive.refresh()
    told.ask(acquire("ann", "src/order.py", description="the queue's order", ttl_s=300))
    told.ask(rq.Heartbeat(agent="ann", progress="half of it"))
    told.ask(acquire("bob", "src/order.py", priority=1, description="bob's"))
    told.later(1)
    told.ask(acquire("cyd", "src/", mode="shared"))
    told.ask(acquire("dan", "src/order.py", "src/more.py", priority=2))
    told.ask(acquire("eve", "src/other.py"))
    told.later(5)
    told.ask(acquire("bob", "src/order.py", priority=1))
    told.ask(rq.TaskAdd(title="other work", resources=["free.py", "shared:f2.py"], priority=4))
    told.ask(acquire("fay", "src/order.py", wait_s=5, retry=False))
    told.ask(rq.Withdraw(agent="fay", acquisition_id="W-9"))
    told.ask(rq.Withdraw(agent="bob", acquisition_id="W-2"))
    told.ask(rq.Withdraw(agent="dan", acquisition_id="W-3"))
    told.ask(rq.Locks())
    told.ask(rq.Agents())
    told.ask(rq.Release(agent="ann", resources=["src/order.py"]))
    told.ask(rq.Heartbeat(agent="bob"))
    told.ask(acquire("bob", "src/order.py"))
    told.ask(rq.Release(agent="bob", resources=["src/order.py"]))
    told.ask(rq.Locks())
    told.later(600)
    told.ask(rq.Sweep())
    told.ask(rq.Heartbeat(agent="eve"))
    told.assert_is("line")


def test_waiters_that_are_granted_leave_or_wait_in_vain(told: Transcript) -> None:
    world = told.world
    told.ask(acquire("ann", "a.py", "b.py"))
    told.ask(acquire("bob", "a.py", ttl_s=30))
    told.ask(acquire("cyd", "b.py", wait_s=10))
    told.ask(acquire("dan", "a.py", "b.py"))
    told.ask(acquire("eve", "b.py", wait_s=10, retry=True))
    told.ask(acquire("cyd", "key:c"))
    told.ask(acquire("ann", "key:c"))
    told.ask(acquire("cyd", "b.py", wait_s=10))
    for name, stay in (("W-3", True), ("W-3", False), ("W-77", True)):
        told.came(f"{name} is not held any more, stay={stay}",
                  world.part(use_cases.decide(partial(_stop, world, name, stay))))
    told.came("nobody listens to W-4", world.decide(
        lambda tx: waiting_line.nobody_listens(tx, "W-4")))
    told.ask(rq.Locks())
    told.ask(rq.Leave(agent="dan"))
    told.ask(rq.Release(agent="ann", resources=["a.py", "b.py"]))
    told.later(10)
    told.ask(rq.Locks())
    told.later(590)
    told.ask(rq.Sweep())
    told.ask(rq.Locks())
    told.ask(acquire("fay", "key:c", wait_s=9))
    world.restart()
    told.came("the daemon was restarted")
    told.assert_is("waiters")


def _stop(world: World, name: str, stay: bool, tx: Tx) -> object:
    return waiting_line.stop_holding(world.service, tx, name, stay)


def test_a_folder_with_a_coordinator_of_its_own(tmp_path: Path) -> None:
    root = tmp_path / "outer"
    (root / "vendor/lib/.coord").mkdir(parents=True)
    (root / "vendor/lib/.coord").chmod(0o700)
    state = StateDir(root)
    state.create()
    state.apart.write_text("vendor/lib\n")
    told = Transcript(World(root))
    told.world.write("vendor/x.py", "1\n")
    told.ask(acquire("ann", "vendor/", "a.py", "*.py"))
    told.ask(acquire("bob", "vendor/lib/l.py", "b.md"))
    bob = Heard(told, "bob")
    bob.edit("vendor/lib/l.py", "1\n")
    told.assert_is("apart")


def test_what_a_waiter_holds_itself_is_not_in_its_way(told: Transcript) -> None:
    told.ask(acquire("ann", "d/1.py"))
    told.ask(acquire("bob", "d/2.py"))
    told.ask(acquire("bob", "d/", ttl_s=60))
    told.ask(rq.Release(agent="ann", resources=["d/1.py"]))
    told.assert_is("own")


def test_two_that_wait_for_each_other_are_told(told: Transcript) -> None:
    told.ask(acquire("ann", "a.py"))
    told.ask(acquire("bob", "b.py"))
    told.ask(acquire("cyd", "c.py"))
    told.ask(acquire("ann", "b.py"))
    told.ask(acquire("bob", "c.py"))
    told.ask(acquire("cyd", "a.py", mode="shared"))
    told.ask(acquire("dan", "a.py", "b.py", "c.py"))
    told.ask(acquire("eve", "a.py"))
    told.assert_is("deadlock")


def test_what_cannot_be_served_is_set_aside(tmp_path: Path) -> None:
    told = small(tmp_path, "aside", offered_ttl_s=4)
    world = told.world
    for n in range(5):
        world.write(f"d/{n}.py", "x\n")
    told.ask(acquire("ann", "d/1.py", ttl_s=60))
    told.ask(acquire("bob", "d/"))
    told.ask(acquire("cyd", "d/1.py"))
    told.ask(rq.Release(agent="ann", resources=["d/1.py"]))
    told.came("aside", world.ask(rq.Status()).aside)
    for seconds in (29.999, 0.001, 60, 120):
        told.later(seconds)
        world.tend()
        told.came("tended")
    (world.root / "d/1.py").unlink()
    told.later(240)
    world.tend()
    told.came("tended")
    told.ask(rq.Locks())
    told.assert_is("aside")
