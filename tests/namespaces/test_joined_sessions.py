"""Commands of an agent that a person started by itself, by the program that its CLI puts before them.

The CLI is a stand-in: a process that runs its hooks, and its commands by `CLAUDE_CODE_SHELL_PREFIX`, as Claude Code does
(tests/agents has the real one)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coordinator._hook as hook_file
from tests.namespaces.conftest import ONCE, Stand
from tests.waiting import gone, until

#: Reads a JSON line each: {"hook": …} or {"run": …}; says what came of it in one.
CLI = r"""
import json, os, subprocess, sys
prefix = sys.argv[1]
for line in sys.stdin:
    told = json.loads(line)
    if "hook" in told:
        # as Claude Code does it: a shell, and in that the prefix with the hook's own text
        words = ["/bin/sh", "-c", f"'{prefix}' '{told['text']}'"] if told.get("text") else told["words"]
        done = subprocess.run(words, input=json.dumps(told["hook"]), capture_output=True, text=True)
    else:
        shell = "{ source /nowhere/shell-snapshots/snapshot-bash-1.sh || true; } 2>/dev/null && eval " + told["run"]
        words = [*told.get("around", ()), "/bin/bash", "-c", "'" + prefix + "' \"$1\"", "bash", shell]
        done = subprocess.run(words, capture_output=True, text=True, cwd=told.get("cwd"), env={**os.environ, **told.get("env", {})})
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


class Cli:
    """One that a person has started."""

    def __init__(self, stand: Stand, session: str = "s-1") -> None:
        self.stand, self.session = stand, session
        settings = json.loads(stand.read(".claude/settings.local.json"))
        self.prefix = settings["env"]["CLAUDE_CODE_SHELL_PREFIX"]
        # (not among its own words, by which coord's own hooks are told from agents)
        self.words = [stand.python, "-I", "-S", "-E", hook_file.__file__, str(stand.state.socket()), "claude-code", "open"]
        self.process = subprocess.Popen(
            [*stand.become, stand.python, "-c", CLI, self.prefix], cwd=stand.root,
            env={**stand.env, "CLAUDE_CODE_SHELL_PREFIX": self.prefix}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.welcome = self.hook("SessionStart", source="startup")

    def asks(self, **told: Any) -> tuple[int, str, str]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        code, out, err = json.loads(self.process.stdout.readline())
        return code, out, err

    def hook(self, event: str, **more: Any) -> str:
        said = {"session_id": self.session, "cwd": str(self.stand.root), "hook_event_name": event,
                "permission_mode": "default", **more}
        return self.asks(hook=said, words=self.words)[1]

    def runs(self, command: str, **more: Any) -> tuple[int, str, str]:
        return self.asks(run="'" + command.replace("'", "'\\''") + "'", **more)

    def ends(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture
def cli(stand: Stand) -> Iterator[Cli]:
    stand.coord("init", "--agent", "claude-code", "--yes", "--mcp")
    stand.write("a.py", "one\n")
    stand.write("b.py", "one\n")
    stand.coord("up")  # (its first hook would start it, from nothing)
    made = Cli(stand)
    yield made
    made.ends()


def test_its_commands_cannot_write_what_others_hold(stand: Stand, cli: Cli) -> None:
    assert "Nothing keeps your shell commands" not in cli.welcome
    stand.coord("lock", "a.py", "--agent", "ann")
    code, _, err = cli.runs("D=.; echo H > $D/a.py")
    assert code != 0 and "Read-only file system" in err and stand.read("a.py") == "one\n"
    assert cli.runs("D=.; echo two > $D/b.py")[0] == 0 and stand.read("b.py") == "two\n"
    stand.coord("unlock", "a.py", "--agent", "ann")
    assert cli.runs("D=.; echo two > $D/a.py")[0] == 0 and stand.read("a.py") == "two\n"
    # a lease that is taken while a command runs
    waits = subprocess.Popen([*stand.become, "sh", "-c", "sleep 0.7; exec mkdir go"], cwd=stand.root)
    stand.coord("lock", "a.py", "--agent", "ann")
    assert cli.runs("while [ ! -d go ]; do sleep 0.05; done; D=.; echo H > $D/a.py")[0] != 0
    assert waits.wait() == 0 and stand.read("a.py") == "two\n"


def test_the_wiring_cannot_be_taken_out_by_a_command(stand: Stand, cli: Cli) -> None:
    """`git clean -fdx`, a switch that the CLI would heed at once; typed, and in a session of its own. A person's own hand is free."""
    stand.write("junk.o", "")
    stand.write(".gitignore", "*.o\n")
    stand.write(".claude/mine.json", "{}")
    wired = stand.read(".claude/settings.local.json")
    agent = stand.agent()
    cli.runs("git clean -fdxq; rm -rf .claude; echo '{\"disableAllHooks\": true}' > .claude/settings.local.json; mv .claude/settings.local.json x.json; sed -i s/hooks/hocks/ .claude/settings.local.json")
    assert stand.read(".claude/settings.local.json") == wired and not (stand.root / "junk.o").exists() and not (stand.root / "x.json").exists()
    agent.does("(git clean -fdxq; rm -f .claude/settings.local.json .mcp.json; echo x > .mcp.json) 2>&1")
    assert stand.read(".claude/settings.local.json") == wired and "coordinator" in stand.read(".mcp.json")
    stand.coord("init", "--remove", "--yes")
    assert not (stand.root / ".claude/settings.local.json").exists()
    until(lambda: agent.does("mkdir -p .claude && echo '{}' > .claude/settings.local.json") == 0)
    assert stand.read(".claude/settings.local.json") == "{}\n"


def test_everything_else_is_as_without_it(stand: Stand, cli: Cli) -> None:
    stand.coord("lock", "a.py", "--agent", "ann")
    bare = cli.runs
    for command in ("exit 7", "echo \"it's\" $'two\\nlines' \"$((1+1))\"", "kill -9 $$", "pwd; cd /; pwd", "echo out; echo err >&2",
                    "printf %s \"$PATH\"", "ulimit -n; umask; id -u", "cat < b.py; test -t 0 || echo none", "false | true; echo $?",
                    "(sleep 0.01; echo late) & wait", "shopt -q expand_aliases; echo $BASH_VERSION"):
        without = cli.runs(command, env={"COORD_AGENT_TOKEN": "switches it off"})
        assert bare(command) == without, command
    # text that a hook of somebody's has, and the words of a server one by one
    assert cli.asks(hook={}, text="echo hooked; cat")[:2] == (0, "hooked\n{}")
    done = stand.run(cli.prefix, "printf", "%s|", "two words", "$HOME")
    assert (done.returncode, done.stdout) == (0, "two words|$HOME|")


def test_what_it_leaves_running_is_kept_too_and_the_session_is_one(stand: Stand, cli: Cli) -> None:
    number = "readlink /proc/self/ns/mnt"
    _, one, _ = cli.runs(number)
    assert cli.runs(number)[1] == one != os.readlink("/proc/self/ns/mnt") + "\n"
    assert cli.runs("(while [ ! -e go ]; do sleep 0.05; done; D=.; echo H > $D/a.py; echo $? > done) > /dev/null 2>&1 &")[0] == 0
    stand.coord("lock", "a.py", "--agent", "ann")
    stand.write("go", "")
    until((stand.root / "done").exists)
    until(lambda: stand.read("done") not in ("", "0\n"))
    assert stand.read("a.py") == "one\n"
    assert cli.runs(f"'{stand.python}' -P -m coordinator.cli.main lock b.py")[0] == 0
    assert [one["locked_by"] for one in stand.asks("locks")["items"] if one["resource"] == "b.py"] == ["claude-code-s1"]


@ONCE
def test_what_it_holds_itself_it_can_write(stand: Stand, cli: Cli) -> None:
    edit = {"tool_name": "Write", "tool_use_id": "w", "tool_input": {"file_path": str(stand.root / "a.py"), "content": "one\n"}}
    cli.hook("PreToolUse", **edit)
    cli.hook("PostToolUse", **edit, tool_response={})
    assert cli.runs("echo mine > a.py")[0] == 0 and stand.read("a.py") == "mine\n"
    other = Cli(stand, "s-2")
    assert other.runs("D=.; echo H > $D/a.py")[0] != 0 and stand.read("a.py") == "mine\n"
    other.ends()
    cli.hook("SessionEnd", reason="exit")


@ONCE
def test_git_waits_its_turn_in_it(stand: Stand, cli: Cli) -> None:
    stand.run("git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "first")
    (stand.root / "coord.toml").write_text("[hooks]\ngit_wait_s = 0.1\n")
    stand.coord("trust", "--yes")
    stand.coord("lock", "a.py", "--agent", "ann")
    code, out, err = cli.runs("timeout 20 bash -c \"git stash -u\"")
    assert code != 0 and "whole working tree" in out + err and stand.read("a.py") == "one\n"


@ONCE
def test_where_there_is_no_session_it_runs_as_it_came(stand: Stand, cli: Cli) -> None:
    stand.coord("lock", "a.py", "--agent", "ann")
    write = "D=.; echo two > $D/a.py"
    stranger = stand.run(cli.prefix, f"source /shell-snapshots/snapshot-bash-x 2>/dev/null; {write}")
    assert stranger.returncode == 0 and stand.read("a.py") == "two\n"  # of a person
    os.kill(stand.daemon(), signal.SIGKILL)
    assert cli.runs("echo gone")[:2] == (0, "gone\n")
    state = stand.root / ".coord"
    state.rename(stand.root / "away")
    assert cli.runs("echo more")[:2] == (0, "more\n")
    (stand.root / "away").rename(state)
    stand.coord("up")
    cli.hook("UserPromptSubmit", prompt="x")
    assert cli.runs("D=.; echo H > $D/a.py")[0] != 0 and stand.read("a.py") == "two\n"
    (stand.root / "coord.toml").write_text("[hooks]\nconfine = false\n")
    stand.coord("trust", "--yes")
    stand.coord("down")
    stand.coord("up")
    cli.hook("UserPromptSubmit", prompt="x")
    assert cli.runs("echo off")[:2] == (0, "off\n")


@ONCE
def test_an_agent_whose_commands_can_be_kept_from_nothing_is_told_so_once(stand: Stand, cli: Cli) -> None:
    lock = stand.home / "coord/namespaces.lock"
    lock.mkdir(parents=True)
    for _ in range(2):
        assert cli.runs("echo bare")[:2] == (0, "bare\n")
    said = [json.dumps(cli.hook("UserPromptSubmit", prompt="x")) for _ in range(2)]
    assert "commands are not kept from what others hold" in said[0] and "not kept" not in said[1]
    lock.rmdir()
    stand.coord("lock", "a.py", "--agent", "ann")
    assert cli.runs("D=.; echo H > $D/a.py")[0] != 0


@ONCE
def test_the_keepers_end_ends_its_commands_and_the_next_one_has_a_session_again(stand: Stand, cli: Cli) -> None:
    assert cli.runs("true")[0] == 0
    stand.coord("lock", "a.py", "--agent", "ann")
    keeper = stand.keeper()
    os.kill(keeper, signal.SIGKILL)
    until(lambda: gone(keeper))
    code, _, _ = cli.runs("D=.; echo H > $D/a.py")
    assert code != 0 and stand.read("a.py") == "one\n"


def test_a_person_who_has_a_prefix_of_their_own_keeps_it(stand: Stand) -> None:
    stand.write(".claude/settings.json", '{"env": {"CLAUDE_CODE_SHELL_PREFIX": "/mine"}}')
    stand.coord("init", "--agent", "claude-code", "--yes")
    assert "env" not in json.loads(stand.read(".claude/settings.local.json"))
    (stand.root / ".claude/settings.json").unlink()
    stand.coord("init", "--agent", "claude-code", "--yes")
    made = Path(json.loads(stand.read(".claude/settings.local.json"))["env"]["CLAUDE_CODE_SHELL_PREFIX"])
    assert made.is_file() and made.is_relative_to(stand.home)
    stand.env["XDG_DATA_HOME"] = str(stand.home / "elsewhere")
    assert "claude-code: wired already" in stand.coord("init", "--agent", "claude-code", "--yes"), "with another home, too"
    del stand.env["XDG_DATA_HOME"]
    stand.coord("init", "--remove", "--agent", "claude-code", "--yes")
    assert not made.exists() and not (stand.root / ".claude/settings.local.json").exists()
