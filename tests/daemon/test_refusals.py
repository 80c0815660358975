"""Every refusal has its code, its sentence and its next step, the same at every door."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator.client.client import Client
from coordinator.client.locating import connect
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo

A = "a.py"


def text_of(text: str, **more: str) -> rq.CommitRegion:
    return rq.CommitRegion(agent="ann", regions=[rq.RegionText(resource="whole.py::something", text=text, **more)])


#: code -> (request, the CLI's words for it or None where the CLI cannot say it)
CASES: list[tuple[Code, rq.Request[Any], list[str] | None]] = [
    (Code.INVALID, rq.Acquire(agent="bob", resources=["x\0y"]), None),
    (Code.INVALID, rq.Acquire(agent="bob", resources=["x\ny"]), ["lock", "x\ny", "-a", "bob"]),
    (Code.INVALID, rq.Acquire(agent="bob", resources=["x" * 5000]), ["lock", "x" * 5000, "-a", "bob"]),
    (Code.INVALID, rq.Acquire(agent="bob", resources=[]), None),
    (Code.INVALID, rq.Acquire(agent="bob", resources=[A], ttl_s=-5), ["lock", A, "-a", "bob", "--ttl", "-5"]),
    (Code.INVALID, rq.Acquire(agent="bob", resources=[A], ttl_s=1e12), ["lock", A, "-a", "bob", "--ttl", "1e12"]),
    (Code.INVALID, rq.Acquire(agent="b o b", resources=[A]), ["lock", A, "-a", "b o b"]),
    (Code.INVALID, rq.TaskAdd(title=" "), ["task", "add", " "]),
    (Code.OUTSIDE_REPO, rq.Acquire(agent="bob", resources=["../out"]), ["lock", "../out", "-a", "bob"]),
    (Code.OUTSIDE_REPO, rq.Acquire(agent="bob", resources=["/etc/passwd"]), ["lock", "/etc/passwd", "-a", "bob"]),
    (Code.LIMIT, rq.Acquire(agent="bob", resources=[f"f{i}" for i in range(10_000)]), None),
    (Code.UNKNOWN_AGENT, rq.Heartbeat(agent="nobody"), None),
    (Code.UNKNOWN_TASK, rq.TaskShow(task="T-99"), ["task", "show", "T-99"]),
    (Code.UNKNOWN_LEASE, rq.Release(agent="ann", resources=["free.py"]), ["unlock", "free.py", "-a", "ann"]),
    (Code.REGION_UNKNOWN, rq.Acquire(agent="bob", resources=["whole.py::nothing"]), ["lock", "whole.py::nothing", "-a", "bob"]),
    (Code.UNKNOWN_REVIEW, rq.ReviewShow(review="R-99"), ["review", "show", "R-99"]),
    (Code.UNKNOWN_REQUEST, rq.RequestWithdraw(agent="bob", request="U-99"), ["request", "withdraw", "U-99", "-a", "bob"]),
    (Code.REQUEST_CLOSED, rq.RequestAnswer(agent="ann", request="U-1", verdict="approve"),
     ["request", "approve", "U-1", "-a", "ann"]),
    (Code.NAME_TAKEN, rq.Register(agent="ann"), None),
    (Code.NOT_HOLDER, rq.RequestAnswer(agent="cyd", request="U-2", verdict="reject"), ["request", "reject", "U-2", "-a", "cyd"]),
    (Code.NOT_HOLDER, rq.Release(agent="bob", resources=[A]), ["unlock", A, "-a", "bob"]),
    (Code.STALE_TOKEN, rq.Release(agent="ann", resources=[A], lease_token="0" * 32), None),
    (Code.LOCKED, rq.Acquire(agent="bob", resources=[A], retry=False), ["lock", A, "-a", "bob", "--no-retry"]),
    (Code.TASK_TAKEN, rq.TaskClaim(agent="bob", task="T-1"), ["task", "claim", "T-1", "-a", "bob"]),
    (Code.TASK_NOT_READY, rq.TaskClaim(agent="bob", task="T-2"), ["task", "claim", "T-2", "-a", "bob"]),
    (Code.BAD_TRANSITION, rq.TaskRetry(task="T-1"), ["task", "retry", "T-1"]),
    (Code.NOTHING_TO_DO, rq.TaskClaim(agent="bob"), ["task", "claim", "-a", "bob"]),
    (Code.VERSION_CHANGED, rq.ReviewDecide(review="R-1", verdict="revert"), ["review", "revert", "R-1"]),
    (Code.REGION_CHANGED, text_of("gone = 2\n", content_hash=f"sha256:{0:064}"), ["commit-region", "whole.py::something", "-a", "ann", "--hash", f"sha256:{0:064}", "--from", "coord.toml"]),
    (Code.PARSE_INVALID, text_of("def something(:\n"), None),
    (Code.OUT_OF_SCOPE_EDIT, text_of("other = 2\n"), ["commit-region", "whole.py::something", "-a", "ann", "--from", "coord.toml"]),
    (Code.UNKNOWN_KEY, rq.StateGet(key="key:nothing"), ["state", "get", "key:nothing"]),
    (Code.UNKNOWN_CHANGE, rq.ChangeShow(change="K-99"), None),
    (Code.UNKNOWN_MESSAGE, rq.MessageSend(agent="human", to="ann", text="yes", reply_to="M-99"), ["tell", "ann", "yes", "--reply", "M-99"]),
    (Code.UNKNOWN_STEP, rq.DeadShow(id="S-99"), ["dead", "show", "S-99"]),
    (Code.DEADLOCK, rq.Acquire(agent="hal", resources=["g.py"]), ["lock", "g.py", "-a", "hal"]),
    (Code.REVIEW_OPEN, rq.Acquire(agent="bob", resources=["half.py"]), ["lock", "half.py", "-a", "bob"]),
]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    """A repository in which every refusal can be met; none of them changes it."""
    root = tmp_path_factory.mktemp("scene")
    (root / "coord.toml").write_text("[review]\nquarantine = true\n")
    (root / "half.py").write_text("one\n")
    (root / "whole.py").write_text("def something():\n    pass\n")
    (root / ".coord").mkdir()
    repo = Repo(root)
    repo.coord("up", "--http", "0")
    boss, ann, old = repo.client(), repo.client("ann"), repo.client("old")
    old.acquire("half.py")
    (root / "half.py").write_text("half\n")
    old.call(rq.Leave(agent="old", clean=False))
    (root / "half.py").write_text("later\n")
    boss.call(rq.TaskAdd(title="one", resources=[A]))
    boss.call(rq.TaskAdd(title="two", after=["T-1"]))
    ann.claim("T-1")
    ann.acquire("c.py", "whole.py::something")
    boss.call(rq.RequestFile(agent="cyd", resource="c.py", reason="why not"))
    boss.call(rq.RequestAnswer(agent="ann", request="U-1", verdict="reject"))
    boss.call(rq.RequestFile(agent="cyd", resource="c.py", reason="why not now"))
    gus, hal = repo.client("gus"), repo.client("hal")
    gus.acquire("g.py")
    time.sleep(0.01)  # who has worked longer is told by instants, which are ms
    hal.acquire("h.py")
    with pytest.raises(Refusal):
        gus.acquire("h.py")
    yield repo
    repo.down()


def test_the_cases_cover_the_catalogue() -> None:
    elsewhere = {
        Code.UNAUTHORIZED, Code.DAEMON_DOWN, Code.VERSION_SKEW, Code.STORAGE, Code.INTERNAL,
        Code.SHUTTING_DOWN, Code.FOREIGN, Code.UNTRUSTED, Code.SANDBOXED,
        Code.REQUIRE_ADDITIONAL_LOCKS, Code.ESCALATION_REQUIRED, Code.VERIFY_FAILED, Code.UNGUARDED, Code.CONFLICT,
    }  # below, in test_once, test_process, test_foreign, test_trust, test_machine, test_region_commits, launch/test_worktrees and namespaces/test_in_a_sandbox
    assert {code for code, _, _ in CASES} | elsewhere == set(Code)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].value}-{c[1].op}")
def test_same_refusal_at_every_door(
    scene: Repo, case: tuple[Code, rq.Request[Any], list[str] | None]
) -> None:
    code, request, words = case
    row = code.row
    # Python
    with scene.client() as client, pytest.raises(Refusal) as met:
        client.call(request)
    refusal = met.value
    assert refusal.code is code and refusal.message and refusal.next
    # HTTP
    status, body = http(scene, request)
    assert (status, body["error"]["code"]) == (row.http, code.value), body
    assert body["error"]["retryable"] is row.retryable
    assert sameish(body["error"]["message"]) == sameish(refusal.message)
    # CLI
    if words is not None:
        done = scene.coord(*words)
        assert done.returncode == row.exit, done.stderr
        assert f"coord: {code.value}: " in done.stderr and "next: " in done.stderr
        assert "Traceback" not in done.stderr and done.stdout == ""


def sameish(text: str) -> str:
    """Without instants, which move on."""
    return "".join(c for c in text if not c.isdigit())


def http(repo: Repo, request: rq.Request[Any], token: str | None = None) -> tuple[int, Any]:
    base = repo.state.http.read_text().strip()
    method, path = request.http
    fields = msgspec.to_builtins(request)
    for name in [n for n in fields if "{" + n + "}" in path]:
        path = path.replace("{" + name + "}", str(fields.pop(name)))
    data = json.dumps(fields).encode() if method == "POST" else None
    asked = urllib.request.Request(base + path, data=data, method=method)
    asked.add_header("Authorization", f"Bearer {token or repo.state.bearer.read_text().strip()}")
    try:
        with urllib.request.urlopen(asked, timeout=30) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


def test_an_agent_is_held_to_itself(scene: Repo) -> None:
    zoe = scene.client("zoe")
    zoe.register()
    assert zoe.token is not None
    for request in (
        rq.Acquire(agent="ann", resources=["z.py"]), rq.Release(agent="ann", resources=[A], force=True),
        rq.ReviewDecide(review="R-1", verdict="keep"), rq.TaskDone(agent="ann", task="T-1"),
        rq.RequestFile(agent="ann", resource="half.py", reason="x"),
        rq.RequestAnswer(agent="ann", request="U-2", verdict="approve"),
        rq.RequestAnswer(agent="zoe", request="U-2", verdict="approve", force=True),
        rq.RequestWithdraw(agent="zoe", request="U-2"),
        rq.Shutdown(), rq.Register(agent="ann"), rq.TaskDone(agent="zoe", task="T-1", force=True),
    ):
        with pytest.raises(Refusal) as met:
            zoe.call(request)
        assert met.value.code in (Code.UNAUTHORIZED, Code.NOT_HOLDER), request
        status, body = http(scene, request, zoe.token)
        assert status in (401, 403), body
    env = {"COORD_AGENT_TOKEN": zoe.token}
    assert scene.coord("lock", "z.py", "--agent", "ann", env=env).returncode == 6
    assert scene.coord("lock", "z.py", "--agent", "zoe", env=env).returncode == 0
    child = zoe.call(rq.Register(agent="zoe-sub", parent="zoe"))
    sub = Client(scene.root, agent="zoe-sub", token=child.token)
    with pytest.raises(Refusal) as met:
        sub.acquire("z.py")
    assert met.value.code is Code.LOCKED, "a sub-agent is a holder of its own"


def routes(repo: Repo) -> list[tuple[str, str]]:
    """(method, path) of all that the HTTP door serves: the application's own table."""
    from coordinator.daemon.http_server import HttpServer
    from coordinator.daemon.mcp_server import McpEndpoint

    door = HttpServer.__new__(HttpServer)
    door._mcp = McpEndpoint.__new__(McpEndpoint)
    out = []
    for route in door._app().routes:
        for method in sorted(getattr(route, "methods", None) or {"GET", "POST"}):
            out.append((method, route.path.replace("{", "").replace("}", "")))  # type: ignore[attr-defined]
    return out


STRANGERS: list[dict[str, str]] = [
    {}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic TOKEN"},
    {"Authorization": "Bearer TOKEN", "Origin": "http://evil.example"},
    {"Authorization": "Bearer TOKEN", "Host": "evil.example"},
]


def test_every_route_keeps_strangers_out(scene: Repo) -> None:
    base = scene.state.http.read_text().strip()
    token = scene.state.bearer.read_text().strip()
    assert scene.state.bearer.stat().st_mode & 0o77 == 0
    every = [*routes(scene), ("GET", "/other"), ("GET", "/nothing"), ("PUT", "/v1/locks")]
    assert len(every) > 40 and ("GET", "/v1/events/stream") in every and ("POST", "/mcp") in every
    for method, path in every:
        for stranger in STRANGERS:
            headers = {k: v.replace("TOKEN", token) for k, v in stranger.items()}
            asked = urllib.request.Request(base + path, headers=headers, method=method,
                                           data=b"{}" if method == "POST" else None)
            with pytest.raises(urllib.error.HTTPError) as met:
                urllib.request.urlopen(asked, timeout=10)
            assert met.value.code == (403 if "Origin" in headers else 401), (method, path, headers)
            assert "Access-Control-Allow-Origin" not in met.value.headers


def test_an_agent_that_has_left_hears_no_events(scene: Repo) -> None:
    base = scene.state.http.read_text().strip()
    zoe = scene.client("zoe")
    zoe.register()
    name = zoe.agent
    assert name is not None
    asked = urllib.request.Request(base + "/v1/events/stream?after=0",
                                   headers={"Authorization": f"Bearer {zoe.token}"})
    with urllib.request.urlopen(asked, timeout=10) as stream:
        assert stream.status == 200
    zoe.call(rq.Leave(agent=name))
    with pytest.raises(urllib.error.HTTPError) as met:
        urllib.request.urlopen(asked, timeout=10)
    assert met.value.code == 401


def test_what_is_not_served_is_refused_in_words(scene: Repo) -> None:
    base = scene.state.http.read_text().strip()
    headers = {"Authorization": f"Bearer {scene.state.bearer.read_text().strip()}"}
    for method, path, status in (("GET", "/nothing", 404), ("DELETE", "/v1/locks", 405)):
        asked = urllib.request.Request(base + path, headers=headers, method=method)
        with pytest.raises(urllib.error.HTTPError) as met:
            urllib.request.urlopen(asked)
        assert met.value.code == status
        assert json.loads(met.value.read())["error"]["code"] == "INVALID"


def test_replies_that_nobody_reads_are_bounded(scene: Repo) -> None:
    """Thousands of pipelined questions, and subscribers, whose answers are not read."""
    def resident() -> int:
        status = Path(f"/proc/{scene.pid()}/statm").read_text().split()
        return int(status[1]) * 4096

    before = resident()
    deaf = []
    for _ in range(4):
        link = connect(scene.state)
        assert link is not None
        link.settimeout(0.5)
        with contextlib.suppress(TimeoutError):  # the coordinator reads no more of it
            link.sendall(b'{"op":"status","id":1}\n' * 20_000)
        deaf.append(link)
    for _ in range(20):
        link = connect(scene.state)
        assert link is not None
        link.sendall(b'{"op":"subscribe","id":0,"params":{"after":0}}\n')
        deaf.append(link)
    for n in range(300):
        http(scene, rq.TaskAdd(title=f"task {n}", prompt="x" * 20_000))
    assert resident() - before < 60_000_000
    # One that reads again gets every answer, in order
    deaf[0].settimeout(10)
    file = deaf[0].makefile("rb")
    assert all(json.loads(file.readline())["id"] == 1 for _ in range(500))
    for link in deaf:
        link.close()


@pytest.mark.parametrize("op", ["status", "health", "locks"])
def test_a_thousand_requests_may_be_sent_before_an_answer_is_read(scene: Repo, op: str) -> None:
    """As the protocol's page says. Not even the sending waits."""
    link = connect(scene.state)
    assert link is not None
    link.settimeout(20)
    link.sendall(b"".join(b'{"op":"%b","id":%d}\n' % (op.encode(), number) for number in range(1_000)))
    file = link.makefile("rb")
    assert [json.loads(file.readline())["id"] for _ in range(1_000)] == list(range(1_000))
    link.close()


def test_openapi_names_every_operation(scene: Repo) -> None:
    base = scene.state.http.read_text().strip()
    asked = urllib.request.Request(base + "/openapi.json", headers={
        "Authorization": f"Bearer {scene.state.bearer.read_text().strip()}"})
    with urllib.request.urlopen(asked) as reply:
        described = json.loads(reply.read())
    from coordinator.operations.listing import HTTP_PATHS, OPERATIONS

    ids = {op["operationId"] for path in described["paths"].values() for op in path.values()}
    assert ids == {*OPERATIONS, *(one.operation_id for one in HTTP_PATHS), "events_stream", "metrics", "alive", "page_enter",
                   "page_prove"}


def test_events_stream_over_http(scene: Repo) -> None:
    base = scene.state.http.read_text().strip()
    asked = urllib.request.Request(base + "/v1/events/stream?after=0")
    asked.add_header("Authorization", f"Bearer {scene.state.bearer.read_text().strip()}")
    with urllib.request.urlopen(asked, timeout=10) as stream:
        seen = [stream.readline().decode().strip() for _ in range(6)]
    assert "id: 1" in seen and any(line.startswith("data: {") for line in seen)


def test_no_daemon_no_autostart(make_repo: Callable[..., Repo], tmp_path: Path) -> None:
    repo = make_repo("lonely")
    with pytest.raises(Refusal) as met:
        Client(repo.root, autostart=False).call(rq.Locks())
    assert met.value.code is Code.DAEMON_DOWN and met.value.exit_code == 5
