"""Agents as their hooks show them: sessions, sub-agents, shells, stale reads, messages.

The real daemon and the real hook program; commands are really run.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

import coordinator._hook as hook_file
from coordinator.files.content import digest
from coordinator.words import requests as rq
from tests import agent_process
from tests.conftest import BARE, Repo
from tests.waiting import until


def all_served(repo: Repo) -> bool:
    """Whether everybody in line waits for something that another has. Who is freed is served after
    the answer that freed it."""
    with repo.client() as client:
        locks = client.call(rq.Locks())
    return all(any(lease.resource in waiter.resources and lease.locked_by != waiter.agent for lease in locks.items)
               for waiter in locks.waiters)


class Claude:
    """One session of Claude Code, as far as its hooks go."""

    def __init__(self, repo: Repo, session: str, sub: str = "", profile: str = "claude-code",
                 env: dict[str, str] | None = None, here: bool = False) -> None:
        self.repo, self.session, self.sub, self.profile = repo, session, sub, profile
        self.calls = 0
        self.process = agent_process.TestsOwn(repo.root) if here else agent_process.of_session(
            repo.root, profile.partition(":")[0], session, env)

    @property
    def name(self) -> str:
        return f"{self.profile}-{self.session}" + (f".{self.sub}" if self.sub else "")

    def hook(self, event: str, **more: Any) -> dict[str, Any]:
        said = {"session_id": self.session, "cwd": str(self.repo.root), "hook_event_name": event,
                "permission_mode": "bypassPermissions", **more}
        if self.sub:
            said |= {"agent_id": self.sub, "agent_type": "general-purpose"}
        code, printed, errors = self.process.runs(shlex.join(
            [sys.executable, "-I", "-S", "-E", hook_file.__file__, str(self.repo.state.socket()), self.profile]),
            json.dumps(said))
        assert code == 0, errors
        if event == "SessionEnd":
            until(lambda: all_served(self.repo))
        if not printed:
            return {}
        out: dict[str, Any] = json.loads(printed)
        inner: dict[str, Any] = out.get("hookSpecificOutput", out)
        return inner

    def _call(self, tool: str, given: dict[str, Any], event: str = "PreToolUse", **more: Any) -> dict[str, Any]:
        if event == "PreToolUse":
            self.calls += 1
        return self.hook(event, tool_name=tool, tool_input=given, tool_use_id=f"{self.session}{self.calls}", **more)

    def edit(self, path: str, text: str | None = None) -> str:
        """Write a file through the Write tool; the reason, if that was denied."""
        given = {"file_path": str(self.repo.root / path), "content": text or ""}
        said = self._call("Write", given)
        if said.get("permissionDecision") == "deny":
            return str(said["permissionDecisionReason"])
        if text is not None:
            self.repo.write(path, text)
        self.after = self._call("Write", given, "PostToolUse", tool_response={})
        return ""

    def read(self, path: str) -> None:
        given = {"file_path": str(self.repo.root / path)}
        self._call("Read", given)
        self._call("Read", given, "PostToolUse", tool_response={})

    def shell(self, command: str) -> tuple[str, int, str]:
        """(why it was denied or what the model is told after, exit code, output)."""
        said = self._call("Bash", {"command": command, "description": "x"})
        if said.get("permissionDecision") == "deny":
            return str(said["permissionDecisionReason"]), -1, ""
        assert "updatedInput" not in said
        code, out, err = self.process.runs(command)
        after = self._call("Bash", {"command": command}, "PostToolUse", tool_response={"stdout": out, "stderr": err})
        return str(after.get("additionalContext", "")), code, out + err


def git(repo: Repo, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=P", "-c", "user.email=p@x", *words], cwd=repo.root, check=True, capture_output=True)


def held(repo: Repo) -> dict[str, str]:
    with repo.client() as client:
        return {one.resource: one.locked_by for one in client.call(rq.Locks()).items}


def agents(repo: Repo) -> dict[str, str | None]:
    with repo.client() as client:
        return {one.agent: one.parent for one in client.call(rq.Agents()).items}


def test_a_session_registers_itself_is_welcomed_and_ends(up: Repo) -> None:
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    assert "claude-code-ann" in ann.hook("SessionStart", source="startup")["additionalContext"]
    ann.edit("a.py", "1\n")
    assert "a.py (claude-code-ann)" in bob.hook("SessionStart")["additionalContext"]
    assert agents(up) == {ann.name: None, bob.name: None}
    ann.hook("SessionEnd", reason="other")
    assert held(up) == {}
    assert agents(up) == {bob.name: None}
    ann.edit("a.py", "2\n")  # resumed
    assert held(up) == {"a.py": ann.name}


def test_a_sub_agent_is_a_holder_of_its_own(up: Repo) -> None:
    parent, one, two = Claude(up, "ann"), Claude(up, "ann", "s1"), Claude(up, "ann", "s2")
    assert one.edit("hot.py", "1\n") == ""
    assert "claude-code-ann.s1" in two.edit("hot.py", "2\n")
    assert up.read("hot.py") == "1\n"
    one.hook("SubagentStop")
    assert two.edit("hot.py", "2\n") == ""
    parent.hook("SessionEnd")
    assert held(up) == {}


def test_a_sub_agent_works_with_what_its_parent_claimed(up: Repo) -> None:
    parent, sub = Claude(up, "ann"), Claude(up, "ann", "s1")
    parent.hook("SessionStart")
    with up.client() as client:
        task = client.call(rq.TaskAdd(title="t", resources=["hot.py", "src/"])).task
        client.call(rq.TaskClaim(agent=parent.name, task=task))
        assert sub.edit("hot.py", "1\n") == ""
        assert sub.edit("src/x.py", "1\n") == ""
        holders = held(up)
        assert holders["hot.py"] == sub.name
        assert holders["src/"] == parent.name
        sub.hook("SubagentStop")
        assert set(held(up).values()) == {parent.name}
        client.call(rq.TaskDone(agent=parent.name, task=task))
    assert held(up) == {}


def test_a_patch_of_many_files_is_one_acquisition(up: Repo) -> None:
    ann, cod = Claude(up, "ann"), Claude(up, "cod", profile="codex")
    ann.edit("b.py", "1\n")
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+*** Update File: no.py\n*** Delete File: b.py\n*** Add File: c/d.py\n+1\n*** End Patch\n"
    said = cod.hook("PreToolUse", tool_name="apply_patch", tool_input={"command": patch}, tool_use_id="1")
    assert said["permissionDecision"] == "deny"
    assert held(up) == {"b.py": ann.name}  # all or nothing
    ann.hook("SessionEnd")
    said = cod.hook("PreToolUse", tool_name="apply_patch", tool_input={"command": patch}, tool_use_id="2")
    assert set(held(up)) == {"a.py", "b.py", "c/d.py"}
    outside = "*** Begin Patch\n*** Add File: /etc/x\n+1\n*** End Patch\n"
    assert cod.hook("PreToolUse", tool_name="apply_patch", tool_input={"command": outside}) == {}
    said = cod.hook("PreToolUse", tool_name="apply_patch", tool_input={"command": "GIT binary patch"})
    assert said["permissionDecision"] == "deny"


SHELLS = [
    ("claude-code", "PreToolUse", "Bash"), ("codex", "PreToolUse", "Bash"), ("gemini", "BeforeTool", "run_shell_command"),
    ("copilot", "preToolUse", "bash"), ("opencode", "before", "bash"), ("qwen", "PreToolUse", "run_shell_command"),
    ("pi", "before", "bash"), ("mini", "before", "bash"),
]


def test_no_command_is_ever_rewritten(up: Repo) -> None:
    """What an agent's own rules judge is what its model wrote, whatever others hold."""
    Claude(up, "ann").edit("held.py", "held\n")
    for (profile, event, tool), words in itertools.product(SHELLS, (
            "n=held; echo x > $n.py", "make", "git commit -m x -- own.py", "coord locks", "rm own.py")):
        command = words.replace("own.py", f"own_{profile}.py")
        call = {"session_id": "bob", "sessionId": "bob", "cwd": str(up.root), "hook_event_name": event, "tool_name": tool,
                "toolName": tool, "tool_input": {"command": command}, "toolArgs": {"command": command},
                "tool_use_id": "1"}
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-E", str(hook_file.__file__), str(up.state.socket()),
             profile if profile in ("claude-code", "codex", "gemini", "qwen") else f"{profile}:{event}"],
            input=json.dumps(call).encode(), capture_output=True, check=True, timeout=60, env=BARE)
        said = json.loads(done.stdout) if done.stdout else {}
        assert not {"updatedInput", "tool_input", "modifiedArgs", "command", "permissionDecision"} & {
            *said, *said.get("hookSpecificOutput", {})}, (profile, command, said)
    with up.client() as client:
        there = [one.agent for one in client.call(rq.Agents()).items]
    for profile, _, _ in SHELLS:
        assert f"{profile}-bob" in there, "it was heard"


def test_an_obvious_shell_write_is_proposed_like_an_edit(up: Repo) -> None:
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    ann.edit("held.py", "held\n")
    for command in ("echo HACK > held.py", "sed -i s/held/HACK/ held.py", "git mv held.py x.py", "cd . && rm held.py",
                    "git checkout -- held.py", "tee held.py < /dev/null"):
        told, code, _ = bob.shell(command)
        assert code == -1, command
        assert "claude-code-ann" in told
    assert bob.shell("echo x > free.py")[1] == 0
    assert held(up)["free.py"] == bob.name


BLAMED: list[tuple[str, tuple[str, ...]]] = [
    ("bash: c/index.ts: Read-only file system", ()), ("bash: a/index.ts: Read-only file system", ("a/index.ts",)),
    ("touch: cannot touch '{root}/lib/deep/x': Read-only file system", ("lib/",)),
    ("fatal: Unable to create '{root}/.git/index.lock': Read-only file system", ()),
    ("OSError: [Errno 30] Read-only file system: 'b/index.ts'", ("b/index.ts",)),
    ("Error: EROFS: read-only file system, open 'sql/one.sql'", ("sql/*.sql",)),
    ("EROFS", ("a/index.ts", "b/index.ts", "lib/", "sql/*.sql")), ("a/index.ts is fine", ()),
]


def test_whose_file_it_was_is_said_of_that_file_alone(up: Repo) -> None:
    held = ("a/index.ts", "b/index.ts", "lib/", "sql/*.sql")
    with up.client() as client:
        client.call(rq.Register(agent="ann"))
        client.call(rq.Acquire(agent="ann", resources=list(held)))
    for n, (output, blamed) in enumerate(BLAMED):
        told = Claude(up, f"bob{n}").shell(f"echo {shlex.quote(output.format(root=up.root))} >&2")[0]
        assert tuple(name for name in held if f"{name} is leased by ann" in told) == blamed, (output, told)
        assert bool(told) == bool(blamed), output


def test_git_wide_commands_wait_for_a_quiet_tree(up: Repo) -> None:
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    up.write("held.py", "1\n")
    ann.edit("held.py", "2\n")
    for command in ("git stash", "git reset --hard", "git checkout -- .", "git add -A && git commit -qm x", "git clean -fd", "git switch main",
                    "git clean -fdx -e .env", "git clean -fdx -e.env"):
        told, code, _ = bob.shell(command)
        assert code == -1, command
        assert "whole working tree" in told and "held.py" in told
    up.write("d/kept.py", "1\n")
    ann.edit("d/kept.py", "2\n")
    for command in ("git clean -fd held.py", "git clean -fdx -e .env -- d", "git rm -r --cached ."):
        told, code, _ = bob.shell(command)
        assert code == -1 and "is leased by claude-code-ann" in told, (command, told)
    assert up.read("d/kept.py") == "2\n"
    ann.hook("SessionEnd")
    for row in up.client().call(rq.Locks()).items:
        up.client().call(rq.Release(agent=bob.name, resources=[row.resource]))
    assert bob.shell("git stash")[1] != -1
    assert held(up) == {}


def test_checkout_of_a_file_is_no_change_of_the_whole_tree(up: Repo) -> None:
    """Which it is, a file or a commit, git itself is asked."""
    up.write("held.py", "1\n")
    for name in ("free.md", "sub/x.md", "both", "gone.md"):
        up.write(name, "as committed\n")
    git(up, "add", "-A")
    git(up, "commit", "-qm", "start")
    for branch in ("topic", "both"):
        git(up, "branch", branch)
    git(up, "update-ref", "refs/remotes/origin/theirs", "HEAD")
    up.write("untracked/theirs", "")
    (up.root / "gone.md").unlink()
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    assert ann.edit("held.py", "2\n") == ""
    for command, file in (
        ("git checkout free.md", "free.md"), ("git checkout ./free.md", "free.md"), ("git checkout -q HEAD free.md", "free.md"),
        ("git checkout gone.md", "gone.md"), ("cd sub && git checkout x.md", "sub/x.md"), ("git -C sub checkout -q x.md", "sub/x.md"),
        ("git checkout sub", "sub/x.md"), ("git checkout free.md sub/x.md", "sub/x.md"),
        ("git checkout HEAD~0 -- free.md", "free.md"),
    ):
        if file != "gone.md":
            up.write(file, "mine\n")
        told, code, out = bob.shell(command)
        assert code == 0, (command, told, out)
        assert up.read(file) == "as committed\n", command
        assert set(held(up)) > {"held.py"}, "it is leased, as for an edit"
        bob.hook("SessionEnd")
    for command in ("git checkout held.py", "git checkout HEAD held.py", "cd sub && git checkout ../held.py", "git checkout free.md held.py",
                    "git -C sub checkout ../held.py"):
        told, code, _ = bob.shell(command)
        assert code == -1 and "held.py is leased by claude-code-ann" in told, (command, told)
    for command in ("git checkout topic", "git checkout both", "git checkout HEAD~0", "git checkout theirs", "git checkout nowhere", "git checkout -",
                    "git checkout .", "cd untracked && git checkout topic", "cd $HOME && git checkout free.md", "git --git-dir=.git checkout free.md",
                    "git checkout '*.md'", "git checkout :/free.md", "cd /tmp && git checkout free.md", "git checkout $x"):
        told, code, _ = bob.shell(command)
        assert code == -1 and "whole working tree" in told, (command, told)
    assert up.read("held.py") == "2\n"


def test_what_a_refused_git_command_advises_is_let_through(up: Repo) -> None:
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    up.write("held.py", "1\n")
    ann.edit("held.py", "2\n")
    up.write("own.py", "1\n")
    told, _, _ = bob.shell("git stash")
    advice = re.findall("`([^`]*FILE…)`", told)
    assert len(advice) == 5
    for command in advice:
        said, code, _ = bob.shell(command.replace("FILE…", "own.py").replace("-m …", "-m x"))
        assert code != -1, (command, said)
    assert "own.py" in held(up), "its lease is taken, as for an edit"
    told, code, _ = bob.shell("git stash push -- held.py")
    assert code == -1 and "leased by" in told


def test_a_change_that_got_through_is_a_violation(up: Repo) -> None:
    """Its holder replaces its file (temp and rename) while a command runs, which writes the new one."""
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    up.write("held.py", "held\n")
    ann.edit("held.py", "held\n")
    said = bob._call("Bash", {"command": "sleep 1; sh ./build.sh"})
    assert said.get("permissionDecision") != "deny"
    up.write("held.tmp", "replaced\n")
    (up.root / "held.tmp").rename(up.root / "held.py")
    up.write("held.py", "HACK\n")  # what the command did, then
    after = bob._call("Bash", {"command": "x"}, "PostToolUse", tool_response={})
    assert "held.py, held by claude-code-ann" in after["additionalContext"]
    with up.client() as client:
        (review,) = client.call(rq.Reviews()).items
        assert review.agent == bob.name
        shown = client.call(rq.ReviewShow(review=review.review))
        assert [file.path for file in shown.files] == ["held.py"]
    assert "changed held.py" in ann.hook("UserPromptSubmit", prompt="x")["additionalContext"]
    assert ann.hook("UserPromptSubmit", prompt="x") == {}  # once


def commanded(repo: Repo, session: str, command: str) -> str:
    """A command of Qwen Code; what its model is told after it."""
    quinn = Claude(repo, session, profile="qwen")
    given = {"command": command, "description": "x"}
    assert "updatedInput" not in quinn._call("run_shell_command", given)
    subprocess.run(["bash", "-c", command], cwd=repo.root, check=True)
    after = quinn._call("run_shell_command", given, "PostToolUse", tool_response={})
    return str(after.get("additionalContext", ""))


def test_what_changed_below_a_leased_directory_is_found(up: Repo) -> None:
    for name in ("old.py", "mine.py", "gone.py", "same.py"):
        up.write(f"lib/deep/{name}", f"{name}\n")
    up.write("lib/.gitignore", "*.log\n")
    written = (up.root / "lib/deep/same.py").stat().st_ctime
    until(lambda: time.time() > written + 1.1)  # what is older than the lease is not read again
    ann = Claude(up, "ann")
    with up.client() as client:
        client.call(rq.Acquire(agent=ann.name, resources=["lib/"]))
        assert ann.edit("lib/deep/mine.py", "ann's\n") == ""
        up.write("build.sh", "cd lib/deep; echo HACK > old.py; echo HACK > mine.py; echo HACK > new.py; rm gone.py\n"
                             "touch same.py; echo x > a.log\n")
        assert commanded(up, "quinn", "cat lib/deep/old.py") == ""
        said = commanded(up, "quinn", "sh ./build.sh")
        assert f"held by {ann.name}" in said
        (review,) = client.call(rq.Reviews()).items
        files = {file.path.removeprefix("lib/deep/"): file for file in review.files}
        assert {name: file.change for name, file in files.items()} == {
            "old.py": "modified", "mine.py": "modified", "new.py": "created", "gone.py": "deleted"}
        assert all(file.kept for file in files.values()), files
        assert commanded(up, "quinn", "sh -c true") == "", "it is told once"
        told = ann.hook("UserPromptSubmit", prompt="x")["additionalContext"]
        assert "A command of qwen-quinn changed lib/deep/" in told
        ann.hook("SessionEnd")
        client.call(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert up.read("lib/deep/old.py") == "old.py\n" and up.read("lib/deep/mine.py") == "ann's\n"
    assert up.read("lib/deep/gone.py") == "gone.py\n" and not (up.root / "lib/deep/new.py").exists()


def test_what_is_new_below_a_glob_and_in_an_absent_directory_is_found(up: Repo) -> None:
    up.write("d/old.sql", "old\n")
    up.write("d/other.txt", "other\n")
    ann = Claude(up, "ann")
    assert ann.shell("true")[1] == 0  # of one without hooks, what the watcher saw first would be taken for its own
    with up.client() as client:
        client.call(rq.Acquire(agent=ann.name, resources=["d/*.sql", "newd/", "absent.py"]))
        said = commanded(up, "quinn", "D=d; N=newd; mkdir $N; echo H > $D/new.sql; echo H > $D/new.txt; echo H > $N/x; "
                                      "echo H > $D/old.sql; A=absent; echo H > $A.py")
        assert f"held by {ann.name}" in said
        (review,) = client.call(rq.Reviews()).items
        assert {file.path: file.change for file in review.files} == {
            "d/new.sql": "created", "d/old.sql": "modified", "newd/x": "created", "absent.py": "created"}
        assert all(file.kept for file in review.files)
        assert commanded(up, "quinn", "sh -c true") == "", "it is told once"
        client.call(rq.ReviewDecide(review=review.review, verdict="keep"))
        assert ann.edit("d/mine.sql", "ann's\n") == ""
        commanded(up, "quinn", "sh -c true")
        assert not client.call(rq.Reviews()).items, "the holder's own writing is its own"


def test_what_the_holder_does_below_its_directory_is_its_own(up: Repo) -> None:
    up.write("lib/a.py", "a\n")
    ann, quinn = Claude(up, "ann"), Claude(up, "quinn", profile="qwen")
    with up.client() as client:
        client.call(rq.Acquire(agent=ann.name, resources=["lib/"]))
        given = {"command": "sh ./build.sh", "description": "x"}
        quinn._call("run_shell_command", given)
        assert ann.edit("lib/a.py", "ann's\n") == "" and ann.shell("echo more > lib/b.py")[1] == 0
        assert quinn._call("run_shell_command", given, "PostToolUse", tool_response={}) == {}
        quinn._call("run_shell_command", given)  # and when the lease has ended, it is everybody's
        ann.hook("SessionEnd")
        up.write("lib/a.py", "somebody's\n")
        assert quinn._call("run_shell_command", given, "PostToolUse", tool_response={}) == {}
        assert client.call(rq.Reviews()).items == []


def test_the_watcher_does_not_take_a_commands_writing_for_the_holders(up: Repo) -> None:
    """A long command: by its end the watcher has seen the file changed, and its lease is Ann's."""
    ann = Claude(up, "ann")
    up.write("held.py", "held\n")
    ann.edit("held.py", "held\n")
    hacked = digest(b"HACK\n")

    def seen() -> bool:
        db = apsw.Connection(str(up.state.database), flags=apsw.SQLITE_OPEN_READONLY)
        return bool(list(db.execute("SELECT 1 FROM file_versions WHERE hash = ?", (hacked,))))

    quinn = Claude(up, "quinn", profile="qwen")
    given = {"command": "sh ./build.sh", "description": "x"}
    quinn._call("run_shell_command", given)
    up.write("held.py", "HACK\n")
    assert until(seen, 30)
    after = quinn._call("run_shell_command", given, "PostToolUse", tool_response={})
    assert "held.py, held by claude-code-ann" in after["additionalContext"]


def test_a_write_on_replaced_content_is_refused_with_the_difference(up: Repo) -> None:
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    up.write("hot.py", "one\n")
    ann.read("hot.py")
    assert bob.edit("hot.py", "one\nBOB\n") == ""
    bob.hook("SessionEnd")
    why = ann.edit("hot.py", "one\nANN\n")
    assert "Your environment changed while you were thinking" in why
    assert "+BOB" in why and bob.name in why
    assert ann.edit("hot.py", "one\nBOB\nANN\n") == ""  # it knows now
    assert ann.edit("hot.py", "one\nBOB\nANN\n2\n") == ""  # its own writes are no news to it


def test_what_was_waited_for_is_told_once_with_what_changed(up: Repo) -> None:
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    up.write("hot.py", "one\n")
    bob.read("hot.py")
    ann.edit("hot.py", "one\ntwo\n")
    assert "leased by claude-code-ann" in bob.edit("hot.py", "x\n")
    ann.hook("SessionEnd")
    said = bob.hook("Stop", stop_hook_active=False)
    assert said["decision"] == "block"
    assert "You waited for hot.py" in said["reason"] and "+two" in said["reason"]
    assert bob.hook("Stop", stop_hook_active=True) == {}
    assert bob.edit("hot.py", "one\ntwo\nthree\n") == ""


@pytest.mark.parametrize("changes", [False, True])
def test_a_hook_may_hold_the_call_until_the_file_is_free(make_repo: Any, changes: bool) -> None:
    """And it passes then, unless it would wipe out what it has never read."""
    repo = make_repo(config="[hooks]\nwait_s = 20\n")
    repo.write("hot.py", "1\n")
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    ann.edit("hot.py", "1\nmore\n" if changes else "1\n")
    given = {"session_id": "bob", "cwd": str(repo.root), "hook_event_name": "PreToolUse", "tool_name": "Write",
             "tool_input": {"file_path": "hot.py", "content": "2"}}
    waiting = hook_beside(repo, given)
    with repo.client() as client:
        while not client.call(rq.Locks()).waiters:
            assert waiting.poll() is None
        ann.hook("SessionEnd")
    assert waiting.wait(30) == 0
    assert waiting.stdout is not None
    said = waiting.stdout.read()
    assert b"+more" in said and b'"deny"' in said if changes else said == b""
    assert held(repo) == {"hot.py": bob.name}


def hook_beside(repo: Repo, said: dict[str, Any]) -> subprocess.Popen[bytes]:
    """A hook that runs beside the test."""
    waiting = subprocess.Popen(
        [sys.executable, "-I", "-S", "-E", str(hook_file.__file__), str(repo.state.socket()), "claude-code", "closed", "60"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert waiting.stdin is not None
    waiting.stdin.write(json.dumps(said).encode())
    waiting.stdin.close()
    return waiting


def test_a_hook_that_is_killed_while_it_waits_is_granted_nothing_unheard(make_repo: Any) -> None:
    repo = make_repo(config="[hooks]\nwait_s = 20\n")
    repo.write("hot.py", "1\n")
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    ann.edit("hot.py", "1\nmore\n")
    given = {"session_id": "bob", "cwd": str(repo.root), "hook_event_name": "PreToolUse", "tool_name": "Write",
             "tool_input": {"file_path": "hot.py", "content": "2"}}
    waiting = hook_beside(repo, given)
    with repo.client() as client:
        until(lambda: client.call(rq.Locks()).waiters)
        waiting.kill()
        db = apsw.Connection(str(repo.state.database), flags=apsw.SQLITE_OPEN_READONLY)
        until(lambda: list(db.execute("SELECT held FROM waiters")) == [(0,)], 5)
        ann.hook("SessionEnd")
        until(lambda: client.call(rq.Locks()).items)
        (lease,) = client.call(rq.Locks()).items
        assert lease.locked_by == bob.name
        offered_s = (datetime.fromisoformat(lease.expires_at) - datetime.fromisoformat(lease.locked_at)).total_seconds()
        assert offered_s <= 120, "for two minutes, as whoever stands in line and does not wait"
    assert "You waited for hot.py" in json.dumps(bob.hook("UserPromptSubmit", prompt="go on"))


def test_a_hook_that_is_killed_while_it_waits_to_write_shuts_the_file_to_nobody(make_repo: Any) -> None:
    repo = make_repo(config="[hooks]\nwait_s = 20\n")
    repo.write("m.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    path = str(repo.root / "m.py")
    given = {"file_path": path, "old_string": "return 1", "new_string": "return 11"}
    assert bob._call("Edit", given) == {}, "it writes"
    said = {"session_id": "ann", "cwd": str(repo.root), "hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": {"file_path": path, "old_string": "return 2", "new_string": "return 22"}}
    waiting = hook_beside(repo, said)
    with repo.client() as client:
        until(lambda: client.call(rq.Locks()).waiters)
        waiting.kill()
        until(lambda: not client.call(rq.Locks()).waiters)
        repo.write("m.py", repo.read("m.py").replace("return 1", "return 11"))
        bob._call("Edit", given, "PostToolUse", tool_response={})
        until(lambda: not [one for one in client.call(rq.Locks()).items if one.resource.startswith("edit:")])
    more = {"file_path": path, "old_string": "return 11", "new_string": "return 111"}
    assert bob._call("Edit", more) == {}, "it is refused where it has waited"
    del ann


def test_unknown_events_and_tools_harm_nobody(up: Repo) -> None:
    ann = Claude(up, "ann")
    assert ann.hook("SomethingNew", payload={"a": [1]}) == {}
    assert ann._call("mcp__other__write", {"anything": 1}) == {}
    assert ann._call("FutureTool", {"file_path": "a.py"}) == {}
    with up.client() as client:
        client.call(rq.Health())


def test_the_socket_is_found_from_within(up: Repo, tmp_path_factory: pytest.TempPathFactory) -> None:
    (up.root / "deep/er").mkdir(parents=True)
    given = json.dumps({"session_id": "ann", "cwd": str(up.root / "deep/er"), "hook_event_name": "PreToolUse",
                        "tool_name": "Write", "tool_input": {"file_path": "x.py", "content": ""}}).encode()
    command = [sys.executable, "-I", "-S", "-E", str(hook_file.__file__), "-", "claude-code"]
    assert subprocess.run(command, input=given, cwd=up.root / "deep/er", env=BARE, check=False).returncode == 0
    assert held(up) == {"deep/er/x.py": "claude-code-ann"}
    elsewhere: Path = tmp_path_factory.mktemp("elsewhere")
    assert subprocess.run(command, input=given, cwd=elsewhere, env=BARE, check=False).returncode == 0


def test_gemini_and_copilot_speak_their_own_dialects(up: Repo) -> None:
    Claude(up, "ann").edit("a.py", "1\n")

    def call(profile: str, said: dict[str, Any]) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-E", str(hook_file.__file__), str(up.state.socket()), profile],
            input=json.dumps(said).encode(), capture_output=True, check=True, timeout=60, env=BARE)
        out: dict[str, Any] = json.loads(done.stdout or b"{}")
        return out

    said = call("gemini", {"session_id": "gem", "cwd": str(up.root), "hook_event_name": "BeforeTool",
                           "tool_name": "replace", "tool_input": {"file_path": "sub/../a.py", "old_string": "1"}})
    assert said["decision"] == "deny" and "claude-code-ann" in said["reason"]
    said = call("copilot:preToolUse", {"sessionId": "cop", "cwd": str(up.root), "toolName": "edit",
                                       "toolArgs": {"path": "a.py", "old_str": "1"}})
    assert said["permissionDecision"] == "deny"
    said = call("copilot:preToolUse", {"sessionId": "cop", "cwd": str(up.root), "toolName": "apply_patch",
                                       "toolArgs": "*** Begin Patch\n*** Update File: a.py\n*** End Patch"})
    assert said["permissionDecision"] == "deny"
    said = call("opencode:before", {"session_id": "ses_1", "cwd": str(up.root), "tool_name": "edit",
                                    "tool_input": {"filePath": "a.py"}})
    assert "claude-code-ann" in said["deny"]


def test_an_unhooked_profile_is_said_so(up: Repo) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-E", str(hook_file.__file__), str(up.state.socket()), "shell"],
        input=b"{}", capture_output=True, check=False, timeout=60, env=BARE)
    assert done.returncode == 2 and b"[hooks]" in done.stderr


def test_a_killed_coordinator_is_started_again_by_the_next_hook(up: Repo) -> None:
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    ann.edit("a.py", "1\n")
    before = up.pid()
    os.kill(before, 9)
    assert "claude-code-ann" in bob.edit("a.py", "2\n")  # its lease is still there
    assert up.pid() != before
    assert up.read("a.py") == "1\n"


def test_where_it_cannot_be_started_the_write_is_stopped(up: Repo) -> None:
    up.coord("down")
    (up.root / "coord.toml").write_text("[leases]\nttl_s = 'never'\n")
    given = json.dumps({"session_id": "ann", "cwd": str(up.root), "hook_event_name": "PreToolUse",
                        "tool_name": "Write", "tool_input": {"file_path": "x.py", "content": ""}}).encode()
    command = [sys.executable, "-I", "-S", "-E", str(hook_file.__file__), str(up.state.socket()), "claude-code", "closed", "4"]
    done = subprocess.run(command, input=given, capture_output=True, env={**BARE, "PATH": os.environ["PATH"]}, check=False)
    assert done.returncode == 2 and b"stopped" in done.stderr
    (up.root / "coord.toml").unlink()


def test_what_a_refusal_names_can_be_typed_as_it_stands(repo: Repo) -> None:
    """With `coord` on nobody's PATH; the shell of a session knows whose it is without being told."""
    bare = {"PATH": "/usr/bin:/bin"}
    repo.coord("up", env=bare)
    ann, bob = Claude(repo, "ann", env=bare), Claude(repo, "bob", env=bare)
    qwen = Claude(repo, "quinn", profile="qwen", env=bare)
    program = f"{repo.state.bin}/coord"
    with repo.client() as client:
        for title, file in (("One", "a.py"), ("Two", "b.py"), ("Three", "c.py")):
            client.call(rq.TaskAdd(title=title, resources=[file]))
        ann.hook("SessionStart")
        assert ann.shell(f"{program} task claim T-1")[1] == 0
        assert held(repo) == {"a.py": ann.name}
        ran = [bob.edit("a.py").split("`")[1]]
        assert ran == [f"{program} task claim T-2 --agent {bob.name}"]
        _, code, said = bob.shell(ran[0])
        assert code == 0 and held(repo) == {"a.py": ann.name, "b.py": bob.name}, said
        ran.append(said.split("next: ")[1].splitlines()[0])
        assert ran[1].startswith(f"{program} task done T-2")
        assert bob.shell(ran[1])[1] == 0
        assert client.call(rq.TaskShow(task="T-2")).state == "done"
        own = qwen._call("write_file", {"file_path": str(repo.root / "a.py"), "content": ""})
        typed = str(own["permissionDecisionReason"]).split("`")[1]
        code, _, errors = qwen.process.runs(typed)
        assert code == 0 and held(repo)["c.py"] == qwen.name, errors


def test_a_turn_may_be_all_that_a_lease_lasts(make_repo: Any) -> None:
    repo = make_repo(config="[hooks]\nkeep = 'turn'\n")
    with repo.client() as client:
        client.call(rq.Health())
        ann = Claude(repo, "ann")
        task = client.call(rq.TaskAdd(title="t", resources=["b.py"])).task
        ann.edit("a.py", "1\n")
        ann.hook("Stop")
        assert held(repo) == {}
        client.call(rq.TaskClaim(agent=ann.name, task=task))
        ann.edit("b.py", "1\n")
        ann.hook("Stop")
        assert held(repo) == {"b.py": ann.name}  # what belongs to a task stays with it


def test_what_is_handed_down_is_never_free_between(up: Repo) -> None:
    """Somebody waits for the file: a sub-agent's write does not give it away, nor does its end."""
    parent, sub, bob = Claude(up, "ann"), Claude(up, "ann", "s1"), Claude(up, "bob")
    parent.hook("SessionStart")
    with up.client() as client:
        task = client.call(rq.TaskAdd(title="t", resources=["hot.py"])).task
        client.call(rq.TaskClaim(agent=parent.name, task=task))
        assert bob.edit("hot.py", "x\n") != ""  # stands in line now
        assert sub.edit("hot.py", "1\n") == ""
        assert held(up) == {"hot.py": sub.name}
        sub.hook("SubagentStop")
        assert held(up) == {"hot.py": parent.name}
        client.call(rq.TaskDone(agent=parent.name, task=task))
    assert until(lambda: held(up) == {"hot.py": bob.name})


def test_a_linked_worktree_is_a_tree_of_its_own(up: Repo) -> None:
    git = ["git", "-c", "user.name=T", "-c", "user.email=t@localhost"]
    up.write("a.py", "1\n")
    for words in (["add", "a.py"], ["commit", "-qm", "x"], ["worktree", "add", "-q", "../linked"]):
        subprocess.run([*git, *words], cwd=up.root, check=True)
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    ann.edit("a.py", "2\n")
    given = {"command": "git add -A"}
    assert "permissionDecision" in bob.hook("PreToolUse", tool_name="Bash", tool_input=given, tool_use_id="1")
    there = str(up.root.parent / "linked")
    assert bob.hook("PreToolUse", tool_name="Bash", tool_input=given, tool_use_id="2", cwd=there) .get("permissionDecision") != "deny"
