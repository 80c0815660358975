"""Nothing runs for ever: a daemon that nobody needs ends by itself, and only that one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import coordinator._hook as hook_file
from coordinator.client.client import Client
from coordinator.words import requests as rq
from tests.conftest import BARE, Repo
from tests.waiting import until

pytestmark = pytest.mark.slow

Make = Callable[..., Repo]


@pytest.fixture
def brief(make_repo: Make) -> Repo:
    """One whose coordinator ends soon."""
    return make_repo("brief", config="[daemon]\nidle_s = 0.5\n")


def runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(repo: Repo, pid: int) -> None:
    until(lambda: not runs(pid))
    assert "nobody has needed it for 0.5 s (daemon.idle_s)" in repo.state.log.read_text()
    assert not repo.state.socket().exists()


def stays(repo: Repo) -> None:
    """Its once-a-second look has come by twice since the time was over, and it is still there."""
    pid, over = repo.pid(), time.monotonic() + 2.6
    until(lambda: time.monotonic() > over or not runs(pid))
    assert runs(pid) and repo.pid() == pid


def test_it_ends_when_nobody_needs_it(brief: Repo) -> None:
    assert brief.coord("up").returncode == 0
    ends(brief, brief.pid())
    # and what there was is there at the next command
    assert brief.coord("task", "add", "later").returncode == 0
    pid = brief.pid()
    ends(brief, pid)
    assert "later" in brief.coord("task", "list").stdout


def test_a_lease_a_claim_a_waiter_and_a_connection_keep_it(brief: Repo) -> None:
    with brief.client("ann") as ann, brief.client("bob") as bob:
        pid = (ann.call(rq.Health()), brief.pid())[1]
        stays(brief)
        assert ann.acquire("a.py", ttl=60).leases
    stays(brief)
    with Client(brief.root, "ann", ann.token) as ann:
        ann.release("a.py")
        task = ann.call(rq.TaskAdd(title="t")).task
        ann.claim(task)
    stays(brief)
    with Client(brief.root, "ann", ann.token) as ann, brief.client("bob") as bob:
        ann.done(task)
        ann.acquire("b.py", ttl=60)
        assert not bob.call(rq.Locks()).waiters
    assert brief.pid() == pid
    with Client(brief.root, "ann", ann.token) as ann:
        ann.release("b.py")
    ends(brief, pid)



def test_a_lapsed_lease_is_tidied_first(brief: Repo) -> None:
    """Its partial work is flagged before the daemon goes."""
    brief.write("a.py", "one\n")
    (brief.root / "coord.toml").write_text("[daemon]\nidle_s = 0.5\n[sweep]\ninterval_s = 1\n")
    with brief.client("ann") as ann:
        ann.acquire("a.py", ttl=0.5)
        brief.write("a.py", "half\n")
        pid = brief.pid()
    ends(brief, pid)
    assert "a.py" in brief.coord("review", "list").stdout


def test_hooks_that_come_and_go_keep_it(brief: Repo) -> None:
    """Each is connected for an instant only."""
    brief.coord("up")
    pid = brief.pid()
    said = {"session_id": "s", "cwd": str(brief.root), "hook_event_name": "PostToolUse", "tool_name": "Nothing", "tool_input": {}}
    over = time.monotonic() + 2.6
    while time.monotonic() < over:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-E", str(hook_file.__file__), str(brief.state.socket()), "claude-code", "closed", "5"],
            input=json.dumps(said).encode(), capture_output=True, check=False, env={**BARE, "PATH": os.environ["PATH"]})
        assert done.returncode == 0
    assert brief.pid() == pid and runs(pid)
    ends(brief, pid)


def test_the_http_door_counts_as_well(make_repo: Make) -> None:
    repo = make_repo("http", config="[daemon]\nidle_s = 0.5\n")
    repo.coord("up", "--http", "0")
    pid = repo.pid()
    asked = urllib.request.Request(repo.state.http.read_text().strip() + "/v1/events/stream")
    asked.add_header("Authorization", f"Bearer {repo.state.bearer.read_text().strip()}")
    with urllib.request.urlopen(asked, timeout=30):
        stays(repo)
    ends(repo, pid)


@pytest.fixture
def served(brief: Repo) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-P", "-m", "coordinator.cli.main", "serve"], cwd=brief.root,
                               stderr=subprocess.DEVNULL)
    until(brief.state.socket().exists)
    yield process
    process.terminate()
    process.wait(20)


def test_in_the_foreground_it_stays(brief: Repo, served: subprocess.Popen[bytes]) -> None:
    """Whoever watches over it decides; but without its root it goes all the same."""
    stays(brief)
    brief.root.rename(brief.root.with_name("gone"))
    assert served.wait(15) == 0
    brief.root.with_name("gone").rename(brief.root)


def test_an_mcp_server_keeps_it_while_its_agent_is_there(brief: Repo) -> None:
    brief.coord("up")
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who_holds", "arguments": {}}}
    with subprocess.Popen([sys.executable, "-P", "-m", "coordinator.cli.main", "mcp"], cwd=brief.root,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        for said in (hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call):
            server.stdin.write(json.dumps(said).encode() + b"\n")
            server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        assert "result" in answers[1], answers
        pid = brief.pid()
        stays(brief)
        server.stdin.close()
    ends(brief, pid)
