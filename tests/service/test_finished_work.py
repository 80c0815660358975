"""What a done task leaves, as it is noted: every kind of lease, in one transaction after the looks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.settings import Settings, Verifying
from coordinator.slices.verify import verifications
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "repo", Settings(verify=Verifying(command="true", after_tasks=2, quiet_s=10.0)), git=True)
    yield made
    assert made.ledger.late == 0, "what has to be looked at is looked at before the first record"
    assert made.replay_differs() == []
    made.close()


def left(world: World) -> list[tuple[str, str | None]]:
    return [(str(path), name) for path, name in world.db.execute("SELECT path, hash FROM finished_files ORDER BY n, path")]


def finish(world: World, *resources: str, agent: str = "ann", **files: str) -> str:
    name = world.task("t", *resources)
    world.ask(rq.TaskClaim(agent=agent, task=name))
    for path, text in files.items():
        world.write(path, text)
    world.ask(rq.TaskDone(agent=agent, task=name))
    return name


def test_only_what_it_changed_is_its_work(world: World) -> None:
    for name in ("d/a", "d/b", "d/gone", "g1.txt", "g2.txt", "same"):
        world.write(name, "old")
    name = world.task("t", "d/", "g*.txt", "same", "new", "link", "shared:other")
    world.ask(rq.TaskClaim(agent="ann", task=name))
    world.write("d/a", "changed")
    world.write("d/c", "made")
    (world.root / "d/gone").unlink()
    world.write("g2.txt", "changed")
    world.write("new", "x")
    (world.root / "new").chmod(0o755)
    os.symlink("d/a", world.root / "link")
    world.write("other", "not its own")
    world.ask(rq.TaskDone(agent="ann", task=name))
    told = dict(left(world))
    assert list(told) == ["d/a", "d/c", "d/gone", "g2.txt", "link", "new"]
    assert told["d/gone"] is None and str(told["link"]).startswith("link:") and str(told["new"]).endswith("+x")
    view = world.view()
    assert view.blob(told["d/a"]) == b"changed" and view.blob(told["link"]) == b"d/a"


def test_who_changed_nothing_leaves_nothing(world: World) -> None:
    world.write("a", "old")
    finish(world, "a")
    finish(world)
    assert world.db.execute("SELECT count(*) FROM finished_work").get == 0


def test_when_one_is_due(world: World) -> None:
    def due() -> bool:
        return verifications.due(world.service, world.view())

    assert not due()
    finish(world, "a", a="1")
    assert not due()
    world.clock.advance(9_999)
    assert not due()
    world.clock.advance(1)
    assert due(), "it is quiet"
    world.clock.advance(-5_000)
    finish(world, "b", b="1")
    assert due(), "two are enough"
    world.ask(rq.Verify())
    assert not due(), "one goes on"
    row = verifications.running(world.view())
    assert row is not None
    world.decide(lambda tx: verifications.end(world.service, tx, row, verifications.Result("flaky", 3, said="It cannot be told.")))
    assert not due(), "the same is not told once more"
    assert verifications.warnings(world.service, world.view()) == ["V-1: It cannot be told. `coord verify` runs it again."]
    finish(world, "c", c="1")
    assert due()


def test_a_task_that_a_person_took_back_meanwhile_stays_as_it_is(world: World) -> None:
    name = finish(world, "a", a="1")
    world.ask(rq.Verify())
    row = verifications.running(world.view())
    assert row is not None
    broke = verifications.Culprit(name, (1,), "failed (exit code 1)", "tail")
    found = verifications.Result("broken", 4, culprits=(broke,))
    world.decide(lambda tx: verifications.end(world.service, tx, row, found))
    assert world.ask(rq.TaskShow(task=name)).state == "ready"
    world.ask(rq.TaskCancel(task=name))
    world.ask(rq.Verify())
    again = verifications.running(world.view())
    assert again is not None
    world.decide(lambda tx: verifications.end(world.service, tx, again, found))
    assert world.ask(rq.TaskShow(task=name)).state == "cancelled"
    world.decide(lambda tx: verifications.end(world.service, tx, again, found))  # told twice: nothing


def test_without_a_command_it_is_refused_and_nothing_is_noted(tmp_path: Path) -> None:
    world = World(tmp_path / "repo")
    finish(world, "a", a="1")
    assert left(world) == []
    refusal = world.refused(rq.Verify())
    assert refusal.code is Code.INVALID and "coord trust" in str(refusal.next)
    world.close()
