"""The guard before a write, against a real daemon and as a real process."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import coordinator._hook as hook_file
from coordinator.words import requests as rq
from tests.conftest import BARE, Repo


def payload(root: Path, file: object = "src/a.py", **more: Any) -> bytes:
    said = {
        "session_id": "s", "cwd": str(root), "hook_event_name": "PreToolUse", "tool_name": "Edit",
        "tool_input": {"file_path": file, "old_string": "a", "new_string": "b"},
    }
    return json.dumps({**said, **more}).encode()


def guard(
    repo: Repo, agent: str, given: bytes, mode: str | None = None, token: str | None = None
) -> subprocess.CompletedProcess[bytes]:
    """A hook of the Claude Code session `agent`."""
    given = given.replace(b'"session_id": "s"', b'"session_id": "%s"' % agent.encode())
    command = [sys.executable, "-I", "-S", "-E", str(hook_file.__file__),
               str(repo.state.socket()), "claude-code"]
    return subprocess.run(
        [*command, *([mode] if mode else [])], input=given, capture_output=True, check=False,
        timeout=60, env={**BARE, "COORD_AGENT_TOKEN": token} if token else BARE,
    )


def told(repo: Repo, raw: bytes) -> bytes:
    """All that the daemon answers to these bytes on a connection of their own."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(20)
        link.connect(str(repo.state.socket()))
        got = b""
        try:
            link.sendall(raw)
            link.shutdown(socket.SHUT_WR)
            while more := link.recv(65536):
                got += more
        except (BrokenPipeError, ConnectionResetError):
            pass
        return got


def up(repo: Repo) -> None:
    with repo.client() as client:
        client.call(rq.Health())


def held(repo: Repo) -> dict[str, str]:
    with repo.client() as client:
        return {
            one.resource: one.locked_by.removeprefix("claude-code-")
            for one in client.call(rq.Locks()).items
        }


def test_a_write_gets_its_lease_and_keeps_it(repo: Repo) -> None:
    up(repo)
    for _ in range(2):  # the second time it is held already
        done = guard(repo, "ann", payload(repo.root))
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert held(repo) == {"src/a.py": "ann"}


def test_what_another_holds_is_denied_with_the_redirect(repo: Repo) -> None:
    up(repo)
    guard(repo, "ann", payload(repo.root))
    done = guard(repo, "bob", payload(repo.root, str(repo.root / "src/a.py")))
    assert done.returncode == 0
    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == "PreToolUse"
    assert said["permissionDecision"] == "deny"
    assert "src/a.py" in said["permissionDecisionReason"]
    assert "ann" in said["permissionDecisionReason"]
    assert held(repo) == {"src/a.py": "ann"}


def test_a_path_is_taken_by_its_letters(repo: Repo) -> None:
    up(repo)
    guard(repo, "ann", payload(repo.root, "app/[id].tsx"))
    guard(repo, "ann", payload(repo.root, {}, tool_name="NotebookEdit",
                               tool_input={"notebook_path": "n.ipynb", "new_source": ""}))
    assert held(repo) == {"app/[id].tsx": "ann", "n.ipynb": "ann"}


def test_the_lease_belongs_to_the_claimed_task(repo: Repo) -> None:
    with repo.client() as client:
        task = client.call(rq.TaskAdd(title="one")).task
        client.call(rq.TaskClaim(agent="claude-code-ann"))
        guard(repo, "ann", payload(repo.root))
        assert [one.task for one in client.call(rq.Locks()).items] == [task]
        client.call(rq.TaskDone(agent="claude-code-ann", task=task))
    assert held(repo) == {}


def test_outside_and_other_tools_are_let_through(repo: Repo, tmp_path: Path) -> None:
    up(repo)
    for given in (
        payload(repo.root, str(tmp_path / "elsewhere.txt")),
        payload(repo.root, tool_name="Bash", tool_input={"command": "ls"}),
        payload(repo.root, hook_event_name="PostToolUse"),
    ):
        done = guard(repo, "ann", given)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert held(repo) == {}


def test_nobody_there(repo: Repo) -> None:
    done = guard(repo, "ann", payload(repo.root))
    assert done.returncode == 2
    assert b"coord up" in done.stderr
    done = guard(repo, "ann", payload(repo.root), "open")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"not guarded" in done.stderr
    assert guard(repo, "ann", b"", "ajar").returncode == 2


def test_a_token_speaks_for_its_agent_only(repo: Repo) -> None:
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
        client.call(rq.Register(agent="bob"))
    assert guard(repo, "ann", payload(repo.root), token=token).stdout == b""
    # Whatever its session is called: whose token is shown, that one writes.
    assert guard(repo, "bob", payload(repo.root, "b.py"), token=token).stdout == b""
    done = guard(repo, "ann", payload(repo.root, "c.py"), token="wrong")
    assert b'"deny"' in done.stdout
    assert held(repo) == {"src/a.py": "ann", "b.py": "ann"}


def test_input_that_is_not_understood_stops_the_write(repo: Repo) -> None:
    up(repo)
    for given in (
        b"", b"{", b"null", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"a":1}',
    ):
        done = guard(repo, "ann", given)
        assert done.returncode == 2, given[:40]
        assert b"INVALID" in done.stderr
    for given in (payload(repo.root, 7), payload(repo.root, tool_input={}),
                  payload(repo.root, tool_input=None)):
        assert b'"deny"' in guard(repo, "ann", given).stdout
    done = guard(repo, "ann", payload(repo.root, "a\0b"))
    assert b'"deny"' in done.stdout
    done = guard(repo, "ann", payload(repo.root, ".git/config"))
    assert b'"deny"' in done.stdout
    assert held(repo) == {}


def test_too_much_is_refused_before_it_is_read(repo: Repo) -> None:
    up(repo)
    code, _, rest = told(repo, b"hook claude-code - 99999999\n" + b"x" * 100_000).partition(b" ")
    assert code == b"2"
    assert b"LIMIT" in rest
    big = payload(repo.root, tool_input={"file_path": "big.py", "content": "x" * 7_000_000})
    assert guard(repo, "ann", big).returncode == 0
    assert held(repo) == {"big.py": "ann"}


def test_a_head_that_is_none_is_refused(repo: Repo) -> None:
    up(repo)
    for head in (b"hook", b"hook a", b"hook a - x", b"hook a b - 5", b"hook a - -1",
                 b"hook a - " + b"9" * 5000, b"hook \xff - 0"):
        assert told(repo, head + b"\n{}")[:2] in (b"2 ", b'{"'), head


def test_requests_and_hooks_share_a_connection(repo: Repo) -> None:
    up(repo)
    given = payload(repo.root)
    head = b"hook claude-code - %d\n" % len(given)
    ping = b'{"id":1,"op":"health"}\n'
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(20)
        link.connect(str(repo.state.socket()))
        for byte in ping + head + given + ping:
            link.sendall(bytes([byte]))
        got = b""
        while got.count(b"\n") < 3:
            got += link.recv(65536)
    assert b"0 0 0\n" in got
    assert got.count(b'{"id":1,"ok"') == 2


def test_no_bytes_bring_the_daemon_down(repo: Repo) -> None:
    up(repo)
    pid = repo.pid()
    chance = random.Random(20)
    for number in range(1000):
        noise = chance.randbytes(chance.randrange(200))
        kind = number % 3
        if kind == 0:
            told(repo, noise)
        elif kind == 1:
            told(repo, b"hook " + noise)
        else:
            told(repo, b"hook claude-code - %d\n" % len(noise) + noise)
    up(repo)
    assert repo.pid() == pid
    os.kill(pid, 0)
    assert held(repo) == {}


def test_a_nul_in_a_name_is_refused_in_words(repo: Repo) -> None:
    """No path can hold one; it is no bug of coord's that the disk says so."""
    up(repo)
    for more in ({"file": "a\0b.py"}, {"cwd": f"{repo.root}/\0"}, {"session_id": "s\0"}, {"tool_name": "Bash\0"},
                 {"tool_name": "Bash", "tool_input": {"command": "cat \0 > f"}}):
        done = guard(repo, "bob", payload(repo.root, **more))  # type: ignore[arg-type]
        assert b"a bug" not in done.stdout + done.stderr, more
    assert "Traceback" not in repo.state.log.read_text()
