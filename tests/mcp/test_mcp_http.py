"""The same tools at `/mcp` of the HTTP door, under its tokens."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import pytest
from mcp import Client

from coordinator.mcp.tools import TOOLS
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.mcp.talking import code, holders, over_http, talk, text

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "who_holds", "arguments": {}}}


@pytest.fixture
def ready(repo: Repo) -> Repo:
    repo.coord("init")
    repo.coord("up", "--http", "0")
    return repo


def bearer(repo: Repo) -> str:
    return repo.state.bearer.read_text().strip()


def post(repo: Repo, body: bytes, method: str = "POST", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """A request as any program may send it."""
    line = http.client.HTTPConnection(urlsplit(repo.state.http.read_text().strip()).netloc, timeout=30)
    told = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {bearer(repo)}"}
    told.update({name.replace("_", "-"): value for name, value in headers.items()})
    line.request(method, "/mcp", body, {k: v for k, v in told.items() if v})
    answer = line.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agents_token_speaks_for_it(ready: Repo, mode: str) -> None:
    with ready.client() as client:
        token = client.call(rq.Register(agent="zoe")).token
        client.call(rq.TaskAdd(title="Order the notes", resources=["notes.txt"]))

    async def script(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
        assert "Order the notes" in text(await client.call_tool("next_task", {}))
        assert holders(ready) == {"notes.txt": "zoe"}
        no = await client.call_tool("acquire", {"resources": ["a"], "agent": "ann"})
        assert code(no) == "INVALID"
        assert not (await client.call_tool("complete_task", {"task": "T-1"})).is_error

    talk(over_http(ready, token, agent="ann"), script, mode)  # the header is the operator's only
    assert holders(ready) == {}


def test_a_person_reads_and_acts_for_whom_they_name(ready: Repo) -> None:
    async def reads(client: Client) -> None:
        assert text(await client.call_tool("who_holds", {})) == "Nothing is leased."
        no = await client.call_tool("acquire", {"resources": ["notes.txt"]})
        assert code(no) == "UNAUTHORIZED" and "Coord-Agent" in text(no)

    async def acts(client: Client) -> None:
        assert not (await client.call_tool("acquire", {"resources": ["notes.txt"]})).is_error

    talk(over_http(ready, bearer(ready)), reads)
    talk(over_http(ready, bearer(ready), agent="ann"), acts)
    assert holders(ready) == {"notes.txt": "ann"}


@pytest.mark.parametrize("wrong", [
    {"Authorization": ""}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic eA=="},
    {"Origin": "http://evil.example"}, {"Host": "evil.example"},
])
def test_strangers_are_kept_out(ready: Repo, wrong: dict[str, str]) -> None:
    status, headers, body = post(ready, json.dumps(CALL).encode(), **wrong)
    assert status == (403 if "Origin" in wrong else 401) and json.loads(body)["error"]["code"] == "UNAUTHORIZED"
    assert headers.get("www-authenticate") == (None if "Origin" in wrong else "Bearer"), "no token would help a foreign page"


def test_what_is_no_call_gets_an_error_and_the_door_stays_open(ready: Repo) -> None:
    deep = b"[" * 100_000
    cases: list[tuple[bytes, int]] = [
        (b"", 400), (b"{", 400), (b"\xff\xfe", 400), (deep, 400), (b"[]", 400), (b"3", 400),
        (b'{"jsonrpc": "2.0"}', 400), (b"x" * (4 * 1024 * 1024 + 1), 413),
    ]
    for body, wanted in cases:
        status, _, said = post(ready, body)
        assert status == wanted, (body[:40], status, said[:200])
    for method in ("GET", "DELETE", "PUT"):
        status, headers, _ = post(ready, b"", method)
        assert (status, headers["allow"]) == (405, "POST")
    unknown = json.dumps({**CALL, "method": "server/burn"}).encode()
    assert json.loads(post(ready, unknown)[2])["error"]["code"] == -32601
    status, _, said = post(ready, json.dumps(CALL).encode())
    assert status == 200
    assert json.loads(said)["result"]["structuredContent"]["message"] == "Nothing is leased."


def test_who_hangs_up_is_given_nothing(ready: Repo) -> None:
    """Two wait for a task; the first goes away; the second gets it."""
    with ready.client() as client:
        lines = []
        for name in ("zoe", "kim"):
            token = client.call(rq.Register(agent=name)).token
            lines.append(http.client.HTTPConnection(
                urlsplit(ready.state.http.read_text().strip()).netloc, timeout=30))
            call = {**CALL, "params": {"name": "next_task", "arguments": {"wait_s": 40}}}
            lines[-1].request("POST", "/mcp", json.dumps(call).encode(), {
                "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                "Authorization": f"Bearer {token}"})
            assert post(ready, json.dumps(CALL).encode())[0] == 200  # what came before is in hand
        client.call(rq.Acquire(agent="ann", resources=["other.txt"]))  # and so is what it writes
        lines[0].close()
        assert post(ready, json.dumps(CALL).encode())[0] == 200
        client.call(rq.TaskAdd(title="Later", resources=["notes.txt"]))
        said = json.loads(lines[1].getresponse().read())
        assert "Later" in said["result"]["structuredContent"]["message"]
        assert client.call(rq.TaskShow(task="T-1")).claimed_by == "kim"
