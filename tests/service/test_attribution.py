"""Whose write it was: a table of the calls that ran, held against the real database's agents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.kernel.repository_files import NOTHING
from coordinator.slices.guard import attribution
from coordinator.slices.guard.attribution import Running
from coordinator.slices.guard.seen_writes import Seen
from coordinator.words import requests as rq
from tests.sessions import Session
from tests.world import World

PATH = "src/pay.py"


def command(holder: str, *words: str, confined: bool = False) -> Running:
    return Running(holder, True, frozenset(words), confined=confined)


@pytest.fixture
def named(world: World) -> dict[str, str]:
    sessions = {name: Session(world, name) for name in ("ann", "bob", "eve")}
    for name, session in sessions.items():
        session.edit(f"{name}.py", "")  # its hooks are heard
    return {name: session.name for name, session in sessions.items()}


@pytest.mark.parametrize(("calls", "writer"), [
    ([("ann",)], "ann"),
    ([("ann",), ("ann", "make")], "ann"),
    ([("ann",), ("bob",)], None),
    ([("ann", "pay.py"), ("bob", "make")], "ann"),
    ([("ann", "pay.py"), ("bob", "src/pay.py")], None),
    ([("ann", "other.py"), ("bob", "make")], None),
    ([], None)])
def test_a_write_is_the_only_command_s_or_the_only_one_s_that_names_it(
        world: World, named: dict[str, str], calls: list[tuple[str, ...]], writer: str | None) -> None:
    change = Seen(PATH, NOTHING, calls=tuple(command(named[holder], *words) for holder, *words in calls))
    expected = named.get(writer or "")
    assert attribution.find_writer(world.view(), change) == expected
    late = replace(change, calls=(), lately=change.calls)
    assert attribution.find_late_writer(world.view(), late, named["eve"]) == expected
    assert attribution.find_late_writer(world.view(), change, named["eve"]) is None, "a command runs"


def test_who_has_left_wrote_nothing(world: World, named: dict[str, str]) -> None:
    change = Seen(PATH, NOTHING, calls=(command("nobody"),))
    assert attribution.find_writer(world.view(), change) is None
    change = Seen(PATH, NOTHING, calls=(command(named["ann"]),))
    assert attribution.find_writer(world.view(), change, but=named["ann"]) is None
    assert attribution.find_writer(world.view(), change) == named["ann"]
    world.ask(rq.Leave(agent=named["ann"]))
    assert attribution.find_writer(world.view(), change) is None


@pytest.mark.parametrize(("own", "calls", "others"), [
    ((), [("bob",)], ["bob"]),
    (("pay.py",), [("bob",)], []),
    (("pay.py",), [("bob", "pay.py")], ["bob"]),
    ((), [("bob", "pay.py"), ("ann",)], ["bob"]),
    ((), [("eve", "pay.py")], [])])
def test_a_violation_names_all_who_may_have_done_it(
        world: World, named: dict[str, str], own: tuple[str, ...], calls: list[tuple[str, ...]],
        others: list[str]) -> None:
    """`ann`'s command is blamed for a file that `eve` holds."""
    ran = [command(named[holder], *words) for holder, *words in calls]

    def blamed(calls: list[Running]) -> list[str]:
        return attribution.list_other_writers(
            world.view(), PATH, command(named["ann"], *own), named["eve"], calls)

    assert blamed(ran) == [named[name] for name in others]
    assert blamed([call._replace(confined=True) for call in ran]) == [], "it cannot write what others hold"
    assert blamed([call._replace(is_command=False) for call in ran]) == []


def test_an_edit_of_unknown_files_can_have_written_any(world: World, named: dict[str, str]) -> None:
    change = Seen(PATH, NOTHING, calls=(Running(named["ann"], False),))
    assert not attribution.is_foreign(world.view(), change, named["ann"], fold_case=False)


def test_an_edit_can_have_written_what_it_names_alone(world: World, named: dict[str, str]) -> None:
    edit = Running(named["ann"], False, files=frozenset({PATH}))
    for path, foreign in ((PATH, False), ("SRC/pay.py", True), ("other.py", True)):
        change = Seen(path, NOTHING, calls=(edit,))
        assert attribution.is_foreign(world.view(), change, named["ann"], fold_case=False) is foreign
    assert not attribution.is_foreign(world.view(), Seen(PATH, NOTHING), "nobody", fold_case=False), "no hooks"
