"""Live leases in windows: by folders, filtered, counted."""

from __future__ import annotations

import pytest

from coordinator.kernel.leasing.lease_lists import folder_of
from coordinator.words import requests as rq
from tests.world import World

HELD = ("top.py", "src/pay.py", "src/Tax.py", "src/sql/**/*.sql", "docs/", "key:account:1")


@pytest.fixture
def held(world: World) -> World:
    """What `ann` holds; `bob` holds one file besides."""
    for name in ("ann", "bob"):
        world.ask(rq.Register(agent=name))
    for name in HELD:
        world.acquire("ann", name, description="Rounding" if name == "top.py" else "")
    world.acquire("bob", "src/b.py")
    return world


def names(listed: rq.LockList) -> list[str]:
    return [lease.resource for lease in listed.items]


def test_by_folders_each_says_how_many_it_has(held: World) -> None:
    listed = held.ask(rq.Locks(order="folder"))
    assert [(row.folder, row.count) for row in listed.folders] == [("./", 2), ("src/", 3), ("src/sql/", 1), ("", 1)]
    assert names(listed) == ["docs/", "top.py", "src/Tax.py", "src/b.py", "src/pay.py", "src/sql/**/*.sql", "key:account:1"]
    parts = [held.ask(rq.Locks(order="folder", skip=skip, limit=3)) for skip in (0, 3, 6)]
    assert [name for part in parts for name in names(part)] == names(listed)
    assert [(part.next, part.total, len(part.folders)) for part in parts] == [(3, 7, 4), (6, 7, 4), (None, 7, 4)]


def test_a_filter_looks_into_resource_holder_and_description(held: World) -> None:
    assert names(held.ask(rq.Locks(filter="TAX"))) == ["src/Tax.py"]
    assert names(held.ask(rq.Locks(filter="rounding", order="folder"))) == ["top.py"]
    bobs = held.ask(rq.Locks(filter="bob", order="folder"))
    assert names(bobs) == ["src/b.py"] and bobs.total == 1 and [row.folder for row in bobs.folders] == ["src/"]
    assert names(held.ask(rq.Locks(filter="src", resource="src/sql/"))) == ["src/sql/**/*.sql"]
    assert names(held.ask(rq.Locks(filter="%"))) == []


@pytest.mark.parametrize("more", [{}, {"filter": "s"}, {"resource": "."}])
def test_pages_in_the_order_of_the_grants_have_every_lease_once(held: World, more: dict[str, str]) -> None:
    whole = held.ask(rq.Locks(**more))  # type: ignore[arg-type]
    seen, after = [], 0
    while True:
        page = held.ask(rq.Locks(limit=2, after=after, **more))  # type: ignore[arg-type]
        seen += names(page)
        if page.next is None:
            break
        after = page.next
    assert seen == names(whole) and len(seen) > 2
    assert names(held.ask(rq.Locks(limit=2, skip=2, **more))) == names(whole)[2:4]  # type: ignore[arg-type]


def test_leases_of_one_agent_are_counted_alone(held: World) -> None:
    assert held.ask(rq.Locks(agent="bob")).total == 1 and held.ask(rq.Locks(agent="ann", limit=1)).total == 6
    assert held.ask(rq.Locks(agent="ann", order="folder")).total == 6
    for order in ("grant", "folder"):
        assert held.ask(rq.Locks(resource=".", order=order)).total == 6, "a key lies in no folder"  # type: ignore[arg-type]


def test_a_status_counts_the_leases_that_it_does_not_tell(held: World) -> None:
    short = held.ask(rq.Status(leases=2))
    assert len(short.leases) == 2 and short.leases_held == 7
    assert held.ask(rq.Status(leases=0)).leases == [] and len(held.ask(rq.Status()).leases) == 7


@pytest.mark.parametrize(("name", "kind", "folder"), [
    ("a.py", "file", "./"), ("src/a.py", "file", "src/"), ("src/a.py::f/g", "region", "src/"), ("src/", "dir", "./"), ("a/b/", "dir", "a/"),
    ("src/**/*.sql", "glob", "src/"), ("s*/a", "glob", "./"), ("key:a/b", "key", ""), ("git:index", "git", ""),
])
def test_a_resource_lies_in_one_folder(name: str, kind: str, folder: str) -> None:
    assert folder_of(name, kind) == folder
