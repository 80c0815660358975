"""What seldom happens, told in full (tests/transcripts.py)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coordinator.files.content import digest
from coordinator.kernel.leasing import blockers as conflicts
from coordinator.kernel.repository_files import Bytes
from coordinator.settings import Settings, Watching
from coordinator.slices.guard.seen_writes import Seen
from coordinator.words import requests as rq
from tests.sessions import saw
from tests.transcripts import Heard, Transcript
from tests.world import World


@pytest.fixture
def told(world: World) -> Transcript:
    return Transcript(world)


def acquire(agent: str, *resources: str, **more: object) -> rq.Acquire:
    return rq.Acquire(agent=agent, resources=list(resources), **more)  # type: ignore[arg-type]


def test_files_that_never_rest(told: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(needs: object, looked: object) -> None:
        """A look that is always too old."""

    monkeypatch.setattr(told.world.engine, "look", nothing)
    told.ask(acquire("ann", "a.py"))
    told.ask(rq.Locks(resource="a.py"))
    told.assert_is("never_at_rest")


def test_links_into_directories(told: Transcript) -> None:
    world = told.world
    for name in ("f", "g", "h", "s"):
        world.write(name, f"{name}\n")
        (world.root / "d").mkdir(exist_ok=True)
        os.link(world.root / name, world.root / "d" / name)
    told.ask(acquire("ann", "f", "g"))
    told.ask(acquire("cyd", "h", ttl_s=5))
    told.ask(acquire("dan", "s", mode="shared"))
    told.ask(acquire("bob", "d/", retry=False))
    told.later(5)
    told.ask(acquire("bob", "d/", mode="shared", retry=False))
    told.ask(rq.Release(agent="ann", resources=["d/f"]))
    told.ask(acquire("ann", "d/", mode="shared"))
    told.ask(acquire("eve", "d/*", retry=False))
    told.ask(rq.Release(agent="ann", resources=["d/", "g"]))
    told.ask(acquire("eve", "d/*", mode="shared", retry=False))
    told.assert_is("linked")


def test_the_line_of_those_who_only_read_or_want_something_else(
        told: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "BLOCKERS_MAX", 3)
    told.ask(acquire("ann", "a.py", "lib/"))
    told.ask(acquire("bob", "a.py", mode="shared", ttl_s=60))
    told.ask(acquire("cyd", "a.py", mode="shared", ttl_s=60))
    told.ask(acquire("dan", "lib/*.sql", ttl_s=60))
    told.ask(acquire("eve", "lib/x.py", ttl_s=60))
    told.ask(rq.Release(agent="ann", resources=["a.py", "lib/"]))
    told.ask(acquire("fay", *(f"m/{n}" for n in range(5))))
    told.ask(acquire("gus", "m/", retry=False))
    told.ask(acquire("hal", "p.py", mode="shared"))
    told.ask(acquire("ida", "q.py"))
    told.ask(acquire("jim", "p.py", "q.py", mode="shared"))
    told.ask(acquire("hal", "q.py"))
    told.assert_is("readers")


def test_who_got_one_thing_passes_those_that_wait_for_it(told: Transcript) -> None:
    told.ask(acquire("ann", "a.py", "b.py"))
    told.ask(acquire("bob", "a.py"))
    told.later(1)
    told.ask(acquire("cyd", "a.py", "b.py"))
    told.later(1)
    told.ask(acquire("bob", "b.py"))
    told.ask(rq.Release(agent="ann", resources=["b.py"]))
    told.ask(rq.Release(agent="ann", resources=["a.py"]))
    told.ask(rq.Locks())
    told.assert_is("passes")


def test_names_of_leases_in_a_folder(told: Transcript) -> None:
    world = told.world
    (world.root / "sub").mkdir()
    told.ask(acquire("ann", "sub/a.py", "sub/d/", "key:k", "top.py", cwd=str(world.root)))
    sub = str(world.root / "sub")
    told.ask(rq.Renew(agent="ann", resources=["a.py", "key:k", str(world.root / "top.py")], cwd=sub))
    told.ask(rq.Release(agent="ann", resources=["d/", "../top.py"], cwd=f"{sub}/"))
    told.ask(rq.Release(agent="ann", resources=["key:k"], cwd=sub))
    told.ask(rq.Release(agent="ann", resources=["nothing.py"], cwd=sub))
    told.ask(rq.Release(agent="ann"))
    told.ask(acquire("ann", "g/*.py", "g/*.sql"))
    told.ask(rq.Release(agent="ann", resources=["./g/*.sql"]))
    told.ask(rq.Release(agent="ann", resources=["a.py"] * 501))
    told.assert_is("names_in_a_folder")


def test_what_has_lapsed_is_not_renewed(told: Transcript) -> None:
    for n, ttl_s in ((1, 5), (2, 60)):
        told.ask(rq.TaskAdd(title=f"t{n}", resources=[f"{n}.py"]))
        told.ask(rq.TaskClaim(agent="ann", task=f"T-{n}", ttl_s=ttl_s))
    told.later(5)
    told.ask(rq.Heartbeat(agent="ann", progress="goes on"))
    told.ask(rq.TaskClaim(agent="bob"))
    told.assert_is("not_renewed")


def test_a_sub_agent_that_outlives_its_parent(told: Transcript) -> None:
    ann = told.ask(rq.Register(agent="ann")).token
    told.ask(rq.Register(agent="sub", parent="ann"), ann)
    told.ask(rq.Leave(agent="sub"), ann)
    told.ask(acquire("sub", "a.py"), ann)
    told.ask(acquire("nobody", "a.py"), ann)
    parent, sub = Heard(told, "p"), Heard(told, "p", "s1")
    sub.edit("x.py", "1\n")
    told.ask(rq.TaskAdd(title="t", resources=["t.py"]))
    told.ask(rq.TaskClaim(agent=parent.name, task="T-1"))
    sub.edit("t.py", "1\n")
    told.ask(acquire(parent.name, "w.py"))
    told.ask(acquire("bob", "w2.py"))
    told.ask(acquire(parent.name, "w2.py"))
    told.ask(rq.TaskDone(agent=parent.name, task="T-1"))
    told.ask(rq.Leave(agent=parent.name))
    sub.hook("SubagentStop")
    sub.hook("PreToolUse")
    told.ask(rq.Locks())
    told.assert_is("outlived")


def test_what_an_agent_read_before(told: Transcript) -> None:
    world = told.world
    for name in ("gone.py", "same.py", "came.py"):
        world.write(name, "one\n")
    (world.root / "came.py").unlink()
    ann, bob = Heard(told, "ann"), Heard(told, "bob")
    for name in ("gone.py", "same.py", "came.py"):
        bob.read(name)
    (world.root / "gone.py").unlink()
    world.write("came.py", "new\n")
    bob.edit("gone.py", "mine\n")
    bob.edit("came.py", "mine\n")
    told.ask(acquire(ann.name, "same.py", "new.py"))
    bob.call("Write", {"file_path": str(world.root / "same.py"), "content": ""})
    bob.call("Write", {"file_path": str(world.root / "new.py"), "content": ""})
    told.ask(rq.Release(agent=ann.name, resources=["same.py", "new.py"]))
    bob.hook("PostToolUse", tool_name="Read", tool_input={})
    told.assert_is("read_before")


def test_writes_that_are_seen_late(tmp_path: Path) -> None:
    world = World(tmp_path / "late", Settings(watch=Watching(unleased="review")))
    told = Transcript(world)

    def sees(path: str, text: str, seconds: float) -> None:
        at = told.began_ms * 1_000_000 + round(seconds * 1e9)
        saw(world, Seen(path, Bytes(digest(text.encode()), text.encode(), 0o644, len(text),
                                    stamp=(0, 0, 0, 0, at, 0))))
        told.came(f"seen: {path}, written at {seconds:g} s")

    world.write("a.py", "0")
    told.ask(acquire("ann", "a.py"))
    told.later(5)
    told.ask(rq.Release(agent="ann", resources=["a.py"]))
    told.later(1)
    told.ask(acquire("bob", "a.py", "b.py"))
    sees("a.py", "1", 4.999)
    sees("a.py", "2", 5)
    sees("a.py", "3", 5.001)
    sees("a.py", "4", 5.999)
    sees("a.py", "5", 6)
    sees("b.py", "6", 5.999)
    told.ask(acquire("cyd", "c.py", ttl_s=5))
    world.write("c.py", "half")
    told.later(5)
    told.ask(rq.Sweep())
    (review,) = [one.review for one in world.ask(rq.Reviews()).items if one.agent == "cyd"]
    told.ask(rq.ReviewDecide(review=review, verdict="revert", by="eve"))
    saw(world, Seen("c.py", Bytes(None, None)))
    told.came("what the verdict wrote is seen")
    told.assert_is("seen_late")
    world.close()
