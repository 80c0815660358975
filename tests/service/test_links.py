"""A typed name that is a symlink's: the link itself is leased, and what it leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.settings import Leases, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World


def held(world: World) -> dict[str, str]:
    return {row.file_path: row.locked_by for row in world.live()}


def lead(world: World, link: str, to: str) -> None:
    """Lead a link elsewhere; to a name from the root."""
    (world.root / link).unlink()
    (world.root / link).symlink_to(world.root / to)


@pytest.fixture
def linked(world: World) -> World:
    """`current` leads to a directory, `cfg.py` to a file, `chain` to `current`, `later` to nothing that is there."""
    for name in ("one/f", "two/f", "a.py", "b.py"):
        world.write(name, f"{name}\n")
    for name, to in (("current", "one"), ("cfg.py", "a.py"), ("chain", "current"), ("later", "not/yet"), ("one/up", str(world.root / "two")), ("through", "current/f"),
                     ("twice", "./two/../through"), ("deep", "one/up/f")):
        (world.root / name).symlink_to(to)
    return world


#: A link, and all that is held by its name: what it leads to, itself, and the links on the way.
LINKS = [("current", ["one/", "current"]), ("cfg.py", ["a.py", "cfg.py"]), ("chain", ["one/", "chain", "current"]), ("later", ["not/yet", "later"]),
         ("one/up", ["two/", "one/up"]), ("through", ["one/f", "through", "current"]), ("twice", ["one/f", "twice", "through", "current"]), ("deep", ["two/f", "deep", "one/up"])]


@pytest.mark.parametrize("who", ["ann", "eve"])
@pytest.mark.parametrize("elsewhere", ["", "b.py", "/tmp", "nowhere", "one"])
@pytest.mark.parametrize(("link", "to"), LINKS)
def test_all_are_held_and_given_back_by_the_one_name(linked: World, link: str, to: list[str], elsewhere: str, who: str) -> None:
    got = linked.acquire("ann", link)
    assert [one.resource for one in got.leases] == to and held(linked) == dict.fromkeys(to, "ann")
    assert all(one.reentrant for one in linked.acquire("ann", link).leases)
    assert {one.resource for one in linked.ask(rq.Renew(agent="ann", resources=[link])).leases} == set(to)
    if elsewhere:
        lead(linked, link, elsewhere)
        linked.ask(rq.Release(agent=who, resources=[link], force=who == "eve"))
        assert held(linked) == {}
        return
    for name in (link, *to, f"./{link}", str(linked.root / link)):
        refusal = linked.refused(rq.Acquire(agent="bob", resources=[name]))
        assert refusal.code is Code.LOCKED, name
    linked.ask(rq.Release(agent="ann", resources=[link]))
    assert {name: who for name, who in held(linked).items() if who == "ann"} == {}


@pytest.mark.parametrize("link", ["current", "cfg.py", "one/up"])
@pytest.mark.parametrize("forced", [False, True])
def test_who_leads_it_elsewhere_holds_it_still(linked: World, link: str, forced: bool) -> None:
    """What it leads to by now is free, and no other gets the link by that."""
    linked.acquire("ann", link)
    before = held(linked)
    (linked.root / link).unlink()
    (linked.root / link).symlink_to(linked.root / ("b.py" if link == "cfg.py" else "not_held"))
    (linked.root / "not_held").mkdir()
    refusal = linked.refused(rq.Acquire(agent="bob", resources=[link], retry=False))
    assert refusal.code is Code.LOCKED and link in refusal.message
    linked.acquire("cyd", "b.py", "not_held/")
    assert {name for name, who in held(linked).items() if who == "ann"} == set(before)
    if forced:
        linked.ask(rq.Release(agent="eve", resources=[link], force=True))
    else:
        linked.ask(rq.Release(agent="ann", resources=[link]))
    assert held(linked) == {"b.py": "cyd", "not_held/": "cyd"}


def test_what_was_held_before_by_its_own_name_stays(linked: World) -> None:
    linked.acquire("ann", "a.py")
    linked.acquire("ann", "cfg.py")
    linked.ask(rq.Release(agent="ann", resources=["cfg.py"]))
    assert held(linked) == {"a.py": "ann"}


def test_what_was_named_beside_it_stays_when_the_link_leads_there(linked: World) -> None:
    linked.acquire("ann", "current", "two/")
    (linked.root / "current").unlink()
    (linked.root / "current").symlink_to("two")
    linked.ask(rq.Release(agent="ann", resources=["current"]))
    assert held(linked) == {"two/": "ann"}


def test_a_directory_that_is_named_with_a_slash_is_that_alone(linked: World) -> None:
    linked.acquire("ann", "current/")
    assert held(linked) == {"one/": "ann"}
    linked.acquire("bob", "later", mode="shared")
    linked.acquire("cyd", "later", mode="shared")


@pytest.mark.parametrize(("link", "to"), LINKS)
def test_a_task_that_names_it_holds_all(linked: World, link: str, to: list[str]) -> None:
    linked.task("switch", link)
    (shown,) = linked.ask(rq.Tasks(state="ready")).items
    assert set(shown.resources) == set(to)
    linked.ask(rq.TaskClaim(agent="ann", task="T-1"))
    assert held(linked) == dict.fromkeys(to, "ann")
    before = (linked.root / link).readlink()
    (linked.root / link).unlink()
    (linked.root / link).symlink_to("elsewhere")
    linked.ask(rq.Leave(agent="ann", clean=False, reason="killed"))
    assert held(linked) == {}
    (file,) = linked.ask(rq.ReviewShow(review="R-1")).files
    assert file.path == link and file.change == "modified"
    linked.ask(rq.ReviewDecide(review="R-1", verdict="revert", by="eve"))
    assert (linked.root / link).readlink() == before


def test_a_task_whose_link_was_led_elsewhere_holds_what_it_leads_to_now_too(linked: World) -> None:
    linked.task("switch", "current")
    (linked.root / "current").unlink()
    (linked.root / "current").symlink_to("two")
    linked.ask(rq.TaskClaim(agent="ann", task="T-1"))
    assert held(linked) == {"one/": "ann", "two/": "ann", "current": "ann"}


def test_its_story_is_that_of_the_link_and_of_what_it_leads_to(linked: World) -> None:
    linked.acquire("ann", "one/")
    linked.ask(rq.Release(agent="ann", resources=["one/"]))
    linked.acquire("bob", "current")
    (linked.root / "current").unlink()
    (linked.root / "current").symlink_to("two")
    linked.ask(rq.Release(agent="bob", resources=["current"]))
    linked.acquire("cyd", "two/f")
    said = "\n".join(linked.ask(rq.Explain(subject="current")).sentences)
    assert "bob got current" in said and "bob released current" in said and "ann got" not in said
    assert "cyd got two/f" not in said


@pytest.mark.parametrize(("link", "to", "now"), [
    ("current", "two", ["two/", "current"]), ("cfg.py", "b.py", ["b.py", "cfg.py"]), ("chain", "two", ["two/", "chain"]), ("chain", "cfg.py", ["a.py", "cfg.py", "chain"]),
    ("later", "a.py", ["a.py", "later"]), ("current", "/tmp", ["current"]), ("through", "a.py", ["a.py", "through"])])
def test_who_waits_for_it_gets_what_it_leads_to_by_then(linked: World, link: str, to: str, now: list[str]) -> None:
    """And not what it led to when it was asked for."""
    linked.acquire("ann", link)
    linked.refused(rq.Acquire(agent="bob", resources=[link]))
    lead(linked, link, to)
    linked.ask(rq.Release(agent="ann", resources=[link]))
    linked.tend()
    assert held(linked) == dict.fromkeys(now, "bob")
    assert linked.replay_differs() == []


def test_no_link_on_the_way_is_led_elsewhere_by_another(linked: World) -> None:
    linked.acquire("ann", "chain")
    assert linked.refused(rq.Acquire(agent="bob", resources=["current"])).code is Code.LOCKED


def test_who_waits_for_a_link_gets_what_it_leads_to_by_a_link_that_was_led_elsewhere(linked: World) -> None:
    linked.acquire("ann", "current")
    linked.refused(rq.Acquire(agent="bob", resources=["twice"]))
    lead(linked, "current", "two")
    linked.ask(rq.Release(agent="ann", resources=["current"]))
    linked.tend()
    assert held(linked) == dict.fromkeys(["two/f", "twice", "through", "current"], "bob")
    lead(linked, "current", "one")
    linked.ask(rq.Release(agent="bob", resources=["twice"]))
    assert held(linked) == {}


def test_links_count_as_what_is_asked_for(tmp_path: Path) -> None:
    world = World(tmp_path, Settings(leases=Leases(resources_max=3)))
    world.write("a.py", "x\n")
    for name, to in (("one", "a.py"), ("two", "one"), ("three", "two")):
        (world.root / name).symlink_to(to)
    assert len(world.acquire("ann", "two").leases) == 3
    world.ask(rq.Release(agent="ann", resources=["two"]))
    refusal = world.refused(rq.Acquire(agent="ann", resources=["three"]))
    assert refusal.code is Code.LIMIT and "4 resources" in refusal.message and held(world) == {}
    world.close()
