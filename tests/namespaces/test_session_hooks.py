"""The hooks of an agent in a session of its own: no command of it is rewritten."""

from __future__ import annotations

import json
from typing import Any

import coordinator._hook as hook_file
from tests.namespaces.conftest import ONCE, Agent, Stand
from tests.waiting import until


def asked(stand: Stand, agent: Agent, event: str, **more: Any) -> dict[str, Any]:
    """What the hook prints for a call, run as the agent's CLI runs it."""
    said = {"session_id": "s-1", "cwd": str(stand.root), "hook_event_name": event, "permission_mode": "default", **more}
    stand.write("call.json", json.dumps(said))
    assert agent.does(f'"{stand.python}" -I -S -E "{hook_file.__file__}" "$COORD_SOCKET" claude-code < call.json') == 0
    return json.loads(agent.said[0]) if agent.said else {}


def test_a_command_is_left_as_it_is_and_still_cannot_write_what_others_hold(stand: Stand) -> None:
    stand.write("a.py", "one\n")
    stand.write("b.py", "one\n")
    stand.coord("lock", "a.py", "--agent", "ann")
    agent = stand.agent()
    asked(stand, agent, "SessionStart", source="startup")
    for sub in ({}, {"agent_id": "sub-1", "agent_type": "general-purpose"}):
        for command in ("D=.; echo H > $D/a.py", "git commit -q -m x -- b.py", "coord lock c.py --agent me"):
            call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"t{len(sub)}{command[:3]}", **sub}
            answer = asked(stand, agent, "PreToolUse", **call)
            assert "updatedInput" not in json.dumps(answer), answer
            asked(stand, agent, "PostToolUse", **call, tool_response={"stdout": "", "stderr": ""})
    assert agent.does("D=.; echo H > $D/a.py") != 0 and stand.read("a.py") == "one\n"
    assert not stand.asks("review", "list")["items"], "nothing was changed, nothing is blamed on it"


def test_what_no_mount_covers_is_found_after_the_command(stand: Stand) -> None:
    """Another name of the file that was there before, a descriptor that was open. The holder is told of either."""
    holder, agent = stand.agent(), stand.agent()
    asked(stand, holder, "SessionStart", source="startup", session_id="s-2")
    asked(stand, agent, "SessionStart", source="startup")

    def holder_knows(why: str, event: str = "UserPromptSubmit", **more: Any) -> bool:
        return f"not kept from commands of other agents ({why})" in json.dumps(
            asked(stand, holder, event, session_id="s-2", **more))

    for before, way, why in (("ln a.py link", "D=link; echo H >> $D", "it has another name, a hard link"),
                             ("rm link; exec 3>> a.py", "echo H >&3", "a program has it open for writing")):
        stand.write("a.py", "one\n")
        assert agent.does(before) == 0
        edit = {"tool_name": "Write", "tool_use_id": f"w {why}",
                "tool_input": {"file_path": str(stand.root / "a.py"), "content": "one\n"}}
        asked(stand, holder, "PreToolUse", session_id="s-2", **edit)
        told = holder_knows(why, "PostToolUse", **edit, tool_response={})
        until(lambda why=why, told=told: told or holder_knows(why, prompt="x"))  # type: ignore[misc]
        assert not holder_knows(why, prompt="x"), "it is told once"
        call = {"tool_name": "Bash", "tool_input": {"command": way}, "tool_use_id": "t"}
        asked(stand, agent, "PreToolUse", **call)
        assert agent.does(way) == 0 and stand.read("a.py") == "one\nH\n"
        asked(stand, agent, "PostToolUse", **call, tool_response={"stdout": "", "stderr": ""})
        reviews = stand.asks("review", "list")["items"]
        assert [one["files"][0]["path"] for one in reviews] == ["a.py"], way
        stand.coord("review", "keep", reviews[0]["review"])
        assert holder.does("coord unlock a.py") == 0


def test_a_grant_says_what_it_does_not_keep_from_others(stand: Stand) -> None:
    """In its own answer: whoever asked for it need not look for messages."""
    holder, agent = stand.agent(), stand.agent()
    stand.write("lib/in.py", "one\n")
    stand.write("a.py", "one\n")
    stand.write("b.py", "one\n")

    def warned(name: str) -> list[str]:
        assert holder.does(f"coord lock {name} --json > answer.json") == 0
        warnings: list[str] = json.loads(stand.read("answer.json"))["warnings"]
        assert holder.does(f"coord unlock {name}") == 0
        return warnings

    for before, name, why in (("ln a.py link", "a.py", "it has another name, a hard link"),
                              ("rm link; exec 3>> a.py", "a.py", "a program has it open for writing"),
                              ("exec 3>&-; cd lib", "lib/", "a program of theirs works in it")):
        assert agent.does(before) == 0
        [said] = warned(name)
        assert said.startswith(f"{name.rstrip('/')}, which you hold, is not kept") and why in said
    assert agent.does("cd ..") == 0
    assert warned("lib/") == warned("a.py") == warned("b.py") == []
    assert holder.does("cd lib && coord lock lib/") == 0, "its own programs are no gap"
    assert "not kept" not in stand.read("answer.json") and "not kept" not in holder.said


@ONCE
def test_an_edit_takes_its_lease_in_every_session_at_once(stand: Stand) -> None:
    stand.write("a.py", "one\n")
    one, two = stand.agent(), stand.agent()
    asked(stand, one, "SessionStart", source="startup")
    edit = {"tool_name": "Write", "tool_input": {"file_path": str(stand.root / "a.py"), "content": "two\n"}, "tool_use_id": "e"}
    answer = asked(stand, one, "PreToolUse", **edit)
    assert answer.get("hookSpecificOutput", {}).get("permissionDecision") != "deny", answer
    assert two.does("echo H >> a.py") != 0
    assert one.does("echo two > a.py") == 0 and stand.read("a.py") == "two\n"
    answer = asked(stand, two, "PreToolUse", **edit)
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


@ONCE
def test_a_sub_agent_commits_its_own_work(stand: Stand) -> None:
    """Its commands are not signed, for they are not rewritten."""
    stand.run("git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "first")
    stand.coord("guard", "install")
    stand.write("a.py", "one\n")
    agent = stand.agent()
    asked(stand, agent, "SessionStart", source="startup")
    asked(stand, agent, "PreToolUse", agent_id="sub-1", agent_type="general-purpose", tool_name="Write", tool_use_id="e",
          tool_input={"file_path": str(stand.root / "a.py"), "content": "two\n"})
    commit = "git add a.py && git -c user.name=x -c user.email=x@x commit -q -m mine -- a.py 2>&1"
    assert agent.does(commit) != 0, "of the whole, while the sub-agent is at it"
    asked(stand, agent, "PreToolUse", agent_id="sub-1", agent_type="general-purpose", tool_name="Bash", tool_use_id="c",
          tool_input={"command": commit})
    assert agent.does(commit) == 0, agent.said
    other = stand.agent()
    assert other.does("git rm -q --cached a.py && git -c user.name=x -c user.email=x@x commit -q -m theirs 2>&1") != 0


@ONCE
def test_of_a_file_with_several_holders_each_writes_in_its_own_edit(stand: Stand) -> None:
    """Nobody can mount half of a file: commands of all find it read-only, but while an edit of theirs is in the middle."""
    text = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    stand.write("a.py", text)
    one, two = stand.agent(), stand.agent()

    def edit(agent: Agent, moment: str, old: str, new: str) -> dict[str, Any]:
        return asked(stand, agent, moment, tool_name="Edit", tool_use_id=old, tool_response={},
                     tool_input={"file_path": str(stand.root / "a.py"), "old_string": old, "new_string": new})

    asked(stand, one, "SessionStart", source="startup")
    asked(stand, two, "SessionStart", source="startup")
    assert edit(one, "PreToolUse", "return 1", "return 10") == {}
    assert two.does("D=.; echo H >> $D/a.py") != 0
    assert one.does("sed 's/return 1/return 10/' a.py > new && cat new > a.py") == 0
    edit(one, "PostToolUse", "return 1", "return 10")
    assert edit(two, "PreToolUse", "return 2", "return 20") == {}
    assert one.does("D=.; echo H >> $D/a.py") != 0, "the other is at it"
    assert two.does("sed 's/return 2/return 20/' a.py > new2 && cat new2 > a.py") == 0
    edit(two, "PostToolUse", "return 2", "return 20")
    for agent in (one, two):
        assert agent.does("D=.; echo H >> $D/a.py") != 0, "a command is no edit of a region"
    assert stand.read("a.py") == text.replace("1", "10").replace("2", "20")
    assert stand.asks("review", "list")["items"] == []


@ONCE
def test_a_file_that_is_shared_by_agreement_is_written_in_both_sessions_and_in_no_other(stand: Stand) -> None:
    stand.write("a.py", "one\n")
    one, two, third = stand.agent(), stand.agent(), stand.agent()
    assert one.does("coord lock a.py") == 0 and two.does("echo H >> a.py") != 0
    assert two.does("coord request file a.py -m please") == 0 and one.does("coord request coexist U-1") == 0, one.said
    assert one.does("echo two >> a.py") == 0 and two.does("echo three >> a.py") == 0
    assert third.does("echo H >> a.py") != 0 and stand.read("a.py") == "one\ntwo\nthree\n"
    asked(stand, two, "SessionStart", source="startup")
    edit = {"tool_name": "Write", "tool_input": {"file_path": str(stand.root / "a.py"), "content": "four\n"}, "tool_use_id": "e"}
    asked(stand, two, "PreToolUse", tool_name="Read", tool_input={"file_path": str(stand.root / "a.py")}, tool_use_id="r")
    asked(stand, two, "PostToolUse", tool_name="Read", tool_input={"file_path": str(stand.root / "a.py")}, tool_use_id="r", tool_response={})
    answer = asked(stand, two, "PreToolUse", **edit)
    assert answer.get("hookSpecificOutput", {}).get("permissionDecision") != "deny", answer
    assert one.does("echo H >> a.py") != 0, "while an edit of it is in the middle, it is its own alone"
    assert two.does("echo four > a.py") == 0
    asked(stand, two, "PostToolUse", **edit, tool_response={})
    assert one.does("echo five >> a.py") == 0 and stand.read("a.py") == "four\nfive\n"
    assert one.does("coord unlock a.py") == 0
    assert one.does("echo H >> a.py") != 0 and two.does("echo six >> a.py") == 0


@ONCE
def test_a_session_that_ends_after_its_turn_leaves_nothing_to_look_at(stand: Stand) -> None:
    """Several CLIs report the end of a turn, and no end of the session. Who ends at work is looked at."""
    for turn_ends in (True, False):
        agent = stand.agent()
        asked(stand, agent, "SessionStart", source="startup")
        edit = {"tool_name": "Write", "tool_use_id": "w", "tool_input": {"file_path": str(stand.root / "mine.txt"), "content": "mine\n"}}
        asked(stand, agent, "PreToolUse", **edit)
        stand.write("mine.txt", f"mine {turn_ends}\n")
        asked(stand, agent, "PostToolUse", **edit, tool_response={})
        if turn_ends:
            asked(stand, agent, "Stop")
        agent.ends()
        until(lambda: not stand.asks("locks")["items"])
        assert bool(stand.asks("review", "list")["items"]) is not turn_ends
