"""One file, one key, whatever happens on the disk: renames that bring two leases together are decided
by the one rule (who holds the place keeps it), told to both and logged. What is granted is granted
on its real name; a link that comes to stand at a leased name moves no lease."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator.kernel.repository_files import keep, look
from coordinator.settings import Reviewing, Settings
from coordinator.slices.guard import renames
from coordinator.slices.guard.seen_writes import Seen
from coordinator.slices.guard.shell_commands import Broken
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.effort import examples
from tests.sessions import Session, saw
from tests.world import World


def move(world: World, old: str, new: str) -> None:
    """A rename, and what the watcher tells of it."""
    target = world.root / new
    target.parent.mkdir(parents=True, exist_ok=True)
    os.rename(world.root / old, target)

    def job(tx: Tx) -> None:
        renames.follow(world.service, tx, old, new)

    world.decide(job)


def to_now(world: World) -> None:
    """The clock as the disk has it, a moment after what was written there."""
    time.sleep(0.05)
    world.clock.advance(time.time_ns() // 1_000_000 - world.clock.now_ms())


def holders(world: World) -> dict[str, str]:
    return {row.file_path: row.locked_by for row in world.live()}


def told(world: World, agent: str) -> str:
    return " ".join(n.text for n in world.ask(rq.Heartbeat(agent=agent)).notices)


def one_holder_of_each_file(world: World) -> None:
    """No two exclusive leases of different holders on one file, as the disk sees it now."""
    live = [row for row in world.live() if row.kind in ("file", "dir")]
    places = [(row, os.path.realpath(world.root / row.file_path)) for row in live]
    for at, (one, here) in enumerate(places):
        for two, there in places[at + 1:]:
            if one.locked_by == two.locked_by or one.mode == two.mode == "shared":
                continue
            below = (here + "/").startswith(there + "/") or (there + "/").startswith(here + "/")
            same = os.path.isfile(here) and os.path.isfile(there) and os.path.samefile(here, there)
            assert not below and not same, f"{one} and {two}"


@pytest.mark.parametrize("name", ["app/[id]/page.tsx", "pages/[...all].tsx", "lib/[x]/", "[[...slug]]/p.ts", "a[0-9].py"])
def test_a_name_with_brackets_is_one_thing_before_its_directory_is_made(world: World, name: str) -> None:
    got = world.acquire("ann", name)
    assert got.leases[0].kind in ("file", "dir") and got.leases[0].resource == name
    inside = f"{name}n.ts" if name.endswith("/") else name
    world.write(inside, "ann's\n")
    for asked in (name, inside):
        with pytest.raises(Refusal) as refused:
            world.acquire("bob", asked, retry=False)
        assert refused.value.code is Code.LOCKED
    assert "bob" not in holders(world).values()
    again = world.acquire("ann", name)
    assert again.leases[0].reentrant
    world.ask(rq.Leave(agent="ann", clean=False, reason="killed"))
    (review,) = world.ask(rq.Reviews()).items
    assert [file.path for file in review.files] == [inside]


@pytest.mark.parametrize(("held", "asked", "meets"), [
    ("app/[id]/*.tsx", "app/[id]/page.tsx", True), ("app/[id]/*.tsx", "app/i/page.tsx", False), ("app/[id]/**", "app/[id]/", True),
    ("app/**/[id]/p.ts", "app/x/[id]/p.ts", True), ("f[0-9]*.py", "f1.py", True), ("f[0-9].py", "f1.py", False)])
def test_brackets_in_a_glob_stand_for_themselves_but_beside_a_star(world: World, held: str, asked: str, meets: bool) -> None:
    world.acquire("ann", held)
    try:
        world.acquire("bob", asked, retry=False)
        met = False
    except Refusal as refusal:
        assert refusal.code is Code.LOCKED
        met = True
    assert met is meets
    world.ask(rq.Release(agent="ann", resources=[held]))
    assert "ann" not in holders(world).values()


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(
    st.sampled_from(["ann", "bob"]), st.sampled_from(["out", "out/", "out/x.py", "out/*.py", "d/../out"]), st.sampled_from(["exclusive", "shared"]),
    st.sampled_from(["absent", "file", "directory", "as it was"]), st.sampled_from(["acquires", "acquires", "releases"])), max_size=8))
def test_a_name_is_one_thing_before_it_is_made_and_whatever_is_made_of_it(
    steps: list[tuple[str, str, rq.Mode, str, str]],
) -> None:
    """`coord lock out/`, then `coord lock out` by the same agent, where there was no `out`, was a bug."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        out = world.root / "out"
        for agent, name, mode, there, does in steps:
            if there != "as it was":
                shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
            if there == "directory":
                out.mkdir()
            elif there == "file":
                out.touch()
            try:
                if does == "acquires":
                    got = world.acquire(agent, name, mode=mode, retry=False)
                    assert got.leases[0].locked_by == agent
                else:
                    world.ask(rq.Release(agent=agent, resources=[name]))
                    assert name not in {row.file_path for row in world.live() if row.locked_by == agent}
            except Refusal as refusal:
                assert refusal.code in (Code.LOCKED, Code.NOT_HOLDER, Code.UNKNOWN_LEASE, Code.UNKNOWN_AGENT, Code.INVALID), refusal
            mine = [(row.locked_by, row.scope) for row in world.live() if row.kind in ("file", "dir")]
            assert len(mine) == len(set(mine)), mine
        world.close()


def test_a_file_moved_into_anothers_directory_is_that_ones(world: World) -> None:
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py")
    world.acquire("bob", "d/")
    world.write("a.py", "half of it\n")
    move(world, "a.py", "d/a.py")
    assert holders(world) == {"d/": "bob"}
    (review,) = world.ask(rq.Reviews()).items
    shown = world.ask(rq.ReviewShow(review=review.review))
    assert review.reason == "moved"
    assert [(one.path, one.change) for one in shown.files] == [("a.py", "deleted"), ("d/a.py", "created")]
    assert "+half of it" in shown.files[1].diff
    assert "bob" in told(world, "ann") and "ann" in told(world, "bob")
    one_holder_of_each_file(world)
    assert "moved" in " ".join(world.ask(rq.Explain(subject="a.py")).sentences)


@pytest.mark.parametrize("kept", [True, False])
def test_nothing_is_called_kept_that_is_not(tmp_path: Path, kept: bool) -> None:
    """Whoever loses a lease by force, by a rename, or by a command of another, hears the truth."""
    budget = Reviewing(file_bytes_max=1000, kept_bytes_max=1_000_000 if kept else 60_000)
    world = World(tmp_path / "repo", Settings(review=budget))
    for name in ("a.py", "b.py", "c.py"):
        world.write(name, f"{name}\n" * 10_000)
    world.acquire("ann", "a.py", "b.py", "c.py")
    world.acquire("bob", "d/")
    for name in ("a.py", "b.py", "c.py"):
        world.write(name, "half of it\n" * 10_000)
    move(world, "a.py", "d/a.py")
    world.ask(rq.Release(agent="eve", resources=["b.py"], force=True))
    Session(world, "cyd").broke(Broken("c.py", "ann", "sha256:" + hashlib.sha256(b"c.py\n" * 10_000).hexdigest()))
    for agent, times in (("ann", 3), ("bob", 1)):
        said = told(world, agent)
        assert said.count("kept for a human") + said.count("are kept in") == (times if kept else 0), said
        assert said.count("could be kept") == (0 if kept else times), said
    files = [f for r in world.ask(rq.Reviews()).items for f in r.files]
    assert {f.path for f in files} == {"a.py", "d/a.py", "b.py", "c.py"}
    assert all(f.kept == kept for f in files if f.path != "a.py"), "what is gone needs only what it was"
    world.close()


def test_a_file_moved_over_what_another_holds(world: World) -> None:
    for name in ("a.py", "b.py"):
        world.write(name, f"{name}\n")
    world.acquire("ann", "a.py")
    world.acquire("bob", "b.py")
    move(world, "a.py", "b.py")
    assert holders(world) == {"b.py": "bob"}
    (review,) = world.ask(rq.Reviews()).items
    assert {f.path: f.change for f in review.files} == {"a.py": "deleted", "b.py": "modified"}
    world.ask(rq.Leave(agent="bob", clean=True))
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (world.root / "a.py").read_text() == "a.py\n" and (world.root / "b.py").read_text() == "b.py\n"


@pytest.mark.parametrize("known", ["git", "watcher"])
@pytest.mark.parametrize("on", [False, True])
def test_what_a_leased_file_was_moved_over_comes_back_with_a_revert(tmp_path: Path, known: str, on: bool) -> None:
    """Nobody had leased what was there: git has it, or the watcher had seen it."""
    world = World(tmp_path / "repo", git=known == "git")
    world.write("a.py", "a\n")
    world.write("d/b.py", "b\n")
    if known == "git":
        for words in (["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x"]):
            subprocess.run(["git", *words], cwd=world.root, check=True)
    else:
        seen = look(world.service, None, "d/b.py")

        def kept(tx: Tx) -> None:
            keep(tx, seen)
            tx.record(ev.VersionsSeen(versions=[("d/b.py", seen.hash, None)]))

        world.decide(kept)
    world.acquire("ann", "a.py")
    world.write("a.py", "half of it\n")
    move(world, "a.py", "d/b.py")
    if on:
        move(world, "d/b.py", "c.py")
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert {f.path: f.change for f in review.files} == {
        "a.py": "deleted", **({"c.py": "created", "d/b.py": "deleted"} if on else {"d/b.py": "modified"})}
    if not on:
        assert {f.path: f.note for f in review.files} == {
            "a.py": "moved over d/b.py",
            "d/b.py": "a.py was moved over it; what stood here is as coord last saw it, else as git has it"}
    assert world.replay_differs() == []
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert {path.name: path.read_text() for path in world.root.rglob("*.py")} == {"a.py": "a\n", "b.py": "b\n"}
    world.close()


def test_a_directory_moved_into_anothers_directory(world: World) -> None:
    world.write("src/x.py", "one\n")
    world.acquire("ann", "src/")
    world.acquire("bob", "lib/")
    world.write("src/x.py", "two\n")
    world.write("src/new.py", "new\n")
    move(world, "src", "lib/src")
    assert holders(world) == {"lib/": "bob"}
    (review,) = world.ask(rq.Reviews()).items
    assert {f.path: f.change for f in review.files} == {
        "src/x.py": "deleted", "lib/src/x.py": "created", "lib/src/new.py": "created"}


@pytest.mark.parametrize(("moved", "to", "taken"), [("a.py", "b.py", "b.py"), ("d", "e/f", "e/f"), ("d", "e", "e/x.py"), ("d", "e", "e/"), ("d", "e/f", "e")])
def test_who_took_a_name_at_which_nothing_was_does_not_get_what_comes_there(world: World, moved: str, to: str, taken: str) -> None:
    """agents-16: a command that moves a held file leases the new name before."""
    world.write("a.py", "one\n")
    world.write("d/x.py", "one\n")
    world.acquire("ann", "a.py", "d/")
    world.acquire("bob", taken)
    move(world, moved, to)
    kept = {name: who for name, who in holders(world).items() if name.startswith(to[0])}
    assert holders(world) == {"a.py": "ann", "d/": "ann", **kept}
    assert kept == {to + "/" * (moved == "d"): "ann"} and world.ask(rq.Reviews()).items == []
    assert "your lease on it has ended" in told(world, "bob") and "both names" in told(world, "ann")
    one_holder_of_each_file(world)


def test_nor_does_who_comes_later_to_what_another_took_first(world: World) -> None:
    world.write("a.py", "one\n")
    world.acquire("bob", "b.py")
    world.acquire("ann", "a.py")
    move(world, "a.py", "b.py")
    assert holders(world) == {"b.py": "bob"}
    world.write("c.py", "one\n")
    world.acquire("cyd", "c.py")
    world.write("f/x.py", "x\n")
    world.acquire("eve", "f/")
    move(world, "c.py", "f/c.py")
    assert holders(world) == {"b.py": "bob", "f/": "eve"}, "what was there is eve's"


def test_what_was_leased_after_a_rename_was_heard_of_does_not_follow_it(world: World) -> None:
    """Of a directory no inode is known: the time tells."""
    for name in ("d/x.py", "d/sub/y.py"):
        world.write(name, "one\n")
    world.acquire("ann", "d/sub/")
    heard = world.view().now
    world.clock.advance(1000)
    os.rename(world.root / "d", world.root / "e")
    world.write("d/x.py", "new\n")
    world.acquire("bob", "d/x.py")
    world.acquire("cyd", "d/new/")
    world.decide(lambda tx: renames.follow(world.service, tx, "d", "e", heard))
    assert holders(world) == {"d/sub/": "ann", "e/sub/": "ann", "d/x.py": "bob", "d/new/": "cyd"}
    one_holder_of_each_file(world)


def test_a_lease_follows_where_nobody_is(world: World) -> None:
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py")
    move(world, "a.py", "e/b.py")
    assert holders(world) == {"a.py": "ann", "e/b.py": "ann"}
    assert world.refused(rq.Acquire(agent="bob", resources=["e/"])).code is Code.LOCKED


def test_what_lies_below_a_moved_directory_is_compared_there(world: World) -> None:
    for name in ("d/x.py", "d/in/y.py", "d_/z.py"):
        world.write(name, "one\n")
    world.acquire("ann", "d/", ttl_s=5)
    move(world, "d", "e/d")
    move(world, "e/d", "f")
    world.write("f/x.py", "two\n")
    world.clock.advance(5_000)
    world.ask(rq.Sweep())
    (review,) = world.ask(rq.Reviews()).items
    assert {f.path: f.change for f in review.files} == {
        "d/x.py": "deleted", "d/in/y.py": "deleted", "f/x.py": "created", "f/in/y.py": "created"}
    assert world.replay_differs() == []


@pytest.mark.parametrize(("held", "old", "new"), [("a.py", "a.py", "b.py"), ("d/", "d", "e/d"), ("d/e/", "d", "f")])
@pytest.mark.parametrize("changed", [False, True])
def test_a_rename_is_a_part_of_what_was_begun(world: World, held: str, old: str, new: str, changed: bool) -> None:
    """Who fails after it leaves a file that is not where it was: flagged, and a revert brings it back."""
    for name in ("a.py", "d/x.py", "d/e/y.py"):
        world.write(name, f"{name}\n")
    was = {path: path.read_bytes() for path in world.root.rglob("*.py")}
    task = world.task("move it", held)
    world.ask(rq.TaskClaim(agent="ann", task=task))
    move(world, old, "between")
    move(world, "between", new)
    now = sorted(str(path.relative_to(world.root)) for path in world.root.rglob("*.py") if path not in was)
    now = [name for name in now if held != "d/e/" or "/e/" in name]
    if changed:
        world.write(now[0], "more\n")
    world.ask(rq.TaskFail(agent="ann", task=task, reason="cannot"))
    (review,) = world.ask(rq.Reviews()).items
    kinds = {file.path: file.change for file in review.files}
    assert sorted(path for path, change in kinds.items() if change == "created") == now
    assert all(change in ("created", "deleted") for change in kinds.values()) and len(kinds) == 2 * len(now)
    assert world.replay_differs() == []
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    theirs = {path: data for path, data in was.items() if held != "d/e/" or "/e/" in str(path)}
    assert {path: path.read_bytes() for path in theirs} == theirs
    assert not [name for name in now if (world.root / name).exists()]


def test_a_review_tells_what_was_renamed_and_shows_no_line_that_did_not_change(world: World) -> None:
    for name in ("a.py", "d/x.py", "d/y.py", "d/e/x.py"):
        world.write(name, "".join(f"{name} {n}\n" for n in range(20)))
    world.acquire("ann", "a.py", "d/")
    move(world, "a.py", "b.py")
    move(world, "d", "f")
    world.write("b.py", "another line\n")
    world.write("f/y.py", "another line\n")
    world.ask(rq.Leave(agent="ann", clean=False))
    shown = {one.path: one for one in world.ask(rq.ReviewShow(review="R-1")).files}
    assert {path: one.note for path, one in shown.items()} == {
        "a.py": "renamed to b.py", "b.py": "renamed from a.py",
        "d/x.py": "renamed to f/x.py, unchanged", "f/x.py": "renamed from d/x.py, unchanged",
        "d/e/x.py": "renamed to f/e/x.py, unchanged", "f/e/x.py": "renamed from d/e/x.py, unchanged",
        "d/y.py": "", "f/y.py": ""}
    for path, one in shown.items():
        assert bool(one.diff) == ("unchanged" not in one.note), path
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert sorted(path.name for path in world.root.rglob("*.py")) == ["a.py", "x.py", "x.py", "y.py"]


def test_what_lies_in_a_directory_that_a_leased_name_became_is_its_holders_work(world: World) -> None:
    """As of `cp -r d new` or `rm a && mkdir a`, of which the names were leased before."""
    world.write("a.py", "half an hour\n")
    world.write("d/x.py", "x\n")
    world.acquire("ann", "a.py", "new", "d/", "moved")
    (world.root / "a.py").unlink()
    for name in ("a.py/in.py", "new/x.py", "new/e/y.py"):
        world.write(name, "1\n")
    move(world, "d", "moved")
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert {file.path: file.change for file in review.files} == {
        "a.py": "deleted", "a.py/in.py": "created", "new/x.py": "created", "new/e/y.py": "created",
        "d/x.py": "deleted", "moved/x.py": "created"}
    assert not any(file.note for file in review.files if file.path.startswith(("a.py", "new")))
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    there = {path.name: path.read_text() for path in world.root.rglob("*.py") if path.is_file()}
    assert there == {"a.py": "half an hour\n", "x.py": "x\n"} and world.replay_differs() == []


@pytest.mark.parametrize("held", ["d/", "d/x.py", "**/*.py"])
def test_a_file_in_the_place_of_a_leased_directory_is_its_holders_work(world: World, held: str) -> None:
    """A revert takes it away before it puts the directory's files back; and the undo the other way round."""
    for name in ("d/x.py", "d/e/y.py"):
        world.write(name, f"{name}\n")
    world.acquire("ann", held)
    if held == "d/x.py":
        world.acquire("ann", "d/e/y.py", "d")
    shutil.rmtree(world.root / "d")
    world.write("d", "new\n")
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert {file.path: file.change for file in review.files} == {
        "d/x.py": "deleted", "d/e/y.py": "deleted"} | ({"d": "created"} if held != "**/*.py" else {})
    if held == "**/*.py":
        return
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (world.root / "d/x.py").read_text() == "d/x.py\n" and (world.root / "d/e/y.py").read_text() == "d/e/y.py\n"
    world.ask(rq.ReviewUndo(review=review.review))
    assert (world.root / "d").read_text() == "new\n" and world.replay_differs() == []


FUNCTIONS = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"


def regions(tmp_path: Path) -> World:
    """A committed file in which ann has begun to change one function."""
    world = World(tmp_path / "repo", git=True)
    world.write("a.py", FUNCTIONS)
    for words in (["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=world.root, check=True)
    world.acquire("ann", "a.py::f")
    world.write("a.py", FUNCTIONS.replace("1", "11"))
    return world


def files_of_the_review(world: World) -> dict[str, str]:
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    return {file.path: file.change for file in review.files}


def test_a_file_of_which_regions_are_leased_comes_back_whole(world: World) -> None:
    """A revert wrote the region that was leased, and nothing else of the file."""
    world.write("a.py", FUNCTIONS)
    world.acquire("ann", "a.py::f")
    (world.root / "a.py").unlink()
    assert files_of_the_review(world) == {"a.py": "deleted"}
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert (world.root / "a.py").read_text() == FUNCTIONS


def test_what_the_watcher_saw_of_such_a_file_comes_back(world: World) -> None:
    world.write("a.py", FUNCTIONS)
    world.acquire("ann", "a.py::f")
    world.write("a.py", FUNCTIONS.replace("1", "11") + "\n\nX = 1\n")
    saw(world, Seen("a.py", look(world.service, None, "a.py")))
    (world.root / "a.py").unlink()
    saw(world, Seen("a.py", look(world.service, None, "a.py")))
    assert files_of_the_review(world) == {"a.py": "deleted"}
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert (world.root / "a.py").read_text() == FUNCTIONS + "\n\nX = 1\n"


THREE = "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n\n\nclass H:\n    x = 3\n"


@pytest.mark.parametrize("name", ["f", "g", "H"])
@pytest.mark.parametrize("how", ["renamed", "deleted", "overwritten", "emptied", "link", "directory", "broken"])
def test_whatever_becomes_of_a_leased_region_the_file_comes_back(world: World, name: str, how: str) -> None:
    world.write("a.py", THREE)
    world.write("other", "other\n")
    world.acquire("ann", f"a.py::{name}")
    pieces = {"f": "def f():\n    return 1\n", "g": "def g():\n    return 2\n", "H": "class H:\n    x = 3\n"}
    file = world.root / "a.py"
    if how == "renamed":
        file.write_text(THREE.replace(f" {name}", f" {name}2"))
    elif how == "deleted":
        file.write_text(THREE.replace(pieces[name] + "\n\n", "").replace("\n\n" + pieces[name], ""))
    elif how in ("overwritten", "emptied", "broken"):
        file.write_text({"overwritten": "zz = 1\n", "emptied": "", "broken": "def (((\n"}[how])
    else:
        file.unlink()
        if how == "link":
            file.symlink_to("other")
        else:
            world.write("a.py/q", "1\n")
    now = there(world)
    world.ask(rq.Leave(agent="ann", clean=False))
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert there(world) == {"a.py": THREE, "other": "other\n"}
    world.ask(rq.ReviewUndo(review="R-1"))
    assert there(world) == now


@pytest.mark.parametrize("order", ["12", "21", "compacted"])
def test_two_who_hold_parts_of_a_file_that_is_deleted_are_reverted_each(world: World, order: str) -> None:
    """The first one's review has what the second did to its own part, and the other way round."""
    world.write("a.py", THREE)
    world.acquire("ann", "a.py::f")
    world.acquire("bob", "a.py::H")
    world.write("a.py", THREE.replace("return 1", "return 11").replace("x = 3", "x = 33"))
    saw(world, Seen("a.py", look(world.service, None, "a.py")))
    (world.root / "a.py").unlink()
    saw(world, Seen("a.py", look(world.service, None, "a.py")))
    world.ask(rq.Leave(agent="ann", clean=False))
    world.ask(rq.Leave(agent="bob", clean=False))
    if order == "compacted":
        world.ask(rq.Compact())
    first, second = ("R-2", "R-1") if order == "21" else ("R-1", "R-2")
    world.ask(rq.ReviewDecide(review=first, verdict="revert"))
    assert there(world)["a.py"] == THREE.replace(*(("x = 3", "x = 33") if first == "R-1" else ("return 1", "return 11")))
    world.ask(rq.ReviewDecide(review=second, verdict="revert"))
    assert there(world) == {"a.py": THREE} and world.replay_differs() == []
    world.ask(rq.ReviewUndo(review=second))
    assert there(world)["a.py"] != THREE


def test_a_task_that_goes_on_with_a_leased_region_knows_its_file(world: World) -> None:
    world.write("a.py", THREE)
    world.acquire("ann", "a.py::f")
    world.ask(rq.TaskAdd(title="t", resources=["a.py::f"]))
    world.ask(rq.TaskClaim(agent="ann", task="T-1"))
    world.ask(rq.Release(agent="ann", resources=["a.py::f"]))
    assert holders(world) == {"a.py::f": "ann"}
    (world.root / "a.py").write_text("zz = 1\n")
    world.ask(rq.TaskFail(agent="ann", task="T-1", reason="x"))
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert there(world) == {"a.py": THREE} and world.replay_differs() == []


def test_what_another_made_in_such_a_file_stays(world: World) -> None:
    world.write("a.py", THREE)
    world.acquire("ann", "a.py::f")
    world.acquire("bob", "a.py::H")
    world.write("a.py", THREE.replace(" f", " f2").replace("x = 3", "x = 4") + "\n\ndef k():\n    return 5\n")
    world.ask(rq.Release(agent="bob", resources=["a.py::H"]))
    world.ask(rq.Leave(agent="ann", clean=False))
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert (world.root / "a.py").read_text() == THREE.replace("x = 3", "x = 4") + "\n\ndef k():\n    return 5\n"


def test_a_rename_leaves_the_leases_on_regions_at_both_names(tmp_path: Path) -> None:
    world = regions(tmp_path)
    world.acquire("hal", "a.py::g")
    move(world, "a.py", "b.py")
    both = {"a.py::f": "ann", "b.py::f": "ann", "a.py::g": "hal", "b.py::g": "hal"}
    assert holders(world) == both
    assert world.refused(rq.Acquire(agent="gus", resources=["b.py"], retry=False)).code is Code.LOCKED
    world.ask(rq.CommitRegion(agent="hal", regions=[
        rq.RegionText(resource="b.py::g", text="def g():\n    return 22\n")]))
    move(world, "b.py", "c.py")
    assert holders(world) == both | {"c.py::f": "ann", "c.py::g": "hal"}
    assert files_of_the_review(world) == {"a.py": "deleted", "c.py": "created"}
    assert world.refused(rq.ReviewDecide(review="R-1", verdict="revert")).code is Code.LOCKED, "hal is at work in it"
    world.ask(rq.Release(agent="hal", resources=["c.py::g"]))
    assert holders(world) == {}
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert (world.root / "a.py").read_text() == FUNCTIONS and not (world.root / "c.py").exists()
    assert world.replay_differs() == []


def test_a_copy_that_is_kept_by_a_rename_is_no_region_of_the_file(tmp_path: Path) -> None:
    """As of `sed -i.bak`: the lease was on the copy then, and the file was free."""
    world = regions(tmp_path)
    move(world, "a.py", "a.py.bak")
    world.write("a.py", FUNCTIONS.replace("1", "111"))
    assert world.refused(rq.Acquire(agent="gus", resources=["a.py::f"], retry=False)).code is Code.LOCKED
    world.acquire("hal", "a.py::g")
    world.ask(rq.Release(agent="hal", resources=["a.py::g"]))
    assert files_of_the_review(world) == {"a.py": "modified", "a.py.bak": "created"}
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert (world.root / "a.py").read_text() == FUNCTIONS and not (world.root / "a.py.bak").exists()


@pytest.mark.parametrize("known", [True, False])
def test_what_was_linked_in_the_course_of_the_work_is_a_part_of_it(tmp_path: Path, known: bool) -> None:
    """`ln b h; echo >> h`: what was written to h is in b."""
    world = World(tmp_path / "repo", git=known)
    world.write("b", "one\n")
    if known:
        for words in (["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x"]):
            subprocess.run(["git", *words], cwd=world.root, check=True)
    to_now(world)
    world.acquire("ann", "h", "n", "own/")
    to_now(world)
    (world.root / "own").mkdir()
    os.link(world.root / "b", world.root / "h")
    world.write("n", "new\n")
    os.link(world.root / "n", world.root / "m")
    os.link(world.root / "n", world.root / "own/n")
    with (world.root / "h").open("a") as file:
        file.write("two\n")
    new = dict.fromkeys(("h", "n", "m", "own/n"), "created")
    assert files_of_the_review(world) == new | ({"b": "modified"} if known else {})
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert (world.root / "b").read_text() == ("one\n" if known else "one\ntwo\n"), "what it was, where that is known"
    assert not any((world.root / name).exists() for name in ("h", "n", "m", "own/n"))


def moved_out(tmp_path: Path, held: str) -> World:
    world = World(tmp_path / "repo", git=True)
    for name in ("d/a.py", "d/e/b.py", "f/c.py"):
        world.write(name, f"{name}\n")
    for words in (["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=world.root, check=True)
    world.acquire("ann", held)
    world.write("d/a.py", "half of it\n")
    world.write("d/new.py", "begun\n")
    return world


@pytest.mark.parametrize("held", ["d/", "d/**/*.py"])
def test_what_was_moved_out_of_a_leased_directory_is_a_part_of_its_work(tmp_path: Path, held: str) -> None:
    """Where nobody has leased the new place: a person sees both, and a revert brings both back."""
    world = moved_out(tmp_path, held)
    was = {path: path.read_bytes() for path in world.root.rglob("*.py")} | {
        world.root / "d/a.py": b"d/a.py\n"}
    del was[world.root / "d/new.py"]
    for old, new in (("d/a.py", "f/c.py"), ("d/e", "g"), ("d/new.py", "new.py")):
        move(world, old, new)
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert {f.path: f.change for f in review.files} == {
        "d/a.py": "deleted", "f/c.py": "modified", "d/e/b.py": "deleted", "g/b.py": "created", "new.py": "created"}
    assert world.replay_differs() == []
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert {path: path.read_bytes() for path in world.root.rglob("*.py")} == was
    world.close()


def test_where_it_was_moved_to_is_leased_with_it_but_what_another_holds(tmp_path: Path) -> None:
    world = moved_out(tmp_path, "d/")
    world.acquire("bob", "f/")
    for old, new in (("d/a.py", "f/a.py"), ("d/e/b.py", "b.py")):
        move(world, old, new)
    assert holders(world) == {"d/": "ann", "b.py": "ann", "f/": "bob"}
    world.ask(rq.Release(agent="ann", resources=["d/"]))
    assert holders(world) == {"f/": "bob"}
    assert world.ask(rq.Reviews()).items == []
    world.acquire("ann", "d/")
    move(world, "d/new.py", "f/new.py")
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert {f.path: f.change for f in review.files} == {"d/new.py": "deleted"}
    world.close()


@pytest.mark.parametrize("held", ["a.py", "d/"])
def test_what_is_called_as_before_again_was_not_renamed(world: World, held: str) -> None:
    world.write("a.py", "1\n")
    world.write("d/x.py", "1\n")
    world.acquire("ann", held, "new.py", "n/")
    old = held.rstrip("/")
    move(world, old, "there")
    move(world, "there", old)
    world.write("new.py", "1\n")
    move(world, "new.py", "newer.py")
    world.write("newer.py", "2\n")
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert {file.path: file.change for file in review.files} == {"newer.py": "created"}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_who_keeps_a_copy_by_a_rename_and_writes_anew_holds_both(world: World, late: bool, again: bool) -> None:
    """As `sed -i.bak`, `patch -b` and editors do, whenever the rename is heard of."""
    world.write("a.py", "1\n")
    world.acquire("ann", "a.py")
    for n in range(1 + again):
        os.rename(world.root / "a.py", world.root / f"a.bak{n}")
        if late:
            world.write("a.py", f"2{n}\n")
        world.decide(lambda tx, n=n: renames.follow(world.service, tx, "a.py", f"a.bak{n}"))
        world.write("a.py", f"2{n}\n")
        assert world.refused(rq.Acquire(agent="bob", resources=["a.py"], retry=False)).code is Code.LOCKED
    names = [f"a.bak{n}" for n in range(1 + again)]
    assert holders(world) == {"a.py": "ann", **dict.fromkeys(names, "ann")}
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert {file.path: file.change for file in review.files} == {"a.py": "modified", **dict.fromkeys(names, "created")}
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert {path.name: path.read_text() for path in world.root.glob("a.*")} == {"a.py": "1\n"}


def test_what_is_exchanged_with_what_nobody_held_comes_back(world: World) -> None:
    world.write("a.py", "a\n")
    world.write("b.py", "b\n")
    to_now(world)
    world.acquire("ann", "a.py")
    move(world, "a.py", "t")
    move(world, "b.py", "a.py")
    move(world, "t", "b.py")
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert {file.path: file.change for file in review.files} == {"a.py": "modified", "b.py": "modified"}
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert {path.name: path.read_text() for path in world.root.glob("*.py")} == {"a.py": "a\n", "b.py": "b\n"}


@pytest.mark.parametrize("old", [True, False])
def test_what_nobody_had_leased_and_was_moved_into_a_leased_directory_comes_back(world: World, old: bool) -> None:
    """But not what a program wrote there before it gave it its name."""
    world.write("d/x.py", "x\n")
    if old:
        world.write("notes", "a day's\n")
    to_now(world)
    world.acquire("ann", "d/")
    if not old:
        world.write("notes", "new\n")
    move(world, "notes", "d/notes")
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert {file.path: file.change for file in review.files} == {"d/notes": "created", **({"notes": "deleted"} if old else {})}
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (world.root / "notes").exists() == old and not (world.root / "d/notes").exists()


@pytest.mark.parametrize("by", ["a.py", "b.py", "acquisition", "all", "again"])
def test_what_a_rename_has_made_is_renewed_and_released_with_the_first(world: World, by: str) -> None:
    world.write("a.py", "1\n")
    got = world.acquire("ann", "a.py", ttl_s=60)
    move(world, "a.py", "c.py")
    move(world, "c.py", "b.py")
    world.clock.advance(30_000)
    how = {"acquisition_id": got.leases[0].acquisition_id} if by == "acquisition" else {"resources": [by]} if by.endswith(".py") else {}
    if by == "again":  # who asks for what it has renews it
        how = {"resources": ["a.py"]}
        world.acquire("ann", "a.py", ttl_s=60)
    else:
        world.ask(rq.Renew(agent="ann", ttl_s=60, **how))
    world.clock.advance(45_000)
    world.ask(rq.Sweep())
    assert holders(world) == {"a.py": "ann", "b.py": "ann", "c.py": "ann"}
    if by != "all":
        world.ask(rq.Release(agent="ann", **how))
        assert holders(world) == {} and world.ask(rq.Reviews()).items == []
    assert world.replay_differs() == []


@pytest.mark.parametrize("name", ["a", "n"])
def test_who_gives_up_one_name_on_request_gives_up_both(tmp_path: Path, name: str) -> None:
    world = committed(tmp_path, "a")
    world.acquire("ann", "a")
    move(world, "a", "n")
    world.ask(rq.RequestFile(agent="bob", resource=name, reason="x"))
    world.ask(rq.RequestAnswer(agent="ann", request="U-1", verdict="approve"))
    assert holders(world) == {name: "bob"} and there(world) == {"n": "a\n"}


def test_what_is_put_at_a_name_in_between_is_its_holders(tmp_path: Path) -> None:
    """`mv a n; sed -i.bak n`: the new n is neither at the first name nor where the file went."""
    world = committed(tmp_path, "a", "b")
    world.acquire("ann", "a")
    move(world, "a", "n")
    move(world, "n", "n.bak")
    world.write("n", "half\n")
    assert world.refused(rq.Acquire(agent="bob", resources=["n"], retry=False)).code is Code.LOCKED
    assert files_of_the_review(world) == {"a": "deleted", "n": "created", "n.bak": "created"}
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert there(world) == {"a": "a\n", "b": "b\n"}


def test_what_a_second_rename_overwrites_comes_back(tmp_path: Path) -> None:
    world = committed(tmp_path, "a", "b")
    world.acquire("ann", "a")
    move(world, "a", "n")
    move(world, "n", "b")
    assert files_of_the_review(world) == {"a": "deleted", "b": "modified"}
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert there(world) == {"a": "a\n", "b": "b\n"}


def test_a_name_outside_of_a_leased_directory_that_is_used_twice(tmp_path: Path) -> None:
    """A swap, step by step: also where what was moved has its next name before that is heard of."""
    world = committed(tmp_path, "d/x", "d/y")
    world.acquire("ann", "d/")
    for old, new in (("d/x", "n"), ("n", "d/x"), ("d/y", "n")):
        move(world, old, new)
    assert files_of_the_review(world) == {"d/y": "deleted", "n": "created"}
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert there(world) == {"d/x": "d/x\n", "d/y": "d/y\n"}
    world.acquire("ann", "d/")
    steps = (("d/x", "n"), ("n", "t"), ("d/y", "n"), ("t", "d/y"))
    for old, new in steps:
        os.rename(world.root / old, world.root / new)
    for old, new in steps:
        world.decide(lambda tx, old=old, new=new: renames.follow(world.service, tx, old, new))
    world.ask(rq.Leave(agent="ann", clean=False))
    world.ask(rq.ReviewDecide(review="R-2", verdict="revert"))
    assert there(world) == {"d/x": "d/x\n", "d/y": "d/y\n"}


def test_within_what_its_holder_has_a_rename_leases_nothing_more(world: World) -> None:
    world.write("a", "a\n")
    world.write("d/x", "x\n")
    world.acquire("ann", "d/", "a")
    move(world, "a", "d/x")
    world.ask(rq.Release(agent="ann", resources=["a"]))
    assert holders(world) == {"d/": "ann"}
    assert files_of_the_review(world) == {"d/x": "modified"}


def test_very_many_renames_lease_some_names(world: World) -> None:
    world.write("f0", "1\n")
    world.acquire("ann", "f0")
    for number in range(50):
        move(world, f"f{number}", f"f{number + 1}")
    assert {"f0", "f1", "f50"} <= set(holders(world)) and len(holders(world)) <= renames.NAMES_MAX + 1
    assert files_of_the_review(world) == {"f0": "deleted", "f50": "created"}


def committed(tmp_path: Path, *names: str) -> World:
    """A git repository with these files, each with its name in it."""
    world = World(tmp_path / "repo", git=True)
    for name in names:
        world.write(name, f"{name}\n")
    for words in (["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=world.root, check=True)
    return world


def there(world: World) -> dict[str, str]:
    return {str(path.relative_to(world.root)): path.read_text() for path in world.root.rglob("*")
            if path.is_file() and not {".git", ".coord"}.intersection(path.parts)}


def test_the_holder_of_both_names_keeps_both_leases(world: World) -> None:
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py", "b.py")
    move(world, "a.py", "b.py")
    assert holders(world) == {"a.py": "ann", "b.py": "ann"}
    assert world.refused(rq.Acquire(agent="bob", resources=["b.py"])).code is Code.LOCKED
    world.ask(rq.Release(agent="ann", resources=["a.py", "b.py"]))
    assert holders(world) == {"b.py": "bob"}


def test_an_ended_lease_at_the_destination_is_closed_first(world: World) -> None:
    world.write("a.py", "one\n")
    world.acquire("bob", "b.py", ttl_s=5)
    world.acquire("ann", "a.py")
    world.write("b.py", "bobs half\n")
    world.clock.advance(6_000)
    move(world, "a.py", "b.py")
    assert holders(world) == {"a.py": "ann", "b.py": "ann"}
    assert [one.agent for one in world.ask(rq.Reviews()).items] == ["bob"]


def test_a_hard_link_into_a_leased_directory_is_that_file(world: World) -> None:
    world.write("h.py", "one\n")
    (world.root / "d").mkdir()
    world.acquire("bob", "d/")
    os.link(world.root / "h.py", world.root / "d/h2.py")
    assert world.refused(rq.Acquire(agent="dan", resources=["h.py"])).code is Code.LOCKED
    world.ask(rq.Release(agent="bob", resources=["d/"]))
    assert holders(world) == {"h.py": "dan"} or world.acquire("dan", "h.py")
    assert world.refused(rq.Acquire(agent="bob", resources=["d/"])).code is Code.LOCKED
    assert world.refused(rq.Acquire(agent="bob", resources=["d/*.py"])).code is Code.LOCKED


def test_a_lease_on_a_directory_is_not_one_on_the_other_name_of_a_file_in_it(world: World) -> None:
    world.write("a", "one\n")
    world.write("d/b", "two\n")
    world.acquire("ann", "d/")
    os.link(world.root / "a", world.root / "d/a2")
    got = world.acquire("ann", "a")
    assert [(one.resource, one.kind, one.reentrant) for one in got.leases] == [("a", "file", False)]
    world.ask(rq.Release(agent="ann", resources=["d/"]))
    assert world.refused(rq.Acquire(agent="bob", resources=["a"])).code is Code.LOCKED


@pytest.mark.parametrize("name", ["e/f", "e/", "e/new"])
def test_a_lease_whose_directory_became_a_link_stays_on_its_name(world: World, name: str) -> None:
    """What was leased was deleted, and is not what the link leads to: nobody wrote that, so no
    verdict writes it. Whoever writes through the link needs what it leads to."""
    world.write("d/f", "one\n")
    world.write("e/f", "two\n")
    world.acquire("gus", name)
    (world.root / "e/f").unlink()
    (world.root / "e").rmdir()
    os.symlink("d", world.root / "e")
    world.acquire("hal", "e/f", "e/new")
    world.ask(rq.Sweep())
    assert holders(world) == {name: "gus", "d/f": "hal", "d/new": "hal"}
    assert world.refused(rq.Acquire(agent="gus", resources=["e/f"])).code is Code.LOCKED
    inside = str(world.root / "e") if name != "e/" else None
    got = world.ask(rq.Renew(agent="gus", resources=[name.removeprefix("e/") if inside else name], cwd=inside, ttl_s=900))
    assert [one.resource for one in got.leases] == [name]
    world.ask(rq.Leave(agent="hal", clean=True))
    world.ask(rq.Leave(agent="gus", clean=False))
    found = {file.path: file.change for one in world.ask(rq.Reviews()).items for file in one.files}
    assert found == ({} if name == "e/new" else {"e/f": "deleted"}) | ({"e": "created"} if name == "e/" else {})
    if found:
        review = world.ask(rq.Reviews()).items[0].review
        if name != "e/":  # nobody did that
            assert world.refused(rq.ReviewDecide(review=review, verdict="revert")).code is Code.VERSION_CHANGED
            (world.root / "e").unlink()
        world.ask(rq.ReviewDecide(review=review, verdict="revert"))
        assert (world.root / "e/f").read_text() == "two\n"
    assert (world.root / "d/f").read_text() == "one\n"


def test_a_file_that_became_a_link_is_not_what_it_leads_to(world: World) -> None:
    world.write("b.txt", "b\n")
    world.write("d.txt", "d\n")
    world.acquire("ann", "b.txt")
    (world.root / "b.txt").unlink()
    (world.root / "b.txt").symlink_to("d.txt")
    world.ask(rq.Sweep())
    assert world.refused(rq.Acquire(agent="bob", resources=["b.txt"], retry=False)).code is Code.LOCKED
    world.acquire("bob", "d.txt")
    assert holders(world) == {"b.txt": "ann", "d.txt": "bob"}
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert [file.path for file in review.files] == ["b.txt"]
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert not (world.root / "b.txt").is_symlink()
    assert ((world.root / "b.txt").read_text(), (world.root / "d.txt").read_text()) == ("b\n", "d\n")


@pytest.mark.parametrize("mode", ["exclusive", "shared"])
def test_shared_leases_may_meet(world: World, mode: str) -> None:
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py", mode="shared")
    world.acquire("bob", "d/", mode=mode)
    move(world, "a.py", "d/a.py")
    both = {"d/": "bob", "d/a.py": "ann"}
    assert holders(world) == (both if mode == "shared" else {"d/": "bob"})


@pytest.mark.parametrize("mode", ["exclusive", "shared"])
def test_a_lease_does_not_follow_to_a_file_of_another(world: World, mode: str) -> None:
    """A hard link of bob's file was put where ann's lease is, and was moved from there."""
    world.write("a.py", "one\n")
    world.write("b.py", "two\n")
    world.acquire("ann", "a.py", mode=mode)
    world.acquire("bob", "b.py", mode=mode)
    (world.root / "a.py").unlink()
    os.link(world.root / "b.py", world.root / "a.py")
    move(world, "a.py", "c.py")
    if mode == "shared":
        assert holders(world) == {"b.py": "bob", "c.py": "ann"}
        return
    assert holders(world) == {"a.py": "ann", "b.py": "bob"}
    assert "That is b.py, which bob holds" in told(world, "ann")
    one_holder_of_each_file(world)


NAMES = ["a", "b", "d/a", "d/b", "d/e/c", "f/a"]
STEPS = st.lists(st.one_of(
    st.tuples(st.just("lease"), st.sampled_from(["ann", "bob", "cyd"]),
              st.sampled_from([*NAMES, "d/", "d/e/", "f/"])),
    st.tuples(st.just("move"), st.sampled_from([*NAMES, "d", "d/e", "f"]),
              st.sampled_from([*NAMES, "g", "d/g", "f/g"])),
    st.tuples(st.just("link"), st.sampled_from(NAMES), st.sampled_from([*NAMES, "d/l", "f/l"])),
    st.tuples(st.just("hard"), st.sampled_from(NAMES), st.sampled_from([*NAMES, "d/h", "f/h"])),
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.just("")),
), min_size=3, max_size=14)


@given(STEPS)
@example([("lease", "ann", "a"), ("lease", "bob", "f/"), ("link", "f/a", "a"), ("link", "f/a", "f/a")])
@example([("lease", "ann", "a"), ("lease", "bob", "d/b"), ("move", "b", "a"), ("hard", "d/b", "b"),
          ("move", "b", "a"), ("move", "a", "b")])
@example([("lease", "ann", "a"), ("lease", "bob", "d/b"), ("move", "b", "a"), ("hard", "d/b", "b"),
          ("move", "b", "a"), ("move", "d/b", "b")])
@settings(max_examples=examples(40), deadline=None)
def test_whatever_is_moved_and_linked_no_file_has_two_holders(
    steps: list[tuple[str, str, str]]
) -> None:
    """Renames, symlinks, hard links and writes at random: what is granted is granted on its real
    name, as links lead at that time; and no two hold one name, or one below the other."""
    with tempfile.TemporaryDirectory() as place:
        world = World(Path(place) / "repo")
        try:
            for name in NAMES:
                world.write(name, f"{name}\n")
            for verb, one, two in steps:
                source = world.root / one
                if verb == "lease":
                    try:
                        got = world.acquire(one, two, retry=False)
                    except Refusal as refusal:
                        assert refusal.code in (Code.LOCKED, Code.INVALID, Code.OUTSIDE_REPO)
                    else:
                        on_its_real_name(world, got.leases[0].resource)
                    names_only(world)
                    continue
                target = world.root / two
                try:
                    if verb == "write":
                        source.write_text("more\n")
                    elif verb == "move":
                        move(world, one, two)
                    elif verb == "link":
                        target.unlink(missing_ok=True)
                        target.symlink_to(source)
                    elif not os.path.lexists(target):
                        os.link(source, target)
                except OSError:
                    continue
            world.ask(rq.Sweep())
            names_only(world)
            assert world.replay_differs() == []
        finally:
            world.close()


def names_only(world: World) -> None:
    """As `one_holder_of_each_file`, but by the names alone. Hard links that were made after both
    leases are told by nobody: they are not looked at."""
    live = [row for row in world.live() if row.kind in ("file", "dir")]
    names = [(row, row.file_path.rstrip("/") + "/") for row in live]
    for at, (one, here) in enumerate(names):
        for two, there in names[at + 1:]:
            if one.locked_by != two.locked_by and not one.mode == two.mode == "shared":
                assert not here.startswith(there) and not there.startswith(here), f"{one}, {two}"


def on_its_real_name(world: World, name: str) -> None:
    """Whether a name leads to itself. One whose links run in a circle leads nowhere."""
    path = world.root / name
    try:
        real = os.path.realpath(path, strict=True)
    except OSError as bad:
        real = (os.path.join(os.path.realpath(path.parent), path.name)
                if bad.errno == errno.ELOOP else os.path.realpath(path))
    assert real == os.path.realpath(world.root) + "/" + name.rstrip("/")


def test_what_is_not_looked_at_yet_is_looked_at_again(world: World) -> None:
    """A look from before another's last write is too old: its holder let go meanwhile."""
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py")
    from coordinator.kernel.leasing import leases
    from coordinator.kernel.use_cases import Look, Write

    request = rq.Acquire(agent="bob", resources=["a.py"])
    write = next(leases.acquire_and_wait(world.service, request))
    looked = world.part(Look(write.needs))  # bob looks while ann still writes
    world.write("a.py", "what ann made of it\n")
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    got = world.part(Write(write.decide, looked))
    assert world.view().blob(got.leases[0].content_hash) == b"what ann made of it\n"


def test_what_was_moved_to_another_leased_name_comes_back(world: World) -> None:
    """Its holder had leased both: a revert undoes both, and loses nothing of the first."""
    world.write("p.txt", "the only copy\n")
    world.acquire("ann", "p.txt", "q.txt", ttl_s=600)
    world.write("p.txt", "garbage\n")
    move(world, "p.txt", "q.txt")
    world.ask(rq.Sweep())
    assert sorted(row.file_path for row in world.live()) == ["p.txt", "q.txt"]
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert sorted(file.path for file in review.files) == ["p.txt", "q.txt"]
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (world.root / "p.txt").read_text() == "the only copy\n" and not (world.root / "q.txt").exists()


@pytest.mark.parametrize("glob", ["h*", "h*.py", "?a.py", "[h]a*.py", "**/ha.py", "d/*"])
def test_a_glob_holds_a_file_by_whichever_of_its_names_it_matches(world: World, glob: str) -> None:
    world.write("plain.py", "x\n")
    other = "d/ha.py" if glob.startswith("d/") else "ha.py"
    (world.root / "d").mkdir(exist_ok=True)
    os.link(world.root / "plain.py", world.root / other)
    world.ask(rq.Acquire(agent="ann", resources=[glob]))
    refusal = world.refused(rq.Acquire(agent="bob", resources=["plain.py"], retry=False))
    assert refusal.code is Code.LOCKED and refusal.facts["conflicts"][0]["holder"] == "ann"
    world.ask(rq.Release(agent="ann", resources=[glob]))
    world.acquire("bob", "plain.py")
    assert world.refused(rq.Acquire(agent="ann", resources=[glob], retry=False)).code is Code.LOCKED


@pytest.mark.parametrize(("one", "other"), [("d/", "e/"), ("d/*.txt", "e/"), ("d/", "e/**"), ("**/h.txt", "e/g*"),
                                            ("d/", "g.*"), ("?.txt", "d/")])
def test_two_directories_that_have_one_file_are_not_given_to_two(world: World, one: str, other: str) -> None:
    world.write("d/h.txt", "x\n")
    (world.root / "e").mkdir()
    for name in ("e/g.txt", "g.txt"):
        os.link(world.root / "d/h.txt", world.root / name)
    world.acquire("ann", one)
    refusal = world.refused(rq.Acquire(agent="bob", resources=[other], retry=False))
    assert refusal.code is Code.LOCKED and refusal.facts["conflicts"][0]["holder"] == "ann"
    world.ask(rq.Release(agent="ann", resources=[one]))
    world.acquire("bob", other)
    assert world.refused(rq.Acquire(agent="ann", resources=[one], retry=False)).code is Code.LOCKED


def test_directories_that_have_one_file_may_be_read_by_two(world: World) -> None:
    world.write("d/h.txt", "x\n")
    (world.root / "e").mkdir()
    os.link(world.root / "d/h.txt", world.root / "e/g.txt")
    for agent, name in [("ann", "d/"), ("bob", "e/")]:
        world.ask(rq.Acquire(agent=agent, resources=[name], mode="shared"))
    assert world.refused(rq.Acquire(agent="cy", resources=["e/"], retry=False)).code is Code.LOCKED


PARTS = "def g():\n    return 1\n\n\ndef h():\n    return 2\n\n\ndef k():\n    return 3\n"


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize(("change", "hits"), [("return 3", False), ("return 2", True)])
def test_what_is_moved_over_a_file_that_another_holds_in_parts(world: World, was_there: bool, change: str, hits: bool) -> None:
    """What is new is as any write to it; what had been there before, and is gone from its place, is somebody's work."""
    world.write("m.py", PARTS)
    if was_there:
        world.write("n.py", "before\n")
    world.acquire("ann", "n.py")
    world.acquire("bob", "m.py::h")
    world.write("n.py", PARTS.replace(change, "return 9"))
    (world.root / "n.py").replace(world.root / "m.py")
    world.decide(lambda tx: renames.follow(world.service, tx, "n.py", "m.py"))
    assert [(row.file_path, row.locked_by) for row in world.live()] == [("m.py::h", "bob")]
    reviews = world.ask(rq.Reviews()).items
    assert bool(reviews) == (hits or was_there), reviews
    assert bool(world.ask(rq.Heartbeat(agent="ann")).notices) == (hits or was_there)
