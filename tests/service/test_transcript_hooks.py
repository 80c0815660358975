"""What agents' hooks are told, and what is recorded of them, told in full (tests/transcripts.py)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from coordinator.kernel.repository_files import NOTHING, Bytes
from coordinator.settings import Hooks, Leases, Settings, Watching
from coordinator.slices.guard import renames
from coordinator.slices.guard.seen_writes import Seen
from coordinator.slices.guard.shell_commands import Broken
from coordinator.words import requests as rq
from tests.sessions import saw
from tests.transcripts import Heard, Transcript
from tests.world import World


@pytest.fixture
def told(world: World) -> Transcript:
    return Transcript(world)


def test_sessions(told: Transcript) -> None:
    ann, sub = Heard(told, "ann"), Heard(told, "ann", "s1")
    bob = Heard(told, "bob", profile="codex")
    ann.hook("SessionStart", source="startup")
    sub.hook("SubagentStart")
    bob.edit("b.py", "1\n")
    ann.hook("SessionStart", source="resume")
    sub.edit("a.py", "1\n")
    told.later(15)
    sub.edit("a.py", "2\n")
    told.ask(rq.Join(profile="codex", session="bob"))
    told.ask(rq.Join(profile="codex", session=""))
    told.ask(rq.Join(profile="", session="x"))
    told.ask(rq.Join(profile="codex", session="eve-1234-5678-9"))
    told.ask(rq.Join(profile="codex", session="other-1234-5678-9"))
    told.ask(rq.Register(agent="codex-mine", profile="codex", description="a person's"))
    told.ask(rq.Join(profile="codex", session="mine"))
    told.ask(rq.Agents())
    sub.hook("SubagentStop")
    ann.hook("Stop")
    ann.hook("SomethingNew")
    ann.hook("SessionEnd")
    bob.hook("SessionEnd")
    token = told.ask(rq.Register(agent="T-1-agent", profile="codex")).token
    launched = Heard(told, "launched", profile="codex", token=token)
    launched.edit("l.py", "1\n")
    told.later(15)
    launched.edit("l.py", "2\n")
    told.ask(rq.Agents(all=True))
    told.assert_is("sessions")


def test_writes_and_messages(told: Transcript) -> None:
    world = told.world
    world.write("hot.py", "one\n")
    world.write("big.py", "x\n" * 20)
    (world.root / ".gitignore").write_text("*.log\n")
    ann, bob = Heard(told, "ann"), Heard(told, "bob")
    bob.read("hot.py")
    bob.read("big.py")
    bob.read("b.py")
    told.later(1)
    ann.edit("hot.py", "one\ntwo\n")
    ann.edit("x.log", "not read\n")
    bob.edit("hot.py", "mine\n")
    bob.call("Write", {"file_path": "/etc/passwd", "content": ""})
    bob.call("Write", {"file_path": str(world.root / ".coord/x"), "content": ""})
    bob.call("FutureTool", {"file_path": "a"})
    told.ask(rq.RequestFile(agent=bob.name, resource="hot.py", reason="urgent"))
    ann.hook("Stop")
    bob.prints = False
    told.ask(rq.Release(agent=ann.name, resources=["hot.py"]))
    bob.hook("PostToolUse", tool_name="Read", tool_input={})
    bob.prints = True
    bob.hook("PostToolUse", tool_name="Read", tool_input={}, on_the_way=(bob.name,))
    bob.hook("Stop")
    bob.edit("hot.py", "mine\n")
    world.write("big.py", "y\n" * 5000)
    bob.edit("big.py", "mine\n")
    bob.edit("big.py", "mine\n")
    world.write("big.py", "z\n")
    saw(world, Seen("big.py", Bytes("sha256:" + "0" * 64, b"z\n")))
    told.came("the watcher saw big.py")
    bob.edit("big.py", "mine\n")
    told.assert_is("writes")


def test_leases_near_their_end_are_told_once(tmp_path: Path) -> None:
    world = World(tmp_path / "near", Settings(leases=Leases(max_hold_s=600, ttl_s=600)))
    told = Transcript(world)
    ann = Heard(told, "ann")
    ann.edit("a.py", "1\n")
    for seconds in (299.999, 0.001, 10):
        told.later(seconds)
        ann.read("b.py")
    told.assert_is("near_the_end")
    world.close()


def test_shell_commands(told: Transcript) -> None:
    world = told.world
    for name in ("a.py", "mine.py", "d/x.py", "gone.py"):
        world.write(name, "one\n")
    ann, bob = Heard(told, "ann"), Heard(told, "bob")
    bob.shell("git stash")
    bob.shell("git commit -m x")
    ann.edit("a.py", "1\n")
    told.ask(rq.Acquire(agent=ann.name, resources=["d/", "key:k"], description="d's"))
    bob.shell("git add -A && git commit -m 'all of it'")
    bob.shell("echo hi > mine.py; rm gone.py", {"mine.py": "hi\n"})
    bob.shell("echo hi > a.py")
    bob.shell("echo hi >> /dev/null")
    bob.shell("make", output="error: d/x.py: Read-only file system")
    bob.shell("make a.py", output="EROFS")
    bob.shell("make", output="all is well")
    world.write("a.py", "broken\n")
    (world.root / "d/x.py").unlink()
    world.write("d/new.py", "new\n")
    bob.hook("PostToolUse", tool_name="Read", tool_input={}, broken=bob.broke(
        Broken("a.py", ann.name, None), Broken("d/x.py", ann.name, "sha256:unknown"),
        Broken("d/new.py", ann.name, None)))
    told.ask(rq.Heartbeat(agent=ann.name))
    told.assert_is("shell")


def test_what_a_sub_agent_has_of_its_parent(told: Transcript) -> None:
    world = told.world
    world.write("hot.py", "0\n")
    parent, sub = Heard(told, "ann"), Heard(told, "ann", "s1")
    parent.hook("SessionStart")
    told.ask(rq.TaskAdd(title="t", resources=["hot.py", "src/"]))
    told.ask(rq.TaskClaim(agent=parent.name, task="T-1"))
    told.ask(rq.RequestFile(agent="bob", resource="hot.py", reason="why"))
    told.later(1)
    sub.edit("hot.py", "1\n")
    sub.edit("src/x.py", "1\n")
    sub.edit("own.py", "1\n")
    told.ask(rq.RequestAnswer(agent=parent.name, request="U-1", verdict="reject"))
    told.ask(rq.Acquire(agent=parent.name, resources=["s.py"], mode="shared", task="T-1"))
    sub.shell("cat s.py")
    sub.edit("s.py", "1\n")
    sub.hook("SubagentStop")
    told.ask(rq.Locks())
    told.assert_is("handed_down")


def test_what_the_watcher_sees(tmp_path: Path) -> None:
    world = World(tmp_path / "watched", Settings(watch=Watching(unleased="review")))
    told = Transcript(world)

    def sees(path: str, text: str | None, before: str | None = None, **more: Any) -> None:
        def content(what: str | None) -> Bytes:
            return NOTHING if what is None else Bytes(f"sha256:{what}", what.encode(), 0o644, len(what))

        saw(world, Seen(path, content(text), content(before), **more))
        told.came(f"seen: {path} {text} {before} {more}")

    sees("before.py", "1")
    told.ask(rq.Acquire(agent="ann", resources=["a.py", "d/"]))
    told.ask(rq.Acquire(agent="bob", resources=["s.py"], mode="shared"))
    sees("a.py", "1")
    sees("a.py", "1")
    sees("d/x.py", "1")
    sees("s.py", "1")
    sees("free.py", "1")
    sees("free.py", "2")
    sees("free.py", None)
    sees("free.py", None)
    sees("came_and_went.py", None)
    sees("tracked.py", "new", "old")
    sees("tracked2.py", "old", "old")
    sees("moved.py", "1", moved_from="was.py")
    told.ask(rq.Release(agent="ann", resources=["a.py"]))
    sees("a.py", "2")
    told.later(10)
    sees("a.py", "3")
    told.later(0.001)
    sees("a.py", "4")
    told.assert_is("seen")
    world.close()


def test_leases_follow_what_is_moved(told: Transcript) -> None:
    world = told.world
    for name in ("a.py", "d/x.py", "e/y.py", "b.py"):
        world.write(name, "class C:\n    one = 1\n" if name == "d/x.py" else "one\n")

    def moves(old: str, new: str) -> None:
        (world.root / new).parent.mkdir(parents=True, exist_ok=True)
        os.rename(world.root / old, world.root / new)
        world.decide(lambda tx: renames.follow(world.service, tx, old, new))
        world.raise_unsound()
        told.came(f"moved: {old} to {new}")

    told.ask(rq.Acquire(agent="ann", resources=["a.py", "d/", "d/x.py::C", "e/*.py", "b.py", "key:k"]))
    told.ask(rq.Acquire(agent="bob", resources=["held/", "in/deep.py"]))
    told.ask(rq.Acquire(agent="cyd", resources=["a.py"]))
    moves("a.py", "a2.py")
    moves("d", "d2")
    moves("e/y.py", "e/z.py")
    world.write("a2.py", "changed\n")
    moves("a2.py", "held/a.py")
    moves("b.py", "held/b.py")
    moves("d2", "in")
    world.write("c1.py", "1\n")
    told.ask(rq.Acquire(agent="ann", resources=["c1.py", "c2.py"]))
    moves("c1.py", "c2.py")
    told.ask(rq.Locks())
    told.assert_is("moved")


def test_links_that_lead_elsewhere_move_no_lease(told: Transcript) -> None:
    world = told.world
    world.write("real/x.py", "1\n")
    world.write("real2/x.py", "1\n")
    told.ask(rq.Acquire(agent="ann", resources=["link/x.py", "out.py", "link2/", "key:k"]))
    os.symlink("real", world.root / "link")
    os.symlink("real2", world.root / "link2")
    os.symlink("/etc/passwd", world.root / "out.py")
    told.ask(rq.Sweep())
    told.ask(rq.Locks())
    told.assert_is("links")


def test_the_guard_of_commits(told: Transcript) -> None:
    world = told.world
    world.write("a.py", "1\n")
    os.link(world.root / "a.py", world.root / "twin.py")
    root = world.root
    told.ask(rq.Acquire(agent="ann", resources=["a.py", "d/"], description="ann's"))
    token = told.ask(rq.Register(agent="bob")).token
    told.ask(rq.Register(agent="sub", parent="bob"))
    told.ask(rq.Acquire(agent="bob", resources=["s.py"], mode="shared"))
    told.ask(rq.Acquire(agent="bob", resources=["b.py", "./e/"], ttl_s=60))
    paths = [str(root / name) for name in ("a.py", "twin.py", "d/new.py", "b.py", "s.py", "free.py", ".git/x")] + ["/etc/x"]
    told.ask(rq.GuardCheck(paths=paths))
    told.ask(rq.GuardCheck(paths=paths, agent="ann"))
    told.ask(rq.GuardCheck(paths=paths, agent="ann"), token)
    told.ask(rq.GuardCheck(paths=paths, agent="sub"), token)
    told.ask(rq.GuardCheck(paths=paths, profile="codex", session="xyz"))
    told.ask(rq.GuardCheck(paths=[str(root / "x")] * 2001))
    told.ask(rq.GuardOverride(paths=paths, by="P" * 101, action="commit" + "x" * 40))
    told.ask(rq.GuardOverride(paths=paths[-3:], by="P", action="push"))
    told.later(60)
    told.ask(rq.GuardOverride(paths=paths[:2000], by="", action="push"))
    for n in range(5):
        told.ask(rq.Acquire(agent=f"many{n}", resources=[f"many/{n}"]))
    told.ask(rq.GuardOverride(paths=[str(root / f"many/{n}") for n in range(5)], by="P", action="push"))
    told.assert_is("guard")


def test_a_policy_for_turns_and_tools(tmp_path: Path) -> None:
    world = World(tmp_path / "policy", Settings(hooks=Hooks(
        keep="turn", unknown_tools="deny", git_wide="allow", wait_s=9)))
    told = Transcript(world)
    ann, bob = Heard(told, "ann"), Heard(told, "bob")
    ann.edit("a.py", "1\n")
    bob.shell("git stash")
    bob.call("FutureTool", {"file_path": "a"})
    held = {"file_path": str(world.root / "a.py"), "content": ""}
    bob.hook("PreToolUse", tool_name="Write", tool_input=held, tool_use_id="1", wait_s=9.0)
    ann.hook("Stop")
    bob.hook("Stop")
    told.assert_is("policies")
    world.close()
