"""The port of the HTTP door: one that is told of is open."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from coordinator.daemon import http_server
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.waiting import until


def test_a_port_that_another_is_bound_to_and_listens_at_is_refused(repo: Repo) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(Refusal) as no:
            http_server._listening(port)
        assert no.value.code is Code.INVALID and str(port) in no.value.message
        done = repo.coord("up", "--http", str(port))
        assert done.returncode == 2 and f"Port {port} cannot be used" in done.stderr


def test_of_two_that_are_bound_to_one_port_the_first_to_listen_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may give a port out twice until somebody listens at it: where any will do, the next one is taken."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken, asked = other.getsockname()[1], []

        class Given(socket.socket):
            def bind(self, address: object) -> None:
                asked.append(address)
                super().bind(("127.0.0.1", taken if len(asked) == 1 else 0))

        monkeypatch.setattr(http_server.socket, "socket", Given)
        with http_server._listening(0) as got:
            assert len(asked) == 2 and got.getsockname()[1] != taken


def test_what_is_told_of_listens(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    door = repo.state.http.read_text().strip()
    with socket.create_connection(("127.0.0.1", int(door.rpartition(":")[2])), timeout=5):
        pass


def test_one_in_the_foreground_tells_where_it_is(repo: Repo) -> None:
    (repo.root / ".coord").mkdir()
    with subprocess.Popen([sys.executable, "-m", "coordinator.cli.main", "serve", "--http", "0"], cwd=repo.root,
                          stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stderr is not None
        said = [serving.stderr.readline() for _ in range(2)]
        serving.send_signal(signal.SIGTERM)
        assert said[1].startswith("coord: its HTTP door is http://127.0.0.1:"), said


def test_it_is_called_by_this_machines_own_names_and_no_other(repo: Repo) -> None:
    """With its port, or without, as proxies name it; a page of a stranger's name is not served."""
    repo.coord("up", "--http", "0")
    port = int(repo.state.http.read_text().strip().rpartition(":")[2])
    token = repo.state.bearer.read_text().strip()

    def status(host: str) -> int:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        link.putrequest("GET", "/v1/locks", skip_host=True)
        link.putheader("Host", host)
        link.putheader("Authorization", f"Bearer {token}")
        link.endheaders()
        answer = link.getresponse()
        answer.read()
        link.close()
        return answer.status

    own = [f"{name}{end}" for name in ("127.0.0.1", "localhost", "[::1]", "LOCALHOST") for end in ("", f":{port}")]
    assert {host: status(host) for host in own} == dict.fromkeys(own, 200)
    strangers = ["evil.example", f"evil.example:{port}", f"127.0.0.1:{port + 1}", f"localhost.evil.example:{port}", "127.0.0.1:", "", f"127.0.0.1:{port}:1"]
    assert {host: status(host) for host in strangers} == dict.fromkeys(strangers, 401)


def asked(repo: Repo, path: str, method: str = "GET", body: str | None = None, **headers: str) -> http.client.HTTPResponse:
    port = int(repo.state.http.read_text().strip().rpartition(":")[2])
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.request(method, path, body, {"Authorization": f"Bearer {repo.state.bearer.read_text().strip()}", **headers})
    answer = link.getresponse()
    answer.read()
    return answer


def test_a_page_of_another_origin_is_forbidden_whatever_its_token(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    for path, method in (("/mcp", "POST"), ("/v1/locks", "GET")):
        for origin in ("http://evil.example", "null", "https://127.0.0.1"):
            answer = asked(repo, path, method, "{}", Origin=origin)
            assert answer.status == 403 and answer.headers["WWW-Authenticate"] is None


def test_who_is_refused_for_now_is_told_when_to_ask_again(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    repo.coord("lock", "a.py", "--agent", "ann")
    answer = asked(repo, "/v1/locks", "POST", '{"agent": "bob", "resources": ["a.py"]}')
    assert answer.status == 423 and int(answer.headers["Retry-After"]) >= 1
    assert asked(repo, "/v1/locks").headers["Retry-After"] is None


def test_a_door_that_was_asked_for_stays_asked_for(repo: Repo) -> None:
    """In a coordinator that runs, and in the next one, after a rest and after a kill; until `coord down`."""
    repo.write("coord.toml", "[daemon]\nidle_s = 1.0\n")
    repo.coord("trust", "--yes")
    repo.coord("up")
    assert not repo.state.http.exists()
    assert repo.coord("up", "--http", "0").returncode == 0
    door = repo.state.http.read_text()
    assert asked(repo, "/v1/locks").status == 200
    first = repo.pid()
    until(lambda: not os.path.exists(f"/proc/{first}"), 60)
    assert not repo.state.http.exists(), "nobody sends a token to who listens there next"
    repo.coord("locks")
    assert repo.state.http.read_text() == door and asked(repo, "/v1/locks").status == 200
    os.kill(repo.pid(), signal.SIGKILL)
    repo.coord("locks")
    assert repo.state.http.read_text() == door
    done = repo.coord("up", "--http", "1")
    assert done.returncode != 0 and "not at port 1" in done.stderr
    repo.coord("down")
    repo.coord("locks")
    assert not repo.state.http.exists()


def test_the_door_of_one_that_was_killed_is_open_again(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    door, token = repo.state.http.read_text(), repo.state.bearer.read_text().strip()
    port = int(door.strip().rpartition(":")[2])
    os.kill(repo.pid(), signal.SIGKILL)
    assert repo.coord("task", "add", "x").returncode == 0
    assert repo.state.http.read_text() == door
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.request("GET", "/v1/tasks", headers={"Authorization": f"Bearer {token}"})
    assert link.getresponse().status == 200
    # Where another listens by now, there is none, and nothing names it
    os.kill(repo.pid(), signal.SIGKILL)
    until(lambda: not alive(port))
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        assert repo.coord("task", "add", "y").returncode == 0
        assert not repo.state.http.exists()
    # and none after an end that was asked for
    repo.coord("down")
    repo.coord("up", "--http", "0")
    repo.coord("down")
    assert repo.coord("locks").returncode == 0 and not repo.state.http.exists()


def test_where_any_port_will_do_the_one_before_a_crash_is_taken_again(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config="[http]\nenabled = true\n")
    repo.coord("up")
    door = repo.state.http.read_text()
    os.kill(repo.pid(), signal.SIGKILL)
    repo.coord("locks")
    assert repo.state.http.read_text() == door
    os.kill(repo.pid(), signal.SIGKILL)
    port = int(door.strip().rpartition(":")[2])
    until(lambda: not alive(port))
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        repo.coord("locks")
        assert repo.state.http.exists() and repo.state.http.read_text() != door


def alive(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0
