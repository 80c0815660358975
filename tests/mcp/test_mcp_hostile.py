"""A client that is broken, or means harm: errors in words, never a crash, never another agent."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.mcp.tools import TOOLS, WAIT_S_MAX
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.mcp.talking import COMMAND, holders
from tests.waiting import until

pytestmark = pytest.mark.slow

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}


class Line:
    """The server as a pipe that takes whatever bytes."""

    def __init__(self, repo: Repo, agent: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *COMMAND], cwd=repo.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **({"COORD_AGENT": "mallory"} if agent is None else agent)})

    def say(self, line: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def asks(self, line: bytes | dict[str, Any]) -> dict[str, Any]:
        self.say(line)
        return self.hear()

    def call(self, tool: Any, arguments: Any, number: int = 7, **more: Any) -> dict[str, Any]:
        return self.asks({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                          "params": {"name": tool, "arguments": arguments, **more}})


@pytest.fixture
def line(repo: Repo) -> Iterator[Line]:
    repo.coord("init")
    made = Line(repo)
    yield made
    made.process.kill()
    made.process.wait()


def test_no_line_ends_the_server(line: Line, repo: Repo) -> None:
    """One server takes it all, in order, and still answers."""
    probe = line.asks({"jsonrpc": "2.0", "id": "probe", "method": "server/unheard-of"})
    assert probe["error"]["code"] == -32601
    assert line.asks(HELLO)["result"]["serverInfo"]["name"] == "coord"
    line.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for junk in (b"{", b"\xff\xfe\x00", b"[" * 100_000, b"[]", b"null", b'"text"', b'{"jsonrpc": "1.0"}',
                 b'{"jsonrpc": "2.0", "id": {}, "method": 3}',
                 b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\\ud800"}}'):
        said = line.asks(junk)
        assert said["error"]["code"] in (-32700, -32600) and said["id"] is None, (junk[:20], said)
    for name, arguments in ((None, {}), (3, {}), ("next_task", []), ("next_task", "x"), ("acquire", 3)):
        assert line.call(name, arguments)["error"]["code"] == -32602
    assert "There is no tool" in line.call("n" * 100_000, {})["error"]["message"]
    wrong: list[dict[str, Any]] = [
        {}, {"resources": []}, {"resources": "notes.txt"}, {"resources": [1]}, {"resources": [None]},
        {"resources": ["a"], "agent": "ann"}, {"resources": ["a"], "force": True},
        {"resources": ["a"], "mode": "sole"}, {"resources": ["a"], "cwd": "/"},
        {"resources": ["../outside"]}, {"resources": ["/etc/passwd"]}, {"resources": [".git/config"]},
        {"resources": ["a\0b"]}, {"resources": ["a" * 10_000]},
        {"resources": [f"f{n}" for n in range(100_000)]}, {"resources": ["x" * 10_000_000]},
        {"resources": ["a"], "coord_call": "x"},
    ]
    for arguments in wrong:
        result = line.call("acquire", arguments)["result"]
        assert result["isError"] is True, arguments
        error = result["structuredContent"]["error"]
        assert error["code"] in ("INVALID", "LIMIT", "OUTSIDE_REPO"), error
        assert len(error["message"]) < 2000 and error["next"]
        if arguments == {"resources": []}:
            assert "`resources` must have at least 1 entry." in error["message"]
    long = line.call("report_progress", {"progress": "x" * 10_000})["result"]
    assert long["structuredContent"]["error"]["message"].startswith("report_progress: `progress` must be at most ")
    assert line.call("next_task", {"wait_s": 1e9})["result"]["isError"]
    assert line.call("next_task", {"wait_s": -1})["result"]["isError"]
    assert holders(repo) == {}
    good = line.call("acquire", {"resources": ["notes.txt"]}, _meta={"sessionId": {"a": 1}})
    assert good["result"]["isError"] is False
    assert holders(repo) == {"notes.txt": "mallory"}


def test_it_ends_with_its_input_even_in_the_middle_of_a_wait(line: Line) -> None:
    line.asks(HELLO)
    line.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
              "params": {"name": "next_task", "arguments": {"wait_s": WAIT_S_MAX}}})
    assert line.process.stdin is not None
    line.process.stdin.close()
    assert line.process.wait(20) == 0


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, None])
@pytest.mark.parametrize("waits", [False, True])
def test_an_agent_of_its_own_leaves_however_its_server_is_ended(repo: Repo, ends: signal.Signals | None, waits: bool) -> None:
    repo.coord("init")
    line = Line(repo, {})
    line.asks(HELLO)
    assert not line.call("acquire", {"resources": ["notes.txt"]})["result"]["isError"]
    assert holders(repo) == {"notes.txt": "agent-mcp"}
    if waits:
        line.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                  "params": {"name": "next_task", "arguments": {"wait_s": WAIT_S_MAX}}})
    if ends is None:
        assert line.process.stdin is not None
        line.process.stdin.close()
    else:
        line.process.send_signal(ends)
    assert line.process.wait(20) == (0 if ends is None else 128 + ends)
    until(lambda: holders(repo) == {})


def test_a_client_that_listens_no_more_ends_it_without_a_word(repo: Repo) -> None:
    repo.coord("init")
    line = Line(repo, {})
    line.asks(HELLO)
    assert not line.call("acquire", {"resources": ["notes.txt"]})["result"]["isError"]
    assert line.process.stdout is not None
    line.process.stdout.close()
    line.say({"jsonrpc": "2.0", "id": 3, "method": "ping"})
    time.sleep(0.3)  # (it has answered by now, and nobody listened)
    with contextlib.suppress(BrokenPipeError):
        line.say({"jsonrpc": "2.0", "id": 4, "method": "ping"})
    assert line.process.stdin is not None and line.process.stderr is not None
    with contextlib.suppress(BrokenPipeError):
        line.process.stdin.close()
    assert line.process.wait(20) != 70 and line.process.stderr.read() == b""
    assert holders(repo) == {}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@given(tool=st.sampled_from(list(TOOLS.values())), data=st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_arguments_become_a_request_for_this_agent_or_a_refusal(tool: Any, data: Any) -> None:
    names = st.sampled_from([*tool.takes, "agent", "force", "cwd"]) | st.text(max_size=8)
    given_ = data.draw(st.dictionaries(names, anything | st.just("a") | st.just(["a"]), max_size=5))
    try:
        request = tool.asked(given_, "mallory", "/here")
    except Refusal as refusal:
        assert refusal.code in (Code.INVALID, Code.LIMIT)
        return
    assert isinstance(request, rq.Request)
    if isinstance(request, rq.Messages):  # its own, or all of what it names
        assert request.reader == ("mallory" if request.task is request.thread is None else None)
    elif tool.acts:
        assert request.agent == "mallory"  # type: ignore[attr-defined]
    assert not getattr(request, "force", False)
    assert getattr(request, "cwd", "/here") == "/here"
    assert getattr(request, "wait_s", 0.0) <= WAIT_S_MAX


def test_json_that_is_no_request_is_told_by_its_id(line: Line) -> None:
    assert line.asks(HELLO)["result"]["serverInfo"]["name"] == "coord"
    said = line.asks({"jsonrpc": "2.0", "id": 81, "method": "tools/call", "params": 5})
    assert said["error"]["code"] in (-32600, -32602) and said["id"] == 81, said
    said = line.asks(b"{")
    assert said["error"]["code"] == -32700 and said["id"] is None
