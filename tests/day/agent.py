"""An agent of the day: a process that runs hooks, edits and commands as an agent's CLI does, and its journal."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coordinator._hook as hook_file
from tests.namespaces.conftest import Stand

#: How often (seconds) a refused agent tries again, and for how long.
AGAIN_S, PATIENCE_S = 0.4, 90.0
#: What a refusal says because another holds something.
LOCKED = re.compile(r"held by|holds |others? (?:are|is) at work|is at work|whole working tree|Read-only file system|read-only here|in line|another agent|would replace a commit of")
#: Reads one order a line: a hook's call, an edit, or a command; answers each with [code, output, errors].
PROGRAM = r"""
import json, subprocess, sys
prefix = sys.argv[1]
for line in sys.stdin:
    order = json.loads(line)
    if "hook" in order:
        done = subprocess.run(order["words"], input=json.dumps(order["hook"]), capture_output=True, text=True)
        answer = [done.returncode, done.stdout, done.stderr]
    elif "edit" in order:
        try:
            with open(order["edit"]) as file:
                text = file.read()
            assert order["old"] in text, "the text to replace is not there"
            with open(order["edit"], "w") as file:
                file.write(text.replace(order["old"], order["new"], 1))
            answer = [0, "", ""]
        except (OSError, AssertionError) as bad:
            answer = [1, "", str(bad)]
    else:
        shell = "{ source /nowhere/shell-snapshots/snapshot-bash-1.sh || true; } 2>/dev/null && eval " + order["quoted"]
        words = ["/bin/bash", "-c", "'" + prefix + "' \"$1\"", "bash", shell] if prefix else ["/bin/bash", "-c", order["run"]]
        done = subprocess.run(words, capture_output=True, text=True, cwd=order["cwd"], stdin=subprocess.DEVNULL)
        answer = [done.returncode, done.stdout, done.stderr]
    print(json.dumps(answer), flush=True)
"""


class KilledError(Exception):
    """The agent's process is gone."""


@dataclass
class Attempt:
    """One call of an agent that failed.

    Attributes:
        began, ended: seconds since the epoch.
        locked: it says that another holds something.
    """

    nick: str
    kind: str
    label: str
    command: str
    text: str
    began: float
    ended: float
    locked: bool


@dataclass
class Commit:
    """A commit that an agent asked for: in which repository, with which files.

    Attributes:
        acknowledged: git said that it is made.
    """

    nick: str
    place: Path
    files: set[str]
    acknowledged: bool = False


@dataclass
class Journal:
    """What all agents of a day say that they did.

    Attributes:
        written: each acknowledged line, and the file that it is in.
        withdrawn: lines that a person's verdict took out.
        names: what coord calls each agent, and what its commits do.
        tell: print each call that fails, as it fails.
    """

    written: dict[str, Path] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    commits: dict[str, Commit] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    landings: int = 0
    kills: int = 0
    waited_s: float = 0.0
    tell: bool = False


@dataclass
class Doom:
    """When the agent is killed: after an edit, or so many seconds after a command began.

    Attributes:
        label: the call's label.
        delay_s: None: as soon as the call is done.
    """

    label: str
    delay_s: float | None


class Agent:
    """One process, in a session that `coord run` made, or typed by a person and joined."""

    def __init__(self, stand: Stand, journal: Journal, nick: str, number: int, *, joined: bool) -> None:
        self.stand, self.journal, self.nick, self.joined = stand, journal, nick, joined
        self.kind, self.calls = "", 0
        self.doom: Doom | None = None
        self.session = f"s-{nick}{number}"
        env = {**stand.env, "GIT_AUTHOR_NAME": nick, "GIT_AUTHOR_EMAIL": f"{nick}@localhost"}
        prefix = ""
        words = [stand.python, "-P", "-m", "coordinator.cli.main", "run", "shell", "--"]
        if joined:
            prefix = json.loads(stand.read(".claude/settings.local.json"))["env"]["CLAUDE_CODE_SHELL_PREFIX"]
            env["CLAUDE_CODE_SHELL_PREFIX"], words = prefix, []
        self._hook = [stand.python, "-I", "-S", "-E", hook_file.__file__, str(stand.state.socket()), "claude-code", *(["open"] if joined else [])]
        self.process = subprocess.Popen(
            [*words, sys.executable, "-c", PROGRAM, prefix], cwd=stand.root, env=env, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(stand.home / "stderr").open("a"))
        self.hook("SessionStart", source="startup")
        self.name = f"claude-code-{self.session.replace('-', '')}" if joined else self._order(
            run="printenv COORD_AGENT", quoted="'printenv COORD_AGENT'", cwd=str(stand.root))[1].strip()

    def _order(self, **order: Any) -> tuple[int, str, str]:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except (OSError, ValueError):
            line = ""
        if not line:
            raise KilledError(self.nick)
        code, out, err = json.loads(line)
        return code, out, err

    def hook(self, event: str, **more: Any) -> dict[str, Any]:
        """The inner part of what the hook answers."""
        call = {"session_id": self.session, "cwd": str(self.stand.root), "hook_event_name": event, "permission_mode": "acceptEdits", **more}
        code, out, err = self._order(hook=call, words=self._hook)
        if code:
            self.journal.faults.append(f"{self.nick}: hook {event} ended with {code}: {err.strip()[-300:]}")
        answer: dict[str, Any] = json.loads(out) if out.strip() else {}
        return dict(answer.get("hookSpecificOutput", answer))

    def _call(self, tool: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Ask before a tool: why it is denied, or nothing; and the call, for afterwards."""
        self.calls += 1
        call = {"tool_name": tool, "tool_input": given, "tool_use_id": f"{self.session}-{self.calls}"}
        answer = self.hook("PreToolUse", **call)
        return (str(answer.get("permissionDecisionReason", "")) if answer.get("permissionDecision") == "deny" else ""), call

    def _tried(self, label: str, command: str, attempt: Any, *, patient: bool) -> str | None:
        """Carry out a call, again while another holds what it needs; its output, None if it failed."""
        first = time.time()
        while True:
            began = time.time()
            code, text = attempt()
            if code == 0:
                self.journal.waited_s += began - first
                return str(text)
            locked = bool(LOCKED.search(text))
            self.journal.attempts.append(Attempt(self.nick, self.kind, label, command, text, began, time.time(), locked))
            if self.journal.tell:
                print(f"{time.strftime('%T')} {self.nick} {time.time() - began:.1f} s {self.kind}/{label}: {command[:60]}: {text[-300:]!r}", file=sys.stderr, flush=True)
            if not locked or not patient:
                return None
            if time.time() - first > PATIENCE_S:
                self.journal.faults.append(f"{self.nick}: {self.kind}/{label} was refused for {PATIENCE_S:g} s: {command}: {text[-400:]}")
                return None
            time.sleep(AGAIN_S)

    def run(self, label: str, command: str, cwd: Path | None = None, *, patient: bool = True) -> str | None:
        """Run a shell command by the agent's shell tool; what it printed, None if it failed."""
        def attempt() -> tuple[int, str]:
            denied, call = self._call("Bash", {"command": command})
            if denied:
                return 1, denied
            timer = None
            if self.doom and self.doom.label == label and self.doom.delay_s is not None:
                timer = threading.Timer(self.doom.delay_s, self.kill)
                timer.start()
            code, out, err = self._order(run=command, quoted=shlex.quote(command), cwd=str(cwd or self.stand.root))
            self.hook("PostToolUse", **call, tool_response={"stdout": out, "stderr": err})
            self._maybe_die(label)
            return code, out + err

        return self._tried(label, command, attempt, patient=patient)

    def edit(self, path: Path, line: str, before: str = "# end\n", *, label: str = "edit") -> bool:
        """Put a line into a file by the edit tool, after reading it; whether it was written."""
        def attempt() -> tuple[int, str]:
            given = {"file_path": str(path)}
            denied, call = self._call("Read", given)
            self.hook("PostToolUse", **call, tool_response={})
            given |= {"old_string": before, "new_string": f"{line}\n{before}"}
            denied, call = self._call("Edit", given)
            if denied:
                return 1, denied
            code, _, err = self._order(edit=str(path), old=before, new=f"{line}\n{before}")
            if code == 0:
                self.journal.written[line.split()[0]] = path
            self.hook("PostToolUse", **call, tool_response={})
            self._maybe_die(label)
            return code, err

        return self._tried(label, f"edit {path}", attempt, patient=True) is not None

    def _maybe_die(self, label: str) -> None:
        if self.doom and self.doom.label == label and self.doom.delay_s is None:
            self.kill()
            raise KilledError(self.nick)

    def kill(self) -> None:
        """`kill -9` of its process group."""
        self.doom = None
        os.killpg(self.process.pid, signal.SIGKILL)

    def ends(self) -> None:
        """As when its person ends it."""
        try:
            self.hook("Stop", stop_hook_active=False)
            self.hook("SessionEnd", reason="exit")
        except KilledError:
            self.journal.faults.append(f"{self.nick}: its process is gone before its end")
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)
