"""What holders have changed and not finished, as it is shown."""

from __future__ import annotations

from coordinator.words import requests as rq
from tests.world import World


def shown(world: World, **of: str) -> list[tuple[str, str, str]]:
    return [(file.agent, file.path, file.change) for file in world.ask(rq.Work(**of)).items]


def test_what_changed_below_live_leases_is_told_with_its_difference(world: World) -> None:
    world.write("a.py", "x = 1\n")
    world.write("gone.py", "y = 1\n")
    world.write("docs/a.md", "one\n")
    world.write("docs/b.md", "two\n")
    world.acquire("ann", "a.py", "gone.py", "new.py")
    world.acquire("bob", "docs/")
    world.acquire("cyd", "key:release")
    assert shown(world) == []
    world.write("a.py", "x = 2\n")
    world.write("new.py", "z = 1\n")
    world.write("docs/b.md", "three\n")
    (world.root / "gone.py").unlink()
    assert shown(world) == [("ann", "a.py", "modified"), ("ann", "gone.py", "deleted"), ("ann", "new.py", "new"), ("bob", "docs/b.md", "modified")]
    assert shown(world, agent="bob") == [("bob", "docs/b.md", "modified")]
    assert shown(world, resource="a.py") == [("ann", "a.py", "modified")]
    assert shown(world, resource="a.py", agent="bob") == []
    (file,) = world.ask(rq.Work(resource="a.py")).items
    assert file.diff.endswith("-x = 1\n+x = 2\n") and not file.cut


def test_it_is_told_lease_by_lease(world: World) -> None:
    for name in ("a.py", "b.py", "c.py"):
        world.acquire("ann", name)
        world.write(name, "x\n")
    first = world.ask(rq.Work(limit=2))
    rest = world.ask(rq.Work(limit=2, after=first.next))
    assert [file.path for file in (*first.items, *rest.items)] == ["a.py", "b.py", "c.py"] and rest.next is None


def test_a_long_difference_is_cut_and_one_of_no_text_is_named(world: World) -> None:
    world.acquire("ann", "long.py", "picture.png")
    world.write("long.py", "".join(f"value_{n} = {n}\n" for n in range(20_000)))
    (world.root / "picture.png").write_bytes(b"\x89PNG\0")
    long, picture = world.ask(rq.Work()).items
    assert long.cut and len(long.diff) <= 200_000
    assert "Binary files" in picture.diff


def test_a_lease_that_ended_shows_nothing(world: World) -> None:
    world.acquire("ann", "a.py")
    world.write("a.py", "x\n")
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert shown(world) == []
