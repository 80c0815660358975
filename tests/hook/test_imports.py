"""A repository whose root has modules named like coord's own, like its libraries', like Python's:
none of them is ever imported, by nothing that coord starts there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Repo

pytestmark = pytest.mark.slow

COORD = Path(sys.executable).parent / "coord"
POISON = ["coordinator/__init__.py", "coordinator/cli/main.py", "typing.py", "json.py", "socket.py", "enum.py", "asyncio/__init__.py",
          "rich/__init__.py", "rich/console.py", "msgspec/__init__.py", "apsw.py", "typer.py", "mcp/__init__.py", "anyio/__init__.py",
          "sitecustomize.py", "usercustomize.py", "uvloop.py", "_socket.py", "posix.py", "time.py"]


class Poisoned(Repo):
    """What is started here is started for real: nothing is imported beforehand."""

    def __init__(self, root: Path, ran: Path) -> None:
        super().__init__(root)
        self.ran = ran

    def run(self, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, cwd=self.root, input=text, capture_output=True, text=True, check=False, timeout=60)
        assert not self.ran.exists(), f"{command}: {self.ran.read_text()}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def hook(self, event: str, **more: Any) -> dict[str, Any]:
        """As Claude Code runs what its settings say."""
        wired = json.loads(self.read(".claude/settings.local.json"))["hooks"][event][0]["hooks"][0]["command"]
        done = self.run("sh", "-c", wired, text=json.dumps(
            {"hook_event_name": event, "session_id": "s", "cwd": str(self.root), **more}))
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout or "{}")
        return found


@pytest.fixture
def repo(make_repo: Callable[..., Repo], tmp_path: Path) -> Poisoned:
    made = make_repo("poisoned")
    ran = tmp_path / "ran"
    for name in POISON:
        made.write(name, f"open({str(ran)!r}, 'a').write({name!r} + ' ')\nraise SystemExit('SHADOWED')\n")
    poisoned = Poisoned(made.root, ran)
    done = poisoned.run(str(COORD), "init", "--agent", "claude-code", "--yes", "--mcp")
    assert done.returncode == 0, done.stderr
    return poisoned


def test_hooks_and_the_restart_of_a_dead_daemon(repo: Poisoned) -> None:
    repo.hook("SessionStart", source="startup")
    pid = repo.pid()
    given = {"tool_name": "Write", "tool_input": {"file_path": str(repo.root / "typing.py"), "content": ""}, "tool_use_id": "1"}
    assert repo.hook("PreToolUse", **given).get("hookSpecificOutput", {}).get("permissionDecision") != "deny"
    repo.down()
    assert repo.hook("PreToolUse", **given).get("hookSpecificOutput", {}).get("permissionDecision") != "deny"
    assert repo.pid() != pid, "the hook has started another one"
    assert "typing.py" in repo.run(str(COORD), "locks").stdout


def test_doctor_finds_nothing_wrong(repo: Poisoned) -> None:
    done = repo.run(str(COORD), "doctor")
    assert done.returncode == 0 or "pass over its hooks" in done.stdout, done.stdout
    assert "a test call came back" in done.stdout


def test_the_mcp_server(repo: Poisoned) -> None:
    server = json.loads(repo.read(".mcp.json"))["mcpServers"]["coord"]
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    done = repo.run(server["command"], *server["args"], text=json.dumps(hello) + "\n")
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]


def test_the_guard_of_commits(repo: Poisoned) -> None:
    repo.run(str(COORD), "lock", "typing.py", "--agent", "ann")
    done = repo.run("git", "-c", "user.name=n", "-c", "user.email=e@x", "add", "typing.py")
    assert done.returncode == 0
    done = repo.run("git", "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "x")
    assert done.returncode == 1 and "held by ann" in done.stderr


def test_the_program_for_agents_shells_and_compaction(repo: Poisoned) -> None:
    repo.run(str(COORD), "lock", "a.py", "--agent", "ann")
    done = repo.run(str(repo.state.bin / "coord"), "locks")
    assert "a.py" in done.stdout
    assert repo.run(str(COORD), "compact", "--keep-days", "0.000001").returncode == 0


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_plugins_of_agents_without_hooks(repo: Poisoned) -> None:
    """They start a coordinator that is not there."""
    repo.down()
    assert repo.run(str(COORD), "init", "--agent", "opencode", "--yes").returncode == 0
    plugin = next(repo.root.glob(".opencode/plugin*/*coord*"))
    made = repo.run("node", "--input-type=module", "-e",
                    f"const m = await import({json.dumps(str(plugin))}); await m.CoordPlugin({{directory: {json.dumps(str(repo.root))}}})")
    assert made.returncode == 0, made.stderr
    assert "was running already" in repo.run(str(COORD), "up").stdout


def test_settings_that_an_older_coord_wrote_are_noticed(repo: Poisoned) -> None:
    """They would still import from there."""
    settings = repo.root / ".claude/settings.local.json"
    settings.write_text(settings.read_text().replace("-P -m coordinator", "-m coordinator"))
    done = repo.run(str(COORD), "doctor")
    assert done.returncode == 1
    assert "claude-code: its settings are not as coord wrote them" in done.stdout
    assert "`coord init --agent claude-code`" in done.stdout
    assert repo.run(str(COORD), "init", "--agent", "claude-code", "--yes").returncode == 0
    assert "-P -m coordinator" in settings.read_text()
