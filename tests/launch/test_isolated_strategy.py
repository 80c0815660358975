"""Files that are shared by branches land without a lease, unless somebody holds them just now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.settings import Settings, Strategies
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.launch.test_lander import BASE, Ground, after


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path)
    made.world.service.settings = Settings(strategies=Strategies(by_glob={"d/**": "isolated"}))
    yield made
    made.world.close()


def test_it_lands_without_a_lease(ground: Ground) -> None:
    work = ground.agent(["a", "d/e"], {"a": "agent's\n", "d/e": "agent's\n", "d/new": "agent's\n"})
    assert [row.file_path for row in ground.world.live()] == ["a"]
    landed = ground.lander.land(work, ground.finish)
    assert ground.at(landed) == after(BASE, {"a": "agent's\n", "d/e": "agent's\n", "d/new": "agent's\n"})


def test_but_not_what_somebody_holds(ground: Ground) -> None:
    work = ground.agent(["a"], {"d/e": "agent's\n"})
    ground.world.acquire("eve", "d/e")
    with pytest.raises(Refusal) as no:
        ground.lander.land(work, ground.finish)
    assert no.value.code is Code.NOT_HOLDER and "eve" in no.value.message and ground.at(ground.trunk) == BASE
    ground.world.ask(rq.Release(agent="eve", resources=["d/e"]))
    ground.lander.land(work, ground.finish)


def test_nor_on_what_has_moved_and_cannot_be_merged(ground: Ground) -> None:
    work = ground.agent(["a"], {"d/e": "agent's\n"})
    ground.by_hand({"d/e": "by hand\n"})
    with pytest.raises(Refusal) as no:
        ground.lander.land(work, ground.finish)
    assert no.value.code is Code.VERSION_CHANGED and ground.at(ground.trunk) == after(BASE, {"d/e": "by hand\n"})


def test_what_is_leased_before_the_work_needs_its_lease_as_ever(ground: Ground) -> None:
    work = ground.agent(["a"], {"x": "agent's\n"})
    with pytest.raises(Refusal) as no:
        ground.lander.land(work, ground.finish)
    assert no.value.code is Code.NOT_HOLDER
