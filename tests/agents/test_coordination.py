"""Real agents through coord: wired by `coord init`, unmodified, at work in one repository."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from coordinator.profiles import profiles
from coordinator.words import requests as rq
from tests.agents.clis import Extra
from tests.agents.conftest import need
from tests.agents.conversation import (
    Create,
    Edit,
    Read,
    Result,
    Say,
    Script,
    Scripted,
    Shell,
    Use,
)
from tests.agents.wired import PROFILES, Wired
from tests.waiting import until

pytestmark = pytest.mark.agents

AGENTS = ["claude", "codex", "gemini", "opencode", "copilot"]


@pytest.mark.parametrize("agent", AGENTS)
def test_what_another_holds_is_refused_and_the_model_is_told(agent: str, wired: Wired) -> None:
    need(agent)
    (wired.root / "context_archive").mkdir()
    (wired.root / "context_archive/notes.md").write_text(
        "# Notes\n\n## Why the notes are ordered\n\n`notes.txt` is read by the importer, line by line.\n")
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    heard: dict[str, Result] = {}
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="reordering them"))
        client.call(rq.TaskAdd(title="Add the sum", resources=["lib/sum.py"]))

        def script(_: Scripted) -> Script:
            yield Read("notes.txt")
            heard["edit"] = yield Edit("notes.txt", "second line", "HACK")
            heard["free"] = yield Create("free.txt", "free\n")
            heard["shell"] = yield Shell("f=notes.txt; echo HACK > $f; echo via shell > shell.txt")
            heard["obvious"] = yield Shell("sed -i s/second/HACK/ notes.txt")
            heard["stash"] = yield Shell("git stash")
            yield Say("done")

        ran = wired.run_in_session(agent, script)
        assert ran.code == 0, ran.tail()
        assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n", ran.tail()
        assert wired.read("free.txt") == "free\n"
        assert wired.read("shell.txt") == "via shell\n"
        said = heard["edit"].text
        assert "ann" in said and "reordering them" in said, said
        assert "Why the notes are ordered" in said
        assert "Add the sum" in said
        assert "read-only file system" in heard["shell"].text.lower()
        assert "ann" in heard["obvious"].text
        assert "whole working tree" in heard["stash"].text
        holders = {one.agent for one in client.call(rq.Agents(all=True)).items}
        assert any(name.startswith(PROFILES[agent]) for name in holders), holders
        left = [(one.resource, one.locked_by) for one in client.call(rq.Locks()).items]
        assert left == [("notes.txt", "ann")]  # its session has ended


IN_LIB = {
    "codex": ("exec_command", "cmd", "workdir"), "gemini": ("run_shell_command", "command", "dir_path"),
    "qwen": ("run_shell_command", "command", "directory"), "opencode": ("bash", "command", "workdir"),
}


@pytest.mark.parametrize("agent", IN_LIB)
def test_a_command_whose_call_names_another_directory_is_asked_about_there(agent: str, wired: Wired) -> None:
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    tool, command, folder = IN_LIB[agent]
    heard: dict[str, Result] = {}

    def in_lib(text: str) -> Use:
        return Use(tool, {command: text, folder: f"{wired.root}/lib", "description": "As scripted", "is_background": False})

    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["lib/sum.py"], description="making it add"))
        held: list[str] = []

        def script(_: Scripted) -> Script:
            heard["held"] = yield in_lib("echo HACK > sum.py")
            heard["free"] = yield in_lib("echo free > free.py")
            held.extend(one.resource for one in client.call(rq.Locks()).items)
            yield Say("done")

        ran = wired.run_in_session(agent, script)
        assert ran.code == 0, ran.tail()
        assert "ann" in heard["held"].text and "making it add" in heard["held"].text, heard["held"].text
        assert "HACK" not in wired.read("lib/sum.py") and wired.read("lib/free.py") == "free\n", heard["free"].text
        assert sorted(held) == ["lib/free.py", "lib/sum.py"], held


def typed(pattern: str, result: Result) -> Shell:
    """The very command that the model was told to type, typed."""
    found = re.search(pattern, result.text)
    assert found, result.text
    return Shell(found[1])


@pytest.mark.parametrize("agent", AGENTS)
def test_two_agents_one_hot_file(agent: str, wired: Wired) -> None:
    """The first has claimed a task that needs the file. The second is refused it with the holder,
    the reason, the archive and a task; it takes that task by the command that it was told, does and
    finishes it; is told when the file is free, and writes on what the first has made of it.
    `coord` is on neither's PATH, and nothing but their hooks says who they are."""
    need(agent)
    (wired.root / "context_archive").mkdir()
    (wired.root / "context_archive/notes.md").write_text(
        "# Notes\n\n## Why the notes are ordered\n\n`notes.txt` is read by the importer, line by line.\n")
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    heard: dict[str, Result] = {}
    claimed: dict[str, str] = {}
    with wired.client() as client:
        client.call(rq.TaskAdd(title="Mend the first line", resources=["notes.txt"]))
        client.call(rq.TaskAdd(title="Correct the sum", prompt="It subtracts.", resources=["lib/sum.py"]))

        def state(task: str) -> str:
            return str(client.call(rq.TaskShow(task=task)).state)

        def first(_: Scripted) -> Script:
            heard["first claims"] = yield Shell(f"'{wired.root}/.coord/bin/coord' task claim T-1")
            claimed["T-1"] = str(client.call(rq.TaskShow(task="T-1")).claimed_by)
            until(lambda: "second task" in heard, 90)
            yield Read("notes.txt")
            yield Edit("notes.txt", "first line", "a first line")
            heard["first done"] = yield typed(r"next: (.*coord'? task done T-1.*)", heard["first claims"])
            yield Say("done")

        def second(_: Scripted) -> Script:
            until(lambda: "T-1" in claimed, 90)
            yield Read("notes.txt")
            heard["refused"] = yield Edit("notes.txt", "second line", "a second line")
            heard["claims"] = yield typed(r"`([^`]*coord'? task claim [^`]+)`", heard["refused"])
            claimed["T-2"] = str(client.call(rq.TaskShow(task="T-2")).claimed_by)
            yield Read("lib/sum.py")
            yield Edit("lib/sum.py", "    return a - b", "    return a + b")
            heard["second task"] = yield typed(r"next: (.*coord'? task done T-2.*)", heard["claims"])
            until(lambda: state("T-1") == "done", 90)
            heard["told"] = yield Shell("echo on with it")
            heard["fresh"] = yield Read("notes.txt")
            heard["edit"] = yield Edit("notes.txt", "second line", "a second line")
            if "a second line" not in wired.read("notes.txt"):  # some must be told to look first
                heard["again"] = yield Edit("notes.txt", "second line", "a second line")
            yield Say("done")

        one = wired.stand.start(agent, wired.root, first, extra=wired.extra(agent))
        two = wired.run(agent, second)
        ran = one.wait()
        assert (ran.code, two.code) == (0, 0), ran.tail() + two.tail()
        said = heard["refused"].text
        assert f'leased by {claimed["T-1"]} for T-1 ("Mend the first line")' in said, said
        assert "Why the notes are ordered" in said
        assert "It subtracts." in heard["claims"].text
        assert (state("T-1"), state("T-2")) == ("done", "done"), heard
        hooked = {who.agent for who in client.call(rq.Agents(all=True)).items if who.hooked_at}
        assert len(set(claimed.values())) == 2 and set(claimed.values()) <= hooked, (claimed, hooked)
        assert "return a + b" in wired.read("lib/sum.py")
        assert wired.read("notes.txt") == "a first line\na second line\nthird line\n", heard
        told = "\n".join(result.text + str(result) for result in heard.values())
        assert "You waited for notes.txt" in told, told
        assert client.call(rq.Reviews()).items == []


@pytest.mark.parametrize("agent", AGENTS)
def test_no_command_changes_what_another_holds(agent: str, wired: Wired) -> None:
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    heard: list[Result] = []
    commands = (
        "echo HACK > notes.txt", "python3 -c \"open('notes.txt','w').write('HACK')\"",
        "sed -i s/line/HACK/ notes.txt", "git mv notes.txt moved.txt", "git checkout -- notes.txt",
        "git stash", "n=notes; echo HACK > $n.txt", "find . -name 'notes.txt' -exec rm {} +",
    )
    with wired.client() as client:
        (wired.root / "notes.txt").write_text("not committed\n")
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="rewriting it"))

        def script(_: Scripted) -> Script:
            for command in commands:
                heard.append((yield Shell(command)))
            yield Say("done")

        ran = wired.run_in_session(agent, script)
        assert ran.code == 0, ran.tail()
    assert wired.read("notes.txt") == "not committed\n"
    for command, result in zip(commands, heard, strict=True):
        assert "ann" in result.text or "read-only" in result.text.lower() or "busy" in result.text, (
            command, result.text)


#: A person's own rule that no command may remove files, as each agent has it.
NO_RM = {
    "claude": Extra(home_files={".claude/settings.json": json.dumps({"permissions": {"deny": ["Bash(rm:*)"]}})}),
    "codex": Extra(home_files={".codex/rules/default.rules": 'prefix_rule(pattern=["rm"], decision="forbidden")\n'}),
    "copilot": Extra(argv=("--deny-tool=shell(rm:*)",)),
    "opencode": Extra(env={"OPENCODE_PERMISSION": json.dumps({"bash": {"*": "allow", "rm *": "deny"}})}),
}


def test_the_commands_of_claude_as_a_person_types_it_are_kept_too(wired: Wired) -> None:
    """By the program that it puts before them itself; what it calls its commands is as it always was."""
    need("claude")
    wired.coord("init", "--agent", "claude-code", "--yes")
    heard: list[Result] = []
    commands = ("f=notes.txt; echo HACK > $f; echo via shell > shell.txt", "cd lib && pwd", "pwd; echo $SHLVL", "sh -c 'exit 7'",
                "rm ../shell.txt", "timeout 20 bash -c 'git stash'")
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="reordering them"))

        def script(_: Scripted) -> Script:
            for command in commands:
                heard.append((yield Shell(command)))
            yield Say("done")

        ran = wired.run("claude", script, more=NO_RM["claude"])
        assert ran.code == 0, ran.tail()
        assert client.call(rq.Reviews()).items == []
    assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n" and wired.read("shell.txt") == "via shell\n"
    assert "read-only file system" in heard[0].text.lower() and "ann" in str(heard[0])
    assert heard[2].text.startswith(f"{wired.root}/lib"), heard[2]
    assert "Exit code 7" in heard[3].text and "denied" in heard[4].text
    assert "whole working tree" in heard[5].text, heard[5]


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "claude"])
def test_what_a_command_of_a_session_that_was_typed_changes_is_found(agent: str, wired: Wired) -> None:
    """Nothing is rewritten, so nothing keeps it; both contents are, and a person is told."""
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt", "lib/"], description="reordering them"))

        def script(_: Scripted) -> Script:
            yield Shell("n=notes.txt; d=lib; echo HACK > $n; echo HACK > $d/sum.py")
            yield Create("free.txt", "free\n")
            yield Say("done")

        ran = wired.run(agent, script)
        assert ran.code == 0, ran.tail()
        (review,) = client.call(rq.Reviews()).items
        shown = client.call(rq.ReviewShow(review=review.review))
        assert [file.path for file in shown.files] == ["lib/sum.py", "notes.txt"]
        assert "held by ann" in shown.summary


@pytest.mark.parametrize("agent", sorted(NO_RM))
@pytest.mark.parametrize("how", ["typed", "in a session"])
def test_a_persons_own_rules_hold_whatever_others_hold(agent: str, how: str, wired: Wired) -> None:
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    (wired.root / "free.txt").write_text("free\n")
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="reordering them"))

        def script(_: Scripted) -> Script:
            yield Shell("echo one > allowed.txt")
            yield Shell("rm free.txt")
            yield Say("done")

        run = wired.run if how == "typed" else wired.run_in_session
        ran = run(agent, script, more=NO_RM[agent])
        assert wired.read("allowed.txt") == "one\n", ran.tail()
        assert wired.read("free.txt") == "free\n", ran.tail()


@pytest.mark.parametrize("agent", AGENTS)
def test_a_killed_coordinator_lets_nothing_through(agent: str, wired: Wired) -> None:
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="rewriting it"))

    def script(_: Scripted) -> Script:
        yield Read("notes.txt")
        os.kill(int((wired.root / ".coord/daemon.lock").read_text()), 9)
        yield Edit("notes.txt", "second line", "HACK")
        yield Edit("notes.txt", "second line", "HACK")
        yield Edit("lib/sum.py", "    return a - b", "    return a + b")
        yield Say("done")

    ran = wired.run(agent, script)
    assert ran.code == 0, ran.tail()
    assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n"
    with wired.client() as client:
        assert [one.locked_by for one in client.call(rq.Locks(resource="notes.txt")).items] == ["ann"]


@pytest.mark.parametrize("agent", AGENTS)
def test_where_no_coordinator_can_be_had_nothing_is_written(agent: str, wired: Wired) -> None:
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    wired.coord("down")
    (wired.root / "coord.toml").write_text("[leases]\nttl_s = 'never'\n")
    heard: dict[str, Result] = {}

    def script(_: Scripted) -> Script:
        yield Read("notes.txt")
        heard["edit"] = yield Edit("notes.txt", "second line", "HACK")
        heard["shell"] = yield Shell("n=notes.txt; echo HACK > $n")
        yield Say("done")

    try:
        wired.run(agent, script)
        assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n"
        assert "coord" in heard["edit"].text
    finally:
        (wired.root / "coord.toml").unlink()


@pytest.mark.parametrize("lost", ["hook", "python"])
@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "copilot", "qwen"])
def test_a_hook_that_cannot_run_stops_the_write(agent: str, lost: str, wired: Wired) -> None:
    """As after `pip uninstall coord`, or `uv tool uninstall coord`."""
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    (settings,) = [wired.root / entry.file for entry in next(one for one in profiles(wired.root) if one.name == PROFILES[agent]).wire if any(piece.at[:1] == ("hooks",) for piece in entry.add)]
    text = settings.read_text()
    gone = text.replace("/_hook.py", "/moved_away.py") if lost == "hook" else text.replace(f"{shlex.quote(sys.executable)} ", "/nowhere/bin/python ")
    assert gone != text
    settings.write_text(gone)
    heard: dict[str, Result] = {}

    def script(_: Scripted) -> Script:
        heard["read"] = yield Read("notes.txt")
        heard["edit"] = yield Create("notes.txt", "HACK")
        heard["shell"] = yield Shell("n=notes.txt; echo HACK > $n")
        yield Say("done")

    wired.run(agent, script)
    assert heard and wired.read("notes.txt") == "first line\nsecond line\nthird line\n", heard
    assert "coord" in heard["edit"].text or agent == "claude", heard


def test_broken_wiring_is_not_launched(wired: Wired) -> None:
    """Codex lets a call through whose hook cannot run: it is not started with such a one."""
    need("codex")
    wired.coord("init", "--agent", "codex", "--yes")
    hooks = wired.root / ".codex/hooks.json"
    hooks.write_text(hooks.read_text().replace("/_hook.py", "/moved_away.py"))
    ready = wired.stand.prepare("codex", wired.root, [])
    env = {k: v for k, v in ready.env.items() if not k.startswith("COORD_")}
    done = subprocess.run([sys.executable, "-m", "coordinator.cli.main", "launch", "-", "--agent", "codex"],
                          cwd=wired.root, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "coord init --agent codex" in done.stderr


def test_codex_has_no_terminal_that_hooks_do_not_see(wired: Wired) -> None:
    """Text typed into a shell that runs already fires no hook: so a wired repository has no such
    shell, in a session that a person started either."""
    need("codex")
    wired.coord("init", "--agent", "codex", "--yes")
    heard: list[Result] = []
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"]))

        def script(_: Scripted) -> Script:
            heard.append((yield Use("exec_command", {"cmd": "bash", "tty": True, "yield_time_ms": 500})))
            found = re.search(r"session ID (\d+)", heard[0].text)
            if found:
                heard.append((yield Use("write_stdin", {
                    "session_id": int(found[1]), "chars": "echo HACK > notes.txt\n", "yield_time_ms": 1000})))
            yield Say("done")

        wired.run("codex", script)
    assert wired.read("notes.txt") == "first line\nsecond line\nthird line\n", heard
    assert "TTY execution is disabled" in heard[0].text
