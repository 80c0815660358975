"""Commands of agents in a sandbox of the agent's own CLI: what coord is not allowed there is no fault, and stops nothing.

The default one is a seccomp filter (tests/sandbox.py), as Claude Code's own sandbox has; `bwrap` is what it is made of besides."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from coordinator.namespaces import orders
from tests.namespaces.conftest import ONCE, PACKAGE, Stand
from tests.namespaces.test_joined_sessions import Cli

SANDBOX = str(PACKAGE / "tests/sandbox.py")


def filtered(stand: Stand) -> list[str]:
    return [stand.python, SANDBOX]


def bubblewrapped(stand: Stand) -> list[str]:
    """As Claude Code starts it, with its filter in it; and without that one: then sockets can be made, and nothing entered."""
    return ["bwrap", "--new-session", "--die-with-parent", "--unshare-pid", "--unshare-user", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
            "--bind", str(stand.root.parent), str(stand.root.parent), "--chdir", str(stand.root), "--"]


@pytest.fixture(params=["filter", "bwrap", "both"])
def around(request: pytest.FixtureRequest, stand: Stand) -> list[str]:
    words = filtered(stand) if request.param == "filter" else bubblewrapped(stand)
    if request.param != "filter":
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed (apt-get install bubblewrap)")
        if subprocess.run([*stand.become, *words, "true"], check=False, capture_output=True, cwd=stand.root).returncode:
            pytest.skip("bubblewrap cannot make a sandbox on this machine")
    return words + (filtered(stand) if request.param == "both" else [])


@pytest.fixture
def cli(stand: Stand) -> Iterator[Cli]:
    stand.run("git", "config", "user.name", "One")
    stand.run("git", "config", "user.email", "one@localhost")
    stand.coord("init", "--agent", "claude-code", "--yes")
    for path in ("a.py", "b.py"):
        stand.write(path, "one\n")
    stand.run("git", "add", "-A", "*.py")
    stand.run("git", "commit", "-qm", "one")
    stand.coord("up")  # (its first hook would start it, from nothing)
    made = Cli(stand)
    yield made
    made.ends()


def test_commands_of_a_typed_agent_run_and_its_edits_are_asked_for(stand: Stand, cli: Cli, around: list[str]) -> None:
    stand.coord("lock", "a.py", "--agent", "ann")
    assert cli.runs("echo hello; exit 7", around=around) == (7, "hello\n", "")
    assert cli.runs("echo two >> b.py && git add b.py && git commit -qm two && git log -1 --format=%s", around=around)[:2] == (0, "two\n")
    asked = {"tool_name": "Write", "tool_use_id": "t-1"}
    assert "ann" in cli.hook("PreToolUse", **asked, tool_input={"file_path": str(stand.root / "a.py"), "content": "x"})
    assert "deny" not in cli.hook("PreToolUse", **asked, tool_input={"file_path": str(stand.root / "b.py"), "content": "x"})


@ONCE
def test_what_does_not_hold_there_is_said(stand: Stand, cli: Cli) -> None:
    """To the agent, once it is sure, and by the doctor, inside and outside; while its commands join again, no more."""
    def call(command: str, number: int, **more: list[str]) -> str:
        given = {"tool_name": "Bash", "tool_use_id": f"c-{number}", "tool_input": {"command": command}}
        said = cli.hook("PreToolUse", **given)
        cli.runs(command, **more)
        return said + cli.hook("PostToolUse", **given, tool_response={"stdout": ""})

    doctor = f"'{stand.python}' -P -m coordinator.cli.main doctor"
    assert "sandbox" not in call("true", 0) and "sandbox" not in stand.tries("doctor").stdout
    call("true", 1, around=filtered(stand))
    call("true", 2, around=filtered(stand))
    assert "run in a sandbox that coord may not enter" in call("true", 3, around=filtered(stand))
    assert "run in a sandbox of its own, which coord may not enter" in stand.tries("doctor").stdout
    assert "In this sandbox what others hold is not read-only" in cli.runs(doctor, around=filtered(stand))[1]
    call("true", 4)
    assert "sandbox" not in stand.tries("doctor").stdout


@ONCE
def test_what_is_broken_outside_of_a_sandbox_still_stops_the_command(stand: Stand, cli: Cli) -> None:
    """The kernel says the same there; but nothing keeps this process from what the keeper may."""
    stand.write("broken.py", f"""
import ctypes, runpy, sys
class Libc(ctypes.CDLL):
    def setns(self, *given):
        ctypes.set_errno(1)
        return -1
ctypes.CDLL = Libc
sys.argv = ["_enter.py", "join", {str(stand.root)!r}, "/", "touch", {str(stand.root / "ran")!r}]
runpy.run_path({str(orders.ENTER)!r}, run_name="__main__")
""")
    code, _, err = cli.runs("true", around=[stand.python, str(stand.root / "broken.py")])
    assert code == 126 and "could not be entered" in err and not (stand.root / "ran").exists()


def test_git_in_a_session_goes_on_but_for_what_is_held(stand: Stand, cli: Cli, around: list[str]) -> None:
    agent = stand.agent()
    inside = " ".join(f"'{word}'" for word in around)
    for command in ("echo two >> b.py && {} git add b.py && {} git commit -qm two && git log -1 --format=%s", "{} git switch -qc other", "{} git switch -q -", "echo x >> b.py; {} git stash -q && {} git stash pop -q"):
        assert agent.does(f"({command.replace('{}', inside)}) 2>&1") == 0, (command, agent.said)
    stand.write("a.py", "hers\n")
    stand.coord("lock", "a.py", "--agent", "ann")
    for command in ("{} git stash", "{} git checkout -- .", "{} git add -A", "{} git commit -qam all"):
        assert agent.does(f"({command.replace('{}', inside)}) 2>&1") != 0, (command, agent.said)
        assert stand.read("a.py") == "hers\n" and stand.run("git", "diff", "--cached", "--name-only").stdout in ("", "b.py\n")
    assert agent.does(f"({inside} git commit -qm three -- b.py) 2>&1") == 0, agent.said


@ONCE
def test_what_asks_the_coordinator_says_that_it_may_not(stand: Stand, cli: Cli) -> None:
    code, _, err = cli.runs("coord locks --json" if shutil.which("coord") else f"'{stand.python}' -P -m coordinator.cli.main locks", around=filtered(stand))
    assert code == 5 and "SANDBOXED: A sandbox around this process" in err and "Traceback" not in err, err
