"""What hooks decide, moment by moment, with no process: commands, messages, watchers, the guard."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator.dialects.decode import HookCall, decode
from coordinator.files.content import digest
from coordinator.kernel.core import OPERATOR, Actor
from coordinator.kernel.holders import notice_delivery, sessions
from coordinator.kernel.leasing import git_turn
from coordinator.kernel.repository_files import NOTHING, Bytes
from coordinator.profiles import load
from coordinator.settings import Hooks, Settings, Watching
from coordinator.slices.guard import commits, ended_rights, renames, seen_writes, shell_commands
from coordinator.slices.guard.adoption import Adopted, adopt
from coordinator.slices.guard.attribution import Running
from coordinator.slices.guard.seen_writes import Seen
from coordinator.slices.guard.shell_commands import Broken
from coordinator.slices.guard.unleased_writes import Foreign
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import NEUTRAL
from tests.sessions import Session, holders, saw
from tests.world import World


@pytest.fixture
def ann(world: World) -> Session:
    return Session(world, "ann")


@pytest.fixture
def bob(world: World) -> Session:
    return Session(world, "bob")


def files_of(world: World, review: str = "R-1") -> dict[str, tuple[str, bool, str | None, str | None]]:
    shown = world.ask(rq.ReviewShow(review=review, content=True))
    return {one.path: (one.change, one.kept, text(one.baseline), text(one.flagged)) for one in shown.files}


def text(told: str | None) -> str | None:
    return None if told is None else base64.b64decode(told).decode()


# ------------------------------------------------------------ sessions

def test_a_session_is_welcomed_with_who_holds_what(world: World, ann: Session, bob: Session) -> None:
    said = ann.hook("SessionStart", source="startup").context
    assert f"you are {ann.name}." in said and "Held by others" not in said
    ann.edit("a.py", "1\n")
    assert "Held by others" not in ann.hook("SessionStart").context, "what is one's own is not others'"
    assert bob.hook("SessionStart").context.endswith(f"Held by others now: a.py ({ann.name}).")
    for n in range(9):
        ann.edit(f"f{n}.py", "1\n")
    said = bob.hook("SessionStart").context
    assert said.count(f"({ann.name})") == notice_delivery.HOLDERS_MAX == 8 and said.endswith(" and 2 more.")
    ann.hook("SessionEnd")
    assert holders(world) == {} and {one.agent for one in world.ask(rq.Agents()).items} == {bob.name}
    ann.edit("a.py", "2\n")  # resumed
    assert holders(world) == {"a.py": ann.name}


def test_names_come_from_a_sessions_id_and_never_from_two(world: World) -> None:
    assert sessions.named("claude-code", "01234567-89ab-4def-8123-000089ABcdef") == "claude-code-89abcdef"
    assert sessions.named("codex", "ann") == "codex-ann" and sessions.named("codex", "run-1") == "codex-run1"
    alike = {sessions.named("codex", f"{when}-run-00000001") for when in ("nightly", "weekly", "monthly")}
    alike |= {sessions.named("codex", f"6673855{n}-e87a-11f1-bafb-02fc00000001") for n in range(3)}  # their ends name the machine
    assert len(alike) == 6 and all(len(name) == len("codex-") + sessions.ID_CHARS for name in alike)
    assert sessions.named("codex", "") == "codex" and sessions.named("codex", "--ü--") == "codex-unnamed"


def test_a_launched_agent_is_known_by_its_token_and_ended_by_its_launcher(world: World) -> None:
    token = world.ask(rq.Register(agent="T-1-agent", profile="claude-code")).token
    session = Session(world, "s1", token=token)
    assert session.edit("a.py", "1\n") == "" and holders(world) == {"a.py": "T-1-agent"}
    task = world.task("t", "b.py")
    world.ask(rq.TaskClaim(agent="T-1-agent", task=task))
    session.hook("SessionEnd")
    assert holders(world) == {"a.py": "T-1-agent", "b.py": "T-1-agent"}, "whether the task is done, its launcher knows"
    (row,) = world.ask(rq.Agents()).items
    assert row.session == "s1" and row.hooked_at is not None
    # And one that has ended its task itself is still its launcher's: only what it holds is free
    world.ask(rq.TaskDone(agent="T-1-agent", task=task))
    assert session.edit("c.py", "1\n") == ""
    session.hook("SessionEnd")
    assert holders(world) == {} and [one.agent for one in world.ask(rq.Agents()).items] == ["T-1-agent"]


def test_joining_by_call_by_session_and_not_as_another(world: World, ann: Session) -> None:
    ann.hook("PreToolUse", tool_name="mcp__coord__lock_files", tool_input={}, tool_use_id="call-1")
    assert world.ask(rq.Join(profile="", session="", call="call-1")).agent == ann.name
    assert world.ask(rq.Join(profile="claude-code", session="ann")).agent == ann.name
    made = world.ask(rq.Join(profile="codex", session="xyz")).agent
    assert made == "codex-xyz"
    (row,) = [one for one in world.ask(rq.Agents()).items if one.agent == made]
    assert row.description == "a session of codex"
    for profile, session in (("", ""), ("codex", ""), ("", "xyz")):
        assert world.refused(rq.Join(profile=profile, session=session)).code is Code.INVALID
    world.ask(rq.Register(agent="codex-taken", profile="codex", description="somebody's"))
    assert world.refused(rq.Join(profile="codex", session="taken")).code is Code.UNAUTHORIZED
    ann.hook("SessionEnd")
    assert world.refused(rq.Join(profile="", session="", call="call-1")).code is Code.INVALID, "who was announced has left"
    assert world.ask(rq.Join(profile="claude-code", session="ann")).agent == ann.name


def test_at_its_turns_end_an_agent_keeps_what_a_task_needs(tmp_path: Path) -> None:
    world = World(tmp_path / "repo", Settings(hooks=Hooks(keep="turn")))
    ann = Session(world, "ann")
    ann.hook("SessionStart")
    task = world.task("t", "b.py")
    world.ask(rq.TaskClaim(agent=ann.name, task=task))
    world.acquire(ann.name, "side.py")
    assert holders(world) == {"b.py": ann.name, "side.py": ann.name}
    ann.hook("Stop", stop_hook_active=True)
    assert holders(world) == {"b.py": ann.name}
    world.close()


def test_a_sub_agent_works_with_what_its_parent_claimed(world: World) -> None:
    parent, sub = Session(world, "ann"), Session(world, "ann", "s1")
    parent.hook("SessionStart")
    world.write("hot.py", "0\n")
    task = world.task("t", "hot.py", "src/", "lib/*.py")
    given = {one.resource: one for one in world.ask(rq.TaskClaim(agent=parent.name, task=task)).leases}
    before = {row.file_path: row for row in world.live()}
    world.clock.advance(60_000)
    assert sub.edit("hot.py", "1\n") == "" and sub.edit("src/x.py", "1\n") == "" and sub.edit("lib/y.py", "1\n") == ""
    assert holders(world) == {"hot.py": sub.name, "src/": parent.name, "lib/*.py": parent.name,
                              "src/x.py": parent.name, "lib/y.py": parent.name}
    after = next(row for row in world.live() if row.file_path == "hot.py")
    was = before["hot.py"]
    for name in ("scope", "kind", "mode", "inode", "worktree", "content_hash", "task_id", "ttl_ms", "max_until",
                 "task_description"):
        assert getattr(after, name) == getattr(was, name), name
    assert after.expires_at >= was.expires_at and after.fencing_token > was.fencing_token
    assert world.refused(rq.Renew(agent=parent.name, resources=["hot.py"], lease_token=given["hot.py"].lease_token)).code is Code.NOT_HOLDER
    assert "another" not in sub.edit("own.py", "1\n")
    sub.hook("SubagentStop")
    assert set(holders(world).values()) == {parent.name} and set(holders(world)) >= {"hot.py", "src/", "lib/*.py"}
    world.ask(rq.TaskDone(agent=parent.name, task=task))
    assert not {"hot.py", "src/", "lib/*.py"} & holders(world).keys()


def test_what_a_sub_agent_wrote_of_its_parents_is_its_parents_again(world: World) -> None:
    """Also without a task; what it leased itself ends with it."""
    parent, sub, other = Session(world, "ann"), Session(world, "ann", "s1"), Session(world, "bob")
    assert parent.edit("a.py", "1\n") == "" and parent.edit("b.py", "def f():\n    return 1\n") == ""
    world.clock.advance(60_000)
    for name, text in (("a.py", "2\n"), ("b.py", "def f():\n    return 2\n"), ("own.py", "1\n")):
        sub.read(name)
        assert sub.edit(name, text) == ""
    assert holders(world)["a.py"] == holders(world)["own.py"] == sub.name
    sub.hook("SubagentStop")
    assert holders(world)["a.py"] == parent.name and "own.py" not in holders(world) and sub.name not in holders(world).values()
    assert parent.name in other.edit("a.py", "B\n")
    other.hook("SessionEnd")
    parent.hook("SessionEnd")
    assert holders(world) == {} and world.replay_differs() == []


def test_what_the_parent_leased_meanwhile_is_its_own_again(world: World) -> None:
    """And what the sub-agent leased, which was its parent's for the time of a commit only, ends with it."""
    parent, sub = Session(world, "ann"), Session(world, "ann", "s1")
    parent.hook("SessionStart")
    assert sub.edit("own.py", "1\n") == ""
    world.clock.advance(60_000)
    assert parent.edit("late.py", "1\n") == ""
    sub.read("late.py")
    assert sub.edit("late.py", "2\n") == ""
    world.write("own.py", "1\n")
    sub.hook("PreToolUse", tool_name="Bash", tool_input={"command": "git commit -qm x -- own.py"}, tool_use_id="c1")
    assert holders(world) == {"own.py": parent.name, "late.py": parent.name}
    sub.hook("PostToolUse", tool_name="Bash", tool_input={"command": "git commit -qm x -- own.py"}, tool_use_id="c1")
    for name in ("own.py", "late.py"):
        sub.read(name)
        assert sub.edit(name, "3\n") == ""
    assert holders(world) == {"own.py": sub.name, "late.py": sub.name}
    sub.hook("SubagentStop")
    assert holders(world) == {"late.py": parent.name} and world.replay_differs() == []


def test_what_a_sub_agents_command_writes_of_its_parents_is_its_own_writing(world: World) -> None:
    parent, sub = Session(world, "ann"), Session(world, "ann", "s1")
    assert parent.edit("a.py", "1\n") == ""
    world.clock.advance(1_000)
    sub.read("a.py")
    world.clock.advance(1_000)
    assert not sub.shell("echo x > a.py", {"a.py": "x\n"}).deny
    assert holders(world) == {"a.py": sub.name}
    assert sub.edit("a.py", "2\n") == ""


def test_a_sub_agents_end_gives_its_parent_what_that_waits_for(world: World) -> None:
    parent, sub = Session(world, "ann"), Session(world, "ann", "s1")
    assert parent.edit("a.py", "1\n") == ""
    world.clock.advance(1_000)
    sub.read("a.py")
    assert sub.edit("a.py", "2\n") == ""
    assert f"leased by {sub.name} " in parent.edit("a.py", "3\n")
    sub.hook("SubagentStop")
    assert holders(world) == {"a.py": parent.name} and not world.ask(rq.Locks()).waiters
    assert "You waited for a.py: it is yours" in parent.hook("PostToolUse", tool_name="Read", tool_input={"file_path": str(world.root / "a.py")}).context


def test_a_session_that_ends_in_the_middle_of_a_task_gives_it_back(world: World) -> None:
    ann, bob = Session(world, "ann"), Session(world, "bob")
    task, other = world.task("t", "a.py"), world.task("u", "b.py")
    assert ann.edit("own.py", "1\n") == ""
    world.ask(rq.TaskClaim(agent=ann.name, task=task))
    ann.read("a.py")
    assert ann.edit("a.py", "1\n") == ""
    ann.hook("SessionEnd")
    assert holders(world) == {}
    shown = world.ask(rq.TaskShow(task=task))
    assert shown.state == "review" and shown.claimed_by is None
    assert {one.path for review in world.ask(rq.Reviews()).items for one in world.ask(rq.ReviewShow(review=review.review)).files} >= {"a.py"}
    bob.hook("SessionStart")
    world.ask(rq.TaskClaim(agent=bob.name, task=other))
    bob.hook("SessionEnd")
    assert world.ask(rq.TaskShow(task=other)).state in ("ready", "failed") and holders(world) == {}


def test_a_lapsed_right_of_the_parent_is_not_handed_down(world: World) -> None:
    parent, sub = Session(world, "ann"), Session(world, "ann", "s1")
    parent.hook("SessionStart")
    sub.hook("SubagentStart")
    world.acquire(parent.name, "hot.py", "src/", ttl_s=5)
    world.clock.advance(5_000)
    assert sub.edit("hot.py", "1\n") == "" and sub.edit("src/x.py", "1\n") == ""
    assert holders(world) == {"hot.py": sub.name, "src/x.py": sub.name}


# ------------------------------------------------------------ writes

def test_a_write_outside_is_none_of_coords_business(world: World, ann: Session, tmp_path: Path) -> None:
    for path in ("/etc/x", str(tmp_path / "beside.py")):
        assert ann.call("Write", {"file_path": path, "content": ""}).deny == ""
    assert holders(world) == {}
    denied = ann.call("Write", {"file_path": str(world.root / ".git/config"), "content": ""})
    assert denied.deny == "" or "git" in denied.deny


def test_a_lease_that_a_hook_takes_says_what_for(world: World, ann: Session) -> None:
    ann.hook("SessionStart")
    task = world.task("t", "key:x")
    world.ask(rq.TaskClaim(agent=ann.name, task=task))
    ann.edit("a.py", "1\n")
    row = next(one for one in world.live() if one.file_path == "a.py")
    assert (row.task_description, row.task_id) == ("Write by its hook", task)
    world.ask(rq.TaskDone(agent=ann.name, task=task))
    assert holders(world) == {}


def test_a_call_that_may_be_held_waits_in_line(world: World, ann: Session, bob: Session) -> None:
    ann.edit("a.py", "1\n")
    given = {"file_path": str(world.root / "a.py"), "content": ""}
    held = bob.hook("PreToolUse", tool_name="Write", tool_input=given, tool_use_id="1", wait_s=20.0)
    assert held.waiting is not None and held.waiting.code is Code.LOCKED and held.deny
    ann.hook("SessionEnd")
    assert holders(world) == {"a.py": bob.name}
    free = bob.hook("PreToolUse", tool_name="Write", tool_input={**given, "file_path": str(world.root / "b.py")},
                    tool_use_id="2", wait_s=20.0)
    assert free.waiting is None and free.deny == ""


def test_unknown_tools_pass_with_what_is_held_protected_or_are_stopped(tmp_path: Path) -> None:
    for policy in ("allow", "deny"):
        world = World(tmp_path / policy, Settings(hooks=Hooks(unknown_tools=policy)))  # type: ignore[arg-type]
        came = Session(world, "ann").call("FutureTool", {"file_path": "a.py"})
        assert came.protects and bool(came.deny) == (policy == "deny")
        assert ("FutureTool" in came.deny and "hooks.unknown_tools" in came.deny) == (policy == "deny")
        world.close()


def test_an_unknown_moment_is_no_session(world: World) -> None:
    assert Session(world, "ann").hook("SomethingNew", payload={"a": [1]}).holder == ""
    assert world.ask(rq.Agents()).items == []


# ------------------------------------------------------------ messages

def test_what_was_waited_for_is_told_once_with_what_changed(world: World, ann: Session, bob: Session) -> None:
    world.write("hot.py", "one\n")
    bob.read("hot.py")
    ann.edit("hot.py", "one\ntwo\n")
    assert f"leased by {ann.name}" in bob.edit("hot.py", "x\n")
    ann.hook("SessionEnd")
    bob.prints = False
    for _ in range(2):  # until it is printed
        said = bob.hook("Stop", stop_hook_active=False).again
        assert "You waited for hot.py" in said and "It changed since you read it:" in said and "+two" in said
    busy = bob.hook("Stop", on_the_way=(bob.name,))
    assert busy.again == "", "another hook is about to print it"
    bob.prints = True
    assert "+two" in bob.hook("Stop").again and bob.hook("Stop").again == ""
    assert bob.edit("hot.py", "one\ntwo\nthree\n") == ""


def test_messages_follow_the_reason_of_a_denial(world: World, ann: Session, bob: Session) -> None:
    ann.edit("a.py", "1\n")
    bob.hook("SessionStart")
    world.acquire(bob.name, "b.py", ttl_s=2)
    world.clock.advance(3_000)
    world.ask(rq.Sweep())
    lines = bob.edit("a.py", "2\n").split("\n")
    assert "leased by" in lines[0] and any(line.startswith("[coord] ") and "b.py" in line for line in lines[1:])
    assert bob.hook("Stop", broken=["[coord] broke"]).again == "[coord] broke"


def test_what_was_read_and_replaced_is_shown_or_to_be_read_again(world: World, ann: Session, bob: Session) -> None:
    world.write("hot.py", "one\n")
    ann.read("hot.py")
    assert bob.edit("hot.py", "one\nBOB\n") == ""
    bob.hook("SessionEnd")
    world.clock.advance(1_000)
    why = ann.edit("hot.py", "one\nANN\n")
    assert why.startswith("Your environment changed while you were thinking. Re-evaluate your change against the")
    assert f"hot.py was changed since you read it, last by {bob.name}:" in why and "+BOB" in why
    assert why.endswith("Write again, on the content as it is now.")
    assert ann.edit("hot.py", "one\nBOB\nANN\n") == "" and ann.edit("hot.py", "2\n") == ""
    world.write("big.py", "x\n" * 4_000)
    bob.read("big.py")
    ann.edit("big.py", "y\n" * 4_000)
    ann.hook("SessionEnd")
    world.clock.advance(1_000)
    for _ in range(2):  # it does not know what it was not told
        why = bob.edit("big.py", "z\n")
        assert f"big.py was replaced, last by {ann.name}: read it again before you write it." in why
        assert why.endswith("Read it again, then write.")
    bob.read("big.py")
    assert bob.edit("big.py", "z\n") == ""
    world.write("person.py", "1\n")
    bob.read("person.py")
    world.write("person.py", "2\n")
    world.clock.advance(1_000)
    assert "person.py was changed since you read it:" in bob.edit("person.py", "3\n"), "by whom, nobody knows"


OLD, NEW = "x = 1\ny = 1\n", "x = 1\ny = 2\n"
STALE, CARRIED = "x = 5\ny = 1\n", "x = 5\ny = 2\n"


@pytest.mark.parametrize(("profile", "tool", "content", "read"), [
    ("claude-code", "Write", "content", ("Read", "file_path")),
    ("qwen", "write_file", "content", ("read_file", "file_path")),
    ("gemini", "write_file", "content", ("read_file", "file_path")),
    ("opencode", "write", "content", ("read", "filePath")),
    ("copilot", "create", "file_text", ("view", "path")),
    ("pi", "write", "content", ("read", "path")),
    ("codex", "apply_patch", "command", ("Bash", "command")),
])
@pytest.mark.parametrize("name", ["m.py", "m.txt"])
@pytest.mark.parametrize("how", ["again", "read", "carried", "edit between"])
def test_a_refusal_lasts_until_the_agent_has_read(
        world: World, profile: str, tool: str, content: str, read: tuple[str, str], name: str, how: str) -> None:
    """Many agents send what was refused once more, byte for byte, and some hundreds of times."""
    dialect = load(profile, world.root).hooks.dialect  # type: ignore[union-attr]
    events = {"claude": ("PreToolUse", "PostToolUse"), "gemini": ("BeforeTool", "AfterTool"),
              "copilot": ("preToolUse", "postToolUse"), "plain": ("before", "after")}[dialect]
    path = str(world.root / name)

    class Writer(Session):
        def heard(self, event: str, **more: object) -> HookCall:
            if dialect != "copilot":
                return super().heard(event, **more)
            said = {"sessionId": self.session, "cwd": str(world.root), "toolName": more["tool_name"], "toolArgs": more["tool_input"]}
            return decode(self.table, msgspec.json.encode(said), event)

        def asks(self, tool: str, given: dict[str, object], event: str, **more: object) -> str:
            return self.call(tool, given, event, **more).deny

        def writes(self, text: str) -> str:
            given: dict[str, object] = {read[1]: path, content: text}
            if profile == "codex":
                given = {content: f"*** Begin Patch\n*** Add File: {name}\n"
                         + "".join(f"+{line}\n" for line in text.splitlines()) + "*** End Patch\n"}
            why = self.asks(tool, given, events[0])
            if not why:
                world.write(name, text)
                self.asks(tool, given, events[1])
            return why

        def reads(self) -> None:
            given: dict[str, object] = {read[1]: f"cat {name}" if profile == "codex" else path}
            self.asks(read[0], given, events[0])
            self.asks(read[0], given, events[1], tool_response={"stdout": (world.root / name).read_text()})

    world.write(name, OLD)
    ann, bob = Writer(world, "ann", profile=profile), Session(world, "bob")
    assert ann.writes(OLD) == "", "what it has written it knows"
    for row in world.live():
        world.ask(rq.Release(agent=row.locked_by, resources=[row.file_path]))
    bob.read(name)
    assert bob.edit(name, NEW) == ""
    bob.hook("SessionEnd")
    world.clock.advance(1_000)
    first = ann.writes(STALE)
    assert "+y = 2" in first
    if how == "carried" and profile not in ("codex", "pi"):
        assert ann.writes(CARRIED) == "" and ann.writes("anything\n") == ""
        return
    if how == "edit between" and profile == "claude-code":
        edit: dict[str, object] = {"file_path": path, "old_string": "x = 1", "new_string": "x = 4"}
        assert not ann.call("Edit", edit).deny
        world.write(name, "x = 4\ny = 2\n")
        ann.call("Edit", edit, "PostToolUse", tool_response={})
    for _ in range(3):
        again = ann.writes(STALE)
        assert "still lacks what changed since you read it" in again and len(again) < len(first)
        assert again.endswith("Read it again, then write.")
    assert (world.root / name).read_text() != STALE
    if how == "read":
        ann.reads()
        assert ann.writes(STALE) == "", "whoever has read it may decide so"
    assert world.replay_differs() == []


def test_a_difference_told_to_a_waiter_is_no_reading(world: World, ann: Session, bob: Session) -> None:
    world.write("hot.txt", OLD)
    bob.read("hot.txt")
    ann.edit("hot.txt", NEW)
    assert "leased by" in bob.edit("hot.txt", STALE)
    ann.hook("SessionEnd")
    world.clock.advance(1_000)
    assert "+y = 2" in bob.hook("Stop").again
    assert "still lacks" in bob.edit("hot.txt", STALE) and bob.edit("hot.txt", CARRIED) == ""


def test_ignored_files_and_directories_are_no_reading(world: World, ann: Session) -> None:
    world.write(".gitignore", "*.log\n")
    world.write("a.log", "1\n")
    world.write("d/x", "1\n")
    ann.read("a.log")
    ann.read("d")
    world.write("a.log", "2\n")
    assert ann.edit("a.log", "3\n") == ""
    events = [one.kind for one in world.ask(rq.Events(kind="content_read")).items]
    assert events == []


# ------------------------------------------------------------ commands

WIDE = ["git stash", "git reset --hard", "git add -A && git commit -qm x", "git clean -fd"]


@pytest.mark.parametrize("command", WIDE)
def test_a_command_on_the_whole_tree_waits_for_a_quiet_one(world: World, ann: Session, bob: Session, command: str) -> None:
    assert bob.shell(command).deny == "" and holders(world) == {}, "its short lease has ended with it"
    ann.edit("held.py", "2\n")
    assert ann.shell(command).deny == "", "what is one's own is in nobody's way"
    said = bob.shell(command).deny
    assert bob.call("Monitor", {"command": command, "description": "x"}).deny == said, "a command that streams"
    assert "changes the whole working tree, and others are at work in it: held.py" in said and ann.name in said
    narrow = {"reset": "git restore -- FILE", "clean": "git clean -f -- PATH"}.get(command.split()[1], "git stash push -- FILE")
    assert f"`{narrow}" in said and bob.shell("git restore --source HEAD -- own.py").deny == ""
    ann.hook("SessionEnd")
    world.acquire("carl", "key:account")
    assert bob.shell(command).deny == "", "a key is no file"
    bob.call("Bash", {"command": command, "description": "x"})
    (row,) = [one for one in world.live() if one.file_path == git_turn.GIT_INDEX]
    assert row.locked_by == bob.name and row.ttl_ms == 120_000
    assert ann.shell(command).deny != "", "two of them do not meet"
    assert world.ask(rq.Locks()).waiters == [], "and nobody stands in line for that"


def test_a_family_and_another_worktree_are_in_nobodys_way(world: World, ann: Session) -> None:
    sub = Session(world, "ann", "s1")
    ann.edit("held.py", "2\n")
    assert sub.shell("git stash").deny == ""
    sub.edit("own.py", "1\n")
    assert ann.shell("git stash").deny != ""


@pytest.fixture
def outer(tmp_path: Path) -> Iterator[World]:
    """A repository with another one in `build/nested`, and a linked worktree in `tree`. Ann holds a file of the outer one."""
    world = World(tmp_path / "repo", git=True)
    world.write(".gitignore", "build/\ntree/\n")
    world.write("held.py", "1\n")
    for at in (".", "build/nested"):
        world.write(f"{at}/a", "a\n")
        git(world, at, "init", "-q")
        git(world, at, "add", "-A")
        git(world, at, "commit", "-qm", "x")
    git(world, ".", "worktree", "add", "-q", "--detach", "tree")
    Session(world, "ann").edit("held.py", "2\n")
    yield world
    world.close()


def git(world: World, at: str, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", "-c", "protocol.file.allow=always", "-C", str(world.root / at), *words],
                   check=True, capture_output=True, env=NEUTRAL | {"PATH": os.environ["PATH"]})


#: They change a repository of its own, whose files nobody holds.
OF_ITS_OWN = ("cd build/nested && echo b >> a && git stash -q && git switch -qc other && git reset -q --hard; cd ../..", "git -C build/nested checkout -- .",
              "git -C build/nested clean -fdq; git -C build/nested add -A", "git init -q build/new && cd build/new && git add -A", "cd build/nested/.git/.. && git clean -fd",
              "git clone -q build/nested build/cl && git -C build/cl checkout -q -b z", "git -C tree stash", "cd {elsewhere} && git init -q && git stash")
#: They change the outer one, however they are said.
OF_THE_OUTER = ("git stash", "cd build && git stash", "cd build/nested && git stash; cd ../.. && git stash", "git -C build/empty stash", "git -C build/points checkout -- .", "git -C build/into/.. stash",
                "cd build/nested && GIT_DIR=../../.git git stash", "git -C build/nested/../.. reset --hard", "git -C build/nested stash && git reset --hard", "git init -q; git stash", "cd build/included && git stash")


@pytest.mark.parametrize("command", OF_ITS_OWN)
def test_git_in_a_repository_of_its_own_is_nobodys_business(outer: World, bob: Session, command: str, tmp_path: Path) -> None:
    bob = Session(outer, "bob")
    assert bob.shell(command.format(elsewhere=tmp_path)).deny == ""
    assert holders(outer) == {"held.py": "claude-code-ann"}


@pytest.mark.parametrize("command", OF_THE_OUTER)
def test_git_in_the_outer_repository_is_asked_about_from_wherever_it_is_said(outer: World, command: str) -> None:
    (outer.root / "build/empty/.git").mkdir(parents=True)  # git passes over it
    for name in ("points", "included"):
        shutil.copytree(outer.root / "build/nested", outer.root / "build" / name)
    git(outer, "build/points", "config", "core.worktree", str(outer.root))
    git(outer, "build/included", "config", "include.path", "../x")
    (outer.root / "deep").mkdir()
    (outer.root / "build/into").symlink_to("nested/a")
    assert "held.py (claude-code-ann" in Session(outer, "bob").shell(command).deny


@pytest.mark.parametrize("named", ["build/nested/a", "build/", "**/a"])
def test_what_is_held_of_a_repository_of_its_own_is_kept_from_git_there(outer: World, named: str) -> None:
    outer.acquire("carl", named)
    bob = Session(outer, "bob")
    said = bob.shell("git -C build/nested stash").deny
    assert f"{named} (carl" in said and "held.py" not in said
    assert bob.shell("git init -q build/nested && cd build/nested && git add -A").deny != "", "it is there already"


def test_a_turn_in_a_repository_of_its_own_keeps_others_from_that_alone(outer: World) -> None:
    bob, carl = Session(outer, "bob"), Session(outer, "carl")
    bob.call("Bash", {"command": "cd build/nested && git stash", "description": "x"})
    assert "changes the whole working tree just now" in carl.edit("build/nested/a", "x\n") and carl.edit("a", "x\n") == ""
    assert "is at" in carl.shell("cd build/nested && git reset --hard").deny
    bob.call("Bash", {"command": "cd build/nested && git stash", "description": "x"}, "PostToolUse", tool_response={})
    assert carl.edit("build/nested/a", "x\n") == ""


def test_a_submodule_is_a_repository_of_its_own(outer: World) -> None:
    git(outer, ".", "submodule", "--quiet", "add", "./build/nested", "sub")
    bob = Session(outer, "bob")
    assert bob.shell("git -C sub reset --hard").deny == ""
    outer.acquire("carl", "sub/a")
    assert "sub/a (carl" in bob.shell("git -C sub reset --hard").deny


def test_git_wide_may_be_allowed(tmp_path: Path) -> None:
    world = World(tmp_path / "repo", Settings(hooks=Hooks(git_wide="allow")))
    ann, bob = Session(world, "ann"), Session(world, "bob")
    ann.edit("held.py", "2\n")
    assert bob.shell("git stash").deny == ""
    world.close()


def test_an_obvious_write_is_asked_like_an_edit(world: World, ann: Session, bob: Session) -> None:
    ann.edit("held.py", "held\n")
    for command in ("echo HACK > held.py", "sed -i s/held/HACK/ held.py", "git mv held.py x.py", "cd . && rm held.py"):
        came = bob.shell(command)
        assert f"leased by {ann.name}" in came.deny and not came.protects
    came = bob.shell("echo x > free.py 2> /dev/null", {"free.py": "x\n"})
    assert came.deny == "" and holders(world)["free.py"] == bob.name
    assert bob.before.protects
    read = world.ask(rq.Events(kind="versions_seen")).items[-1]
    assert read.data["versions"] == [["free.py", digest(b"x\n"), bob.name]], "what it did there is its own writing"


@pytest.mark.parametrize(("profile", "event", "tool", "named"), [
    ("gemini", "BeforeTool", "run_shell_command", "dir_path"), ("gemini", "BeforeTool", "run_shell_command", "directory"),
    ("qwen", "PreToolUse", "run_shell_command", "directory"), ("opencode", "before", "bash", "workdir")])
def test_a_command_runs_in_the_directory_that_its_call_names(world: World, profile: str, event: str, tool: str, named: str) -> None:
    """Some CLIs tell their models not to write `cd docs && …`, but to name the directory beside it."""
    world.write("docs/d.md", "d\n")
    world.write("docs/e.md", "e\n")
    world.acquire("bob", "docs/d.md")
    gem = Session(world, "s", profile=profile)
    for folder in ("docs", "./docs/", "src/../docs", str(world.root / "docs")):
        assert "docs/d.md" in gem.call(tool, {"command": "rm d.md", named: folder}, event).deny
        assert "docs/d.md" in gem.call(tool, {"command": "cd .. && rm docs/d.md", named: folder}, event).deny
    for folder in ("", "..", "/", "src", "\0", 7, None):
        assert not gem.call(tool, {"command": "rm nothing.md", named: folder}, event).deny
    assert not gem.call(tool, {"command": "rm e.md", named: "docs"}, event).deny
    assert holders(world)["docs/e.md"] == gem.name and not {"d.md", "e.md"} & holders(world).keys()


def test_a_command_that_met_a_read_only_file_is_told_whose(world: World, ann: Session, bob: Session) -> None:
    ann.edit("held.py", "1\n")
    ann.edit("lib/other.py", "1\n")
    told = bob.shell("sh x.sh", output="sh: held.py: Read-only file system").context
    assert f"held.py is leased by {ann.name} (\"Write by its hook\") until " in told and "other.py" not in told
    told = bob.shell("sh x.sh", output="Device or resource busy").context
    assert "held.py" in told and "lib/other.py" in told, "which of them, the output does not say"
    told = bob.shell("sh x.sh", output="rm: cannot remove '.coord/secret': Read-only file system").context
    assert told.startswith("[coord] .coord is coord's own") and "held.py" not in told
    assert bob.shell("sh held.py", output="all well").context == ""
    assert ann.shell("sh x.sh", output="Read-only file system").context == "", "nothing is held by others"


def test_others_files_are_protected_and_ones_familys_not(world: World, ann: Session, bob: Session) -> None:
    sub = Session(world, "ann", "s1")
    sub.hook("SubagentStart")
    ann.edit("a.py", "1\n")
    world.acquire(ann.name, "key:x")
    rows = {who.name: [row.file_path for row in shell_commands.held_by_others(world.view(), who.name)] for who in (ann, bob, sub)}
    assert rows == {ann.name: [], sub.name: [], bob.name: ["a.py"]}


def test_what_a_command_broke_is_kept_told_and_shown(world: World, ann: Session, bob: Session) -> None:
    bob.hook("SessionStart")
    for name in ("a.py", "gone.py"):
        world.write(name, f"{name}\n")
    for name in ("a.py", "gone.py", "new.py"):
        world.acquire("ann", name)
    carl = world.acquire("carl", "c.py")
    assert carl.leases
    before = {name: digest(f"{name}\n".encode()) for name in ("a.py", "gone.py")}
    world.write("a.py", "HACK\n")
    world.write("new.py", "HACK\n")
    world.write("c.py", "HACK\n")
    (world.root / "gone.py").unlink()
    (said,) = bob.broke(Broken("a.py", "ann", before["a.py"]), Broken("gone.py", "ann", before["gone.py"]),
                        Broken("new.py", "ann", None), Broken("c.py", "carl", "sha256:" + "0" * 64))
    assert said.startswith("[coord] Your last command changed a.py, gone.py, new.py and 1 more, held by ann and carl,")
    assert "(R-1)" in said
    assert files_of(world) == {
        "a.py": ("modified", True, "a.py\n", "HACK\n"), "gone.py": ("deleted", True, "gone.py\n", None),
        "new.py": ("created", True, None, "HACK\n"), "c.py": ("modified", False, None, "HACK\n")}
    (review,) = world.ask(rq.Reviews()).items
    assert (review.reason, review.agent) == ("unleased", bob.name)
    notices = {who: [one.text for one in world.ask(rq.Heartbeat(agent=who)).notices] for who in ("ann", "carl")}
    assert notices["ann"] == [f"A command of {bob.name} changed a.py, gone.py and new.py, which you hold. Both contents "
                              "are kept in R-1. Look at the file before you write it again."]
    assert "changed c.py, which you hold. Not all contents could be kept for R-1." in notices["carl"][0]
    writes = world.ask(rq.Events(kind="unleased_write")).items
    assert [(one.resource, one.agent) for one in writes] == [(name, bob.name) for name in ("a.py", "gone.py", "new.py", "c.py")]
    assert world.replay_differs() == []


# ------------------------------------------------------------ the watcher

def change(world: World, path: str, text: str | None, changed_ms: int | None = None, before: bytes | None = None,
           **more: Any) -> Seen:
    """What the watcher saw of a path; `before`: what git has of it."""
    if text is not None:
        world.write(path, text)
    stamp = None if changed_ms is None else (0, 0, 0, 0, changed_ms * 1_000_000, 0)
    now = NOTHING if text is None else Bytes(digest(text.encode()), text.encode(), stamp=stamp)
    return Seen(path, now, NOTHING if before is None else Bytes(digest(before), before), **more)


def versions(world: World) -> list[list[str | None]]:
    return [one for event in world.ask(rq.Events(kind="versions_seen")).items for one in event.data["versions"]]


def test_a_write_is_its_holders_also_a_moment_after(world: World) -> None:
    now = world.clock.now_ms
    world.acquire("ann", "a.py", "lib/")
    world.acquire("bob", "shared.py", mode="shared")
    saw(world, change(world, "a.py", "1\n", changed_ms=now()), change(world, "lib/b.py", "1\n", changed_ms=now()),
        change(world, "shared.py", "1\n", changed_ms=now()))
    assert [(v[0], v[2]) for v in versions(world)] == [("a.py", "ann"), ("lib/b.py", "ann"), ("shared.py", None)]
    wrote = now()
    world.clock.advance(1_000)
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    world.acquire("carl", "a.py")
    saw(world, change(world, "a.py", "2\n", changed_ms=wrote))
    assert versions(world)[-1][2] == "ann", "it was written before it was released"
    world.clock.advance(1_000)
    for _ in range(2):
        saw(world, change(world, "a.py", "3\n", changed_ms=now()))
    assert versions(world)[-1][2] == "carl" and len(versions(world)) == 5
    world.ask(rq.Release(agent="carl", resources=["a.py"]))
    saw(world, change(world, "a.py", None))
    assert versions(world)[-1] == ["a.py", None, "carl"], "who had it just before may have removed it"
    world.clock.advance(ended_rights.LATE_MS + 1)
    saw(world, change(world, "a.py", "4\n"))
    assert versions(world)[-1][2] is None, "that is too long ago"


def test_a_right_that_ended_in_the_same_transaction_counts(world: World) -> None:
    from coordinator.kernel.leasing import leases

    world.acquire("ann", "a.py")
    seen = change(world, "a.py", "1\n", changed_ms=world.clock.now_ms())

    def job(tx: Tx) -> None:
        leases.release(world.service, tx, OPERATOR, rq.Release(agent="ann", resources=["a.py"]))
        seen_writes.seen(world.service, tx, [seen])

    world.decide(job)
    assert versions(world) == [["a.py", seen.hash, "ann"]]


@pytest.mark.parametrize("policy", ["ignore", "record", "review"])
def test_what_nobody_leased_is_noted_as_the_policy_says(tmp_path: Path, policy: str) -> None:
    world = World(tmp_path / "repo", Settings(watch=Watching(unleased=policy)))  # type: ignore[arg-type]
    saw(world, change(world, "early.py", "early\n"))
    assert world.ask(rq.Events(kind="unleased_write")).items == [], "with no agent about, nothing is said"
    world.ask(rq.Register(agent="ann"))
    saw(world, change(world, "new.py", "1\n"), change(world, "moved.py", "1\n", moved_from="old.py"))
    saw(world, change(world, "new.py", "2\n"))
    saw(world, change(world, "old.py", "by nobody\n", before=b"committed\n"))
    saw(world, change(world, "back.py", "committed\n", before=b"committed\n"))
    saw(world, change(world, "early.py", None), change(world, "came and went", None))
    written = [one.resource for one in world.ask(rq.Events(kind="unleased_write")).items]
    expected = ["new.py", "moved.py", "new.py", "old.py", "back.py", "early.py"]
    assert written == ([] if policy == "ignore" else expected)
    reviews = world.ask(rq.Reviews()).items
    if policy != "review":
        assert reviews == []
    else:
        kinds = [(file.path, file.change, file.kept) for one in reviews for file in world.ask(rq.ReviewShow(review=one.review)).files]
        assert sorted(set(kinds)) == [("early.py", "deleted", False), ("moved.py", "created", True), ("new.py", "created", True),
                                      ("new.py", "modified", True), ("old.py", "modified", True)]
        old = next(one for one in reviews if "old.py" in str(world.ask(rq.ReviewShow(review=one.review)).files[0].path))
        assert files_of(world, old.review) == {"old.py": ("modified", True, "committed\n", "by nobody\n")}
        world.ask(rq.ReviewDecide(review=old.review, verdict="revert"))
        assert (world.root / "old.py").read_text() == "committed\n"
        count = len(world.ask(rq.Events(kind="unleased_write")).items)
        saw(world, change(world, "old.py", "committed\n"))
        new = next(one.review for one in reviews if [*files_of(world, one.review)] == ["new.py"]
                   and files_of(world, one.review)["new.py"][0] == "created")
        world.write("new.py", "1\n")
        world.ask(rq.ReviewDecide(review=new, verdict="revert"))
        assert not (world.root / "new.py").exists()
        saw(world, change(world, "new.py", None))
        assert len(world.ask(rq.Events(kind="unleased_write")).items) == count, "our own reverts"
    assert world.replay_differs() == []
    world.close()


def test_what_was_gone_before_a_lease_began_is_nobodys_violation(world: World, ann: Session) -> None:
    """When a file was deleted no file tells; the watcher may see it late."""
    saw(world, change(world, "d/x.py", "1\n"), change(world, "d/y.py", "1\n"))
    world.clock.advance(1_000)
    (world.root / "d/x.py").unlink()
    ann.hook("SessionStart", source="startup")
    world.acquire(ann.name, "d/")
    running = (Running("bob", is_command=True),)
    world.ask(rq.Register(agent="bob"))

    def foreign(path: str) -> bool:
        found: list[object] = []
        gone = change(world, path, None, calls=running)
        world.decide(lambda tx: found.extend(seen_writes.seen(world.service, tx, [gone])))
        return any(isinstance(one, Foreign) for one in found)

    world.clock.advance(1_000)
    assert not foreign("d/x.py"), "it was gone"
    (world.root / "d/y.py").unlink()
    assert foreign("d/y.py"), "it was there"
    world.clock.advance(1_000)
    saw(world, change(world, "d/new.py", "1\n", changed_ms=world.clock.now_ms(), calls=(Running(ann.name, is_command=True),)))
    (world.root / "d/new.py").unlink()
    assert foreign("d/new.py"), "it was seen since"


@pytest.mark.parametrize("leased", ["d/x.py", "d/"])
@pytest.mark.parametrize("then", ["one\n", "three\n"])
@pytest.mark.parametrize("began", ["two\n", None])
def test_what_a_lease_began_with_counts_where_the_watcher_did_not_see_it(world: World, ann: Session, leased: str, then: str,
                                                                        began: str | None) -> None:
    """Somebody put the file back, it was leased, and another wrote it, all before the watcher told."""
    saw(world, change(world, "d/x.py", "one\n"), change(world, "d/y.py", "one\n"))
    world.clock.advance(1_000)
    if began is None:
        (world.root / "d/x.py").unlink()
    else:
        world.write("d/x.py", began)
    ann.hook("SessionStart", source="startup")
    world.ask(rq.Register(agent="bob"))
    world.acquire(ann.name, leased)
    world.clock.advance(1_000)
    now = world.clock.now_ms() * 1_000_000
    world.write("d/x.py", then)
    found: list[object] = []
    seen = Seen("d/x.py", Bytes(digest(then.encode()), then.encode(), stamp=(0, 0, 0, 0, now, now)),
                calls=(Running("bob", is_command=True),))
    world.decide(lambda tx: found.extend(seen_writes.seen(world.service, tx, [seen])))
    was = None if began is None else digest(began.encode())
    assert found == [Foreign(ann.name, "bob", seen, was)]
    assert seen_again(world, seen) == [], "which is told once"


def test_what_was_seen_since_a_lease_began_counts_also_where_it_was_made_smaller(world: World, ann: Session) -> None:
    world.write("d/x.py", "one\n")
    ann.hook("SessionStart", source="startup")
    world.ask(rq.Register(agent="bob"))
    world.acquire(ann.name, "d/")
    world.clock.advance(1_000)
    mine = change(world, "d/x.py", "two\n", calls=(Running(ann.name, is_command=True),))
    saw(world, mine)
    world.clock.advance(1_000)
    world.ask(rq.Register(agent="cyd"))
    asked = world.ask(rq.RequestFile(agent="cyd", resource="d/y.py", reason="y.py"))
    world.ask(rq.RequestAnswer(agent=ann.name, request=asked.request, verdict="narrow", keep=["d/x.py"]))
    world.clock.advance(1_000)
    now = world.clock.now_ms() * 1_000_000
    theirs = Seen("d/x.py", Bytes(digest(b"three\n"), b"three\n", stamp=(0, 0, 0, 0, now, now)), calls=(Running("bob", is_command=True),))
    assert seen_again(world, theirs) == [Foreign(ann.name, "bob", theirs, mine.hash)]


@pytest.mark.parametrize("held", [True, False])
def test_what_was_held_by_another_name_when_it_was_written_is_not_leased_to_who_wrote_it(world: World, ann: Session,
                                                                                       held: bool) -> None:
    """A hard link: the watcher tells of it when its holder has given it back. Else the next edit would meet that lease."""
    world.write("a.py", "one\n")
    os.link(world.root / "a.py", world.root / "link")
    ann.hook("SessionStart", source="startup")
    bob = Session(world, "bob")
    bob.hook("SessionStart", source="startup")
    if held:
        world.acquire(ann.name, "a.py")
    world.clock.advance(1_000)
    now = world.clock.now_ms() * 1_000_000
    (world.root / "link").write_text("one\nH\n")  # (in place: it stays one file)
    wrote = Seen("link", Bytes(digest(b"one\nH\n"), b"one\nH\n", stamp=(0, 0, 0, 0, now, now)),
                 calls=(Running(bob.name, is_command=True),))
    world.clock.advance(200)
    if held:
        world.ask(rq.Release(agent=ann.name, resources=["a.py"]))
    (found,) = seen_again(world, wrote)
    assert isinstance(found, Adopted)
    assert world.decide(lambda tx: adopt(world.service, tx, found)) is not held
    assert holders(world) == ({} if held else {"link": bob.name})


@pytest.mark.parametrize("folds", [True, False])
def test_an_edit_that_runs_writes_what_it_names_by_whatever_case(tmp_path: Path, folds: bool) -> None:
    world = World(tmp_path / "r", fold_case=folds)
    ann = Session(world, "ann")
    ann.hook("SessionStart", source="startup")
    for name in ("A.py", "a.py"):
        world.write(name, "one\n")
        world.acquire(ann.name, name)
    world.clock.advance(1_000)
    now = world.clock.now_ms() * 1_000_000
    for name in ("A.py", "a.py"):
        wrote = Seen(name, Bytes(digest(b"two\n"), b"two\n", stamp=(0, 0, 0, 0, now, now)),
                     calls=(Running(ann.name, is_command=False, files=frozenset({"A.py"})),))
        assert bool(seen_again(world, wrote)) == (not folds and name == "a.py")
    world.close()


def seen_again(world: World, seen: Seen) -> list[object]:
    found: list[object] = []
    world.decide(lambda tx: found.extend(seen_writes.seen(world.service, tx, [seen])))
    return found


# ------------------------------------------------------------ the guard of commits

def check(world: World, *paths: str, token: str | None = None, **more: Any) -> rq.GuardHeldList:
    answer = world.ask(rq.GuardCheck(paths=list(paths), **more), token)
    assert isinstance(answer, rq.GuardHeldList)
    return answer


def test_the_guard_names_what_others_hold(world: World, ann: Session) -> None:
    world.write("a.py", "1\n")
    (world.root / "twin.py").hardlink_to(world.root / "a.py")
    world.acquire("ann", "a.py", "lib/", description="ordering")
    world.acquire("ann", "read.py", mode="shared")
    world.acquire("bob", "short.py", ttl_s=1)
    world.clock.advance(1_000)
    every = ["a.py", "lib/x.py", "read.py", "short.py", "twin.py", "free.py", "../outside", ".git/x"]
    items = check(world, *every).items
    assert {(one.path, one.resource, one.holder, one.description) for one in items} == {
        ("a.py", "a.py", "ann", "ordering"), ("lib/x.py", "lib/", "ann", "ordering"), ("twin.py", "a.py", "ann", "ordering")}
    row = next(row for row in world.live() if row.file_path == "lib/")
    one = next(one for one in items if one.path == "lib/x.py")
    assert (one.since, one.until, one.task, one.worktree) == (row.locked_at, row.expires_at, row.task_id, row.worktree)
    assert check(world, *every, agent="ann").items == []
    assert check(world, *every, agent="ann").agent == "ann" and check(world, "a.py").agent is None
    assert check(world, "a.py", profile="claude-code", session="1234abcd").agent == "claude-code-1234abcd"
    refusal = world.refused(rq.GuardCheck(paths=["a"] * (commits.PATHS_MAX + 1)))
    assert refusal.code is Code.LIMIT and check(world, *["a"] * commits.PATHS_MAX).items == []


def test_the_guard_knows_what_a_held_file_was_called(world: World) -> None:
    """Where nothing stands at the old name: who would commit that, would commit that it is gone."""
    world.write("was.py", "1\n")
    world.acquire("ann", "was.py")
    world.acquire("bob", "bobs.py")
    for old, new in (("was.py", "then.py"), ("then.py", "now.py")):
        (world.root / old).rename(world.root / new)
        world.decide(lambda tx, old=old, new=new: renames.follow(world.service, tx, old, new))
    assert {(one.path, one.resource) for one in check(world, "was.py", "then.py", "now.py", "free.py").items} == {
        ("was.py", "was.py"), ("then.py", "then.py"), ("now.py", "now.py")}
    assert check(world, "was.py", agent="ann").items == []
    world.ask(rq.Release(agent="ann", resources=["now.py"]))
    assert check(world, "was.py", "now.py").items == []


def test_a_sub_agent_commits_what_its_parent_holds_and_not_the_other_way(world: World) -> None:
    token = world.ask(rq.Register(agent="ann")).token
    world.ask(rq.Register(agent="ann.sub", parent="ann"))
    world.ask(rq.Register(agent="bob"))
    world.ask(rq.Acquire(agent="ann", resources=["a.py"]), token)
    world.acquire("ann.sub", "b.py")
    assert check(world, "a.py", "b.py", agent="ann.sub").items == []
    assert [one.path for one in check(world, "a.py", "b.py", agent="ann").items] == ["b.py"]
    assert check(world, "a.py", "b.py", agent="ann.sub", token=token).agent == "ann.sub"
    assert check(world, "b.py", agent="bob", token=token).agent == "ann", "a token speaks for its own"


def test_going_on_over_the_guard_is_noted_and_told(world: World) -> None:
    world.acquire("ann", "a.py", "b.py")
    world.acquire("bob", "c.py")
    answer = world.ask(rq.GuardOverride(paths=["a.py", "b.py", "c.py", "free.py"], by="Pat", action="commit"))
    assert {one.path for one in answer.items} == {"a.py", "b.py", "c.py"} and answer.agent is None
    (noted,) = world.ask(rq.Events(kind="noted")).items
    assert noted.text == "Pat went on over the guard (commit): paths a.py, b.py and c.py, holders ann and bob"
    for who, names in (("ann", "a.py and b.py"), ("bob", "c.py")):
        (one,) = world.ask(rq.Heartbeat(agent=who)).notices
        assert one.text == f"Pat went on over the guard with a commit of {names}, which you hold: read it afresh before you go on."
    world.ask(rq.GuardOverride(paths=["free.py"], by="", action="push"))
    assert len(world.ask(rq.Events(kind="noted")).items) == 1, "nobody held it"
    world.ask(rq.GuardOverride(paths=["c.py"], by="", action="push"))
    assert "somebody went on over the guard (push)" in world.ask(rq.Events(kind="noted")).items[-1].text


def test_only_so_many_calls_are_remembered(world: World) -> None:
    for n in range(600):
        world.service.announce(f"call-{n}", "ann")
    assert len(world.service.callers) == 512 and "call-88" in world.service.callers and "call-87" not in world.service.callers
    with pytest.raises(Refusal):
        world.decide(lambda tx: sessions.join(world.service, tx, Actor(), rq.Join(profile="", session="", call="call-600")))


def test_a_command_is_no_reading_of_what_its_agent_holds(world: World, ann: Session, bob: Session) -> None:
    """What another did before the lease is not known to whoever only ran something since."""
    world.write("seen.py", "one\n")
    ann.read("seen.py")
    world.clock.advance(1_000)
    assert bob.edit("seen.py", "two\n") == ""
    world.ask(rq.Release(agent=bob.name, resources=["seen.py"]))
    world.clock.advance(1_000)
    world.acquire(ann.name, "seen.py")
    for did in (None, "two\nthree\n"):
        ann.shell("true")
        if did is not None:
            world.write("seen.py", did)
        ann.call("Bash", {"command": "true"}, "PostToolUse", tool_response={})
        world.clock.advance(1_000)
    told = ann.edit("seen.py", "one\nmore\n")
    assert "seen.py was changed" in told and "+two" in told


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(("command", "answer", "read"), [
    ("cat seen.py", {"stdout": "one\ntwo\n", "stderr": ""}, True),
    ("cat seen.py", "Exit code: 0\nOutput:\none\ntwo\n", True),
    ("cat -n ./seen.py | head", "     1\tone\n     2\ttwo\n", True),
    ("grep -n . seen.py", "1:one\n2:two\n", True),
    ("wc -l seen.py", "2 seen.py", False),
    ("head -1 seen.py", "one\n", False),
    ("cat other.py", {"stdout": "twofold\n"}, False),
])
def test_what_a_command_printed_is_read(
    world: World, ann: Session, bob: Session, held: bool, command: str, answer: object, read: bool,
) -> None:
    """Some agents read by commands only: what they have seen so is no reason to refuse their write."""
    world.write("seen.py", "one\n")
    ann.read("seen.py")
    world.clock.advance(1_000)
    assert bob.edit("seen.py", "one\ntwo\n") == ""
    world.ask(rq.Release(agent=bob.name, resources=["seen.py"]))
    world.clock.advance(1_000)
    if held:
        world.acquire(ann.name, "seen.py")
    ann.shell(command)
    ann.call("Bash", {"command": command}, "PostToolUse", tool_response=answer)
    world.clock.advance(1_000)
    told = ann.edit("seen.py", "one\ntwo\nmore\n")
    assert ("seen.py was changed" not in told) if read else ("+two" in told)


@pytest.mark.parametrize("command", ["git stash drop", "git stash clear", "git stash drop stash@{1}"])
def test_what_takes_from_the_stashes_of_all_is_told_for_what_it_is(ann: Session, bob: Session, command: str) -> None:
    ann.edit("held.py", "2\n")
    said = bob.shell(command).deny
    assert "takes from git's list of stashes, which all share, and others are at work in it: held.py" in said
    assert said.endswith("`coord locks` tells when they are done.") and "your own files" not in said
