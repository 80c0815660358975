"""One strategy for each glob: leased before the work, at the write only, or shared by branches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.rules.strategies import strategy_of
from coordinator.settings import Settings, Strategies
from coordinator.words import requests as rq
from coordinator.words.resource_names import kind_of, resource
from tests.sessions import Session
from tests.world import World

BY_GLOB: dict[str, Any] = {"docs/**": "optimistic", "gen/**": "isolated", "docs/held.md": "pessimistic", "key:soft": "optimistic"}


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "mixed", Settings(strategies=Strategies(by_glob=BY_GLOB, losses_max=2)))
    yield made
    assert made.replay_differs() == []
    made.close()


def held(world: World) -> dict[str, str]:
    return {row.file_path: row.locked_by for row in world.live()}


@pytest.mark.parametrize("name, strategy", [
    ("docs/a.md", "optimistic"), ("docs/held.md", "pessimistic"), ("docs/", "optimistic"), ("docs/deep/b.py::f", "optimistic"),
    ("gen/x.py", "isolated"), ("src/a.py", "pessimistic"), ("docs/*.md", "pessimistic"), ("key:soft", "optimistic"),
    ("key:soft:1", "optimistic"), ("key:softer", "pessimistic"), ("docs.md", "pessimistic"), ("./", "pessimistic"),
])
def test_the_last_glob_that_matches_counts(name: str, strategy: str) -> None:
    assert strategy_of(resource(name, kind_of(name)), BY_GLOB, False) == strategy


def test_a_claim_leases_what_is_leased_before_the_work(mixed: World) -> None:
    for name in ("docs/a.md", "docs/held.md", "gen/x.py", "src/a.py"):
        mixed.write(name, "x\n")
    mixed.task("all", "docs/a.md", "docs/held.md", "gen/x.py", "src/a.py", "key:soft:1", "key:hard")
    mixed.task("docs only", "docs/a.md")
    claimed = mixed.ask(rq.TaskClaim(agent="ann"))
    assert {lease.resource for lease in claimed.leases} == {"docs/held.md", "src/a.py", "key:hard"}
    assert mixed.ask(rq.TaskClaim(agent="bob")).task.task == "T-2", "nobody stands in its way"


def test_an_edit_is_decided_at_its_write_and_holds_nothing_after(mixed: World) -> None:
    mixed.write("docs/a.md", "one\n")
    ann, bob = Session(mixed, "ann"), Session(mixed, "bob")
    ann.read("docs/a.md")
    bob.read("docs/a.md")
    mixed.clock.advance(1_000)
    assert ann.edit("docs/a.md", "two\n") == "" and held(mixed) == {}
    denied = bob.edit("docs/a.md", "three\n")
    assert "Your environment changed while you were thinking" in denied and "+two" in denied
    assert held(mixed) == {}, "and a write that was lost holds nothing"
    bob.read("docs/a.md")
    assert bob.edit("docs/a.md", "three\n") == "", "it decides again"
    assert (mixed.root / "docs/a.md").read_text() == "three\n"
    (lost,) = mixed.ask(rq.LostWrites()).items
    assert (lost.agent, lost.resource, lost.total, lost.in_a_row) == (bob.name, "docs/a.md", 1, 0)


def test_while_one_writes_the_other_waits(mixed: World) -> None:
    mixed.write("docs/a.md", "one\n")
    ann, bob = Session(mixed, "ann"), Session(mixed, "bob")
    given: dict[str, object] = {"file_path": str(mixed.root / "docs/a.md"), "content": "two\n"}
    assert not ann.call("Write", given).deny
    assert held(mixed) == {"docs/a.md": ann.name}
    assert "leave it" in bob.call("Write", given).deny
    mixed.write("docs/a.md", "two\n")
    ann.call("Write", given, "PostToolUse", tool_response={})
    assert ann.name not in held(mixed).values()
    mixed.clock.advance(61_000)
    mixed.tend()
    assert "+two" in bob.call("Write", given).deny, "it has never read what came of that"
    assert not bob.call("Write", given).deny


def test_who_loses_again_and_again_gets_the_lease(mixed: World) -> None:
    mixed.write("docs/a.md", "0\n")
    slow, quick = Session(mixed, "slow"), Session(mixed, "quick")
    for n in range(2):
        slow.read("docs/a.md")
        quick.read("docs/a.md")
        mixed.clock.advance(1_000)
        assert quick.edit("docs/a.md", f"quick {n}\n") == ""
        said = slow.edit("docs/a.md", "slow\n")
        assert "Your environment changed" in said
    assert "You have lost 2 times in a row" in said and held(mixed) == {"docs/a.md": slow.name}
    quick.read("docs/a.md")
    assert "leave it" in quick.edit("docs/a.md", "quick again\n")
    slow.read("docs/a.md")
    assert slow.edit("docs/a.md", "slow\n") == "" and slow.name not in held(mixed).values()


def test_what_is_leased_before_stays_leased(mixed: World) -> None:
    mixed.write("src/a.py", "x = 1\n")
    ann = Session(mixed, "ann")
    assert ann.edit("src/a.py", "x = 2\n") == "" and ann.name in held(mixed).values()
    mixed.write("docs/a.md", "one\n")
    mixed.acquire("eve", "docs/a.md", description="on purpose")
    bob = Session(mixed, "bob")
    assert "leave it" in bob.edit("docs/a.md", "two\n"), "who leases it by name holds it"
    mixed.ask(rq.Release(agent="eve", resources=["docs/a.md"]))
    assert held(mixed)["docs/a.md"] == bob.name, "and who was refused stood in line"
    assert bob.edit("docs/a.md", "two\n") == "" and "docs/a.md" not in held(mixed)
