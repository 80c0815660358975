"""A session that a person started by itself is known by its process: who types in it, and its end."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

import coordinator._hook as hook_file
from coordinator.client.client import Client
from coordinator.words import requests as rq
from tests.agent_process import AgentProcess
from tests.conftest import Repo
from tests.effort import crossed
from tests.waiting import until

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open") or not os.path.exists("/proc/self/stat"),
                                reason="processes are told apart on Linux only")

COORD = f"{shlex.quote(sys.executable)} -P -m coordinator.cli.main"


class Session:
    """One process of an agent's CLI, with hooks."""

    def __init__(self, repo: Repo, session: str, profile: str = "claude-code", program: str = sys.executable) -> None:
        self.repo, self.session, self.profile = repo, session, profile
        self.agent = AgentProcess(repo.root, {}, program)

    def runs(self, command: str) -> tuple[int, str, str]:
        return self.agent.runs(command)

    def hook(self, event: str, *, through: str = "", **more: Any) -> dict[str, Any]:
        """`through`: a program between the agent and its hook."""
        call = {"session_id": self.session, "cwd": str(self.repo.root), "hook_event_name": event,
                "permission_mode": "default", **more}
        words = [sys.executable, "-I", "-S", "-E", hook_file.__file__, str(self.repo.state.socket()), self.profile]
        hook = f"HOOK={shlex.quote(shlex.join(words))} {through}" if through else shlex.join(words)
        code, out, err = self.runs(f"printf %s {shlex.quote(json.dumps(call))} | {hook}")
        assert code == 0, err
        return json.loads(out) if out else {}

    def writes(self, path: str, **how: str) -> str:
        """What its edit tool's hook decides."""
        said = self.hook("PreToolUse", tool_name="Write", tool_use_id=path, tool_input={
            "file_path": str(self.repo.root / path), "content": ""}, **how)
        return str(said.get("hookSpecificOutput", {}).get("permissionDecision", ""))

    def begins(self) -> Session:
        self.hook("SessionStart", source="startup")
        return self


Begin = Callable[..., Session]


@pytest.fixture
def begin(repo: Repo) -> Begin:
    repo.coord("up")
    def make(session: str = "session-1", profile: str = "claude-code", program: str = sys.executable) -> Session:
        return Session(repo, session, profile, program)

    return make


def holders(repo: Repo) -> dict[str, str]:
    with Client(repo.root, agent="") as client:
        return {one.resource: one.locked_by for one in client.call(rq.Locks()).items}


def test_what_is_typed_in_a_session_is_its_agents(repo: Repo, begin: Begin) -> None:
    one, two = begin("session-1").begins(), begin("session-2").begins()
    for session, path in ((one, "a.py"), (two, "b.py")):
        code, _, err = session.runs(f"{COORD} lock {path}")
        assert code == 0, err
    assert holders(repo) == {"a.py": "claude-code-session1", "b.py": "claude-code-session2"}
    code, _, err = two.runs(f"(cd / && COORD_ROOT={shlex.quote(str(repo.root))} timeout 20 {COORD} unlock a.py)")
    assert code == 6 and "a.py" in err, "another's is another's"
    assert one.runs(f"{COORD} trust --yes")[0] != 0, "nor is it a person"
    done = repo.coord("lock", "c.py")
    assert done.returncode == 2 and "which agent" in done.stderr, "here nobody is known"


def test_a_killed_process_ends_its_session(repo: Repo, begin: Begin) -> None:
    (repo.root / "a.py").write_text("one\n")
    one = begin().begins()
    assert one.writes("a.py") != "deny"
    (repo.root / "a.py").write_text("half\n")
    assert holders(repo)
    one.agent.kill()
    until(lambda: not holders(repo), 5)
    with Client(repo.root, agent="") as client:
        assert not client.call(rq.Agents()).items
        assert [file.path for one in client.call(rq.Reviews()).items for file in one.files] == ["a.py"]


@pytest.mark.parametrize("last, kept", [
    ([("Stop", {})], False),
    ([("Stop", {}), ("UserPromptSubmit", {"prompt": "go on"})], True),
    ([("Stop", {}), ("PreToolUse", {"tool_name": "Write", "tool_use_id": "s1", "agent_id": "sub-1",
                                    "agent_type": "general", "tool_input": {"file_path": "b.py", "content": ""}})], True),
], ids=["rests", "works again", "a sub-agent works"])
def test_a_process_that_ends_at_rest_leaves_nothing_half_done(last: list[tuple[str, dict[str, Any]]], kept: bool, repo: Repo,
                                                             begin: Begin) -> None:
    """Some CLIs never say that their session ends: their last word is that the agent has stopped."""
    (repo.root / "a.py").write_text("one\n")
    one = begin(profile="qwen").begins()
    assert one.hook("PreToolUse", tool_name="write_file", tool_use_id="w1", tool_input={
        "file_path": str(repo.root / "a.py"), "content": "done\n"}).get("decision") != "block"
    (repo.root / "a.py").write_text("done\n")
    assert holders(repo)
    for event, more in last:
        one.hook(event, **more)
    assert holders(repo), "its person may speak again"
    one.agent.kill()
    until(lambda: not holders(repo), 5)
    with Client(repo.root, agent="") as client:
        assert not client.call(rq.Agents()).items
        assert bool(client.call(rq.Reviews()).items) == kept


def test_two_processes_that_go_on_with_one_session_are_two(repo: Repo, begin: Begin) -> None:
    one = begin().begins()
    assert one.writes("a.py") != "deny"
    two = begin().begins()
    assert two.writes("a.py") == "deny" and two.writes("b.py") != "deny"
    assert len(set(holders(repo).values())) == 2
    two.hook("SessionEnd", reason="exit")
    assert set(holders(repo)) == {"a.py"}, "the end of one is not the other's"
    assert one.writes("a.py") != "deny"
    one.agent.kill()
    until(lambda: not holders(repo), 5)
    assert begin().begins().writes("a.py") != "deny", "and who goes on with it later is the one"


@pytest.mark.parametrize(("how", "restarted"), crossed(["it said so", "killed"], [False, True]))
def test_the_second_process_of_a_session_stays_who_it_is_when_the_first_ends(how: str, restarted: bool, repo: Repo, begin: Begin) -> None:
    one = begin().begins()
    assert one.writes("a.py") != "deny"
    two = begin().begins()
    assert two.writes("b.py") != "deny" and two.writes("c.py") != "deny"
    (repo.root / "b.py").write_text("half\n")
    who = holders(repo)["b.py"]
    if restarted:
        os.kill(repo.pid(), signal.SIGKILL)
        repo.coord("up")
    if how == "killed":
        one.agent.kill()
    else:
        one.hook("SessionEnd", reason="exit")
    until(lambda: "a.py" not in holders(repo), 5)
    assert two.writes("b.py") != "deny" and two.writes("d.py") != "deny"
    assert set(holders(repo).values()) == {who}
    code, _, err = two.runs(f"{COORD} lock e.py")
    assert code == 0, err
    assert holders(repo)["e.py"] == who, "its shell is its own"
    two.hook("SessionEnd", reason="exit")
    assert not holders(repo)


def test_who_goes_on_with_a_session_whose_process_has_just_died_keeps_what_it_gets(repo: Repo, begin: Begin) -> None:
    """Also where the coordinator learns of the death as it starts, and looks at what was left first."""
    for number in range(300):
        (repo.root / f"f{number}").write_text("one\n")
    one = begin().begins()
    assert one.writes("a.py") != "deny"
    code, _, err = one.runs(f"{COORD} lock './'")
    assert code == 0, err
    os.kill(repo.pid(), signal.SIGKILL)
    one.agent.kill()
    two = begin().begins()  # its hook starts the next coordinator
    until(lambda: two.writes("new.py") != "deny", 10)
    (repo.root / "new.py").write_text("half\n")
    until(lambda: "./" not in holders(repo), 10)
    for _ in range(10):
        assert "new.py" in holders(repo)
        time.sleep(0.1)
    assert two.writes("new.py") != "deny"


def test_a_session_may_be_called_as_another_would_be(repo: Repo, begin: Begin) -> None:
    one, two = begin("x").begins(), begin("x")
    assert one.writes("a.py") != "deny"
    three = begin(f"x-{two.agent.process.pid}").begins()
    assert three.writes("b.py") != "deny"
    two.begins()
    assert two.writes("a.py") == "deny" == two.writes("b.py") and two.writes("c.py") != "deny"
    assert len(set(holders(repo).values())) == 3


FOR_PEOPLE = ("down", "down --all", "init --remove --yes", "guard remove", "shims remove", "unlock b.py --force --agent ann",
              "task done T-1 --force --agent ann", "task fail T-1 --force --agent ann", "task cancel T-1 --force",
              "review keep R-1", "review undo R-1", "request approve Q-1 --force --agent ann", "dead drop T-1")


def test_what_is_for_people_is_refused_in_a_session_that_a_person_has_started(repo: Repo, begin: Begin) -> None:
    with Client(repo.root, agent="bob") as bob:
        bob.acquire("b.py")
        one = begin(program="claude").begins()
        assert one.writes("a.py") != "deny"
        for command in FOR_PEOPLE:
            code, _, err = one.runs(f"{COORD} {command}")
            assert code != 0 and "for people" in err, command
        program = f"from coordinator.client.client import Client; Client({str(repo.root)!r}, agent='').shutdown()"
        code, _, err = one.runs(f"{shlex.quote(sys.executable)} -P -c {shlex.quote(program)}")
        assert code != 0 and "for people" in err
        assert holders(repo) == {"a.py": "claude-code-session1", "b.py": "bob"}
    code, _, err = one.runs(f"{COORD} task add 'an idea' && {COORD} lock c.py && {COORD} unlock c.py")
    assert code == 0, "what is for agents is theirs"


def test_a_person_who_types_hooks_by_hand_is_a_person(repo: Repo, begin: Begin) -> None:
    """What their hooks have come from is the terminal."""
    one = begin().begins()
    assert one.writes("a.py") != "deny"
    assert one.runs(f"{COORD} unlock a.py --force --agent claude-code-session1")[0] == 0
    assert one.runs(f"{COORD} down")[0] == 0


def test_a_process_that_only_ran_a_hook_is_no_session(repo: Repo, begin: Begin) -> None:
    """Whatever stands between an agent and its hooks, its leases do not end with that."""
    one = begin()
    between = shlex.join([sys.executable, "-c", "import os, sys; sys.exit(os.system(os.environ['HOOK']) and 1)"])
    for number in range(3):
        assert one.writes(f"f{number}", through=between) != "deny"
        repo.coord("status")
    assert set(holders(repo)) == {"f0", "f1", "f2"} and len(set(holders(repo).values())) == 1


def test_who_says_that_it_ends_has_ended_once(repo: Repo, begin: Begin) -> None:
    one = begin().begins()
    assert one.writes("a.py") != "deny"
    one.hook("SessionEnd", reason="clear")
    assert not holders(repo)
    assert one.begins().writes("a.py") != "deny", "the process goes on with a session of the same name"
    one.agent.kill()
    until(lambda: not holders(repo), 5)


def test_commits_in_a_session_are_its_agents(repo: Repo, begin: Begin) -> None:
    """Also of a CLI that says nothing of its session in the environment of its commands."""
    git = "git -c user.name=n -c user.email=e@x"
    repo.coord("guard", "install")
    for name in ("a.py", "b.py"):
        repo.write(name, "one\n")
    one, two = begin("session-1", "qwen").begins(), begin("session-2").begins()
    assert one.writes("a.py") != "deny" and two.writes("b.py") != "deny"
    code, _, err = one.runs(f"{git} add a.py && {git} commit -qm mine -- a.py")
    assert code == 0, err
    code, _, err = one.runs(f"{git} add b.py && {git} commit -qm theirs -- b.py")
    assert code == 1 and "held by claude-code-session2" in err
    code, _, err = one.runs(f"COORD_GUARD=off {git} commit -qm theirs -- b.py")
    assert code == 1, "only a person goes on over it"


@pytest.mark.parametrize("when", ["while none runs", "after the next has started", "at rest", "it said so"])
def test_a_session_that_ends_is_over_whatever_becomes_of_the_coordinator(when: str, repo: Repo, begin: Begin) -> None:
    (repo.root / "a.py").write_text("one\n")
    one = begin(profile="qwen").begins()
    one.hook("PreToolUse", tool_name="write_file", tool_use_id="w1", tool_input={
        "file_path": str(repo.root / "a.py"), "content": "half\n"})
    (repo.root / "a.py").write_text("half\n")
    assert holders(repo)
    if when == "at rest":
        one.hook("Stop")
    elif when == "it said so":
        one.hook("SessionEnd", reason="exit")
    os.kill(repo.pid(), signal.SIGKILL)
    if when != "after the next has started":
        one.agent.kill()
    repo.coord("up")
    if when == "after the next has started":
        assert holders(repo), "it goes on"
        one.agent.kill()
    until(lambda: not holders(repo), 5)
    with Client(repo.root, agent="") as client:
        assert not client.call(rq.Agents()).items
        reviews = [file.path for one in client.call(rq.Reviews()).items for file in one.files]
    assert reviews == ([] if when in ("at rest", "it said so") else ["a.py"])
    assert '"noted":[]' in (repo.state.path / "processes").read_text()


@pytest.mark.parametrize(("how", "what"), [
    ("down", "./"), ("killed", "a.py"), *(pytest.param(*one, marks=pytest.mark.slow) for one in (("down", "a.py"), ("killed", "./")))])
def test_what_a_person_saved_while_no_coordinator_ran_is_not_overwritten(how: str, what: str, repo: Repo, begin: Begin) -> None:
    (repo.root / "a.py").write_text("one\n")
    one = begin().begins()
    assert one.runs(f"{COORD} lock {what}")[0] == 0
    assert one.writes("a.py") != "deny"
    (repo.root / "a.py").write_text("")
    one.hook("PostToolUse", tool_name="Write", tool_use_id="a.py", tool_response={}, tool_input={
        "file_path": str(repo.root / "a.py"), "content": ""})
    pid = repo.pid()
    if how == "down":
        repo.down()
    else:
        os.kill(pid, signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{pid}"))
    with (repo.root / "a.py").open("a") as file:
        file.write("a person's line\n")
    assert one.writes("a.py") == "deny", "its own hook starts the next"
    one.hook("PostToolUse", tool_name="Read", tool_use_id="r", tool_response={}, tool_input={"file_path": str(repo.root / "a.py")})
    assert one.writes("a.py") != "deny", "it has read what the person left"
    (repo.root / "a.py").write_text("")
    one.hook("PostToolUse", tool_name="Write", tool_use_id="a.py", tool_response={}, tool_input={
        "file_path": str(repo.root / "a.py"), "content": ""})
    repo.down()
    assert one.writes("a.py") != "deny", "nothing was written meanwhile"


@pytest.mark.parametrize("profile", ["claude-code", "qwen", "gemini"])
@pytest.mark.parametrize("event", [None, ("SessionStart", {"source": "clear"}), ("SessionStart", {"source": "resume"})])
def test_a_new_id_in_the_same_process_is_the_same_session(repo: Repo, begin: Begin, profile: str, event: tuple[str, dict[str, Any]] | None) -> None:
    """`/clear` and `/new`, where the CLI does not report the former session's end: it keeps what it has."""
    one = begin("session-1", profile).begins()
    writes = ("BeforeTool", "write_file") if profile == "gemini" else ("PreToolUse", "write_file" if profile == "qwen" else "Write")

    def refused(session: Session) -> bool:
        said = session.hook(writes[0], tool_name=writes[1], tool_use_id="x", tool_input={"file_path": str(repo.root / "a.py"), "content": "2\n"})
        return "deny" in json.dumps(said)

    assert not refused(one)
    one.hook("AfterAgent" if profile == "gemini" else "Stop", stop_hook_active=False)
    one.session = "session-2"
    if event is not None:
        one.hook(event[0], **event[1])
    assert not refused(one)
    assert holders(repo) == {"a.py": f"{profile}-session1"}
    other = begin("session-3", profile).begins()
    assert refused(other), "another process is another"
    other.hook("SessionEnd", reason="exit")
    # Where the end was reported, the new one begins with nothing.
    one.hook("SessionEnd", reason="clear")
    assert not holders(repo)
    one.session = "session-4"
    assert not refused(one) and holders(repo) == {"a.py": f"{profile}-session4"}


def test_a_process_of_several_sessions_keeps_them_apart(repo: Repo, begin: Begin) -> None:
    """As an app server has them."""
    one = begin("session-1", "codex").begins()
    call = {"tool_name": "apply_patch", "tool_use_id": "x", "tool_input": {"command": "*** Begin Patch\n*** Add File: a.py\n+1\n*** End Patch"}}
    assert "deny" not in json.dumps(one.hook("PreToolUse", **call))
    one.session = "session-2"
    assert "deny" in json.dumps(one.hook("PreToolUse", **call))
