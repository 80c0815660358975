"""What holders have changed and not finished, as it is shown."""

from __future__ import annotations

from coordinator.slices.story.work import FILES_MAX
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


def test_of_a_region_its_own_change_is_told_and_nothing_beside_it(world: World) -> None:
    world.write("pay.py", "def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    world.acquire("ann", "pay.py::one")
    world.acquire("bob", "pay.py::two")
    world.acquire("bob", "pay.py::three", new=True)
    assert shown(world) == []
    world.write("pay.py", "def one():\n    return 10\n\n\ndef two():\n    return 2\n")
    (file,) = world.ask(rq.Work()).items
    assert (file.agent, file.resource, file.path, file.change) == ("ann", "pay.py::one", "pay.py", "modified")
    assert "-    return 1\n+    return 10\n" in file.diff
    world.write("pay.py", "def one():\n    return 10\n\n\ndef two():\n    return 20\n\n\ndef three():\n    return 3\n")
    (one,) = world.ask(rq.Work(agent="ann")).items
    two, three = sorted(world.ask(rq.Work(agent="bob")).items, key=lambda file: file.resource, reverse=True)
    assert [line for line in one.diff.splitlines() if line[:1] in "+-"][2:] == ["-    return 1", "+    return 10"]
    assert [line for line in two.diff.splitlines() if line[:1] in "+-"][2:] == ["-    return 2", "+    return 20"]
    assert "+def three():" in three.diff and "return 20" not in [line[1:].strip() for line in three.diff.splitlines() if line[:1] in "+-"]
    (world.root / "pay.py").unlink()
    assert shown(world, agent="ann") == [("ann", "pay.py", "deleted")]


def test_a_region_of_a_file_that_was_not_there_is_all_of_it(world: World) -> None:
    world.acquire("ann", "new.py::one")
    world.write("new.py", "def one():\n    return 1\n")
    assert shown(world) == [("ann", "new.py", "new")]


def test_new_files_below_a_directory_or_a_glob_are_told_but_for_ignored_ones(world: World) -> None:
    world.write("docs/a.md", "one\n")
    world.write(".gitignore", "*.log\n")
    world.acquire("ann", "docs/")
    world.acquire("bob", "src/**/*.sql")
    world.write("docs/new/b.md", "two\n")
    world.write("docs/run.log", "noise\n")
    world.write("src/x/q.sql", "select 1\n")
    world.write("src/x/q.py", "pass\n")
    assert shown(world) == [("ann", "docs/new/b.md", "new"), ("bob", "src/x/q.sql", "new")]
    assert "+two\n" in world.ask(rq.Work(agent="ann")).items[0].diff


def test_where_more_has_changed_than_is_told_the_lease_is_named(world: World) -> None:
    for number in range(FILES_MAX + 3):
        world.write(f"docs/{number:03}.md", "one\n")
    world.acquire("ann", "docs/", "a.py")
    for number in range(3, FILES_MAX + 3):
        world.write(f"docs/{number:03}.md", "two\n")
    told = world.ask(rq.Work())
    assert [file.path for file in told.items][-1] == f"docs/{FILES_MAX + 2:03}.md" and told.cut == [], "whatever its place"
    world.write("docs/000.md", "two\n")
    told = world.ask(rq.Work())
    assert len(told.items) == FILES_MAX and told.cut == ["docs/"]
