"""Where the disk takes `A` and `a` for one name, told in full (tests/transcripts.py)."""

from __future__ import annotations

import os
from pathlib import Path

from coordinator.kernel.repository_files import Bytes
from coordinator.settings import Settings, Watching
from coordinator.slices.guard import renames
from coordinator.slices.guard.seen_writes import Seen
from coordinator.slices.guard.shell_commands import Broken
from coordinator.words import requests as rq
from tests.sessions import saw
from tests.transcripts import Heard, Transcript
from tests.world import World


def folding(tmp_path: Path) -> Transcript:
    return Transcript(World(tmp_path / "repo", Settings(watch=Watching(unleased="review")), fold_case=True))


def acquire(agent: str, *resources: str, **more: object) -> rq.Acquire:
    return rq.Acquire(agent=agent, resources=list(resources), **more)  # type: ignore[arg-type]


def test_names_in_any_case_are_one(tmp_path: Path) -> None:
    told = folding(tmp_path)
    world = told.world
    for name in ("A.py", "D/X.py", "Lib/Y.py", "Z.py"):
        world.write(name, "one\n")
    os.link(world.root / "A.py", world.root / "Twin.py")
    os.link(world.root / "Z.py", world.root / "D/Z2.py")
    told.ask(rq.TaskAdd(title="t", resources=["A.py", "New.py::C"]))
    told.ask(rq.TaskClaim(agent="ann", task="T-1", ttl_s=60))
    told.ask(acquire("ann", "Lib/*.py", "Q/", "key:A", ttl_s=60))
    for name in ("a.PY", "LIB/New.py", "q/x", "key:a", "NEW.py::C.m", "TWIN.py", "new.py"):
        told.ask(acquire("bob", name, retry=False))
    told.ask(acquire("cyd", "Z.py", ttl_s=60))
    told.ask(acquire("bob", "D/", retry=False))
    told.ask(rq.RequestFile(agent="bob", resource="TWIN.py", reason="why"))
    told.ask(rq.GuardCheck(paths=[str(world.root / name) for name in ("a.PY", "q/New", "other")]))
    told.ask(rq.Release(agent="cyd", resources=["z.PY"]))
    right = rq.LandRight(fencing_token=1, resource="a.PY", kind="file")
    for path in ("A.PY", "a.py", "LIB/y.py"):
        told.ask(rq.LandCheck(agent="ann", task="T-1", changes=[rq.LandChange(path=path)], began_with=[right]))
    told.ask(rq.LandCheck(agent="ann", task="T-1", changes=[rq.LandChange(path="A.py")], began_with=[right],
                          moved=["a.PY"]))
    world.write("A.py", "two\n")
    world.write("Lib/New.py", "new\n")
    told.later(60)
    told.ask(rq.Sweep())
    told.assert_is("folded")
    world.close()


def test_what_is_seen_and_moved_in_any_case(tmp_path: Path) -> None:
    told = folding(tmp_path)
    world = told.world
    for name in ("A.py", "D/X.py"):
        world.write(name, "one\n")
    told.ask(acquire("ann", "A.py", "D/"))
    for name in ("a.PY", "d/New.py", "Free.py"):
        saw(world, Seen(name, Bytes("sha256:1", b"1", 0o644, 1)))
        told.came(f"seen: {name}")
    for old, new in (("A.py", "B/A2.py"), ("D", "B/D2")):
        (world.root / "B").mkdir(exist_ok=True)
        os.rename(world.root / old, world.root / new)
        world.decide(lambda tx, old=old, new=new: renames.follow(world.service, tx, old.upper(), new))
        told.came(f"moved: {old.upper()} to {new}")
    bob = Heard(told, "bob")
    bob.hook("Stop", broken=bob.broke(Broken("B/A2.py", "ann", None)))
    told.ask(rq.Locks())
    told.assert_is("folded_moves")
    world.close()
